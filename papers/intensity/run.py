"""Rates of events: compute, draw, and write `results.md` with its figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[1]))

import experiments as ex
import pictures as pic
from _pictures import STYLE
from _report import Section, Sizes, place_of, share, write

HERE = Path(__file__).parent

SMALL = {"sets": 2, "few": 2, "truths": ex.TRUTHS[:1], "factors": (1.0,)}
QUICK: Sizes = {
    "errors": SMALL,
    "bands": SMALL,
    "distance": {"splits": 2, "models": ("exp", "square", "KDE")},
    "court": {"splits": 2, "models": ("KDE",)},
    "coal": {"halves": 2},
}
"""Sizes that take a few seconds."""


def _rate(fits: ex.Simulated | ex.Bands) -> str:
    times = "" if fits.truth.factor == 1.0 else f" × {fits.truth.factor:g}"
    return f"Λ{fits.truth.name[-1]}{times}"


def _errors(s: ex.Simulated) -> Iterable[Any]:
    difference, error = s.to_kde
    beside = "" if s.model == "KDE" else f"{difference:+.3g} ± {error:.2g}"
    return _rate(s), s.model, len(s.error), float(s.error.mean()), beside, share(s.negative)


def _bands(b: ex.Bands) -> Iterable[Any]:
    covered = (share(b.fits[name].covered) for name in ex.OURS)
    return _rate(b), f"{b.truth.mean_count:.0f}", *covered


def _shots(s: ex.Shots) -> Iterable[Any]:
    difference, error = s.to_kde
    beside = "" if s.model == "KDE" else f"{difference:+.3f} ± {error:.3f}"
    return s.model, f"{s.gains.mean():.3f}", beside, f"{s.seconds:.2f}"


def _coal(g: ex.Goodness) -> Iterable[Any]:
    return g.name, g.statistic, g.p_value, float(np.median(g.held_out)), share(g.held_out < 0.05)


SHOTS = "model | gain | difference from KDE | CPU seconds"

SECTIONS = (
    Section("errors", ex.errors_data,
            "rate | model | data sets | mean squared error | difference from KDE | below zero",
            _errors, {"errors": pic.draw_errors}),
    Section("bands", ex.bands_data, "rate | events | exp | square | sos",
            _bands, {"bands": pic.draw_bands}),
    Section("distance", ex.distance_data, SHOTS, _shots, {"distance": pic.draw_distance}),
    Section("court", ex.court_data, SHOTS, _shots, {"court": pic.draw_court}),
    Section("coal", ex.coal_data,
            "test | statistic | p-value | median p-value on held-out halves | below 0.05",
            _coal, {"coal": pic.draw_coal}),
)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=place_of(HERE), help="output folder (default: in docs)"
    )
    parser.add_argument("--sets", type=int, default=100, help="data sets for exp and the KDE")
    parser.add_argument("--few", type=int, default=20, help="data sets for the other models")
    parser.add_argument("--quick", action="store_true", help="use small sizes")
    options = parser.parse_args()
    drawn = {"sets": options.sets, "few": options.few}
    sizes = QUICK if options.quick else {"errors": drawn, "bands": drawn}
    with rc_context(STYLE), threadpool_limits(1):  # the matrices are small
        write(HERE, options.out, SECTIONS, sizes)
