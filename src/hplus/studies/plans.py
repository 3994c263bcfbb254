"""Plans: from the words of a user to a frame, or to the words that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hplus._checks import Floats
from hplus.studies.events import times_option, window_option
from hplus.studies.frames import (
    LONGITUDES,
    Frame,
    box_region,
    is_lonlat,
    lonlat_map,
    outlines_region,
)
from hplus.studies.spans import Clock, seconds_of
from hplus.tables.cells import numbers, times
from hplus.tables.outlines import read_outlines
from hplus.tables.places import EqualArea
from hplus.tables.source import Table, TableError, open_table
from hplus.windows import Window

DAY, HOUR = 86_400.0, 3600.0
"""In seconds."""

STEPS = (DAY, HOUR, 1800.0, 900.0, 600.0)
"""To which times are rounded, in seconds."""

MOSTLY, HEAPED, FEWEST = 0.9, 0.1, 50
"""Shares of whole days and of whole hours beyond which times were rounded, and rows to tell by."""


def plan(
    path: str | Table,
    columns: Sequence[str] = (),
    *,
    window: Sequence[float] | None = None,
    within: str | None = None,
    lonlat: bool | None = None,
    unit: str = "",
    time: str | None = None,
    start: str | None = None,
    end: str | None = None,
    cycle: str = "",
    zone: str = "UTC",
    form: str = "",
) -> Frame:
    """The frame of a file's events.

    Parameters
    ----------
    path : str or Table
    columns : sequence of str
        Columns with coordinates, one to three.
    window : sequence of float
        The lowest corner and then the highest one, in the order of the columns.
    within : str
        A GeoJSON file, or a CSV of vertices, with the polygons in which events could be seen.
    lonlat : bool
        Are the two columns a longitude and a latitude? None tells by their names.
    unit : str
        Of the columns, such as "m".
    time, start, end : str
        A column with times, and from when to when events were watched, dates or times.
    cycle : str
        "day" or "week": times are hours of it.
    zone, form : str
        The clock for times with an offset, and a format of strptime for others than ISO 8601.
    """
    table = path if isinstance(path, Table) else open_table(path)
    for name in (*columns, *([time] if time else [])):
        table.require(name)
    _check_words(columns, window, within, time, start, end, cycle, zone, form)
    geographic = is_lonlat(columns) if lonlat is None else lonlat
    columns, flip = _ordered(columns, geographic, lonlat)
    missing = []
    if columns and window is None and within is None:
        missing.append(_range_of_columns(table, columns, flip))
    if time and not (start and end):
        missing.append(_range_of_times(table, time, zone, form))
    if missing:
        raise TableError(
            "where and when events could have been seen must be said, it is never guessed; the "
            f"data would fit in\n  {' '.join(missing)}"
        )
    region, place = _place(window, within, geographic, flip, unit)
    clock = None
    if time:
        span = (seconds_of("--from", str(start), zone), seconds_of("--to", str(end), zone))
        clock = Clock(time, *span, cycle, zone, form)
        clock = clock.replace(spread=_heaped(table, clock) if cycle else 0.0)
    return Frame(tuple(columns), region, place, clock)


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


def _heaped(table: Table, clock: Clock) -> float:
    """Seconds over which times are to be spread: those that people round to, 0 for none.

    Told by the first rows: nearly all are whole days, hours or some minutes, or far too many are
    whole hours.
    """
    for chunk in table.chunks([clock.column]):
        seconds = times(chunk.columns[clock.column], clock.zone, clock.form or None).cells.values
        seconds = seconds[np.isfinite(seconds)]
        if len(seconds) < FEWEST:
            return 0.0
        step = next((s for s in STEPS if np.mean(seconds % s == 0.0) > MOSTLY), 0.0)
        if step == DAY and clock.cycle == "day":
            raise TableError(
                f"column {clock.column!r} of {table.path} must have times of the day for "
                "--cycle day, got dates alone: use --cycle week."
            )
        return step or (HOUR if np.mean(seconds % HOUR == 0.0) > HEAPED else 0.0)
    return 0.0


def _check_words(
    columns: Sequence[str],
    window: Any,
    within: Any,
    time: str | None,
    start: str | None,
    end: str | None,
    cycle: str,
    zone: str,
    form: str,
) -> None:
    """What goes with what."""
    if not columns and not time:
        raise ValueError("name at least one column with --columns, or one with --time.")
    if window is not None and within is not None:
        raise ValueError("give a window or a file of polygons, not both.")
    if columns and window is not None and len(window) != 2 * len(columns):
        raise ValueError(
            f"a window must have {2 * len(columns)} numbers, the lowest corner and then the "
            f"highest, got {len(window)}."
        )
    if (window is not None or within is not None) and not columns:
        raise ValueError("a window is for --columns: with --time alone, give --from and --to.")
    if within is not None and len(columns) != 2:
        raise ValueError(f"polygons need two columns, got {len(columns)}.")
    if not time and (start or end or cycle or form or zone != "UTC"):
        raise ValueError(
            "--from, --to, --cycle, --timezone and --time-format need a column of times: name it "
            "with --time."
        )


def _ordered(
    columns: Sequence[str], geographic: bool, lonlat: bool | None
) -> tuple[Sequence[str], bool]:
    """Columns with the longitude first, and were they turned round?"""
    if geographic and len(columns) != 2:
        raise ValueError(f"a longitude and a latitude must be two columns, got {len(columns)}.")
    flip = geographic and lonlat is None and columns[0].lower() not in LONGITUDES
    return (list(columns)[::-1], True) if flip else (list(columns), False)


def _corners(window: Sequence[float], flip: bool) -> tuple[Floats, Floats]:
    low, high = np.split(np.asarray(window, dtype=float), 2)
    return (low[::-1], high[::-1]) if flip else (low, high)


def _range_of_columns(table: Table, columns: Sequence[str], flip: bool) -> str:
    low, high = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
    for chunk in table.chunks(columns):
        for j, name in enumerate(columns):
            values = numbers(chunk.columns[name], chunk.comma).values
            values = values[np.isfinite(values)]
            if len(values):
                low[j], high[j] = min(low[j], values.min()), max(high[j], values.max())
    for name, bound in zip(columns, low, strict=True):
        if not np.isfinite(bound):
            raise TableError(f"column {name!r} of {table.path} holds no number: name another one.")
    return window_option(*((low[::-1], high[::-1]) if flip else (low, high)))


def _range_of_times(table: Table, time: str, zone: str, form: str) -> str:
    low, high = np.inf, -np.inf
    for chunk in table.chunks([time]):
        found = times(chunk.columns[time], zone, form or None).cells.values
        values = found[np.isfinite(found)]
        if len(values):
            low, high = min(low, values.min()), max(high, values.max())
    if not np.isfinite(low):
        raise TableError(f"column {time!r} of {table.path} holds no time: name another one.")
    return times_option(low, high)
