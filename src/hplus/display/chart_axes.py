"""Axes of a chart: names with units, and ticks at round numbers, hours, days or dates."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import final

import numpy as np

from hplus._values import Value, value
from hplus.studies.frames import Frame
from hplus.studies.spans import DAYS, SECONDS, Clock
from hplus.wording import MONTHS, at_decimals, decimals_for, nice_step, rounded, with_unit

Tick = tuple[float, str]
"""A place on an axis, and its label."""

FEWEST_DAYS, MOST_DAYS, MOST_MONTHS, MOST_QUARTERS = 4.0, 75.0, 500.0, 1500.0
"""Days from which an axis of time has dates, and up to which they are days, months, quarters."""


@final
@value
class ChartAxis(Value):
    """A label and the ends of an axis; ticks, or none for round numbers between the ends."""

    label: str
    low: float
    high: float
    ticks: tuple[Tick, ...] = ()

    def ticks_about(self, count: int) -> tuple[Tick, ...]:
        """About this many ticks."""
        if not self.ticks:
            return round_ticks(self.low, self.high, count)
        # every second, every third, …: those left are as far apart as before
        return self.ticks[:: max(1, math.ceil(len(self.ticks) / (1.5 * count)))]


def round_ticks(low: float, high: float, about: int = 6) -> tuple[Tick, ...]:
    """About this many round numbers from low to high."""
    if not high > low:
        return ((low, at_decimals(low, 0)),)
    step = nice_step((high - low) / about)
    numbers = np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    places = [float(n * step) + 0.0 for n in numbers]
    if max(abs(low), abs(high)) >= 1e4:
        return tuple((at, f"{at:,.0f}") for at in places)
    return tuple((at, at_decimals(at, decimals_for(step))) for at in places)


def log_ticks(low: float, high: float) -> tuple[Tick, ...]:
    """Ticks of a log scale: powers of ten and, if there are few, 3 times or 2 and 5 times them."""
    digits = (1,) if high - low > 3.0 else (1, 3) if high - low > 1.5 else (1, 2, 5)
    powers = range(math.floor(low), math.ceil(high) + 1)
    found = ((math.log10(m) + p, rounded(m * 10.0**p)) for p in powers for m in digits)
    return tuple(tick for tick in found if low <= tick[0] <= high)


def frame_axis(frame: Frame, index: int) -> ChartAxis:
    """One axis of a study's window, with its own name and unit."""
    axis, (low, high) = frame.axes[index], (float(end[index]) for end in frame.window.bounds())
    clock = frame.clock if axis.kind in ("time", "cycle") else None
    if clock is None:
        return ChartAxis(with_unit(axis.name, axis.unit), low, high)
    if clock.cycle:
        return ChartAxis(f"{axis.name}, by hour of the {clock.cycle}", low, high, cycle_ticks(high))
    return ChartAxis(axis.name, low, high, clock_ticks(clock))


def cycle_ticks(period: float) -> tuple[Tick, ...]:
    """Midnights of a week by the day that begins, or every third hour of a day."""
    if period > 24.0:
        return tuple((24.0 * d, day) for d, day in enumerate(DAYS))
    return tuple((float(h), f"{h:02d}:00") for h in range(0, 25, 3))


def clock_ticks(clock: Clock) -> tuple[Tick, ...]:
    """Starts of years, months or days in the observation period, if it contains any."""
    start, end = (datetime.fromtimestamp(t, UTC) for t in (clock.start, clock.end))
    days = (end - start).total_seconds() / SECONDS["day"]
    if days < FEWEST_DAYS:
        return ()
    if days < MOST_DAYS:
        first = start.replace(hour=0, minute=0, second=0, microsecond=0)
        moments = [first + timedelta(days=k) for k in range(int(days) + 2)]
        texts = [f"{m.day} {MONTHS[m.month - 1]}" for m in moments]
    else:
        step = 1 if days < MOST_MONTHS else 3 if days < MOST_QUARTERS else 12
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
