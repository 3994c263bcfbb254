"""What cells mean as times: ISO 8601 and a few other forms, dates as numbers, time since 1970."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from hplus._checks import Bools, Floats
from hplus.files.cells import are_empty, is_text, number, numbers
from hplus.files.extras import arrow

if TYPE_CHECKING:
    import pyarrow as pa

EPOCH_UNITS = ((1e8, 1e11, 1.0), (1e11, 1e14, 1e-3), (1e14, 1e17, 1e-6), (1e17, 1e20, 1e-9))
"""Numbers that are times since 1970: from, to, and seconds in one of them."""

MAX_SECONDS = 1e11
"""Three thousand years: what is farther from 1970 is no time."""

FIRST_DATE, LAST_DATE = 18_000_101, 21_991_231
"""Numbers that are dates, such as 20261116."""

FORMATS = (
    "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d",
    "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y",
)  # fmt: skip
"""Forms of dates beside ISO 8601 that can be read in one way only."""

SLASHES = re.compile(r"\s*\d{1,2}[/-]\d{1,2}[/-]\d{2,4}\b")
"""Dates such as 03/04/2026, which are in March or in April: not read without a format."""

LEAP_SECOND = re.compile(r"(?<=:[25]9:)60(?!\d)")
"""The second that some hours and half hours have in addition, as in 2016-12-31 23:59:60."""


class Zone(Enum):
    """Do times have a UTC offset?"""

    NAIVE = "without an offset"
    AWARE = "with an offset"
    NEITHER = "none yet"


class Times(NamedTuple):
    """Seconds since 1970 on a clock (n,), NaN where there is no time.

    And which cells were empty, which are no time, and which have an offset.
    """

    seconds: Floats
    missing: Bools
    wrong: Bools
    aware: Bools

    @property
    def zone(self) -> Zone:
        """Whether the first time has an offset."""
        known = np.flatnonzero(~self.missing & ~self.wrong)
        if len(known) == 0:
            return Zone.NEITHER
        return Zone.AWARE if self.aware[known[0]] else Zone.NAIVE


def times(column: pa.Array, zone: str, form: str = "", *, alone: bool = False) -> Times:
    """A pyarrow array as seconds on a clock.

    Times with an offset, and numbers of seconds, ms, µs or ns since 1970, are put on the clock of
    `zone`; others stay what the file says. `form` is a format of strptime for times that are not
    ISO 8601. The unit of a number is inferred from the size of the column's numbers or, if each
    cell has to be read `alone` as in a stream, from its own.
    """
    types = arrow().types
    if types.is_timestamp(column.type) or types.is_date(column.type):
        aware = bool(getattr(column.type, "tz", None))
        return _of_stamps(column, zone, aware)
    if form:
        return _one_by_one(column, zone, form)
    if not is_text(column):
        return _of_numbers(column, zone, alone)
    return _of_text(column, zone, alone)


def _of_stamps(stamps: pa.Array, zone: str, aware: bool) -> Times:
    missing = are_empty(stamps)
    seconds = np.where(missing, np.nan, _seconds(stamps, zone if aware else None))
    return Times(seconds, missing, np.zeros_like(missing), np.full(len(missing), aware))


def _of_text(column: pa.Array, zone: str, alone: bool) -> Times:
    pa = arrow()
    for kind, aware in ((pa.timestamp("us"), False), (pa.timestamp("us", "UTC"), True)):
        with suppress(pa.ArrowInvalid):
            return _of_stamps(column.cast(kind), zone, aware)
    found = _of_numbers(column, zone, alone)
    spelled = found.wrong.copy()
    for all_cells, cells in zip(found, _one_by_one(column.filter(spelled), zone, ""), strict=True):
        all_cells[spelled] = cells
    return found


def _one_by_one(column: pa.Array, zone: str, form: str) -> Times:
    there = ZoneInfo(zone)
    seconds, aware = np.full(len(column), np.nan), np.zeros(len(column), dtype=bool)
    for i, text in enumerate(column.to_pylist()):
        with suppress(ValueError, OverflowError):
            found = None if text is None else _moment(str(text).strip(), form)
            if found is not None:
                aware[i] = found.tzinfo is not None
                wall = found.astimezone(there) if aware[i] else found
                seconds[i] = wall.replace(tzinfo=UTC).timestamp()
    missing = are_empty(column)
    return Times(seconds, missing, np.isnan(seconds) & ~missing, aware)


def _moment(text: str, form: str) -> datetime | None:
    """A time as it is written; a leap second is the second after it."""
    usual, leaps = LEAP_SECOND.subn("59", text)
    if leaps == 1:
        found = _moment(usual, form)
        return None if found is None else found + timedelta(seconds=1)
    if form:
        return datetime.strptime(text, form)
    # of a number ISO 8601 would take the digits as a date, a sign between and a time
    if SLASHES.match(text) or number(text) is not None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        for known in FORMATS:
            with suppress(ValueError):
                return datetime.strptime(text, known)
    return None


def _of_numbers(column: pa.Array, zone: str, alone: bool) -> Times:
    """Dates written 20261116, or seconds, ms, µs or ns since 1970, put on the clock of the zone."""
    cells = numbers(column)
    known = np.isfinite(cells.values)
    sizes = np.abs(cells.values)
    if not alone and 2 * np.sum(known) > np.sum(~cells.missing):
        sizes = np.full(len(sizes), np.median(sizes[known]))
    dates = known & (sizes >= FIRST_DATE) & (sizes < LAST_DATE + 1)
    seconds = np.where(dates, np.nan, _since_1970(cells.values, sizes))
    seconds = _on_clock(np.where(np.abs(seconds) > MAX_SECONDS, np.nan, seconds), zone)
    seconds[dates] = _midnights(cells.values[dates])
    return Times(seconds, cells.missing.copy(), np.isnan(seconds) & ~cells.missing, ~dates)


def _midnights(dates: Floats) -> Floats:
    """Seconds since 1970 of dates such as 20261116 (n,), NaN where there is no such day."""
    days, which = np.unique(dates, return_inverse=True)
    seconds = np.full(len(days), np.nan)
    for i, day in enumerate(days):
        with suppress(ValueError):
            seconds[i] = datetime.strptime(f"{day:.15g}+0000", "%Y%m%d%z").timestamp()
    return seconds[which]


def _since_1970(values: Floats, sizes: Floats) -> Floats:
    """Numbers (n,) as seconds since 1970, in units inferred from `sizes` (n,), or NaN."""
    seconds = np.full(len(values), np.nan)
    for low, high, unit in EPOCH_UNITS:
        here = (sizes >= low) & (sizes < high)
        seconds[here] = values[here] * unit
    return seconds


def _on_clock(seconds: Floats, zone: str) -> Floats:
    """Seconds since 1970 in UTC as seconds on the clock of a zone."""
    pa = arrow()
    known = np.isfinite(seconds)
    stamps = pa.array(np.where(known, np.round(seconds * 1e6), 0.0).astype(np.int64))
    return np.where(known, _seconds(stamps.cast(pa.timestamp("us", "UTC")), zone), np.nan)


def _seconds(stamps: pa.Array, zone: str | None) -> Floats:
    """Seconds since 1970 (n,), on the clock of `zone` if the stamps have an offset."""
    pa = arrow()
    from pyarrow import compute

    if zone is not None:
        micros = compute.CastOptions(pa.timestamp("us", zone), allow_time_truncate=True)
        stamps = compute.local_timestamp(stamps.cast(options=micros))
    micros = stamps.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return micros.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) * 1e-6
