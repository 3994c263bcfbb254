"""Bytes that come in pieces, cut into whole lines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Ints

MAX_LINE_BYTES = 2**20
"""A longer line is dropped, and not held in memory."""

TOO_LONG = "line longer than 1 MB"
"""Why such a line is dropped."""


class WholeLines(NamedTuple):
    """Whole lines, the bytes of the input that they take up, and how many more were too long."""

    data: bytes
    size: int
    long: int = 0


class Lines:
    """Cuts bytes that come in pieces into whole lines; a line without an end waits for it."""

    def __init__(self) -> None:
        self._data, self._ends, self._taken = b"", np.zeros(1, dtype=np.int64), 0
        self._lost = 0  # bytes of a line that is too long, which are gone

    @property
    def waiting(self) -> int:
        """Bytes of lines that were not taken yet."""
        return self._lost + len(self._data) - int(self._ends[self._taken])

    def add(self, data: bytes) -> None:
        """Add the next bytes."""
        self._data = self._data[self._ends[self._taken] :] + data
        ends = np.flatnonzero(np.frombuffer(self._data, np.uint8) == 10) + 1
        self._ends, self._taken = np.concatenate([[0], ends]), 0
        if len(ends) == 0 and (self._lost or len(self._data) > MAX_LINE_BYTES):
            self._lost, self._data = self._lost + len(self._data), b""

    def next(self, most: int) -> WholeLines | None:
        """At most `most` of the lines that are whole, None if there are none."""
        edges = self._ends[self._taken : self._taken + 1 + (1 if self._lost else most)]
        if len(edges) == 1:
            return None
        self._taken += len(edges) - 1
        if self._lost:
            lines = WholeLines(b"", self._lost + int(edges[1]), 1)
            self._lost = 0
            return lines
        return _between(self._data, edges)

    def end(self) -> WholeLines | None:
        """At the end of a file, the last line if it is incomplete."""
        self.add(b"" if self.waiting == 0 else b"\n")
        return self.next(1)


def _between(data: bytes, edges: Ints) -> WholeLines:
    """The lines between edges, except those that are too long."""
    size = int(edges[-1] - edges[0])
    short = np.diff(edges) <= MAX_LINE_BYTES + 1
    if short.all():
        return WholeLines(data[edges[0] : edges[-1]], size)
    pairs = zip(edges[:-1][short], edges[1:][short], strict=True)
    return WholeLines(b"".join(data[a:b] for a, b in pairs), size, int(np.sum(~short)))
