"""Amounts of exposure such as "365d" or "82 games", and clocks for columns of times."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, final
from zoneinfo import ZoneInfo

import numpy as np

from hplus._checks import Floats, check_nonnegative, check_number, check_positive
from hplus._values import Value, value
from hplus.files.cells import number, numbers
from hplus.files.times import MAX_SECONDS, Times, times
from hplus.windows import Cycle, Interval, Window
from hplus.wording import SECONDS_IN, several

if TYPE_CHECKING:
    import pyarrow as pa

SECONDS = {unit: seconds for unit, seconds in SECONDS_IN.items() if seconds >= 1.0}
"""Units of time from a second up, in seconds."""

SPELLINGS = {
    "s": "s", "sec": "s", "second": "s", "min": "min", "minute": "min", "h": "h", "hr": "h",
    "hour": "h", "d": "day", "day": "day", "w": "week", "week": "week", "y": "year", "yr": "year",
    "year": "year", "ms": "ms", "us": "us",
}  # fmt: skip

CYCLES = {"day": 86_400.0, "week": 604_800.0}
"""Cycles of time, in seconds."""

MONDAY = 345_600.0
"""Seconds from 1970-01-01, a Thursday, to the first Monday."""

CENTRED_STEP = 600.0
"""Seconds from which times are rounded by people, to the nearest step, and not by clocks."""

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@final
@value
class Amount(Value):
    """An amount of exposure: 365 days, 82 games; without a unit it is a plain number.

    >>> Amount.parse("365d"), Amount.parse("82 games")
    (Amount(365.0, unit='day'), Amount(82.0, unit='game'))
    """

    amount: float
    unit: str = ""

    def __post_init__(self) -> None:
        self._set(amount=check_positive("amount", self.amount))

    @classmethod
    def parse(cls, text: str) -> Amount:
        """An amount from text such as "365d", "1.5 h" or "82 games"."""
        found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([^\W\d_]*)\s*", text)
        if found is None:
            raise ValueError(f'an amount must look like "365d" or "82 games", got {text!r}.')
        try:
            number = float(found[1])
        except ValueError:
            raise ValueError(f"an amount must begin with a number, got {text!r}.") from None
        word = found[2]
        known = SPELLINGS.get(word.lower()) or SPELLINGS.get(word.lower().removesuffix("s"))
        return cls(number, known or singular(word))

    def to(self, unit: str) -> float:
        """This amount in another unit, to which it must be convertible."""
        if self.unit == unit:
            return self.amount
        if self.unit in SECONDS and unit in SECONDS:
            return self.amount * SECONDS[self.unit] / SECONDS[unit]
        rule = f"a number of {several(unit)}" if unit else "a number without a unit"
        if unit in SECONDS:
            rule = "a length of time such as 7d or 12h"
        raise ValueError(f"an amount must be {rule} here, got {self}.")

    def __str__(self) -> str:
        counted = self.unit == "day" or len(self.unit) > 3  # min
        many = self.amount != 1.0 and counted
        return f"{self.amount:g} {several(self.unit) if many else self.unit}".strip()


def singular(word: str) -> str:
    """A word without its plural: "game" for "games", "match" for "matches"; "bus", "class" stay."""
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word if word.endswith(("ss", "us", "is")) else word.removesuffix("s")


@final
@value
class Clock(Value):
    """The column of times, the observation period, and the cycle into which times are folded.

    `start` and `end` are seconds since 1970 on the clock of the file, or of `zone` if its times
    have a UTC offset; `form` is a format of strptime. Times that were rounded are spread over
    `spread` seconds: in a cycle around a whole hour or part of it, otherwise from it on, as those
    of clocks and dates are. Times that are numbers of some unit since a date have the seconds of
    that unit as `step`, and the date as `origin`, in seconds since 1970.
    """

    column: str
    start: float
    end: float
    cycle: str = ""
    zone: str = "UTC"
    form: str = ""
    spread: float = 0.0
    step: float = 0.0
    origin: float = 0.0

    def __post_init__(self) -> None:
        start, end = check_number("start", self.start), check_number("end", self.end)
        if not start < end:
            raise ValueError(f"end= must be after start=, got {moment(start)} to {moment(end)}.")
        if self.cycle and self.cycle not in CYCLES:
            raise ValueError(f"cycle must be one of {', '.join(CYCLES)}, got {self.cycle!r}.")
        if self.cycle and end - start < CYCLES[self.cycle]:
            raise ValueError(
                f"the observation period must last at least a {self.cycle} for cycle="
                f"{self.cycle!r}, got {moment(start)} to {moment(end)}."
            )
        _check_zone(self.zone)
        self._set(start=start, end=end, spread=check_nonnegative("spread", self.spread))
        self._set(step=check_nonnegative("step", self.step))
        self._set(origin=check_number("origin", self.origin))

    def read(self, column: pa.Array, alone: bool = False) -> Times:
        """Cells of a pyarrow array as times; see `hplus.files.times.times`."""
        if not self.step:
            return times(column, self.zone, self.form, alone=alone)
        cells = numbers(column)
        seconds = self.origin + self.step * cells.values
        wrong = cells.wrong | (np.abs(seconds) > MAX_SECONDS)
        seconds = np.where(wrong, np.nan, seconds)
        return Times(seconds, cells.missing, wrong, np.zeros(len(seconds), dtype=bool))

    def at_any_time(self) -> Clock:
        """The same clock without an observation period."""
        return self.replace(start=-MAX_SECONDS, end=MAX_SECONDS)

    def seconds_at(self, name: str, text: str) -> float:
        """A time that was typed: a date, or a number of the unit of the column."""
        known = number(text) if self.step else None
        if known is not None:
            return self.origin + self.step * known
        if number(text) is not None:
            raise ValueError(
                f"{name} must look like 2026-11-16, got {text!r}: times that are numbers need "
                "time_unit= and origin=."
            )
        return seconds_of(name, text, self.zone)

    def written(self, seconds: float) -> str | float:
        """A time as the column has it: a date, or a number."""
        if not self.step:
            return moment(seconds)
        return float(f"{(seconds - self.origin) / self.step:.9g}")

    @property
    def unit(self) -> str:
        """The unit of the axis: hours of a cycle, else what suits the observation period."""
        if self.cycle:
            return "h"
        span = self.end - self.start
        return next(
            unit for unit in ("day", "h", "min", "s") if span >= 3 * SECONDS[unit] or unit == "s"
        )

    @property
    def window(self) -> Window:
        """The axis: a cycle, or the observation period from its start."""
        if self.cycle:
            return Cycle(CYCLES[self.cycle] / 3600.0, unit="h")
        return Interval(0.0, (self.end - self.start) / SECONDS[self.unit], unit=self.unit)

    def exposure(self) -> Amount:
        """The exposure: how many cycles were observed; 1 without a cycle."""
        if not self.cycle:
            return Amount(1.0)
        return Amount((self.end - self.start) / CYCLES[self.cycle], self.cycle)

    def exposure_at(self, at: Floats) -> Floats:
        """The exposure of each point of a cycle, (n,): a partial cycle covers some more often."""
        parts = phases(self, self.start, self.end - self.start)
        at = at % (CYCLES[self.cycle] / 3600.0)  # the end is the start
        return np.sum([n * ((a <= at) & (at < b)) for a, b, n in parts], axis=0)

    def axis(self, seconds: Floats) -> Floats:
        """Positions of times on the axis, shape (n,)."""
        if self.cycle:
            return ((seconds - MONDAY) % CYCLES[self.cycle]) / 3600.0
        return (seconds - self.start) / SECONDS[self.unit]

    def moved(self, at: Floats, u: Floats) -> Floats:
        """Positions on the axis, spread out where times were rounded by numbers u from 0 to 1."""
        if not self.spread:
            return at
        if not self.cycle:
            step, end = self.spread / SECONDS[self.unit], float(self.window.bounds()[1][0])
            return at + u * np.clip(end - at, 0.0, step)
        centred = CENTRED_STEP <= self.spread < SECONDS["day"]
        hours = (u - 0.5 * centred) * self.spread / 3600.0
        return (at + hours) % (CYCLES[self.cycle] / 3600.0)

    def words(self, at: Floats) -> list[str]:
        """Positions on the axis in words: "Tue 14:00", or dates."""
        if self.cycle == "day":
            return [_hours(h) for h in at]
        if self.cycle:
            return [f"{DAYS[int(h // 24) % 7]} {_hours(h % 24)}" for h in at]
        return [moment(self.start + t * SECONDS[self.unit]) for t in at]


def _check_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (ValueError, LookupError, OSError):
        raise ValueError(
            f"zone must be a known time zone, for example Europe/Paris, got {zone!r}."
        ) from None


def _hours(h: float) -> str:
    minutes = round(h * 60)
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}" if minutes < 1440 else "24:00"


def moment(seconds: float) -> str:
    """A time in ISO 8601, as short as possible."""
    try:
        text = datetime.fromtimestamp(round(seconds, 3), UTC).replace(tzinfo=None).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s"
    return text.removesuffix("T00:00:00")[:19]


def seconds_of(name: str, text: str, zone: str = "UTC") -> float:
    """A date or time as typed, in seconds since 1970 on the clock of a zone."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        early = ": there is no year 0, the first one is 0001" * text.strip().startswith("0000-")
        raise ValueError(
            f'{name} must look like 2026-11-16 or "2026-11-16 08:00", got {text!r}{early}.'
        ) from None
    wall = found if found.tzinfo is None else found.astimezone(ZoneInfo(zone))
    return wall.replace(tzinfo=UTC).timestamp()


def phases(clock: Clock, start: float, seconds: float) -> list[tuple[float, float, float]]:
    """A span of time as parts of a cycle: from hour, to hour, and how many times."""
    period = CYCLES[clock.cycle]
    whole, rest = divmod(seconds, period)
    parts = [(0.0, period / 3600.0, float(whole))] if whole else []
    if rest > 1e-6 * period:
        first = float(clock.axis(np.array([start]))[0])
        last = first + rest / 3600.0
        parts.append((first, min(last, period / 3600.0), 1.0))
        if last > period / 3600.0:
            parts.append((0.0, last - period / 3600.0, 1.0))
    return parts
