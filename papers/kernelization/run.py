"""Theorems on kernels at work: compute, draw, and write `results.md` with its pictures."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import experiments as ex
import numpy as np
import pictures as pic
from matplotlib import rc_context
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "docs" / "papers" / HERE.name

Draw = Callable[[Any, Figure], None]


class Section(NamedTuple):
    """A name in report.md: what is computed, how it is tabled (a row for each item) and drawn."""

    name: str
    data: Callable[[], Any]
    header: str
    row: Callable[[Any], Iterable[Any]]
    pictures: dict[str, Draw]

    def table(self, items: Iterable[Any]) -> str:
        """The items as a Markdown table."""
        names = self.header.split(" | ")
        lines = [names, ["---"] * len(names), *(self.row(item) for item in items)]
        return "\n".join(f"| {' | '.join(_text(cell) for cell in line)} |" for line in lines)


def _text(cell: Any) -> str:
    """Numbers with three digits, arrays as tuples, signs that Markdown would read escaped."""
    if isinstance(cell, float):
        return f"{cell:.3g}"
    if isinstance(cell, np.ndarray):
        return f"({', '.join(f'{number:g}' for number in cell)})"
    return str(cell).replace("|", "\\|")


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


def main(out: Path) -> None:
    """Run every section and write the report into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    start, tables = time.perf_counter(), {}
    for section in SECTIONS:
        data = section.data()
        tables[section.name] = section.table(data)
        print(f"\n{section.name}, {time.perf_counter() - start:.1f} s\n{tables[section.name]}")
        for name, draw in section.pictures.items():
            figure = Figure()
            draw(data, figure)
            figure.savefig(out / f"{name}.png")
            print(f"drew {name}.png")
    text = (HERE / "report.md").read_text("utf-8")
    (out / "results.md").write_text(text.format(**tables), "utf-8")
    print(f"\nwrote results.md and its pictures to {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="where to write (default: docs)")
    with rc_context(pic.STYLE), threadpool_limits(1):  # the matrices are small
        main(parser.parse_args().out)
