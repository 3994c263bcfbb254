"""EventHistory: the newest events, and counts by the minute, of the last days."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import NamedTuple, final

import numpy as np

from hplus._checks import Floats, Ints

MOST_SHOWN_EVENTS = 100_000
"""Events that are kept one by one, to be shown."""

MINUTE, KEPT_DAYS = 60.0, 8
"""Seconds of a count, and days of counts that are kept."""


class Shown(NamedTuple):
    """Events (n, d) with their times (n,), the number of the first, and of the one to come."""

    X: Floats
    seconds: Floats
    first: int
    next: int


@final
class EventHistory:
    """What came last; every method may be called from any thread."""

    def __init__(self, dimension: int) -> None:
        self._lock = Lock()
        self._X = np.zeros((MOST_SHOWN_EVENTS, dimension))
        self._seconds = np.zeros(MOST_SHOWN_EVENTS)
        self.seen, self.latest, self.first = 0, -np.inf, np.inf
        self._minutes: Counter[int] = Counter()

    def add(self, X: Floats, seconds: Floats) -> None:
        """Add events (n, d) at times (n,)."""
        with self._lock:
            keep = slice(max(len(X) - MOST_SHOWN_EVENTS, 0), None)
            skipped = keep.start
            at = (self.seen + skipped + np.arange(len(X) - skipped)) % MOST_SHOWN_EVENTS
            self._X[at], self._seconds[at] = X[keep], seconds[keep]
            self.seen += len(X)
            self.first = min(self.first, float(seconds.min(initial=np.inf)))
            self.latest = max(self.latest, float(seconds.max(initial=-np.inf)))
            minutes, counts = np.unique(np.floor(seconds / MINUTE).astype(int), return_counts=True)
            self._minutes.update(dict(zip(minutes.tolist(), counts.tolist(), strict=True)))
            if len(self._minutes) > 2 * KEPT_DAYS * 1440:
                first = self.latest / MINUTE - KEPT_DAYS * 1440
                self._minutes = Counter({m: n for m, n in self._minutes.items() if m >= first})

    def after(self, number: int, most: int) -> Shown:
        """Events from a number on, the newest `most` of them."""
        with self._lock:
            kept = min(self.seen, MOST_SHOWN_EVENTS)
            first = max(number, self.seen - min(kept, most), 0)
            first = min(first, self.seen)
            at = np.arange(first, self.seen) % MOST_SHOWN_EVENTS
            return Shown(self._X[at], self._seconds[at], first, self.seen)

    def counts(self, edges: Floats) -> Ints:
        """How many events were between each edge (n + 1,) and the next, in whole minutes."""
        first, step = round(edges[0] / MINUTE), round((edges[1] - edges[0]) / MINUTE)
        with self._lock:
            minutes = [self._minutes.get(first + i, 0) for i in range(step * (len(edges) - 1))]
        return np.array(minutes, dtype=np.int64).reshape(-1, step).sum(axis=1)
