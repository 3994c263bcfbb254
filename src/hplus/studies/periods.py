"""Periods to count events in: when they are, how long they last, and how they are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from hplus._checks import Floats, check_count
from hplus.studies.spans import SECONDS, Amount, Clock, moment

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy

MAX_PERIODS = 10_000
"""Parts that a period is cut into, at most."""

Number = TypeVar("Number", float, Floats)

NATURAL_UNITS = ("year", "week", "day", "h", "min", "s")

FEWEST_UNITS = 20.0
"""Units of time that the observation period holds, at least, if counts are told by it."""


class Period(NamedTuple):
    """A time from `start` to `end`, in seconds since 1970, or an exposure; and in words."""

    words: str
    exposure: float = 1.0
    start: float = np.nan
    end: float = np.nan

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.end - self.start

    @property
    def edges(self) -> dict[str, str]:
        """When it begins and ends, as columns of a table."""
        return {"from": moment(self.start), "to": moment(self.end)}


def time_asked(
    study: EventStudy, lasting: Amount | None, start: str | None = None, end: str | None = None
) -> Period:
    """The period of the counts: by default what follows the observation period, or an exposure."""
    clock = study.frame.clock
    if clock is None:
        return _of_exposure(study, lasting, start, end)
    if lasting is not None and end is not None:
        raise ValueError("give lasting= or end=, not both.")
    to = None if end is None else clock.seconds_at("end", end)
    a = _beginning(clock, start, to)
    if to is not None:
        b = to
    elif lasting is not None:
        b = a + lasting.to("s")
    elif clock.cycle or a >= clock.end:
        b = a + SECONDS[clock.cycle or natural_unit(clock)]
    else:
        b = clock.end
    if not a < b:
        raise ValueError(f"end= must be after start=, got {moment(a)} to {moment(b)}.")
    if a < clock.start and not clock.cycle:
        raise ValueError(
            f"start must not be before the observation period, {moment(clock.start)} to "
            f"{moment(clock.end)}, unless times are folded with cycle=, got {moment(a)}."
        )
    once = "" if clock.cycle else _one(study.exposure_)
    return Period(_span(a, b) + (f", in {once}" if once else ""), 1.0, a, b)


def _beginning(clock: Clock, start: str | None, end: float | None) -> float:
    """When a period begins: as given, else after the observation period, or with it."""
    if start is not None:
        return clock.seconds_at("start", start)
    return clock.start if end is not None and end <= clock.end else clock.end


def natural_unit(clock: Clock) -> str:
    """The unit of time that counts are told by: a week, if the observation period is long."""
    span = clock.end - clock.start
    return next((u for u in NATURAL_UNITS if span >= FEWEST_UNITS * SECONDS[u]), "s")


def cut(period: Period, parts: int | None = None, every: Amount | None = None) -> list[Period]:
    """A period in equal parts, or in parts of a length, the last of which may be shorter."""
    if np.isnan(period.start):
        raise ValueError("every= needs a model with times: fit with time=.")
    if every is not None:
        length = every.to("s")
        parts = int(np.ceil(period.seconds / length - 1e-9))
        ends = period.start + length * np.arange(parts + 1)
    else:
        parts = check_count("parts", parts)
        ends = np.linspace(period.start, period.end, parts + 1)
    if parts > MAX_PERIODS:
        raise ValueError(f"a period can be cut into at most {MAX_PERIODS} parts, got {parts}.")
    pairs = zip(ends[:-1].tolist(), [*ends[1:-1].tolist(), period.end], strict=True)
    return [Period(_span(a, b), 1.0, a, b) for a, b in pairs]


def in_days(seconds: Number) -> Number:
    """Seconds in days, the unit of forecasts."""
    return seconds / SECONDS["day"]


def _one(exposure: Amount) -> str:
    """One unit of exposure in words; "" if the exposure is not known."""
    if not exposure.unit and exposure.amount == 1.0:
        return ""
    return f"one {exposure.unit or 'unit of exposure'}"


def _span(a: float, b: float) -> str:
    """A period in words, as short as possible."""
    ends = (moment(t).replace("T", " ").removesuffix(":00") for t in (a, b))
    return " to ".join(ends)


def _of_exposure(
    study: EventStudy, lasting: Amount | None, start: str | None, end: str | None
) -> Period:
    unit = study.exposure_.unit
    if start or end:
        raise ValueError("start= and end= need a model with times: fit with time=.")
    if lasting is None:
        return Period(_one(study.exposure_) or "the observation period")
    axis = study.frame.window.unit
    if axis in SECONDS and lasting.unit in SECONDS and not unit:
        raise ValueError(
            f"lasting= needs a model whose times have dates, got {lasting} for a window in {axis}: "
            f"fit with time={study.frame.columns[-1]!r}, time_unit={axis!r} and origin=, the date "
            "of 0."
        )
    if not unit and lasting.unit:
        raise ValueError(
            f"lasting= needs a model that was fitted with an exposure, got {lasting}: fit with "
            "exposure=, for example exposure='365d'."
        )
    words = str(lasting) if lasting.unit else f"{lasting} units of exposure"
    return Period(words, lasting.to(unit))
