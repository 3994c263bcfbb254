"""Shared by the papers: sections that compute, tabulate and draw, and the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

Draw = Callable[[Any, Figure], None]
Sizes = Mapping[str, Mapping[str, Any]]
"""The arguments of each section's computation, by name."""


class Section(NamedTuple):
    """A placeholder in report.md: how it is computed, tabulated (one row per item) and drawn."""

    name: str
    data: Callable[..., Any]
    header: str
    row: Callable[[Any], Iterable[Any]]
    pictures: Mapping[str, Draw]

    def table(self, items: Iterable[Any]) -> str:
        """The items as a Markdown table."""
        names = self.header.split(" | ")
        lines = [names, ["---"] * len(names), *(self.row(item) for item in items)]
        return "\n".join(f"| {' | '.join(_text(cell) for cell in line)} |" for line in lines)


def _text(cell: Any) -> str:
    """Numbers with three digits, arrays as tuples, and Markdown characters escaped."""
    if isinstance(cell, float):
        return f"{cell:.3g}"
    if isinstance(cell, np.ndarray):
        return f"({', '.join(f'{number:g}' for number in cell)})"
    return str(cell).replace("|", "\\|")


def share(places: Any) -> str:
    """The share of True values, in per cent."""
    return f"{np.mean(places):.1%}"


def place_of(folder: Path) -> Path:
    """The folder for the results of the paper in `folder`."""
    return folder.parents[1] / "docs" / "papers" / folder.name


def write(folder: Path, out: Path, sections: Iterable[Section], sizes: Sizes) -> None:
    """Run every section, fill in the folder's report.md, and write it to `out` with its figures."""
    out.mkdir(parents=True, exist_ok=True)
    start, tables = time.perf_counter(), {}
    for section in sections:
        data = section.data(**sizes.get(section.name, {}))
        tables[section.name] = section.table(data)
        print(f"\n{section.name}, {time.perf_counter() - start:.1f} s\n{tables[section.name]}")
        for name, draw in section.pictures.items():
            figure = Figure()
            draw(data, figure)
            figure.savefig(out / f"{name}.png")
            print(f"drew {name}.png")
    text = (folder / "report.md").read_text("utf-8")
    (out / "results.md").write_text(text.format(**tables), "utf-8")
    print(f"\nwrote results.md and its figures to {out}")
