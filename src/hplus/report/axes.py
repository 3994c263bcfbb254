"""Axes of a figure: names with units, and marks at round numbers, hours, days or dates."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, final

import numpy as np

from hplus._values import Value, value
from hplus.report.words import MONTHS, at_decimals, decimals_for, nice_step
from hplus.studies.spans import DAYS, SECONDS, Clock

Mark = tuple[float, str]
"""A place on an axis, and what is written there."""


@final
@value
class Axis(Value):
    """A label and the ends of an axis; marks, or none for round numbers between the ends."""

    label: str
    low: float
    high: float
    marks: tuple[Mark, ...] = ()

    def marked(self, about: int) -> tuple[Mark, ...]:
        """About so many marks."""
        if not self.marks:
            return round_marks(self.low, self.high, about)
        # every second, every third, …: those left are as far apart as before
        return self.marks[:: max(1, math.ceil(len(self.marks) / (1.5 * about)))]


def round_marks(low: float, high: float, about: int = 6) -> tuple[Mark, ...]:
    """Round numbers from low to high, about so many."""
    if not high > low:
        return ((low, at_decimals(low, 0)),)
    step = nice_step((high - low) / about)
    numbers = np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    large = max(abs(low), abs(high)) >= 1e4
    decimals = decimals_for(step)
    return tuple(
        (
            float(n * step),
            f"{n * step:,.0f}" if large else at_decimals(float(n * step) + 0.0, decimals),
        )
        for n in numbers
    )


def frame_axis(frame: Any, index: int) -> Axis:
    """One axis of a study's window, with its own name and unit."""
    axis, (low, high) = frame.axes[index], (end[index] for end in frame.window.bounds())
    clock = frame.clock if axis.kind in ("time", "cycle") else None
    if clock is None:
        return Axis(named(axis.name, axis.unit), float(low), float(high))
    marks = cycle_marks(float(high)) if clock.cycle else clock_marks(clock)
    label = f"{axis.name}, by the hour of the {clock.cycle}" if clock.cycle else axis.name
    return Axis(label, float(low), float(high), marks)


def named(name: str, unit: str) -> str:
    """The name of an axis with its unit, such as "depth (km)"."""
    return f"{name} ({unit})" if unit and unit != name else name


def cycle_marks(period: float) -> tuple[Mark, ...]:
    """Midnights of a week by the day that begins, or every third hour of a day."""
    if period > 24.0:
        return tuple((24.0 * d, day) for d, day in enumerate(DAYS))
    return tuple((float(h), f"{h:02d}:00") for h in range(0, 25, 3))


def clock_marks(clock: Clock) -> tuple[Mark, ...]:
    """Beginnings of years, months or days in the time watched; none if it is shorter."""
    start, end = (datetime.fromtimestamp(t, UTC) for t in (clock.start, clock.end))
    days = (end - start).total_seconds() / SECONDS["day"]
    if days < 4.0:
        return ()
    if days < 75.0:
        first = start.replace(hour=0, minute=0, second=0, microsecond=0)
        moments = [first + timedelta(days=k) for k in range(int(days) + 2)]
        texts = [f"{m.day} {MONTHS[m.month - 1]}" for m in moments]
    else:
        step = 1 if days < 500.0 else 3 if days < 1500.0 else 12
        count = (end.year - start.year + 1) * 12
        years = [(start.year + k // 12, k % 12 + 1) for k in range(0, count, step)]
        moments = [datetime(year, month, 1, tzinfo=UTC) for year, month in years]
        texts = [f"{m.year}" if step == 12 else f"{MONTHS[m.month - 1]} {m.year}" for m in moments]
    unit = SECONDS[clock.unit]
    return tuple(
        ((m - start).total_seconds() / unit, text)
        for m, text in zip(moments, texts, strict=True)
        if start <= m <= end
    )
