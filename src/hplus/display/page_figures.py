"""The figures of a report in readable units: maps, curves, and a table of hot spots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.display.chart_axes import ChartAxis, frame_axis
from hplus.display.colours import Shading, shading
from hplus.display.data.framing import last_axis, same_unit, thinned
from hplus.display.data.gridded import gridded
from hplus.display.data.hot_spots import HotSpots, find_hot_spots
from hplus.display.data.margins import Margins, line_curve, part_maps, place_map
from hplus.display.data.rate_data import CurveData, MapData
from hplus.display.spot_intervals import provided, varied
from hplus.estimators.separable import SeparableIntensity
from hplus.studies.event_study import EventStudy
from hplus.studies.event_weights import counted_noun, weight_unit
from hplus.studies.frames import Frame
from hplus.wording import (
    UNIT_NAMES,
    at_decimals,
    count,
    decimals_for,
    number,
    per,
    plural,
    quantity,
    sides_words,
)

POWERS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
"""Rates are per this many units of length, area or volume: the first whose peak reaches 0.5."""

PARTS, PART_PIXELS = 4, 140
"""Small maps of parts of the last axis, and pixels on their longer side."""

MOST_DOTS = 4000
"""Events drawn at most."""

Cell = str | float
"""What a place has in one of the user's columns."""


@final
@value
class PageMap(Value):
    """A map of the rate on two axes, its colours, its unit in words, and dots for events.

    `highest` is the highest rate, which may lie between the centres of pixels; rates are per
    `factor` units of area.
    """

    data: MapData
    shading: Shading
    axes: tuple[ChartAxis, ChartAxis]
    unit: str
    highest: float
    events: Floats | None
    factor: float = 1.0


@final
@value
class PartMap(Value):
    """The map of a part of the last axis, and the share of the events expected there."""

    label: str
    share: float
    data: MapData
    shading: Shading


@final
@value
class PageCurve(Value):
    """The rate along an axis under a heading, its unit in words, and events for a rug."""

    heading: str
    data: CurveData
    axis: ChartAxis
    unit: str
    events: Floats | None

    @property
    def highest(self) -> float:
        """The highest rate."""
        return float(self.data.rate.max())


@final
@value
class SpotTable(Value):
    """Hot spots with their places in the user's own columns, and the size of a cell in words.

    `provided` says when nine out of ten counts lie in their intervals.
    """

    spots: HotSpots
    columns: tuple[str, ...]
    places: tuple[tuple[str, ...], ...]
    size: str
    period: str
    provided: str


def period_unit(study: EventStudy) -> tuple[str, float]:
    """What a map's rates are per, besides the area, and how many of them one exposure has.

    A unit of exposure, such as a week or a game; or a day of the time observed; or nothing.
    """
    last = study.frame.axes[-1]
    if study.exposure_.unit:
        return study.exposure_.unit, 1.0
    if last.kind == "time":
        return last.unit, last_axis(study.model_.window).volume
    return "", 1.0


def exposure_words(study: EventStudy) -> str:
    """The exposure in words: "79 games", "4 years", or nothing."""
    amount, clock = study.exposure_, study.frame.clock
    if amount.unit or amount.amount != 1.0:
        return quantity(amount.amount, amount.unit)
    if clock is not None:
        span = last_axis(study.model_.window)
        return quantity(span.volume, span.unit)
    return ""


def _exposure_unit(study: EventStudy) -> str:
    """The unit of exposure, if rates along the last axis are per unit of it too."""
    # once a week, in each hour of it, is once an hour
    return "" if study.frame.axes[-1].kind == "cycle" else study.exposure_.unit


def readable(peak: float, size: str, *units: str) -> tuple[float, str]:
    """A factor that makes the highest rate readable, and the unit of the rates then."""
    power = next((p for p in POWERS if p * peak >= 0.5), POWERS[-1])
    if power == 1.0:
        return 1.0, per(size or "unit", *units)
    return power, per(f"{count(power)} {plural(UNIT_NAMES.get(size, size or 'unit'))}", *units)


def page_map(study: EventStudy, sums: Margins, events: Floats | None) -> PageMap | None:
    """The rate by place, over all of the last of three axes."""
    f = sums.place
    if f is None:
        return None
    unit, parts = period_unit(study) if sums.line is not None else (_exposure_unit(study), 1.0)
    size = (f.window.volume_unit,) if same_unit(f.window) else f.window.axis_units
    highest = f.peak()[1] / parts
    factor, words = readable(highest, *size, unit)
    words = words.replace("events", counted_noun(study.frame), 1)
    data = place_map(f, factor / parts)
    axes = (frame_axis(study.frame, 0), frame_axis(study.frame, 1))
    dots = None if events is None else thinned(events, MOST_DOTS)[:, :2]
    return PageMap(data, shading(data.rate), axes, words, factor * highest, dots, factor)


def page_curve(study: EventStudy, sums: Margins, events: Floats | None) -> PageCurve | None:
    """The rate along the only axis, or along the last of three."""
    axis, clock = study.frame.axes[-1], study.frame.clock
    if sums.line is None:
        return None
    factor, unit = readable(float(sums.line.values.max()), axis.unit, _exposure_unit(study))
    unit = unit.replace("events", counted_noun(study.frame), 1)
    if clock is not None and clock.cycle:
        unit = f"{unit}, in an average {clock.cycle}"
    only = sums.place is None
    timed = "When" if axis.kind in ("time", "cycle") else f"Along {axis.name}"
    rug = thinned(events, MOST_DOTS)[:, 0] if only and events is not None else None
    data = line_curve(study.model_).scaled(factor)
    return PageCurve("The rate" if only else timed, data, frame_axis(study.frame, -1), unit, rug)


def quarters(study: EventStudy) -> tuple[PartMap, ...]:
    """Maps of the four quarters of the last of three axes; none if it is independent of place."""
    model, axis = study.model_, study.frame.axes[-1]
    if model.window.dimension < 3 or isinstance(model, SeparableIntensity):
        return ()
    parts = part_maps(gridded(model.rate_, model.window), PARTS, PART_PIXELS)
    found = [shading(data.rate) for _, data in parts]
    peak, top, power = (max(getattr(s, name) for s in found) for name in ("peak", "top", "power"))
    total = sum(data.expected for _, data in parts)
    return tuple(
        PartMap(
            f"{axis.name} {number(part.low)} to {number(part.high)}",
            data.expected / total,
            data,
            Shading(peak, top, power),
        )
        for part, data in parts
    )


def spot_table(study: EventStudy, sums: Margins, events: Floats | None) -> SpotTable:
    """Hot spots in the user's own columns: middles of cells, or both ends of intervals."""
    model, frame = study.model_, study.frame
    unit = weight_unit(study)
    # events are drawn in proportion to weights, so their number says nothing about sums
    shown = None if frame.weight else events
    spots = varied(study, find_hot_spots(model, sums, study.exposure_.amount, shown, unit))
    first, opposite = (_described(frame, corner[:1])[0] for corner in (spots.low, spots.high))
    steps = _steps_between(first, opposite)
    sides, units = (spots.high - spots.low)[0].tolist(), model.window.axis_units
    if len(sides) == 1:
        starts, ends = (_in_columns(_described(frame, X), steps) for X in (spots.low, spots.high))
        pairs = zip(starts, ends, strict=True)
        places = [(*start.values(), *end.values()) for start, end in pairs]
        columns = [f"{next(iter(starts[0]))}, from", "to"]
        size = f"intervals of {quantity(sides[0], units[0])}"
    else:
        finer = {name: step / 10.0 for name, step in steps.items()}
        finer.setdefault(frame.axes[-1].name, last_axis(model.window).volume / 100.0)
        rows = _in_columns(_described(frame, spots.middle, spots.peak), finer)
        places, columns = [tuple(row.values()) for row in rows], list(rows[0])
        size = f"squares of {quantity(sides[0], units[0])}"
        if units[0] != units[1] or sides[0] != sides[1]:
            size = f"cells of {sides_words(sides, units[:2])}"
    words = (size, exposure_words(study), provided(study))
    return SpotTable(spots, tuple(columns), tuple(places), *words)


def _described(frame: Frame, cells: Floats, peaks: Floats | None = None) -> list[dict[str, Cell]]:
    """Places (k, m) in the user's columns; of three axes the last is left out, or at the peaks."""
    if frame.window.dimension == cells.shape[1]:
        return list(frame.describe(cells))
    last = np.full(len(cells), last_axis(frame.window).low) if peaks is None else peaks
    rows = frame.describe(np.column_stack([cells, last]))
    return rows if peaks is not None else [dict(list(row.items())[:-1]) for row in rows]


def _steps_between(low: Mapping[str, Cell], high: Mapping[str, Cell]) -> dict[str, float]:
    """How far two places are apart in each column of numbers."""
    numbers = {name: given for name, given in low.items() if not isinstance(given, str)}
    return {name: abs(float(high[name]) - given) for name, given in numbers.items()}


def _in_columns(
    rows: Sequence[Mapping[str, Cell]], steps: Mapping[str, float]
) -> list[dict[str, str]]:
    """Places by the user's columns as text, numbers with the decimals that their steps need."""

    def text(name: str, given: Cell) -> str:
        if isinstance(given, str):
            return given
        return at_decimals(given, decimals_for(steps.get(name, 0.0)))

    return [{name: text(name, given) for name, given in row.items()} for row in rows]
