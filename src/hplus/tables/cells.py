"""What cells mean: numbers, times and text, one bad cell at a time."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Bools, Floats
from hplus.tables.extras import arrow
from hplus.tables.source import MISSING, TableError

EPOCHS = ((1e8, 1e11, 1.0), (1e11, 1e14, 1e-3), (1e14, 1e17, 1e-6), (1e17, 1e20, 1e-9))
"""Numbers that are times since 1970: from, to, and seconds in one of them."""

AGES = 1e11
"""Seconds, three thousand years: what is farther from 1970 is no time."""

DATES = (18_000_101, 21_991_231)
"""Numbers that are dates, such as 20261116: the first and the last."""

FORMATS = (
    "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d",
    "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y",
)  # fmt: skip
"""Forms of dates beside ISO 8601 that can be read in one way only."""

SLASHES = re.compile(r"\s*\d{1,2}[/-]\d{1,2}[/-]\d{2,4}\b")
"""Dates such as 03/04/2026, which are in March or in April."""


class Zone(Enum):
    """Do times say where their clock stands?"""

    NAIVE = "without an offset"
    AWARE = "with an offset"
    NEITHER = "none yet"


class Cells(NamedTuple):
    """Numbers (n,), NaN where there is none; which cells were empty, and which no such thing."""

    values: Floats
    missing: Bools
    wrong: Bools


class Times(NamedTuple):
    """Seconds since 1970 on the clock of the file or of a zone, and is an offset said?"""

    cells: Cells
    zone: Zone


def numbers(column: Any, comma: bool = False) -> Cells:
    """A pyarrow array as numbers; 1,5 is one if commas are decimal."""
    pa = arrow()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _numbers_of_text(column, comma)
    if not (
        pa.types.is_floating(column.type)
        or pa.types.is_integer(column.type)
        or pa.types.is_decimal(column.type)
    ):
        return _all_wrong(column)
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(float)
    return Cells(values, np.isnan(values), np.isinf(values))


def _numbers_of_text(column: Any, comma: bool) -> Cells:
    pa = arrow()
    empty = _empty(column)
    try:
        values = np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
        return Cells(values, np.isnan(values), np.isinf(values))
    except pa.ArrowInvalid:
        parsed = [_number(text, comma) for text in column.to_pylist()]
    values = np.array([np.nan if v is None else v for v in parsed], dtype=float)
    unread = np.array([v is None for v in parsed], dtype=bool) & ~empty
    return Cells(values, np.isnan(values) & ~unread, np.isinf(values) | unread)


def _empty(column: Any) -> Bools:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=bool)


def _all_wrong(column: Any) -> Cells:
    empty = _empty(column)
    return Cells(np.full(len(column), np.nan), empty, ~empty)


def _number(text: str | None, comma: bool) -> float | None:
    if text is None:
        return None
    text = text.strip().strip("\ufeff")
    if comma and "." not in text and text.count(",") == 1:
        text = text.replace(",", ".")
    if "_" in text:  # Python's own spelling, in no file
        return None
    try:
        return float(text)
    except ValueError:
        return None


def times(column: Any, zone: str, form: str | None = None) -> Times:
    """A pyarrow array as seconds on a clock.

    Times with an offset are put on the clock of `zone`; those without stay what the file says.
    `form` is a format of strptime for times that are not ISO 8601.
    """
    pa = arrow()
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        aware = bool(getattr(column.type, "tz", None))
        return Times(_seconds(column, zone if aware else None), Zone.AWARE if aware else Zone.NAIVE)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _times_of_text(column, zone, form)
    return _times_of_numbers(numbers(column), zone)


def _times_of_text(column: Any, zone: str, form: str | None) -> Times:
    pa = arrow()
    for kind, said in ((pa.timestamp("us"), Zone.NAIVE), (pa.timestamp("us", "UTC"), Zone.AWARE)):
        if form is None:
            try:
                stamps = column.cast(kind)
            except pa.ArrowInvalid:
                continue
            said = said if stamps.null_count < len(stamps) else Zone.NEITHER
            return Times(_seconds(stamps, zone if said is Zone.AWARE else None), said)
    cells = numbers(column)
    if form is None and _most(np.isfinite(cells.values[~cells.missing])):
        return _times_of_numbers(cells, zone)
    return _times_one_by_one(column, zone, form)


def _times_one_by_one(column: Any, zone: str, form: str | None) -> Times:
    from zoneinfo import ZoneInfo

    there, utc = ZoneInfo(zone), ZoneInfo("UTC")
    values = np.full(len(column), np.nan)
    said = set()
    for i, text in enumerate(column.to_pylist()):
        moment = None if text is None else _moment(text.strip(), form)
        if moment is not None:
            said.add(Zone.NAIVE if moment.tzinfo is None else Zone.AWARE)
            wall = moment if moment.tzinfo is None else moment.astimezone(there)
            values[i] = wall.replace(tzinfo=utc).timestamp()
    if len(said) > 1:
        raise TableError(
            "times must all have an offset such as +02:00, or none, got both: convert them to one "
            "zone first."
        )
    empty = _empty(column)
    return Times(
        Cells(values, empty, np.isnan(values) & ~empty), said.pop() if said else Zone.NEITHER
    )


def _moment(text: str, form: str | None) -> datetime | None:
    if form is not None:
        return _strptime(text, form)
    if SLASHES.match(text):
        raise TableError(
            f"times such as {text[:30]!r} can be read in two ways: say which with --time-format, "
            'for example "%m/%d/%Y" or "%d/%m/%Y %H:%M".'
        )
    if len(text) != 8 and _number(text, comma=False) is not None:
        return None  # ISO 8601 would take its digits as a date, a sign between and a time
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        found = (_strptime(text, known) for known in FORMATS)
        return next((moment for moment in found if moment is not None), None)


def _strptime(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def _seconds(stamps: Any, zone: str | None) -> Cells:
    """Seconds since 1970, on the clock of `zone` if the stamps know their offset."""
    pa = arrow()
    from pyarrow import compute

    if zone is not None:
        stamps = compute.local_timestamp(stamps.cast(pa.timestamp("us", zone)))
    micros = stamps.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    empty = _empty(stamps)
    values = micros.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) * 1e-6
    return Cells(np.array(values, dtype=float), empty, np.zeros(len(empty), dtype=bool))


def _times_of_numbers(cells: Cells, zone: str) -> Times:
    """Dates written 20261116, or seconds, ms, µs or ns since 1970, put on the clock of the zone.

    What most cells are is what the column holds, and the others are wrong.
    """
    values = cells.values
    seen = values[np.isfinite(values)]
    if len(seen) == 0:
        return Times(cells, Zone.NEITHER)
    if _most(_are_dates(seen)):
        return Times(_calendar(cells), Zone.NAIVE)
    seconds = since_1970(values, np.full(len(values), np.median(np.abs(seen))))
    if np.isnan(seconds).all():
        raise TableError(
            f"times must be dates or seconds since 1970, got numbers such as {seen[0]:g}: name "
            "the column in --columns, as a number like any other."
        )
    far = np.abs(seconds) > AGES
    seconds[far] = np.nan
    return Times(Cells(on_clock(seconds, zone), cells.missing, cells.wrong | far), Zone.AWARE)


def since_1970(values: Floats, sizes: Floats) -> Floats:
    """Numbers (n,) as seconds since 1970, in units told by `sizes` (n,), NaN where in none."""
    seconds = np.full(len(values), np.nan)
    for low, high, unit in EPOCHS:
        here = (sizes >= low) & (sizes < high)
        seconds[here] = values[here] * unit
    return seconds


def _most(kind: Bools) -> bool:
    return bool(2 * np.sum(kind) > len(kind))


def _are_dates(values: Floats) -> Bools:
    return (values >= DATES[0]) & (values <= DATES[1]) & (values == np.floor(values))


def on_clock(seconds: Floats, zone: str) -> Floats:
    """Seconds since 1970 in UTC as seconds on the clock of a zone."""
    pa = arrow()
    known = np.isfinite(seconds)
    stamps = pa.array(np.where(known, np.round(seconds * 1e6), 0.0).astype(np.int64))
    shifted = _seconds(stamps.cast(pa.timestamp("us", "UTC")), zone).values
    return np.where(known, shifted, np.nan)


def _calendar(cells: Cells) -> Cells:
    days = np.full(len(cells.values), np.nan)
    for i in np.flatnonzero(_are_dates(cells.values)):
        d = int(cells.values[i])
        with suppress(ValueError):
            day = np.datetime64(f"{d // 10000}-{d // 100 % 100:02d}-{d % 100:02d}", "s")
            days[i] = day.astype(np.int64)
    return Cells(days, cells.missing, np.isnan(days) & ~cells.missing)


def texts(column: Any) -> list[str | None]:
    """A pyarrow array as text, None where a cell is empty."""
    cells = column.cast(arrow().string()).to_pylist()
    return [None if cell is None or cell.strip() in MISSING else cell.strip() for cell in cells]
