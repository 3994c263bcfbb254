"""EventSample: a sample of events, of bounded size, that depends on the events alone.

A row is kept while the hash of what it holds lies below a threshold, which is halved whenever too
many different rows are kept. So neither order nor parts matter, and samples of parts can be joined.
Equal rows are kept together with how often they occur; of these, some are drawn at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Bools, Floats, Ints
from hplus.rates.cell_counts import drawn_at_most, mixed_copies
from hplus.rates.lattice import Codes

MAX_SAMPLE = 200_000
"""Events that are kept one by one; of more, a random sample."""

KEY_BITS = 64


class KeptRows(NamedTuple):
    """Different rows (m, d), the key of each, and how often it occurs."""

    rows: Floats
    keys: Codes
    counts: Ints

    def some(self, which: Bools) -> KeptRows:
        """Some of the rows."""
        return KeptRows(self.rows[which], self.keys[which], self.counts[which])


class DrawnEvents(NamedTuple):
    """Events X (n, d) with their times (n,), and a key of each (n,)."""

    X: Floats
    seconds: Floats
    keys: Codes

    def some(self, which: Bools) -> DrawnEvents:
        """Some of the events."""
        return DrawnEvents(self.X[which], self.seconds[which], self.keys[which])

    def first(self, most: int) -> DrawnEvents:
        """At most so many of the events; their order is as good as random."""
        return DrawnEvents(self.X[:most], self.seconds[:most], self.keys[:most])


class EventSample:
    """A sample of events in chunks: points (d), seconds and weight in the columns of rows.

    `all_or_none`: a part of the rows is of no use; if there are too many, none is kept.
    """

    def __init__(self, dimension: int, most: int = MAX_SAMPLE, all_or_none: bool = False) -> None:
        self.most, self._halvings, self._waiting = most, 0, 0
        self._dimension, self._all_or_none = dimension, all_or_none
        self._parts = [KeptRows(np.zeros((0, dimension + 2)), *_none())]

    def add(
        self,
        X: Floats,
        seconds: Floats,
        weights: Floats | None,
        keys: Codes,
        chosen: Bools | None = None,
    ) -> None:
        """Events (n, d), times and weights (n,), and keys (n,); those that are chosen (n,)."""
        if self._gave_up:
            return
        some = np.flatnonzero(self._below(keys))
        some = some if chosen is None else some[chosen[some]]
        own = np.ones(len(some)) if weights is None else weights[some]
        rows = np.column_stack([X[some], seconds[some], own])
        self._keep(KeptRows(rows, keys[some], np.ones(len(rows), dtype=np.int64)))

    def another(self) -> EventSample:
        """A sample of other rows that is to be absorbed: it need not keep more than this one."""
        found = EventSample(self._dimension, self.most, self._all_or_none)
        found._halvings = self._halvings
        return found

    def absorb(self, other: EventSample) -> None:
        """The rows of another sample."""
        self._halvings = max(self._halvings, other._halvings)
        if self._all_or_none:
            self._halvings = min(self._halvings, 1)
        for part in other._parts:
            kept = self._below(part.keys)
            self._keep(part.some(kept))

    def kept(self) -> KeptRows:
        """The rows that are kept, in the order of their keys."""
        self._compact()
        return self._parts[0]

    @classmethod
    def of(cls, kept: KeptRows, halvings: int, most: int) -> EventSample:
        """The sample that kept these rows, whose share was halved so often."""
        found = cls(kept.rows.shape[1] - 2, most)
        found._parts, found._halvings = [kept], halvings
        return found

    @property
    def halvings(self) -> int:
        """How often the share of rows that are kept was halved."""
        if sum(len(part.keys) for part in self._parts) > self.most:
            self._compact()
        return self._halvings

    @property
    def _gave_up(self) -> bool:
        """Are there too many rows to keep all, and of no use to keep some?"""
        return self._all_or_none and self._halvings > 0

    def draw(self, seed: int, most: int = MAX_SAMPLE, largest: float = 0.0) -> DrawnEvents:
        """Single events, at most so many, in an order that follows from their keys.

        In proportion to their weights, the largest of which is given, unless that is 0.
        """
        rows, keys, counts = self.kept()
        shares = np.ones(len(keys))
        if largest > 0.0:
            shares = np.minimum(rows[:, -1] / largest, 1.0)
        drawn = drawn_at_most(keys, counts, np.uint64(seed), shares, most)
        which = np.repeat(np.arange(len(keys)), drawn)
        d = self._dimension
        return DrawnEvents(rows[which, :d], rows[which, d], mixed_copies(keys, drawn))

    def _below(self, keys: Codes) -> Bools:
        return np.zeros(len(keys), dtype=bool) if self._gave_up else keys <= self._bound

    def _keep(self, part: KeptRows) -> None:
        self._parts.append(part)
        self._waiting += len(part.keys)
        if self._waiting > self.most:
            self._compact()

    def _compact(self) -> None:
        """Rows in the order of their keys, equal ones together; of too many keys, fewer."""
        rows, keys, counts = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        order = np.argsort(keys)
        keys = keys[order]
        distinct = keys[np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)]]
        while not self._gave_up and np.searchsorted(distinct, self._bound, "right") > self.most:
            self._halvings += 1
        few = 0 if self._gave_up else int(np.searchsorted(keys, self._bound, "right"))
        order = order[:few]
        self._parts, self._waiting = [_distinct(rows[order], keys[:few], counts[order])], 0

    @property
    def _bound(self) -> np.uint64:
        """The largest key that is kept."""
        return np.uint64(2 ** (KEY_BITS - self._halvings) - 1)


def _distinct(rows: Floats, keys: Codes, counts: Ints) -> KeptRows:
    """Rows that are in the order of their keys, equal ones together."""
    same = _same_as_before(rows, keys)
    if np.any((keys[1:] == keys[:-1]) & ~same):  # different rows of the same key
        order = np.lexsort((*rows.T, keys))
        rows, keys, counts = rows[order], keys[order], counts[order]
        same = _same_as_before(rows, keys)
    if not same.any():
        return KeptRows(rows, keys, counts)
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    return KeptRows(rows[first], keys[first], np.add.reduceat(counts, first))


def _same_as_before(rows: Floats, keys: Codes) -> Bools:
    same = keys[1:] == keys[:-1]
    for column in rows.T:
        same &= column[1:] == column[:-1]
    return same


def _none() -> tuple[Codes, Ints]:
    return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
