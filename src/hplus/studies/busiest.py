"""Where and when a rate is highest, as finely as it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hplus._checks import Floats
from hplus.estimators.intensity import Intensity
from hplus.storage.files import Json
from hplus.studies.event_facts import is_constant, model_parts, time_step
from hplus.studies.frames import Frame
from hplus.studies.spans import Clock
from hplus.wording import SECONDS_IN

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy

BAND = 0.9
"""The level of the band whose lower end must lie above the average rate at the highest point."""


def peak_facts(study: EventStudy) -> Json:
    """The highest rate, and where it is in the user's own columns.

    Without those in which the rate is nowhere clearly higher than on average, and with the decimals
    that its resolution allows.
    """
    frame, model = study.frame, study.model_
    place, rate = model.peak()
    found = _at_resolution(study, place)
    for of, part in model_parts(model).items():
        for name in _columns_of(frame, of) if is_flat(part) else ():
            del found[name]
    return found | {"rate": rate}


def is_flat(model: Intensity) -> bool:
    """Is the rate constant, or not clearly above the average even where it is highest?"""
    if is_constant(model):
        return True
    place, _ = model.peak()
    low, _ = model.predict_interval(place[None], level=BAND)
    return bool(low[0] <= model.expected_count(model.window) / model.window.volume)


def _at_resolution(study: EventStudy, place: Floats) -> dict[str, float | str]:
    """A place (d,) in the user's own columns, with the decimals that the resolution allows."""
    frame, model = study.frame, study.model_
    parts, clock = list(model_parts(model).values()), frame.clock
    own, last = parts[0], parts[-1]
    if clock is not None:
        place = np.append(
            place[:-1], _whole_step(clock, float(place[-1]), time_step(frame, "times"))
        )
    found: dict[str, float | str] = frame.describe(place)[0]
    sides = np.zeros(len(place))
    sides[: own.window.dimension] = getattr(own, "resolution_", 0.0)
    low, high = frame.window.bounds()
    inward = np.where(place > 0.5 * (low + high), -sides, sides)
    here, there = frame.own(np.array([place, place + inward]))
    for name, a, b in zip(frame.columns, here, there, strict=False):
        if step := abs(b - a):
            found[name] = round(a, int(np.ceil(-np.log10(step)))) + 0.0  # no -0.0
    if clock is not None:
        finest = float(np.max(getattr(last, "resolution_", 0.0))) * SECONDS_IN[clock.unit]
        found[clock.column] = _cut(clock, str(found[clock.column]), max(finest, clock.spread))
    return found


def _whole_step(clock: Clock, at: float, step: float) -> float:
    """A time on the axis of a clock, moved to the nearest one that rounding gives, or its day."""
    if step == 0.0:
        return at
    whole = np.floor if clock.spread >= SECONDS_IN["day"] else np.rint
    return float(np.clip(whole(at / step) * step, 0.0, clock.window.bounds()[1][-1]))


def _cut(clock: Clock, text: str, finest: float) -> str:
    """A time in words without hours, or seconds, that are not known."""
    if clock.cycle:
        return text.split(" ")[0] if clock.spread >= SECONDS_IN["day"] else text
    return text[
        : 10 if finest >= SECONDS_IN["day"] else 16 if finest >= SECONDS_IN["min"] else None
    ]


def _columns_of(frame: Frame, of: str) -> tuple[str, ...]:
    """The columns of a part of a rate: places, times or, of one alone, all."""
    return {"places": frame.columns, "times": frame.needed[len(frame.columns) :]}.get(
        of, frame.needed
    )
