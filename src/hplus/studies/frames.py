"""Frames: rows of a file as points of a window, and points in the user's own columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from hplus._checks import Bools, Floats
from hplus._values import Value, value
from hplus.files.cells import numbers
from hplus.files.conditions import Condition
from hplus.files.feeds import TableError
from hplus.files.outlines import Rings
from hplus.files.places import EqualArea
from hplus.files.rows import Chunk
from hplus.files.times import Zone
from hplus.studies.frame_windows import polygon_window
from hplus.studies.placed_rows import Placed, drop, range_of
from hplus.studies.spans import SECONDS, Amount, Clock
from hplus.studies.trial_names import trial_positions
from hplus.windows import Interval, Window


@final
@value
class FrameAxis(Value):
    """One axis of the window: its name, its unit, and what it is.

    `kind` is "number", "east", "north", "time" or "cycle".
    """

    name: str
    unit: str
    kind: str


MOST_AXES = 3
"""Axes of a frame, at most, with that of times."""

OUTSIDE_PERIOD = "outside the observation period"
"""Why rows of other times are left out."""


@final
@value
class Frame(Value):
    """Which columns of a file are the axes of which window, and which of its rows are meant.

    `region` is the window of `columns`, None if there are none; with `place` they are a longitude
    and a latitude, and `region` is in kilometres on its map. `clock` adds an axis of time. Only
    rows for which `where` holds are events, and the column `weight` says what each one counts. The
    column `trial` names the repeated observation of the window in which an event was seen.
    """

    columns: tuple[str, ...]
    region: Window | None
    place: EqualArea | None = None
    clock: Clock | None = None
    where: Condition | None = None
    weight: str = ""
    trial: str = ""

    def __post_init__(self) -> None:
        d = 0 if self.region is None else self.region.dimension
        axes = d + (self.clock is not None)
        if axes > MOST_AXES:
            rule = "two beside a column of times" if self.clock else "three"
            raise ValueError(f"columns must be at most {rule}, got {', '.join(self.columns)}.")
        if len(self.columns) != d or axes == 0:
            raise ValueError(
                f"a frame must have an axis for each column, got columns {self.columns}, "
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
        """The columns that its points are read from."""
        return self.columns + (() if self.clock is None else (self.clock.column,))

    @property
    def of_events(self) -> tuple[str, ...]:
        """The columns that its events are read from: those of points, of weights and of trials."""
        return self.needed + tuple(filter(None, (self.weight, self.trial)))

    @property
    def asked_for(self) -> list[str]:
        """The columns that its events, and the condition on its rows, are read from."""
        where = () if self.where is None else self.where.columns
        return list(dict.fromkeys([*self.of_events, *where]))

    def narrowed(self, where: Condition | None) -> Frame:
        """The same frame for those of its rows for which another condition holds too."""
        if where is None:
            return self
        return self.replace(where=where if self.where is None else self.where.also(where))

    def of_points(self) -> Frame:
        """The same frame for points to ask about, at any time if there is a cycle."""
        return self.at_any_time().replace(where=None, weight="", trial="")

    def at_any_time(self) -> Frame:
        """The same frame; with a cycle, also for events outside the observation period."""
        if self.clock is None or not self.cycle:
            return self
        return self.replace(clock=self.clock.at_any_time())

    def points(self, chunk: Chunk, zone: Zone = Zone.NEITHER, *, alone: bool = False) -> Placed:
        """The rows of a chunk as points of the window; the rest is counted by reason.

        `zone` is that of the rows before, and `alone` says that no row may look at the others.
        """
        dropped, left_out = Counter[str](), Counter[str]()
        good, raw = np.ones(len(chunk), dtype=bool), []
        for name in self.columns:
            cells = numbers(chunk.as_numbers(name))
            good = drop(dropped, good, cells.missing, f"no {name}")
            good = drop(dropped, good, cells.wrong, f"{name} is not a number")
            raw.append(cells.values)
        if self.clock is not None:
            name = self.clock.column
            found = self.clock.read(chunk.as_numbers(name), alone)
            zone = found.zone if zone is Zone.NEITHER else zone
            good = drop(dropped, good, found.missing, f"no {name}")
            good = drop(dropped, good, found.wrong, f"{name} is not a time")
            other = found.aware != (zone is Zone.AWARE)
            unlike = "no" if zone is Zone.AWARE else "a"
            good = drop(dropped, good, other, f"{name} has {unlike} UTC offset, unlike the first")
            raw.append(found.seconds)
        weights = self._weights(chunk, dropped, good)
        if self.trial:
            trials, missing = trial_positions(chunk.columns[self.trial])
            good &= drop(dropped, good, missing, f"no {self.trial}")
        columns = raw if good.all() else [column[good] for column in raw]
        rows, (low, high) = np.column_stack(columns), range_of(columns)
        X, inside = self._within(rows, low, high, dropped, left_out)
        seconds = trials[good] if self.trial else rows[:, -1]
        if not inside.all():
            good[good] = inside
            X, seconds = X[inside], seconds[inside]
        weights = None if weights is None else weights[good]
        return Placed(X, good, dropped, left_out, seconds, weights, low, high, zone)

    def _weights(self, chunk: Chunk, dropped: Counter[str], good: Bools) -> Floats | None:
        """What each row counts; rows without a number are no longer `good`."""
        if not self.weight:
            return None
        cells = numbers(chunk.as_numbers(self.weight))
        good &= drop(dropped, good, cells.missing, f"no {self.weight}")
        good &= drop(dropped, good, cells.wrong, f"{self.weight} is not a number")
        negative = np.flatnonzero(good & (cells.values < 0.0))
        if len(negative):
            raise TableError(
                f"column {self.weight!r} must be at least 0 in every row to be a weight, got "
                f"{cells.values[negative[0]]:.6g}: leave such rows out with where=."
            )
        return cells.values

    def _within(
        self,
        rows: Floats,
        low: Floats,
        high: Floats,
        dropped: Counter[str],
        left_out: Counter[str],
    ) -> tuple[Floats, Bools]:
        """Rows from low to high, in the units of the window, and which of them lie in it."""
        good = np.ones(len(rows), dtype=bool)
        X = self.placed(rows)
        if self.place is not None:
            off = (np.abs(rows[:, 1]) > 90.0) | (np.abs(rows[:, 0]) > 360.0)
            good = drop(dropped, good, off, "not a longitude and a latitude")
        if self.clock is not None:
            outside = (rows[:, -1] < self.clock.start) | (rows[:, -1] >= self.clock.end)
            good = drop(left_out, good, outside, OUTSIDE_PERIOD)
        if self.region is not None and not self._surround(low, high):
            outside = ~self.region.contains(X[:, : self.region.dimension])
            good = drop(left_out, good, outside, "outside the window")
        return X, good

    def _surround(self, low: Floats, high: Floats) -> bool:
        """Are all places from low to high in the region?"""
        box = None if self.region is None or self.place is not None else self.region.box_bounds()
        d = len(self.columns)
        return box is not None and bool(np.all((box[0] <= low[:d]) & (high[:d] <= box[1])))

    def placed(self, rows: Floats) -> Floats:
        """Numbers of the columns, and seconds of the clock, (n, d) as points of the window."""
        if self.place is None and self.clock is None:
            return np.asarray(rows, dtype=float)
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
    if exposure is None or exposure.unit not in SECONDS or frame.clock is not None:
        return
    if isinstance(frame.region, Interval) and frame.region.unit in SECONDS:
        length = Amount(frame.region.volume, frame.region.unit)
        if exposure.to("s") <= 1.01 * length.to("s"):
            raise ValueError(
                f"exposure must be longer than the window if both are times, got {exposure} for a "
                f"window of {length}, which says already how long was observed: leave it out, or "
                "give time=, time_unit= and origin= to ask for times to come."
            )
