"""CellAccumulator: the statistic of events that keep arriving, in bounded memory."""

from __future__ import annotations

from typing import final

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.lattice import CellLattice
from hplus.rates.statistic import WEIGHT_BITS, Statistic, count_events, merged, with_another
from hplus.windows import Window

BUFFERED_EVENTS = 2**16
"""Events that wait to be sorted and counted together."""


@final
class CellAccumulator:
    """Adds events to a `Statistic`, one by one or in chunks, with weights or without.

    Its statistic is that of all events at once, bit for bit, whatever the chunks and their order.
    Events are trusted to lie in the window; they wait in a buffer, and memory is bounded by the
    buffer and the largest number of cells of a statistic.
    """

    def __init__(self, window: Window, known: Statistic | None = None) -> None:
        self._lattice = CellLattice(window)
        self._empty = count_events(self._lattice, np.zeros((0, window.dimension)))
        self._parts: tuple[Statistic, ...] = () if known is None else (known,)
        self._rows = np.empty((BUFFERED_EVENTS, window.dimension))
        self._units = np.empty(BUFFERED_EVENTS, dtype=np.int64)
        self._waiting, self._weighted = 0, False
        self._total = 0 if known is None else _units(known)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return self._total / 2**WEIGHT_BITS

    def add_one(self, x: Floats) -> None:
        """An event (d,) of weight 1."""
        if self._weighted or self._waiting == BUFFERED_EVENTS:
            self._count()
            self._weighted = False
        self._rows[self._waiting] = x
        self._waiting += 1
        self._total += 2**WEIGHT_BITS

    def add(self, X: Floats, units: Ints | None = None) -> None:
        """Events (n, d), with weights (n,) in units of 2⁻²⁰ unless all are 1."""
        if (units is not None) != self._weighted:
            self._count()
            self._weighted = units is not None
        self._total += len(X) << WEIGHT_BITS if units is None else int(units.sum())
        at = 0
        while at < len(X):
            if self._waiting == BUFFERED_EVENTS:
                self._count()
            part = slice(at, at + BUFFERED_EVENTS - self._waiting)
            n = len(X[part])
            room = slice(self._waiting, self._waiting + n)
            self._rows[room] = X[part]
            if units is not None:
                self._units[room] = units[part]
            self._waiting, at = self._waiting + n, at + n

    def statistic(self) -> Statistic:
        """The statistic of all events so far."""
        self._count()
        found = merged(self._parts) if self._parts else self._empty
        self._parts = (found,)
        return found

    def _count(self) -> None:
        """Count the events that wait."""
        if self._waiting:
            X, q = self._rows[: self._waiting], self._units[: self._waiting]
            new = count_events(self._lattice, X, q if self._weighted else None)
            self._parts = with_another(self._parts, new)
        self._waiting = 0


def _units(known: Statistic) -> int:
    """Σw in units of 2⁻²⁰."""
    weights = known.weights
    return int(weights.sum()) if weights.size else known.events << WEIGHT_BITS
