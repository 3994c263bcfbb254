"""CellAccumulator: the statistic of events that keep arriving, in bounded memory."""

from __future__ import annotations

from typing import final

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.filled_cells import CellTable, suits_table
from hplus.rates.lattice import CellLattice, Codes
from hplus.rates.own_cells import OwnCells, are_large
from hplus.rates.statistic import Statistic, count_codes, count_events
from hplus.rates.weight_units import WEIGHT_BITS
from hplus.windows import Window

BUFFERED_EVENTS = 2**16
"""Events that came one by one, or in small chunks, and wait for their cells to be found."""

MOST_WAITING = 2**20
"""Cells of events that wait to be sorted together."""

MERGED_RATIO = 8
"""How many times as many cells a statistic must have for a new one not to be added to it yet."""


@final
class CellAccumulator:
    """Adds events to a `Statistic`, one by one or in chunks, with weights or without.

    Its statistic is that of all events at once, bit for bit, whatever the chunks and their order.
    Events are trusted to lie in the window; they wait in a buffer, and memory is bounded by the
    buffer and the largest number of cells of a statistic, which is no deeper than `most_depth`.
    Events without weights that fill most cells are counted in a table of all cells.
    """

    def __init__(
        self, window: Window, known: Statistic | None = None, most_depth: int | None = None
    ) -> None:
        self._lattice = CellLattice(window)
        bits = self._lattice.bits
        self._depth = bits if most_depth is None else min(most_depth, bits)
        self._parts: tuple[Statistic, ...] = () if known is None else (known,)
        self._own: OwnCells | None = None
        self._table: CellTable | None = None
        self._unsorted = False
        self._rows = np.empty((BUFFERED_EVENTS, window.dimension))
        self._codes, self._units = list[Codes](), list[Ints]()
        self._buffered, self._waiting = 0, 0
        self._total = 0 if known is None else _units(known)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return self._total / 2**WEIGHT_BITS

    def add_one(self, x: Floats) -> None:
        """An event (d,) of weight 1."""
        if self._buffered == BUFFERED_EVENTS:
            self._empty_buffer()
        self._rows[self._buffered] = x
        self._buffered += 1
        self._total += 2**WEIGHT_BITS

    def add(self, X: Floats, units: Ints | None = None) -> None:
        """Events (n, d), with weights (n,) in units of 2⁻²⁰ unless all are 1."""
        self._total += len(X) << WEIGHT_BITS if units is None else int(units.sum())
        if units is not None or self._buffered + len(X) > BUFFERED_EVENTS:
            self._empty_buffer()
        if units is not None or len(X) > BUFFERED_EVENTS:
            self._wait(self._lattice.codes(X), units)
            return
        self._rows[self._buffered : self._buffered + len(X)] = X
        self._buffered += len(X)

    def absorb(self, other: CellAccumulator) -> None:
        """The events of another accumulator, which must not be used afterwards."""
        other._empty_buffer()
        self._total += other._total
        for part in other._without_table():
            self._merge(part, MERGED_RATIO)
        for i, codes in enumerate(other._codes):
            self._wait(codes, other._units[i] if other._units else None)

    def another(self) -> CellAccumulator:
        """An accumulator of other events, to be absorbed: in cells no smaller than they will be.

        Where these are counted in a table, few events need not be sorted before.
        """
        other = CellAccumulator(self._lattice.window, None, self._present_depth)
        other._unsorted = self._table is not None
        return other

    def copy(self) -> CellAccumulator:
        """Another accumulator with the same events, made at once: what waits goes on waiting."""
        other, self._own = CellAccumulator(self._lattice.window, None, self._depth), None
        other._table = None if self._table is None else self._table.copy()
        other._parts, other._total = self._parts, self._total
        other._codes, other._units = list(self._codes), list(self._units)
        other._rows[: self._buffered] = self._rows[: self._buffered]
        other._buffered, other._waiting = self._buffered, self._waiting
        return other

    def statistic(self) -> Statistic:
        """The statistic of all events so far."""
        self._empty_buffer()
        self._count()
        while len(self._parts) > 1:
            self._merge(self._pop(), np.inf)
        none = np.zeros((0, self._lattice.dimension))
        self._parts, self._table = self._without_table(), None
        found = self._pop() if self._parts else count_events(self._lattice, none)
        found = found.coarsened(min(found.depth, self._depth))
        self._parts, self._own = (found,), None
        return found

    def _empty_buffer(self) -> None:
        if self._buffered:
            buffered, self._buffered = self._buffered, 0
            self._wait(self._lattice.codes(self._rows[:buffered]), None)

    def _wait(self, codes: Codes, units: Ints | None) -> None:
        """Let cells of events wait to be sorted together, all with weights or all without."""
        if (units is not None) != bool(self._units):
            self._count()
        self._codes.append(codes)
        if units is not None:
            self._units.append(units)
        self._waiting += len(codes)
        if self._waiting >= MOST_WAITING * (2 if self._unsorted else 1):
            self._count()

    def _count(self) -> None:
        """Count the events that wait, in cells no smaller than those of the statistic."""
        if not self._codes:
            return
        waiting, units = self._codes, np.concatenate(self._units) if self._units else None
        self._codes, self._units, self._waiting = [], [], 0
        if self._table is not None and units is None:
            for codes in waiting:
                self._table.add_codes(codes)
            return
        codes = np.concatenate(waiting)
        del waiting
        self._merge(count_codes(self._lattice, codes, units, self._present_depth), MERGED_RATIO)

    def _merge(self, new: Statistic, factor: float) -> None:
        """Add a statistic to those that have at most `factor` times as many cells.

        To the one with the most cells they are added in place, unless others have it too.
        """
        if self._table is not None and not new.weights.size:
            self._table.add(new)
            return
        self._parts, self._table = self._without_table(), None
        while self._parts and len(self._parts[-1].codes) <= factor * len(new.codes):
            last = self._pop()
            if self._own is not None and not self._parts and not new.weights.size:
                new = self._own.plus(last, new)
            else:
                new = last + new
                if not self._parts:
                    self._own = OwnCells.of(new) if are_large(new) else None
                    new = new if self._own is None else self._own.same(new)
            del last
        self._parts = (*self._parts, new)
        weighted = any(part.weights.size for part in self._parts)
        if not weighted and suits_table(self._lattice, new.depth, len(new.codes)):
            self._table, self._own = CellTable(self._pop()), None
            while self._parts:
                self._table.add(self._pop())

    def _without_table(self) -> tuple[Statistic, ...]:
        """The statistics of all events that were counted."""
        return self._parts if self._table is None else (self._table.statistic(),)

    @property
    def _present_depth(self) -> int:
        """That of the events counted so far, which those to come will not exceed."""
        depths = [part.depth for part in (*self._parts, self._table) if part is not None]
        return min([*depths, self._depth])

    def _pop(self) -> Statistic:
        *others, last = self._parts
        self._parts = tuple(others)
        return last


def _units(known: Statistic) -> int:
    """Σw in units of 2⁻²⁰."""
    weights = known.weights
    return int(weights.sum()) if weights.size else known.events << WEIGHT_BITS
