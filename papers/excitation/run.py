"""Self-exciting rates: compute, draw, and write `results.md` with its figures."""

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

FEW = {"until": 1500.0, "days": 200.0}
QUICK: Sizes = {
    "triggers": {"sets": 1, "until": 1500.0, "ratios": (0.5,)},
    "etas": {"days": 200.0, "learned": False},
    "certificate": FEW | {"em_steps": (1, 10, 100), "barrier_steps": (1, 5, 100)},
    "declustering": FEW,
    "calibration": FEW,
    "forecasts": {"days": 200.0, "paths": 200},
}
"""Sizes that take a few seconds."""


def _triggers(r: ex.Recovered) -> Iterable[Any]:
    errors = (f"{e.mean():.2f}" for e in (r.smoothed, r.unsmoothed))
    ratio = f"{r.ratios.mean():.3f} ± {r.ratios.std():.3f}"
    return r.name, f"{r.branching:g}", *errors, ratio, f"{r.covered.sum()} of {len(r.covered)}"


def _etas(i: ex.InPlace) -> Iterable[Any]:
    numbers = (f"{x:.2f}" for x in (i.branching, i.slope, i.growth, *i.errors))
    return i.name, *numbers, f"{i.score:.4f}", f"{i.seconds:.0f}" if i.model else ""


def _certificate(p: ex.Progress) -> Iterable[Any]:
    missing = f"{max(p.missing, 0.0):.1e}"
    return p.problem, p.solver, p.steps, f"{p.gap:.1e}", missing, f"{p.seconds:.2f}"


def _declustering(d: ex.Declustered) -> Iterable[Any]:
    counts = f"{d.background.sum():.0f}", int(d.was.sum())
    parent = d.parent.sum() / (1.0 - d.background).sum()
    parents = share(parent), share(d.parent_right[~d.was])
    return d.problem, len(d.was), *counts, share(d.most), share(d.right), *parents


def _calibration(b: ex.Bin) -> Iterable[Any]:
    each = (
        cell
        for count, predicted, observed in zip(b.counts, b.predicted, b.observed, strict=True)
        for cell in (int(count), *((share(predicted), share(observed)) if count else ("", "")))
    )
    return f"{b.low:.1f} to {b.high:.1f}", *each


def _forecasts(f: ex.Future) -> Iterable[Any]:
    days = "day" if f.horizon == 1.0 else f"{f.horizon:g} days"
    kinds = (f.truth, f.forecast, f.poisson)
    bounds = (" / ".join(f"{q:.0f}" for q in f.bounds(counts)) for counts in kinds)
    return (
        f.moment,
        days,
        *bounds,
        f"{np.mean(f.truth):.1f}",
        f"{np.mean(f.forecast):.1f}",
        (share(f.covered)),
    )


SECTIONS = (
    Section("triggers", ex.triggers_data,
            "trigger | branching | error, smoothed | error, not smoothed | estimated ratio "
            "(mean ± sd) | in its 90 % interval", _triggers, {"triggers": pic.draw_triggers}),
    Section("etas", ex.etas_data,
            "rate | branching ratio | slope of log productivity | growth of reach | error by lag | "
            "error by distance | log-likelihood per fresh event | CPU seconds",
            _etas, {"etas": pic.draw_etas}),
    Section("certificate", ex.certificate_data,
            "problem | solver | steps | certified gap | true distance | CPU seconds",
            _certificate, {"certificate": pic.draw_certificate}),
    Section("declustering", ex.declustering_data,
            "problem | events | background, expected | true | likeliest origin right, expected | "
            "true | likeliest parent right, expected | true", _declustering, {}),
    Section("calibration", ex.calibration_data,
            "probability | line: events | mean probability | were background | "
            "place and time: events | mean probability | were background",
            _calibration, {"calibration": pic.draw_calibration}),
    Section("forecasts", ex.forecasts_data,
            "moment | next | truth | forecast | Poisson | mean, truth | mean, forecast | "
            "true counts in the 90 % interval", _forecasts, {"forecasts": pic.draw_forecasts}),
)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=place_of(HERE), help="output folder (default: in docs)"
    )
    parser.add_argument("--sets", type=int, default=10, help="data sets for each trigger")
    parser.add_argument("--quick", action="store_true", help="use small sizes")
    options = parser.parse_args()
    sizes = QUICK if options.quick else {"triggers": {"sets": options.sets}}
    with rc_context(STYLE), threadpool_limits(1):  # the matrices are small
        write(HERE, options.out, SECTIONS, sizes)
