"""What the figures of a report show: maps and curves of a rate in readable units."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.estimators.separable import SeparableIntensity
from hplus.report.axes import Axis, frame_axis
from hplus.report.margins import Margins, by_place, last_interval
from hplus.report.surfaces import (
    FEW_PIXELS,
    Course,
    Surface,
    course,
    dots,
    marginal_course,
    surface,
)
from hplus.report.words import coordinate, each, whole
from hplus.windows import Interval, Window

POWERS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
"""Rates are for so many units of length, area or volume: the first with a highest rate of 0.5."""


@final
@value
class Place(Value):
    """A map of the rate on two axes, its unit in words, and dots for events."""

    window: Window
    surface: Surface
    axes: tuple[Axis, Axis]
    one_ruler: bool
    unit: str
    events: Floats | None


@final
@value
class Part(Value):
    """The map of a part of the last axis, and the share of the events expected there."""

    label: str
    share: float
    surface: Surface


@final
@value
class Curve(Value):
    """The rate along an axis under a heading, its unit in words, and marks for events."""

    heading: str
    course: Course
    axis: Axis
    unit: str
    events: Floats | None


def period_unit(study: Any) -> tuple[str, float]:
    """What a map's rates are per, beside the area, and how many of them one exposure has.

    A unit of exposure, such as a week or a game; or a day of the time watched; or nothing.
    """
    last = study.frame.axes[-1]
    if study.exposure_.unit:
        return study.exposure_.unit, 1.0
    if last.kind == "time":
        span = last_interval(study.model_.window)
        return last.unit, span.high - span.low
    return "", 1.0


def place_map(study: Any, sums: Margins, events: Floats | None) -> Place:
    """The rate by place, over all of the last of three axes."""
    f, frame = sums.place, study.frame
    assert f is not None
    units = f.window.axis_units
    one_ruler = len(set(units)) == 1
    unit, parts = period_unit(study) if sums.line is not None else (_exposure_unit(study), 1.0)
    size = (f.window.volume_unit,) if one_ruler else units
    factor, words = scaled(float(f.values.max()) / parts, *size, unit)
    seen = dots(events)
    shown = None if seen is None else seen[:, :2]
    axes = (frame_axis(frame, 0), frame_axis(frame, 1))
    return Place(f.window, surface(f, factor / parts), axes, one_ruler, words, shown)


def _exposure_unit(study: Any) -> str:
    """The unit of exposure, if rates along the last axis are per unit of it too."""
    # once a week, in each hour of it, is once an hour
    return "" if study.frame.axes[-1].kind == "cycle" else study.exposure_.unit


def scaled(peak: float, size: str, *units: str) -> tuple[float, str]:
    """A factor that makes the highest rate readable, and the unit of the rates then."""
    power = next((p for p in POWERS if p * peak >= 0.5), POWERS[-1])
    if power == 1.0:
        return 1.0, each(size or "unit", *units)
    return power, each(f"{whole(power)} {size or 'units'}", *units)


def rate_curve(study: Any, sums: Margins, events: Floats | None) -> Curve:
    """The rate along the only axis, or along the last of three."""
    model, axis = study.model_, study.frame.axes[-1]
    assert sums.line is not None
    factor, unit = scaled(float(sums.line.values.max()), axis.unit, _exposure_unit(study))
    only = sums.place is None
    if isinstance(model, SeparableIntensity):
        found = course(model.time_, factor)
    else:
        found = course(model, factor) if only else marginal_course(model.rate_, factor)
    seen = dots(events) if only else None
    shown = None if seen is None else seen[:, 0]
    return Curve(_heading(axis, only), found, frame_axis(study.frame, -1), unit, shown)


def _heading(axis: Any, line: bool) -> str:
    if line:
        return "The rate"
    return "When" if axis.kind in ("time", "cycle") else f"Along {axis.name}"


def quarters(study: Any) -> tuple[Part, ...]:
    """Maps of the four quarters of the last of three axes; none if it is independent of place."""
    model, frame = study.model_, study.frame
    if model.window.dimension < 3 or isinstance(model, SeparableIntensity):
        return ()
    span = last_interval(model.window)
    edges = np.linspace(span.low, span.high, 5)
    rates = [by_place(model.rate_.on_grid, Interval(a, b)) for a, b in pairwise(edges)]
    masses = np.array([rate.integral() for rate in rates])
    maps = [surface(rate, pixels=FEW_PIXELS) for rate in rates]
    top, power = max(found.top for found in maps), max(found.power for found in maps)
    axis = frame.axes[-1]
    labels = [f"{axis.name} {coordinate(a)} to {coordinate(b)}" for a, b in pairwise(edges)]
    return tuple(
        Part(label, float(share), found.replace(top=top, power=power))
        for label, share, found in zip(labels, masses / masses.sum(), maps, strict=True)
    )
