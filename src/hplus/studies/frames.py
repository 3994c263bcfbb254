"""Frames: rows of a file as points of a window, and points in the user's own columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from hplus._checks import Bools, Floats
from hplus._values import Value, value
from hplus.files.cells import numbers
from hplus.files.feeds import TableError
from hplus.files.outlines import Outline, Rings
from hplus.files.places import EqualArea
from hplus.files.rows import Chunk
from hplus.files.times import MAX_SECONDS, Zone, times
from hplus.studies.spans import Amount, Clock
from hplus.windows import Box, Cycle, Interval, Polygon, Polygons, Window

LONGITUDES, LATITUDES = ("lon", "lng", "long", "longitude"), ("lat", "latitude")


@final
@value
class FrameAxis(Value):
    """One axis of the window: its name, its unit, and what it is.

    `kind` is "number", "east", "north", "time" or "cycle".
    """

    name: str
    unit: str
    kind: str


class Placed(NamedTuple):
    """Points (n, d) of the rows that could be placed, which rows those are, and why others not.

    `seconds` (n,) are their times. `low` and `high` are the range of the columns, and of the
    times, as the file has them; `zone` is that of the first time so far.
    """

    X: Floats
    rows: Bools
    dropped: Counter[str]
    seconds: Floats
    low: Floats
    high: Floats
    zone: Zone


@final
@value
class Frame(Value):
    """Which columns of a file are the axes of which window.

    `region` is the window of `columns`, None if there are none; with `place` they are a longitude
    and a latitude, and `region` is in kilometres on its map. `clock` adds an axis of time.
    """

    columns: tuple[str, ...]
    region: Window | None
    place: EqualArea | None = None
    clock: Clock | None = None

    def __post_init__(self) -> None:
        d = 0 if self.region is None else self.region.dimension
        if len(self.columns) != d or d + (self.clock is not None) not in (1, 2, 3):
            raise ValueError(
                f"a frame must have 1 to 3 axes, one for each column, got columns {self.columns}, "
                f"a window of {d} axes and {'a' if self.clock else 'no'} time."
            )
        self._set(columns=tuple(self.columns))

    @property
    def window(self) -> Window:
        """Where events could occur."""
        if self.region is None:
            assert self.clock is not None
            return self.clock.window
        return self.region if self.clock is None else self.region * self.clock.window

    @property
    def axes(self) -> tuple[FrameAxis, ...]:
        """What each axis of the window is."""
        units = self.window.axis_units
        if self.place is not None:
            found = [FrameAxis("east", "km", "east"), FrameAxis("north", "km", "north")]
        else:
            found = [
                FrameAxis(name, unit, "number")
                for name, unit in zip(self.columns, units, strict=False)
            ]
        if self.clock is not None:
            kind = "cycle" if self.clock.cycle else "time"
            found.append(FrameAxis(self.clock.column, self.clock.unit, kind))
        return tuple(found)

    @property
    def cycle(self) -> str:
        """The cycle into which times are folded, "" if there is none."""
        return "" if self.clock is None else self.clock.cycle

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return self.columns + (() if self.clock is None else (self.clock.column,))

    def at_any_time(self) -> Frame:
        """The same frame; with a cycle, also for events outside the observation period."""
        if self.clock is None or not self.cycle:
            return self
        return self.replace(clock=self.clock.replace(start=-MAX_SECONDS, end=MAX_SECONDS))

    def points(self, chunk: Chunk, zone: Zone = Zone.NEITHER, *, alone: bool = False) -> Placed:
        """The rows of a chunk as points of the window; the rest is counted by reason.

        `zone` is that of the rows before, and `alone` says that no row may look at the others.
        """
        dropped: Counter[str] = Counter()
        good, raw = np.ones(len(chunk), dtype=bool), []
        for name in self.columns:
            cells = numbers(chunk.as_numbers(name))
            good = _drop(dropped, good, cells.missing, f"no {name}")
            good = _drop(dropped, good, cells.wrong, f"{name} is not a number")
            raw.append(cells.values)
        if self.clock is not None:
            name = self.clock.column
            found = times(chunk.as_numbers(name), self.clock.zone, self.clock.form, alone=alone)
            zone = found.zone if zone is Zone.NEITHER else zone
            good = _drop(dropped, good, found.missing, f"no {name}")
            good = _drop(dropped, good, found.wrong, f"{name} is not a time")
            other = found.aware != (zone is Zone.AWARE)
            unlike = "no" if zone is Zone.AWARE else "a"
            good = _drop(dropped, good, other, f"{name} has {unlike} UTC offset, unlike the first")
            raw.append(found.seconds)
        rows = np.column_stack(raw)[good]
        low, high = _range(rows)
        X, inside = self._within(rows, dropped)
        good[good] = inside
        return Placed(X[inside], good, dropped, rows[inside, -1], low, high, zone)

    def _within(self, rows: Floats, dropped: Counter[str]) -> tuple[Floats, Bools]:
        """Rows in the units of the window, and which of them lie in it."""
        good = np.ones(len(rows), dtype=bool)
        X = self.placed(rows)
        if self.place is not None:
            off = (np.abs(rows[:, 1]) > 90.0) | (np.abs(rows[:, 0]) > 360.0)
            good = _drop(dropped, good, off, "not a longitude and a latitude")
        if self.clock is not None:
            outside = (rows[:, -1] < self.clock.start) | (rows[:, -1] >= self.clock.end)
            good = _drop(dropped, good, outside, "outside the observation period")
        if self.region is not None:
            outside = ~self.region.contains(X[:, : self.region.dimension])
            good = _drop(dropped, good, outside, "outside the window")
        return X, good

    def placed(self, rows: Floats) -> Floats:
        """Numbers of the columns, and seconds of the clock, (n, d) as points of the window."""
        X = np.array(rows, dtype=float)
        if self.place is not None:
            X[:, :2] = self.place.forward(np.clip(rows[:, :2], -1e6, 1e6))
        if self.clock is not None:
            X[:, -1] = self.clock.axis(rows[:, -1])
        return X

    def own(self, X: Floats) -> Floats:
        """Points of the region (n, >= 2) back in the file's own columns."""
        if self.place is None:
            return np.asarray(X, dtype=float)
        return np.column_stack([self.place.backward(X[:, :2]), X[:, 2:]])

    def describe(self, X: Any) -> list[dict[str, Any]]:
        """Points (n, d) of the window in the user's own columns."""
        X = np.atleast_2d(np.asarray(X, dtype=float))
        numbers_ = self.own(X)[:, : len(self.columns)]
        form = ".6g" if self.place is None else ".5f"  # a metre, in degrees
        found: list[dict[str, Any]] = [
            {name: float(f"{v:{form}}") for name, v in zip(self.columns, row, strict=True)}
            for row in numbers_
        ]
        if self.clock is not None:
            for row, word in zip(found, self.clock.words(X[:, -1]), strict=True):
                row[self.clock.column] = word
        return found

    def window_of(self, polygons: Sequence[Rings]) -> Window:
        """Polygons in the file's own coordinates as a window on this frame's map."""
        assert self.region is not None
        low, high = self.region.bounds()
        middle = 0.0
        if self.place is not None:
            middle = float(self.place.backward(0.5 * (low + high)[None, :2])[0, 0])
        return polygon_window(polygons, self.place, middle, self.region.unit)


def check_frame(frame: Any, exposure: Amount | None) -> None:
    """Check a frame, and an exposure beside it."""
    if not isinstance(frame, Frame):
        raise TypeError(f"frame must be a Frame, got {frame!r:.60}.")
    if exposure is not None and frame.cycle:
        raise ValueError(
            f"exposure must be left out with a cycle, whose exposure is its number of "
            f"{frame.cycle}s, got {exposure}."
        )


def polygon_window(
    polygons: Sequence[Rings], place: EqualArea | None, middle: float, unit: str
) -> Window:
    """Polygons as a window, on a map around a middle longitude if there is one."""
    parts = []
    for rings in polygons:
        outer, *holes = rings if place is None else [place.ring(ring, middle) for ring in rings]
        parts.append(Polygon(outer, tuple(holes), unit=unit))
    return parts[0] if len(parts) == 1 else Polygons(tuple(parts))


def is_lonlat(columns: Sequence[str]) -> bool:
    """Are two columns called longitude and latitude?"""
    names = [name.lower() for name in columns]
    return len(names) == 2 and any(
        a in LONGITUDES and b in LATITUDES for a, b in (names, names[::-1])
    )


def lonlat_map(low: Floats, high: Floats) -> EqualArea:
    """The map of a box of longitude and latitude."""
    for name, a, b, most in (
        ("longitude", low[0], high[0], 360.0),
        ("latitude", low[1], high[1], 90.0),
    ):
        if not -most <= a < b <= most:
            raise TableError(
                f"the {name} of a window must increase, between {-most:g} and {most:g}, got {a:g} "
                f"to {b:g}: are longitude and latitude swapped?"
            )
    return EqualArea(float(low[0]), float(low[1]), float(low[1] + high[1]) / 2.0)


def box_region(low: Floats, high: Floats, place: EqualArea | None, unit: str) -> Window:
    """A box in the file's own coordinates as a window; around the whole world it is a ring."""
    if place is not None:
        (low, high), unit = place.forward(np.array([low, high])), _map_unit(unit)
        if high[0] == place.forward(np.array([[place.west + 360.0, 0.0]]))[0, 0]:
            return Cycle(float(high[0]), unit=unit) * Interval(
                float(low[1]), float(high[1]), unit=unit
            )
    if len(low) == 1:
        return Interval(float(low[0]), float(high[0]), unit=unit)
    return Box(tuple(low.tolist()), tuple(high.tolist()), unit=unit)


def outlines_region(
    outlines: Sequence[Outline], lonlat: bool, unit: str
) -> tuple[Window, EqualArea | None]:
    """All polygons of a file as one window, and the map that it is on."""
    polygons = [rings for outline in outlines for rings in outline.polygons]
    place, middle = None, 0.0
    if lonlat:
        corners = np.concatenate([rings[0] for rings in polygons])
        low, high = corners.min(axis=0), corners.max(axis=0)
        place, middle = lonlat_map(low, high), float(low[0] + high[0]) / 2.0
    return polygon_window(polygons, place, middle, _map_unit(unit) if lonlat else unit), place


def _map_unit(unit: str) -> str:
    """Kilometres: no other unit can be asked for."""
    if unit not in ("", "km"):
        raise ValueError(
            f"unit must be left out for longitude and latitude, which are converted to km, got "
            f"{unit!r}."
        )
    return "km"


def _drop(dropped: Counter[str], good: Bools, bad: Bools, reason: str) -> Bools:
    """Rows that are still good; each of the others is counted once, under its first reason."""
    lost = int(np.sum(good & bad))
    if lost:
        dropped[reason] += lost
    return good & ~bad


def _range(rows: Floats) -> tuple[Floats, Floats]:
    if len(rows) == 0:
        d = rows.shape[1]
        return np.full(d, np.inf), np.full(d, -np.inf)
    return rows.min(axis=0), rows.max(axis=0)
