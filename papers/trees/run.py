"""Rates by random trees: compute, draw, and write `results.md` with its figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[1]))

import experiments as ex
import pictures as pic
from _pictures import STYLE
from _report import Section, Sizes, place_of, write

HERE = Path(__file__).parent

QUICK: Sizes = {
    "kernel": {"draws": 300},
    "offsets": {"events": 1500, "seeds": 2, "most": 16},
    "spectrum": {"events": 4000, "names": ("fine", "none")},
    "coverage": {"events": 1500, "sets": 2, "depths": 4},
    "smooth": {"sets": 1, "factor": 1.0},
    "stream": {"events": 800, "parts": (3,)},
}
"""Sizes that take a few seconds."""


def _kernel(d: ex.Distance) -> Iterable[Any]:
    measured = f"{d.measured:.3f} ± {d.error:.3f}"
    return f"{d.distance:.4f}", f"{d.exact:.3f}", measured, f"{d.features:.3f}"


def _offsets(a: ex.Averaged) -> Iterable[Any]:
    return a.name, a.trees, f"{a.scores.mean():.3f}", f"{a.scores.std():.3f}"


def _spectrum(s: ex.Size) -> Iterable[Any]:
    found = f"{s.found:.2f} ({s.low:.2f} to {s.high:.2f})"
    return s.name, f"1/{1 / s.size:.0f}", f"{s.truth:.2f}", found, f"{s.gain:z.0f}"


def _coverage(c: ex.Covered) -> Iterable[Any]:
    return f"1/{1 / c.size:.0f}", c.boxes, f"{c.covered:.1%}"


def _smooth(c: ex.Compared) -> Iterable[Any]:
    return c.name, *(f"{c.errors[model].mean():.4f}" for model in ex.MODELS)


def _stream(s: ex.Streamed) -> Iterable[Any]:
    return s.order, s.parts, "yes" if s.same else "no"


SECTIONS = (
    Section("kernel", ex.kernel_data,
            "distance | kernel | measured | random binning: largest error of a level",
            _kernel, {"kernel": pic.draw_kernel}),
    Section("offsets", ex.offsets_data,
            "events | trees | held-out log density over uniform | its sd over offsets",
            _offsets, {"offsets": pic.draw_offsets}),
    Section("spectrum", ex.spectrum_data,
            "cascade | size | true variation | spectrum | nats", _spectrum,
            {"spectrum": pic.draw_spectrum}),
    Section("coverage", ex.coverage_data, "side of boxes | boxes | new counts inside", _coverage,
            {"coverage": pic.draw_coverage}),
    Section("smooth", ex.smooth_data, "rate | smooth field | trees | mixture", _smooth,
            {"smooth": pic.draw_smooth}),
    Section("stream", ex.stream_data, "order | parts | same bits as the batch", _stream, {}),
)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=place_of(HERE), help="output folder (default: in docs)"
    )
    parser.add_argument("--quick", action="store_true", help="use small sizes")
    options = parser.parse_args()
    with rc_context(STYLE), threadpool_limits(1):  # the matrices are small
        write(HERE, options.out, SECTIONS, QUICK if options.quick else {})
