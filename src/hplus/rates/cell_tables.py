"""Tables of counts: cells of places in rows, blocks of time before the end in columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.statistic import Statistic


class PlaceCells(NamedTuple):
    """The cells of places that hold events: indices (c, d) at a depth, and events' rows."""

    depth: int
    indices: Ints
    row: Ints

    def __len__(self) -> int:
        return len(self.indices)


def place_cells(events: Statistic, depth: int) -> PlaceCells:
    """The cells at a depth of all axes but the last, which is time."""
    at = events.lattice.indices(events.codes)[:, :-1] >> (events.depth - depth)
    keys = np.ravel_multi_index(tuple(at.T), tuple(at.max(axis=0) + 1))
    _, first, row = np.unique(keys, return_index=True, return_inverse=True)
    return PlaceCells(depth, at[first], row)


def time_step_of(events: Statistic) -> float:
    """The length of a cell of time."""
    return float(events.lattice.cell_sides(events.depth)[-1])


def observed_steps(events: Statistic, span: float) -> int:
    """How many cells of time an observation period of this length fills, up to its end."""
    return int(span / time_step_of(events) * (1.0 + 1e-9))


def count_table(events: Statistic, span: float, cells: PlaceCells, size: int) -> Floats:
    """Counts of cells in blocks of `size` cells of time, (c, b): the last block ends last."""
    blocks = observed_steps(events, span) // size
    before = 2**events.depth - 1 - events.lattice.indices(events.codes)[:, -1]
    some = before < blocks * size
    where = cells.row[some] * blocks + blocks - 1 - before[some] // size
    counts = np.bincount(where, weights=events.masses[some], minlength=len(cells) * blocks)
    return counts.reshape(len(cells), blocks).astype(float)
