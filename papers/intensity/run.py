"""Rates of events at work: compute, draw, and write `results.md` with its pictures."""

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
Sizes = dict[str, dict[str, Any]]

SMALL = {"sets": 2, "few": 2, "truths": ex.TRUTHS[:1], "factors": (1.0,)}
QUICK: Sizes = {
    "errors": SMALL,
    "bands": SMALL,
    "distance": {"splits": 2, "models": ("exp", "square", "KDE")},
    "court": {"splits": 2, "models": ("KDE",)},
    "coal": {"halves": 2},
}
"""Sizes that take a few seconds."""


class Section(NamedTuple):
    """A name in report.md: what is computed, how it is tabled (a row for each item) and drawn."""

    name: str
    data: Callable[..., Any]
    header: str
    row: Callable[[Any], Iterable[Any]]
    draw: Draw

    def table(self, items: Iterable[Any]) -> str:
        """The items as a Markdown table."""
        names = self.header.split(" | ")
        lines = [names, ["---"] * len(names), *(self.row(item) for item in items)]
        return "\n".join(f"| {' | '.join(_text(cell) for cell in line)} |" for line in lines)


def _text(cell: Any) -> str:
    """Numbers with three digits, all else as it is."""
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)


def _rate(fits: ex.Simulated | ex.Bands) -> str:
    times = "" if fits.truth.factor == 1.0 else f" × {fits.truth.factor:g}"
    return f"Λ{fits.truth.name[-1]}{times}"


def _errors(s: ex.Simulated) -> Iterable[Any]:
    difference, error = s.to_kde
    beside = "" if s.model == "KDE" else f"{difference:+.3g} ± {error:.2g}"
    return _rate(s), s.model, len(s.error), float(s.error.mean()), beside, _share(s.negative)


def _bands(b: ex.Bands) -> Iterable[Any]:
    covered = (_share(b.fits[name].covered) for name in ex.OURS)
    return _rate(b), f"{b.truth.mean_count:.0f}", *covered


def _shots(s: ex.Shots) -> Iterable[Any]:
    difference, error = s.to_kde
    beside = "" if s.model == "KDE" else f"{difference:+.3f} ± {error:.3f}"
    return s.model, f"{s.gains.mean():.3f}", beside, f"{s.seconds:.2f}"


def _coal(g: ex.Goodness) -> Iterable[Any]:
    return g.name, g.statistic, g.p_value, float(np.median(g.held_out)), _share(g.held_out < 0.05)


def _share(places: Any) -> str:
    return f"{np.mean(places):.1%}"


SHOTS = "model | gain | less the KDE's | CPU seconds"

SECTIONS = (
    Section("errors", ex.errors_data,
            "rate | model | sets | mean squared error | less the KDE's | below zero",
            _errors, pic.draw_errors),
    Section("bands", ex.bands_data, "rate | events | exp | square | sos", _bands, pic.draw_bands),
    Section("distance", ex.distance_data, SHOTS, _shots, pic.draw_distance),
    Section("court", ex.court_data, SHOTS, _shots, pic.draw_court),
    Section("coal", ex.coal_data,
            "check | statistic | p-value | median p-value of held-out halves | below 0.05",
            _coal, pic.draw_coal),
)  # fmt: skip


def main(out: Path, sizes: Sizes) -> None:
    """Run every section and write the report into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    start, tables = time.perf_counter(), {}
    for section in SECTIONS:
        data = section.data(**sizes.get(section.name, {}))
        tables[section.name] = section.table(data)
        print(f"\n{section.name}, {time.perf_counter() - start:.1f} s\n{tables[section.name]}")
        figure = Figure()
        section.draw(data, figure)
        figure.savefig(out / f"{section.name}.png")
    text = (HERE / "report.md").read_text("utf-8")
    (out / "results.md").write_text(text.format(**tables), "utf-8")
    print(f"\nwrote results.md and its pictures to {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="where to write (default: docs)")
    parser.add_argument("--sets", type=int, default=100, help="sets of events for exp and the KDE")
    parser.add_argument("--few", type=int, default=20, help="sets for the other models")
    parser.add_argument("--quick", action="store_true", help="small sizes, for a look")
    options = parser.parse_args()
    drawn = {"sets": options.sets, "few": options.few}
    sizes = QUICK if options.quick else {"errors": drawn, "bands": drawn}
    with rc_context(pic.STYLE), threadpool_limits(1):  # the matrices are small
        main(options.out, sizes)
