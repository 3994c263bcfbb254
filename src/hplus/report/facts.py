"""All that a report shows, as numbers and words: computed from a study, and not yet drawn."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.evaluation import Check, check
from hplus.plotting import CalibrationData, calibration_data, residual_data
from hplus.plotting.residuals import QuadratResiduals, RescaledTimes
from hplus.report.figures import (
    Curve,
    Part,
    Place,
    period_unit,
    place_map,
    quarters,
    rate_curve,
)
from hplus.report.findings import Finding, busiest, concentrated, covered, prediction
from hplus.report.making import Line, file_name, how_made, reproduced
from hplus.report.margins import Margins, margins
from hplus.report.ranking import SpotTable, spot_table, watched
from hplus.report.surfaces import Concentration, concentration
from hplus.report.words import (
    coordinate,
    day_words,
    place_words,
    quantity,
    rounded,
    whole,
)
from hplus.windows import Window

TITLES = {
    (True, True): "Where and when events happen",
    (True, False): "Where events happen",
    (False, True): "When events happen",
    (False, False): "How often events happen",
}


@final
@value
class Fit(Value):
    """Does the rate fit? What was checked on which events, and what was found."""

    count: int
    held_out: bool
    faults: tuple[str, ...]
    calibration: CalibrationData
    residuals: QuadratResiduals | RescaledTimes


@final
@value
class Facts(Value):
    """Everything on the page."""

    title: str
    source: str
    about: str
    findings: tuple[Finding, ...]
    tiles: tuple[Line, ...]
    place: Place | None
    parts: tuple[Part, ...]
    curve: Curve | None
    table: SpotTable
    concentration: Concentration
    extent: str
    fit: Fit | None
    holdout: Any
    making: tuple[Line, ...]
    origin: tuple[Line, ...]
    command: str


def gather(study: Any, events: Floats | None, title: str | None) -> Facts:
    """The facts of a fitted study; with events (n, d) of its window also where they were seen."""
    sums = margins(study.model_)
    table = spot_table(study, sums, events)
    place = None if sums.place is None else place_map(study, sums, events)
    curve = None if sums.line is None else rate_curve(study, sums, events)
    dense = concentration(sums.main)
    timed = study.frame.clock is not None
    return Facts(
        title=title or TITLES[study.model_.window.dimension > 1, timed],
        source=file_name(study),
        about=about(study),
        findings=findings(study, table, dense, place, curve),
        tiles=tiles(study, sums, place, curve),
        place=place,
        parts=quarters(study),
        curve=curve,
        table=table,
        concentration=dense,
        extent=extent(study, place),
        fit=fit(study, events),
        holdout=study.holdout_,
        making=how_made(study),
        origin=reproduced(study),
        command=str(study.made_with_.get("command", "")),
    )


def about(study: Any) -> str:
    """What the report is about, in one sentence."""
    clock, period = study.frame.clock, watched(study)
    parts = [f"The rate of {whole(study.reading_.kept)} events {_extent_words(study)}"]
    if clock is not None:
        parts.append(f"from {day_words(clock.start)} to {day_words(clock.end)}")
    elif period:
        parts.append(f"watched for {period}")
    where = " where" if study.model_.window.dimension > 1 else ""
    return f"{', '.join(parts)}: how many to expect{where}, and how sure that is."


def extent(study: Any, place: Place | None) -> str:
    """What a share of the window is a share of: the area, the week, the time, the range."""
    if place is not None:
        return "area" if place.one_ruler else "window"
    clock = study.frame.clock
    return "range" if clock is None else str(clock.cycle) or "time"


def _extent_words(study: Any) -> str:
    """The extent of the window without its time."""
    window, frame = study.model_.window, study.frame
    axes = [axis for axis in frame.axes if axis.kind not in ("time", "cycle")]
    if not axes:
        return "over time"
    low, high = (end[: len(axes)].tolist() for end in window.bounds())
    if len(axes) == 1:
        return f"with {axes[0].name} from {coordinate(low[0])} to {coordinate(high[0])}"
    sides = [b - a for a, b in zip(low, high, strict=True)]
    return f"in {_box_words(sides, [axis.unit for axis in axes])}"


def _box_words(sides: list[float], units: list[str]) -> str:
    if len(set(units)) == 1:
        return f"{' × '.join(rounded(side) for side in sides)} {units[0]}".strip()
    return " × ".join(map(quantity, sides, units))


def tiles(study: Any, sums: Margins, place: Place | None, curve: Curve | None) -> tuple[Line, ...]:
    """The key numbers: events, window, time watched, expected, busiest."""
    model, reading = study.model_, study.reading_
    found = [Line("Events", whole(reading.kept), f"of {whole(reading.rows)} rows in the file")]
    if place is not None:
        found.append(_window_tile(sums.main.window))
    elif study.frame.clock is None:
        axis = study.frame.axes[0]
        low, high = (float(end[0]) for end in model.window.bounds())
        ends = f"{coordinate(low)} to {coordinate(high)}"
        found.append(Line("Window", quantity(high - low, axis.unit), ends))
    found += _time_tiles(study)
    if place is not None:
        found.append(Line("Busiest place", rounded(place.surface.peak), place.unit))
    else:
        assert curve is not None
        found.append(Line("Busiest", rounded(float(curve.course.rate.max())), curve.unit))
    return tuple(found)


def _window_tile(window: Window) -> Line:
    """The area of a window with its sides; without one ruler the sides alone."""
    low, high = window.bounds()
    sides = _box_words((high - low).tolist(), list(window.axis_units))
    if len(set(window.axis_units)) > 1:
        return Line("Window", sides)
    within = sides if window.box_bounds() is not None else f"within {sides}"
    return Line("Window", quantity(window.volume, window.volume_unit), within)


def _time_tiles(study: Any) -> list[Line]:
    """How long was watched, and how many events that makes in one of its units."""
    model, clock, found = study.model_, study.frame.clock, []
    remark = "" if clock is None else f"{day_words(clock.start)} to {day_words(clock.end)}"
    if watched(study):
        found.append(Line("Watched for", watched(study), remark))
    total = float(model.expected_count(model.window))
    unit, parts = period_unit(study)
    axis = study.frame.axes[-1]
    if not unit and model.window.dimension == 1 and axis.unit:
        low, high = (float(end[0]) for end in model.window.bounds())
        unit, parts = axis.unit, high - low
    if unit:
        found.append(Line("Expected", rounded(total / parts), f"events per {unit}"))
    return found


def findings(
    study: Any, table: SpotTable, dense: Concentration, place: Place | None, curve: Curve | None
) -> tuple[Finding, ...]:
    """Three findings: how concentrated, how busy the busiest spot, how well predicted."""
    spots, line = table.spots, table.spots.low.shape[1] == 1
    first = dict(zip(table.columns, table.places[0], strict=True))
    when = _busiest_time(study, curve) if spots.peak is None else _last(first)
    where = place_words(first)
    if line:
        when = ""
        where = f"{study.frame.axes[0].name} {' to '.join(table.places[0])}"
    found = [
        concentrated(dense.holding(0.5), extent(study, place)),
        busiest(float(spots.ratio[0]), "interval" if line else "spot", where, when),
    ]
    if study.holdout_ is not None:
        found.append(prediction(study.holdout_))
    else:
        found.append(covered(dense.holding(0.9), extent(study, place)))
    return tuple(found)


def _last(place: dict[str, str]) -> str:
    """The last column of a place, taken out of it, in words."""
    name, text = place.popitem()
    return place_words({name: text})


def _busiest_time(study: Any, curve: Curve | None) -> str:
    """When the rate is highest, to an hour of a cycle or a day, in the user's words."""
    if curve is None:
        return ""
    X = np.mean(study.frame.window.bounds(), axis=0)
    X[-1] = np.floor(curve.course.x[curve.course.rate.argmax()])
    return str(list(study.frame.describe(X[None])[0].values())[-1])


def fit(study: Any, events: Floats | None) -> Fit | None:
    """What checks find: on events held out if there are some, else on those given."""
    found: Check | None = None
    if study.holdout_ is not None:
        found = study.holdout_.check
    elif events is not None and len(events):
        found = check(study.model_, events, exposure=study.exposure_over_window)
    if found is None:
        return None
    return Fit(
        found.count,
        study.holdout_ is not None,
        found.faults,
        _relative(found, study.model_.window.volume),
        residual_data(found),
    )


def _relative(found: Check, volume: float) -> CalibrationData:
    """Calibration in multiples of the average rate: free of how long was watched."""
    data, average = calibration_data(found), found.expected / volume
    return CalibrationData(
        data.predicted / average, data.observed / average, data.low / average, data.high / average
    )
