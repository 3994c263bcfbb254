"""Blocks of cells of many sizes that overlap: the places in which a change is looked for."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array, kron, vstack

from hplus._checks import Bools, Floats, Ints, check_count
from hplus._values import Value, value


@final
@value
class OverlappingBlocks(Value):
    """All cells of a grid, and blocks of 2, 4, 8, ... cells across that overlap by half.

    `cells` is their number along each axis; the last block is all of the grid.
    """

    cells: int
    dimension: int

    def __post_init__(self) -> None:
        check_count("cells", self.cells)
        check_count("dimension", self.dimension)

    def sums(self, grid: Floats) -> Floats:
        """The sum over each block, (places,), of a number for each cell, in the order of C."""
        return np.asarray(self._matrix @ grid.ravel())

    @cached_property
    def corners(self) -> tuple[Ints, Ints]:
        """The first cell of each block and the one after its last, (places, dimension) each."""
        found = [(self._products(low), self._products(high)) for low, high in self._edges]
        lows, highs = zip(*found, strict=True)
        return np.concatenate(lows), np.concatenate(highs)

    @cached_property
    def levels(self) -> Ints:
        """The level of each block, (places,): 0 for single cells."""
        counts = [len(low) ** self.dimension for low, _ in self._edges]
        return np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def places_of_cells(self) -> tuple[Ints, Ints]:
        """Where the blocks that hold each cell start in a list, and that list."""
        columns = self._matrix.tocsc()
        return columns.indptr.astype(np.int64), columns.indices.astype(np.int64)

    def overlaps(self, place: int) -> Bools:
        """Which blocks share a cell with this one, (places,)."""
        low, high = self.corners
        return np.all((low < high[place]) & (low[place] < high), axis=1)

    @property
    def _edges(self) -> list[tuple[Ints, Ints]]:
        """The first cells of the blocks of each level along an axis, and those after the last."""
        low = np.arange(self.cells)
        found, step = [(low, low + 1)], 1
        while step < self.cells:
            low = np.arange(0, max(self.cells - step, 1), step)
            found.append((low, np.minimum(low + 2 * step, self.cells)))
            step *= 2
        return found

    def _products(self, along: Ints) -> Ints:
        """All combinations of numbers along each axis, (n, dimension)."""
        grid = np.meshgrid(*[along] * self.dimension, indexing="ij")
        return np.stack(grid, axis=-1).reshape(-1, self.dimension)

    @cached_property
    def _matrix(self) -> csr_array:
        """Which cells (columns) are in which block (rows): products over the axes."""
        cell = np.arange(self.cells)
        rows: list[csr_array] = []
        for low, high in self._edges:
            along = csr_array(((cell >= low[:, None]) & (cell < high[:, None])).astype(float))
            level = along
            for _ in range(self.dimension - 1):
                level = kron(level, along, format="csr")
            rows.append(level)
        return vstack(rows, format="csr")
