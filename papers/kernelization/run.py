"""Theorems on kernels: compute, draw, and write `results.md` with its figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import experiments as ex
import numpy as np
import pictures as pic
from matplotlib import rc_context
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[1]))

from _pictures import STYLE
from _report import Section, place_of, write

HERE = Path(__file__).parent


def _representer(fit: ex.Fit) -> Iterable[Any]:
    s, data = fit.machine.solution_, "banana" if fit.y.min() < 0 else "coal"
    radius = float(np.sqrt(max(s.gap, 0.0) / fit.machine.penalty))
    return fit.name, data, len(fit.y), f"{s.objective:.9f}", s.gap, radius, fit.residual


def _descent(d: ex.Descent) -> Iterable[Any]:
    return d.name, d.step, *(max(float(d.excess[t]), 0.0) for t in (0, 10, 50, 100)), d.distance


def _svm(s: ex.Svm) -> Iterable[Any]:
    counts = int((s.alpha > 0).sum()), int(s.free.sum())
    values = f"{s.primal:.7f}", f"{s.dual:.7f}", abs(s.primal - s.dual) / s.primal
    return f"{s.cost:,.1f}", *values, *counts, f"{s.bias:.5f}", f"{s.machine.intercept_[0]:.5f}"


def _finite(item: Any) -> Iterable[Any]:
    f, inner, distance = item
    rank = int(np.linalg.matrix_rank(f.kernel.matrix))
    return f.weights, f(f.centers), inner, f.norm(), distance, rank, f.kernel.feature_count(1)


def _mercer(s: ex.Spectrum) -> Iterable[Any]:
    squares = f"{np.sum(s.values**2):.6f}", f"{s.double:.6f}"
    return s.kernel, *s.values[:4].tolist(), *squares, *s.errors[[1, 5, 10, -1]].tolist()


SECTIONS = (
    Section("representer", ex.representer_data,
            "loss | data | n | objective | certified gap | √(gap/γ) | residual",
            _representer, {"representer": pic.draw_representer, "coal": pic.draw_coal}),
    Section("updates", ex.updates_data, "x_t | y_t | weights after the step",
            lambda step: (*step[:2], step[2].weights.round(4)), {"updates": pic.draw_updates}),
    Section("descent", ex.descent_data,
            "loss | step η | t = 0 | t = 10 | t = 50 | t = 100 | ‖f - f*‖ at the end",
            _descent, {"descent": pic.draw_descent}),
    Section("svm", ex.svm_data,
            "c | primal | dual | relative difference | support | free | b by rule | b of hplus",
            _svm, {"svm": pic.draw_svm, "banana": pic.draw_banana}),
    Section("closures", ex.closure_data, "rule | kernel | features | largest error", tuple, {}),
    Section("finite", ex.finite_data,
            "weights a | f(0), …, f(3) | <f, k(i, ·)> | ‖f‖ | distance | rank K | dim H",
            _finite, {"finite": pic.draw_finite}),
    Section("mercer", ex.mercer_data,
            "kernel | λ₁ | λ₂ | λ₃ | λ₄ | Σ λᵢ² | ∬ k² | error, m = 1 | m = 5 | m = 10 | m = 100",
            _mercer, {"mercer": pic.draw_mercer}),
    Section("ridge", ex.ridge_data,
            "γ | alpha = γn | KernelRidge(γn) | KernelRidge(γ) | Linear() and Ridge(γn)",
            tuple, {}),
)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=place_of(HERE), help="output folder (default: in docs)"
    )
    with rc_context(STYLE), threadpool_limits(1):  # the matrices are small
        write(HERE, parser.parse_args().out, SECTIONS, {})
