"""All that a report shows, as numbers and words: computed from a study, and not yet drawn."""

from __future__ import annotations

from types import SimpleNamespace

from hplus._checks import Floats
from hplus.display.data.check_data import calibration_data, gap_data, residual_data
from hplus.display.data.framing import same_unit
from hplus.display.data.margins import Concentration, Margins, concentration, margins
from hplus.display.findings import (
    EVEN,
    Finding,
    Fit,
    busiest,
    concentrated,
    prediction,
    silence_notes,
)
from hplus.display.outlook_charts import page_outlook
from hplus.display.page_figures import (
    PageMap,
    SpotTable,
    exposure_words,
    page_curve,
    page_map,
    period_unit,
    quarters,
    spot_table,
)
from hplus.display.provenance import Fact, file_name, how_fitted, how_to_reproduce
from hplus.display.spectrum_charts import page_spectrum
from hplus.display.zoom_figures import zoom_map
from hplus.evaluation.goodness import check
from hplus.evaluation.verdicts import Check
from hplus.storage.files import Json
from hplus.studies.event_facts import event_facts
from hplus.studies.event_study import EventStudy
from hplus.studies.event_weights import counted_noun
from hplus.studies.silences import silence_facts
from hplus.studies.unfolding import unfolded
from hplus.windows import Window
from hplus.wording import (
    count,
    day_words,
    number,
    place_words,
    quantity,
    rounded,
    sides_words,
)

TITLES = {
    (True, True): "Where and when events happen",
    (True, False): "Where events happen",
    (False, True): "When events happen",
    (False, False): "How often events happen",
}
"""By whether there are places, and whether there are times."""


def gather(
    study: EventStudy, events: Floats | None, title: str | None, seconds: Floats | None = None
) -> SimpleNamespace:
    """Everything on the page of a study, with its events (n, d) and their seconds (n,) if given."""
    sums = margins(study.model_)
    table = spot_table(study, sums, events)
    place, curve = page_map(study, sums, events), page_curve(study, sums, events)
    dense, whole = concentration(sums.main), extent(study, sums)
    found = event_facts(study)
    held = found["holdout"]
    return SimpleNamespace(
        title=title or TITLES[study.model_.window.dimension > 1, study.frame.clock is not None],
        study=study,
        source=file_name(study),
        about=about(study),
        findings=findings(study, table, dense, whole, found["peak"]),
        cautions=silence_notes(silence_facts(study)),
        tiles=tiles(study, sums, place, found),
        place=place,
        zoom=zoom_map(study, sums, place),
        parts=quarters(study),
        curve=curve,
        table=table,
        spectrum=page_spectrum(study),
        concentration=dense,
        extent=whole,
        counted=counted_noun(study.frame),
        outlook=page_outlook(study),
        fit=fit(study, events, seconds),
        holdout=study.holdout_,
        held_words="" if held is None else held["words"],
        constant=[] if held is None else held["constant"],
        fitted=how_fitted(study),
        origin=how_to_reproduce(study),
        command=str(study.made_with_.get("command", "")),
    )


def about(study: EventStudy) -> str:
    """What the report is about, in two sentences."""
    clock, period = study.frame.clock, exposure_words(study)
    parts = [f"{count(study.reading_.kept)} events{_extent_words(study)}"]
    if clock is not None:
        parts.append(f"from {day_words(clock.start)} to {day_words(clock.end)}")
    elif period:
        parts.append(f"over {period}")
    where = " and where" if study.model_.window.dimension > 1 else ""
    asked = f"how many to expect{where}, and how certain that is"
    weight = study.frame.weight
    sums = f" Counts on it are sums of {weight}, not numbers of events." if weight else ""
    return f"{', '.join(parts)}. This page shows {asked}.{sums}"


def extent(study: EventStudy, sums: Margins) -> str:
    """What a share of the window is a share of: the area, the week, the time, the range."""
    if sums.place is not None:
        return "area" if same_unit(sums.place.window) else "window"
    clock = study.frame.clock
    return "range" if clock is None else str(clock.cycle) or "time"


def _extent_words(study: EventStudy) -> str:
    """The extent of the window without its time."""
    axes = [axis for axis in study.frame.axes if axis.kind not in ("time", "cycle")]
    if not axes:
        return ""
    low, high = (end[: len(axes)] for end in study.model_.window.bounds())
    if len(axes) == 1:
        return f" with {axes[0].name} from {number(float(low[0]))} to {number(float(high[0]))}"
    return f" in {sides_words((high - low).tolist(), [axis.unit for axis in axes])}"


def tiles(study: EventStudy, sums: Margins, place: PageMap | None, found: Json) -> tuple[Fact, ...]:
    """The key numbers: events, window, exposure, expected count, highest rate.

    The facts are those of `hplus fit`, so that no number has two values.
    """
    model, reading = study.model_, study.reading_
    parts = [Fact("Events", count(reading.kept), f"of {count(reading.rows)} rows in the file")]
    if place is not None:
        parts.append(_window_tile(sums.main.window))
    elif study.frame.clock is None:
        low, high = (float(end[0]) for end in model.window.bounds())
        ends = f"{number(low)} to {number(high)}"
        parts.append(Fact("Window", quantity(high - low, study.frame.axes[0].unit), ends))
    parts += _time_tiles(study)
    return (*parts, Fact("Highest rate", rounded(found["peak"]["rate"]), found["rates"]))


def _window_tile(window: Window) -> Fact:
    """The area of a window with its sides; without a common unit the sides alone."""
    low, high = window.bounds()
    sides = sides_words((high - low).tolist(), window.axis_units)
    if not same_unit(window):
        return Fact("Window", sides)
    within = sides if window.box_bounds() is not None else f"within {sides}"
    return Fact("Window", quantity(window.volume, window.volume_unit), within)


def _time_tiles(study: EventStudy) -> list[Fact]:
    """The exposure, and how many events are expected in one of its units."""
    model, clock, found = study.model_, study.frame.clock, []
    remark = "" if clock is None else f"{day_words(clock.start)} to {day_words(clock.end)}"
    if exposure_words(study):
        label = "Exposure" if clock is None else "Period"
        found.append(Fact(label, exposure_words(study), remark))
    total = float(model.expected_count(model.window))
    unit, parts = period_unit(study)
    axis = study.frame.axes[-1]
    if not unit and model.window.dimension == 1 and axis.unit:
        unit, parts = axis.unit, model.window.volume
    if unit:
        label = "Expected" if parts == 1.0 else "Average"
        found.append(Fact(label, rounded(total / parts), f"{counted_noun(study.frame)} per {unit}"))
    return found


def findings(
    study: EventStudy, table: SpotTable, dense: Concentration, whole: str, peak: Json
) -> tuple[Finding, ...]:
    """Three findings: how concentrated, how busy the busiest spot, how well predicted."""
    spots, line = table.spots, table.spots.low.shape[1] == 1
    first = dict(zip(table.columns, table.places[0], strict=True))
    if line:
        when, where = "", f"{study.frame.axes[0].name} {' to '.join(table.places[0])}"
    else:
        last = () if spots.peak is None else (first.popitem(),)
        when = place_words(dict(last)) if last else _busiest_time(study, peak)
        where = place_words(first)
    kind = "interval" if line else "spot"
    held, noun = study.holdout_, counted_noun(study.frame)
    return (
        concentrated(dense.holding(0.5), "half of all", whole, noun),
        EVEN if peak.keys() == {"rate"} else busiest(float(spots.ratio[0]), kind, where, when),
        concentrated(dense.holding(0.9), "nine out of ten", whole, noun)
        if held is None
        else prediction(held),
    )


def _busiest_time(study: EventStudy, peak: Json) -> str:
    """When the rate is highest, in the user's words."""
    clock = study.frame.clock
    return "" if clock is None else str(peak.get(clock.column, ""))


def fit(study: EventStudy, events: Floats | None, seconds: Floats | None = None) -> Fit | None:
    """What checks find: on held-out events if there are some, otherwise on those given."""
    model, held = study.model_, study.holdout_
    if held is not None:
        found = held.check
    elif events is not None and len(events):
        found = in_order(study, events, seconds)
    else:
        return None
    # held-out events of a cycle have no order, those of the file do
    dated = found
    if held is not None and found.order is None and seconds is not None and events is not None:
        dated = in_order(study, events, seconds)
    # in multiples of the average rate, so that the exposure does not matter
    relative = calibration_data(found).scaled(model.window.volume / found.expected)
    return Fit(
        found.count,
        held is not None,
        found.misfits,
        found.relative_error,
        relative,
        residual_data(found),
        dated.patterns,
        gap_data(dated),
    )


def in_order(study: EventStudy, events: Floats, seconds: Floats | None) -> Check:
    """What checks of the rate find on events (n, d); with seconds (n,), also those of a cycle."""
    clock = study.frame.clock
    line = None if seconds is None else unfolded(clock, study.model_, seconds)
    return check(study.model_, events, exposure=study.exposure_over_window, timeline=line)
