"""Times of a stream, cell by cell: what one means does not depend on those beside it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Bools, Floats
from hplus.tables.cells import Zone, numbers, on_clock, since_1970, times
from hplus.tables.extras import arrow
from hplus.tables.source import TableError


class Moments(NamedTuple):
    """Seconds since 1970 (n,), or NaN; which cells are wrong, and which have an offset."""

    seconds: Floats
    wrong: Bools
    aware: Bools

    def stamps(self) -> Any:
        """The times as a pyarrow array."""
        pa, none = arrow(), np.isnan(self.seconds)
        micros = np.round(np.where(none, 0.0, self.seconds) * 1e6).astype(np.int64)
        return pa.array(micros, pa.int64(), mask=none).cast(pa.timestamp("us"))


def moments(column: Any, zone: str, form: str = "") -> Moments:
    """A pyarrow array of text as times, as `cells.times` would read each cell if it were alone."""
    if len(column) == 0:
        return Moments(np.zeros(0), np.zeros(0, bool), np.zeros(0, bool))
    found = _alike(column, zone, form)
    if found is not None:
        return found
    if len(column) == 1:
        return _single(column, zone, form)
    half = len(column) // 2
    parts = moments(column[:half], zone, form), moments(column[half:], zone, form)
    return Moments(*(np.concatenate(pair) for pair in zip(*parts, strict=True)))


def _alike(column: Any, zone: str, form: str) -> Moments | None:
    """Cells that are all of one kind: ISO 8601, seconds since 1970 or the form given."""
    pa = arrow()
    if form:
        try:
            cells, said = times(column, zone, form)
        except (TableError, OverflowError):
            return None
        return _made(cells.values, cells.wrong, said is Zone.AWARE)
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            stamps = column.cast(kind)
        except pa.ArrowInvalid:
            continue
        cells, said = times(stamps, zone)
        values = np.where(cells.missing, np.nan, cells.values)
        return _made(values, cells.wrong, said is Zone.AWARE)
    return _epochs(numbers(column).values, zone)


def _epochs(values: Floats, zone: str) -> Moments | None:
    """Seconds, ms, µs or ns since 1970, told apart by how large each number is, on a clock."""
    seconds = since_1970(values, np.abs(values))
    if np.isnan(seconds).any():
        return None
    return _made(on_clock(seconds, zone), np.isnan(seconds), True)


def _single(column: Any, zone: str, form: str) -> Moments:
    try:
        cells, said = times(column, zone, form or None)
    except (TableError, OverflowError):
        return _made(np.array([np.nan]), np.array([True]), False)
    return _made(cells.values, cells.wrong, said is Zone.AWARE)


def _made(seconds: Floats, wrong: Bools, aware: bool) -> Moments:
    return Moments(np.where(wrong, np.nan, seconds), wrong, np.full(len(wrong), aware))
