"""Regions of places cut into the cells of a grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.lattice import CellLattice
from hplus.windows import Box, Interval, Planar, Product, Window

Pieces = tuple[list[int], list[int], list[Window]]
"""Which region each piece belongs to, which cell it lies in, and the piece."""


CellBox = tuple[int, Floats, Floats]
"""The number of a cell, and the corners of what it has in common with a box."""


class CellGrid(NamedTuple):
    """Cells of equal size that cover the box from `low` to `high`, with `side` (d,) each."""

    low: Floats
    high: Floats
    side: Floats
    shape: tuple[int, ...]

    def indices(self, X: Floats) -> Ints:
        """The number of the cell of each point, (n,)."""
        at = np.clip(((X - self.low) / self.side).astype(np.int64), 0, np.array(self.shape) - 1)
        return np.ravel_multi_index(tuple(at.T), self.shape)

    def cells_in(self, low: Floats, high: Floats) -> Iterator[CellBox]:
        """Cells that a box meets inside the grid: number, and bounds of what is common."""
        low, high = np.maximum(low, self.low), np.minimum(high, self.high)
        if not np.all(low < high):
            return
        first = np.floor((low - self.low) / self.side).astype(int)
        last = np.minimum(np.ceil((high - self.low) / self.side).astype(int), self.shape)
        for at in product(*map(range, first.tolist(), last.tolist())):
            a = np.maximum(self.low + np.array(at) * self.side, low)
            b = np.minimum(self.low + (np.array(at) + 1) * self.side, high)
            if np.all(a < b):
                yield int(np.ravel_multi_index(at, self.shape)), a, b


def place_grid(window: Product, shape: tuple[int, ...]) -> CellGrid:
    """The cells of the places of a window of places and times."""
    d = window.left.dimension
    low, high = window.left.bounds()
    return CellGrid(low, high, CellLattice(window).sides[:d] / np.array(shape), shape)


def pieces_of(grid: CellGrid, regions: Sequence[Window]) -> Pieces:
    """The parts of regions in the cells of a grid."""
    owners: list[int] = []
    cells: list[int] = []
    pieces: list[Window] = []
    for owner, region in enumerate(regions):
        for cell, piece in _pieces(region, list(grid.cells_in(*region.bounds()))):
            owners.append(owner)
            cells.append(cell)
            pieces.append(piece)
    return owners, cells, pieces


def _pieces(region: Window, met: list[CellBox]) -> Iterator[tuple[int, Window]]:
    """The parts of a region in the boxes of cells; only boxes on its border are cut."""
    if not isinstance(region, Planar):
        yield from ((cell, cuboid(low, high)) for cell, low, high in met)
        return
    lows, highs = (np.reshape([box[k] for box in met], (-1, 2)) for k in (1, 2))
    meets, inside = region.meets_boxes(lows, highs)
    for i in np.flatnonzero(meets):
        cell, low, high = met[i]
        piece = cuboid(low, high) if inside[i] else region.within_box(low, high)
        if piece is not None:
            yield cell, piece


def cuboid(low: Floats, high: Floats) -> Box | Interval:
    """The box between two corners, (d,) each."""
    if len(low) == 1:
        return Interval(float(low[0]), float(high[0]))
    return Box(tuple(low.tolist()), tuple(high.tolist()))
