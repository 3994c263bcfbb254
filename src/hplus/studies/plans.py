"""plan: the frame of a file's events from a user's arguments, or which of them are missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hplus._checks import Floats
from hplus.files.cells import numbers
from hplus.files.chunked_table import Table
from hplus.files.conditions import Condition
from hplus.files.feeds import TableError
from hplus.files.outlines import read_outlines
from hplus.files.places import EqualArea
from hplus.files.tables import TableLike, as_table
from hplus.files.times import MAX_SECONDS
from hplus.studies.events import TIME_ADVICE
from hplus.studies.frame_windows import (
    LONGITUDES,
    box_region,
    is_lonlat,
    lonlat_map,
    outlines_region,
)
from hplus.studies.frames import Frame
from hplus.studies.ranges import NO_EXTENT, Extent, range_arguments
from hplus.studies.spans import SPELLINGS, Clock, seconds_of
from hplus.windows import Window
from hplus.wording import SECONDS_IN

DAY = 86_400.0
"""In seconds."""

ROUNDINGS = (1, 5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 600, 720, 900, 1200, 1800, 3600)
"""Seconds to which times are rounded, all or many of them, beside whole days."""

MIN_ROUND, MIN_EXCESS, MIN_DATES, MIN_ROWS = 0.1, 0.05, 0.9, 50
"""The share of times at multiples of a step, and by how much that must exceed chance as a share of
those at multiples of a shorter step, for times to be rounded to it; the share at midnight from
which they are dates; and rows to tell by."""


def plan(
    source: TableLike,
    columns: Sequence[str] = (),
    *,
    window: Sequence[float] | None = None,
    within: str | None = None,
    lonlat: bool | None = None,
    unit: str = "",
    time: str | None = None,
    start: str | float | None = None,
    end: str | float | None = None,
    cycle: str = "",
    zone: str = "UTC",
    form: str = "",
    time_unit: str = "",
    origin: str | None = None,
    where: str = "",
    weight: str = "",
    trial: str = "",
) -> Frame:
    """The frame of a table's events: which columns are the axes of which window.

    Where and when events could have occurred is never inferred: without `window` or `within`, and
    with `time` without `start` and `end`, the error says what the data span.

    Parameters
    ----------
    source : str, path, data frame, Arrow table or dict of arrays
        A file, or a table of pandas, polars, pyarrow or the like.
    columns : sequence of str
        Columns with coordinates, one to three.
    window : sequence of float
        The lowest corner and then the highest one, in the order of the columns.
    within : str
        A GeoJSON file, or a CSV of vertices, with the polygons in which events could occur.
    lonlat : bool
        Are the two columns a longitude and a latitude? None decides by their names.
    unit : str
        The unit of the columns, for example "m".
    time, start, end : str
        A column of times, and the observation period: two dates or times.
    cycle : str
        "day" or "week": times are hours of it.
    zone, form : str
        The time zone for times with a UTC offset, and a format of strptime for times that are not
        ISO 8601.
    time_unit, origin : str
        For times that are numbers: their unit, for example "min", and the date and time of 0.
        `start` and `end` may then be such numbers too.
    where : str
        Which rows are events, by a condition on columns: "mag >= 5 and region == 'north'".
    weight : str
        A column with what each event counts, for example an amount.
    trial : str
        A column that names the trial, game or session in which an event was seen, if the window was
        observed in each of them: rates are then per trial, and intervals of the next trial include
        how much trials vary.
    """
    table = as_table(source)
    rows = Condition(where, zone, time or "", form) if where else None
    for name in (*columns, *filter(None, (time, weight, trial)), *(rows.columns if rows else ())):
        table.require(name)
    given = [at for at in (start, end) if at is not None and at != ""]
    timed = bool(given or cycle or form or zone != "UTC" or time_unit or origin)
    _check_arguments(columns, window, within, time, timed)
    _check_trial(trial, time, weight)
    geographic = is_lonlat(columns) if lonlat is None else lonlat
    columns, flip = _ordered(columns, geographic, lonlat)
    anytime = _anytime(time, cycle, zone, form, time_unit, origin) if time else None
    no_window = columns if window is None and within is None else ()
    no_times = anytime if len(given) < 2 else None
    if no_window or no_times:
        raise ValueError(_missing(table, no_window, flip, no_times, rows))
    region, place = _place(window, within, geographic, flip, unit)
    frame = Frame(tuple(columns), region, place, anytime, rows, weight, trial)
    if anytime is None:
        return frame
    span = (anytime.seconds_at(name, str(at)) for name, at in (("start", start), ("end", end)))
    clock = anytime.replace(**dict(zip(("start", "end"), span, strict=True)))
    return frame.replace(clock=clock.replace(spread=_rounding(table, frame, clock)))


def _anytime(
    time: str, cycle: str, zone: str, form: str, time_unit: str, origin: str | None
) -> Clock:
    """A clock that is not limited to an observation period yet."""
    step = origin_seconds = 0.0
    if bool(time_unit) != bool(origin):
        raise ValueError(
            "time_unit= and origin= belong together: the unit of times that are numbers, and the "
            f"date of 0, got only {'time_unit=' if time_unit else 'origin='}: give both."
        )
    if time_unit and form:
        raise ValueError("give form= or time_unit=, not both: a format is for times in text.")
    if time_unit and origin:
        known = SPELLINGS.get(time_unit.lower()) or SPELLINGS.get(
            time_unit.lower().removesuffix("s")
        )
        if known not in SECONDS_IN:
            raise ValueError(
                f"time_unit must be a unit of time such as s, min, h or day, got {time_unit!r}."
            )
        step, origin_seconds = SECONDS_IN[known], seconds_of("origin", origin, zone)
    ends = (-MAX_SECONDS, MAX_SECONDS)
    return Clock(time, *ends, cycle, zone, form, 0.0, step, origin_seconds)


def _place(
    window: Sequence[float] | None, within: str | None, geographic: bool, flip: bool, unit: str
) -> tuple[Window | None, EqualArea | None]:
    """The window of the columns, and the map that it is on."""
    if within is not None:
        return outlines_region(read_outlines(within), geographic, unit)
    if window is None:
        return None, None
    low, high = _corners(window, flip)
    place = lonlat_map(low, high) if geographic else None
    return box_region(low, high, place, unit), place


def _rounding(table: Table, frame: Frame, clock: Clock) -> float:
    """Seconds to which times were rounded, over which they are to be spread; 0 for none.

    Judged by the first rows.
    """
    chunk = table.first_rows(frame.of_events, frame.where)
    if chunk is None:
        return 0.0
    seconds = clock.read(chunk.as_numbers(clock.column)).seconds
    step = rounding_step(seconds[np.isfinite(seconds)])
    if step == DAY and clock.cycle == "day":
        raise TableError(
            f"column {clock.column!r} of {table.path} must have times of day for cycle='day', got "
            "dates only: use cycle='week'."
        )
    return step


def rounding_step(seconds: Floats) -> float:
    """The longest step to which all or many times (n,) were rounded, in seconds; 0 for none.

    Of times at multiples of a shorter step, a share of short/long is at multiples of a longer one
    by chance.
    """
    if len(seconds) < MIN_ROWS:
        return 0.0
    if np.mean(seconds % DAY == 0.0) > MIN_DATES:
        return DAY
    found, share = 0.0, 1.0
    for step in ROUNDINGS:
        at = float(np.mean(seconds % step == 0.0))
        least = MIN_EXCESS + 2.0 / np.sqrt(share * len(seconds))
        if at > MIN_ROUND and at / share - found / step > least:
            found, share = float(step), at
    return found


def _check_arguments(
    columns: Sequence[str],
    window: Sequence[float] | None,
    within: str | None,
    time: str | None,
    timed: bool,
) -> None:
    """Check which arguments go together."""
    if timed and not time:
        raise ValueError(
            "start=, end=, cycle=, zone=, form=, time_unit= and origin= need a column of times: "
            "give time=."
        )
    if not columns and not time:
        raise ValueError(
            "give columns= (up to three coordinates), time= (a column of times) or both."
        )
    if window is not None and within is not None:
        raise ValueError("give window= or within=, not both.")
    if columns and window is not None and len(window) != 2 * len(columns):
        raise ValueError(
            f"window must have {2 * len(columns)} numbers, the lowest corner and then the "
            f"highest, got {len(window)}."
        )
    if (window is not None or within is not None) and not columns:
        raise ValueError("window= and within= need columns=: for times, give start= and end=.")
    if within is not None and len(columns) != 2:
        raise ValueError(f"within= needs two columns, got {len(columns)}.")


def _check_trial(trial: str, time: str | None, weight: str) -> None:
    """Check what goes together with a column of trials."""
    if trial and time:
        raise ValueError(
            "give trial= or time=, not both: with times, counts are compared in blocks of time."
        )
    if trial and weight:
        raise ValueError("give trial= or weight=, not both: trials are compared by their counts.")


def _ordered(
    columns: Sequence[str], geographic: bool, lonlat: bool | None
) -> tuple[Sequence[str], bool]:
    """Columns with the longitude first, and were they swapped?"""
    if geographic and len(columns) != 2:
        raise ValueError(f"a longitude and a latitude must be two columns, got {len(columns)}.")
    flip = geographic and lonlat is None and columns[0].lower() not in LONGITUDES
    return (list(columns)[::-1], True) if flip else (list(columns), False)


def _corners(window: Sequence[float], flip: bool) -> tuple[Floats, Floats]:
    low, high = np.split(np.asarray(window, dtype=float), 2)
    return (low[::-1], high[::-1]) if flip else (low, high)


def _missing(
    table: Table,
    columns: Sequence[str],
    flip: bool,
    clock: Clock | None,
    where: Condition | None,
) -> str:
    """Which arguments are missing, and what the data span."""
    extent, time = _extent(table, columns, clock, where), clock and clock.column
    for name, low in zip(columns, extent.low, strict=False):
        if not np.isfinite(low):
            raise TableError(
                f"column {name!r} of {table.path} has no numbers: name another one, or "
                "give it as time= if it has times."
            )
    if time and not np.isfinite(extent.low[-1]):
        raise TableError(f"column {time!r} of {table.path} has no times: {TIME_ADVICE}.")
    names = ["window="] * bool(columns) + ["start=", "end="] * bool(time)
    which = ["where"] * bool(columns) + ["when"] * bool(time)
    return (
        f"Missing {' and '.join(', '.join(names).rsplit(', ', 1))}: {' and '.join(which)} events "
        "could have occurred is never inferred. Your data span\n"
        f"  {', '.join(range_arguments(extent, len(columns), bool(time), flip))}"
    )


def _extent(
    table: Table, columns: Sequence[str], clock: Clock | None, where: Condition | None
) -> Extent:
    """The range of the columns, and of the times last."""
    extent = NO_EXTENT
    for chunk in table.chunks([*columns, *([clock.column] if clock else [])], where):
        raw = [numbers(chunk.as_numbers(name)).values for name in columns]
        raw += [clock.read(chunk.as_numbers(clock.column)).seconds] if clock else []
        rows = np.column_stack(raw)
        low, high = (np.where(np.isfinite(rows), rows, fill) for fill in (np.inf, -np.inf))
        extent = extent.including(low.min(axis=0), high.max(axis=0))
    if extent.low.ndim == 0:
        if where is not None and table.left_out:
            raise TableError(
                f"no row of {table.path} is left where {where.text}: correct where=, or the names "
                "and quotes in it."
            )
        raise TableError(f"{table.path} has a header but no rows: there is nothing to learn from.")
    return extent
