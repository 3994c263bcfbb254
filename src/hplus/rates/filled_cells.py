"""CellTable: events in all cells of a depth, counted one by one instead of sorted; compiled."""

from __future__ import annotations

from typing import final

import numpy as np

from hplus._checks import Ints
from hplus.grids.hats import compiled
from hplus.rates import statistic as statistics
from hplus.rates.lattice import CellLattice, Codes
from hplus.rates.statistic import Statistic, of_rows
from hplus.rates.weight_units import WEIGHT_BITS, check_units

MAX_TABLE_CELLS = statistics.MAX_CELLS // 2
"""Cells of a table: of 8 bytes each, they take a quarter of the memory of the largest statistic."""

CELLS_PER_OCCUPIED = 8
"""Cells of a table for each one that holds events, at most: of fewer events, sorting is quicker."""


@final
class CellTable:
    """Counts of events in all cells of a depth, as a `Statistic` has of those that hold events.

    Where more than 2²³ cells come to hold events, they are made larger, as in a sum of statistics.
    """

    def __init__(self, known: Statistic) -> None:
        self._lattice, self.depth = known.lattice, known.depth
        self._counts = np.zeros(2 ** (self._lattice.dimension * self.depth), dtype=np.int64)
        self._events, self._squares, self._occupied = 0, 0, 0
        self.add(known)

    def copy(self) -> CellTable:
        """Another table with the same events."""
        other = object.__new__(CellTable)
        other.__dict__.update(self.__dict__)
        other._counts = self._counts.copy()
        return other

    def add(self, part: Statistic) -> None:
        """The events of a statistic without weights."""
        if part.depth < self.depth:
            self._coarsen(part.depth)
        part = part.coarsened(self.depth)
        self._take(part.events, part.squares)
        self._occupied += int(_add_counts(self._counts, part.codes, part.counts))
        self._bound()

    def add_codes(self, codes: Codes) -> None:
        """Events in the smallest cells of the lattice, (n,)."""
        self._take(len(codes), len(codes) << (2 * WEIGHT_BITS))
        shift = np.uint64(self._lattice.dimension * (self._lattice.bits - self.depth))
        self._occupied += int(_add_ones(self._counts, codes, shift))
        self._bound()

    def statistic(self) -> Statistic:
        """The statistic of all events."""
        codes, counts = _occupied(self._counts, self._occupied)
        return of_rows(self._lattice.window, self.depth, codes, counts[None], self._squares)

    def _take(self, events: int, squares: int) -> None:
        self._events, self._squares = self._events + events, self._squares + squares
        check_units(self._events << WEIGHT_BITS)

    def _bound(self) -> None:
        while self._occupied > statistics.MAX_CELLS:
            self._coarsen(self.depth - 1)

    def _coarsen(self, depth: int) -> None:
        """Cells of a smaller depth, each of which is a run of those before."""
        run = 2 ** (self._lattice.dimension * (self.depth - depth))
        self._counts, self.depth = self._counts.reshape(-1, run).sum(axis=1), depth
        self._occupied = int(np.count_nonzero(self._counts))


def suits_table(lattice: CellLattice, depth: int, occupied: int) -> bool:
    """Is it quicker to count events in all cells of a depth, where so many hold some?"""
    cells = 2 ** (lattice.dimension * depth)
    return cells <= min(MAX_TABLE_CELLS, CELLS_PER_OCCUPIED * occupied)


@compiled
def _add_ones(table: Ints, codes: Codes, shift: np.uint64) -> int:
    """Count codes >> shift in a table; how many of its cells were empty."""
    new = 0
    for code in codes:
        cell = code >> shift
        new += table[cell] == 0
        table[cell] += 1
    return new


@compiled
def _add_counts(table: Ints, codes: Codes, counts: Ints) -> int:
    """Add counts of distinct cells to a table; how many of them were empty."""
    new = 0
    for i in range(len(codes)):
        new += table[codes[i]] == 0
        table[codes[i]] += counts[i]
    return new


@compiled
def _occupied(table: Ints, m: int) -> tuple[Codes, Ints]:
    """The m cells of a table that hold events, and how many."""
    out, counts = np.empty(m, dtype=np.uint64), np.empty(m, dtype=np.int64)
    k = 0
    for cell in range(len(table)):
        if table[cell]:
            out[k], counts[k] = np.uint64(cell), table[cell]
            k += 1
    return out, counts
