"""What the report of a self-exciting rate shows, computed: trigger curves, map, fan, checks."""

from __future__ import annotations

from typing import final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.display.chart_axes import ChartAxis, clock_ticks, frame_axis
from hplus.display.colours import Shading, shading
from hplus.display.data.check_data import GapQuantiles, QuadratResiduals
from hplus.display.data.framing import thinned
from hplus.display.data.gridded import gridded
from hplus.display.data.margins import place_map
from hplus.display.outlook_charts import PageOutlook
from hplus.display.page_figures import MOST_DOTS, PageMap, readable
from hplus.display.provenance import Fact
from hplus.estimators.self_exciting import SelfExciting
from hplus.positivity.exp import GridFunction
from hplus.rates.excitation.conditional_rate import rate_given
from hplus.rates.excitation.excitation_check import ExcitationCheck
from hplus.rates.excitation.trigger import Trigger
from hplus.rates.excitation.triggered_sums import triggered_by_each
from hplus.storage.files import Json
from hplus.studies.excitation_facts import lag_shares, mean_trigger
from hplus.studies.excitation_study import ExcitationStudy
from hplus.studies.prospects import Fan
from hplus.studies.spans import SECONDS
from hplus.studies.triggered_counts import clock_of, futures
from hplus.windows import Window
from hplus.wording import count, day_words, per, percent, rate_words, rounded, with_unit

TRIGGER_POINTS = 120
"""Points of a trigger curve."""

TRIGGER_BAND = (0.05, 0.95)
"""Quantiles of a trigger curve's band."""

FAN_UNITS = {"day": ("day", "week"), "h": ("h",), "min": ("min",), "s": ("s",)}
"""By the unit of the clock: blocks of the chart of counts, the first with an event each."""

PAST_BLOCKS, COMING_BLOCKS = 42, 14
"""Blocks of that chart, before and after the end of the observation period."""

FLAT = 1.5
"""A map whose highest rate is at most so many times the mean is drawn in the middle of the ramp."""

MOST_PRODUCTIVE = 8
"""Events in the table of those that triggered most."""

LEAST_TOLD = 0.05
"""Events that triggered fewer, which would be told as 0.0, are not in it."""

FAN_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@final
@value
class TriggerCurve(Value):
    """How much an average event adds, at lags or distances x (k,), with a 90 % band."""

    heading: str
    axis: str
    unit: str
    x: Floats
    values: Floats
    low: Floats
    high: Floats


@final
@value
class DeclusteredMap(Value):
    """The background rate, and events (n, 2) with the probabilities (n,) that they belong to it."""

    figure: PageMap
    events: Floats
    background: Floats


def trigger_curves(study: ExcitationStudy) -> tuple[TriggerCurve, ...]:
    """What an average event adds by lag and, with places, by distance."""
    model, unit = study.model_, clock_of(study).unit
    draws = [mean_trigger(model.rate_.drawn(k)) for k in range(len(model.rate_.draws))]
    mean = mean_trigger(model.rate_)
    x = np.geomspace(mean.lags[0], mean.lags[-2], TRIGGER_POINTS)
    values = np.stack([trigger.by_lag(x) for trigger in (mean, *draws)])
    curves = [_curve("By the time since an event", f"lag ({unit})", per(unit), x, values)]
    if study.frame.region is not None:
        curves.append(_by_distance(mean, draws, study.frame.region))
    return tuple(curves)


def _by_distance(mean: Trigger, draws: list[Trigger], region: Window) -> TriggerCurve:
    x = np.geomspace(mean.distances[0], mean.distances[-2], TRIGGER_POINTS)
    values = np.stack([trigger.by_distance(x) for trigger in (mean, *draws)])
    name = with_unit("distance", region.axis_units[0])
    return _curve("By the distance from it", name, rate_words(region), x, values)


def _curve(heading: str, axis: str, unit: str, x: Floats, values: Floats) -> TriggerCurve:
    low, high = np.quantile(values[1:], TRIGGER_BAND, axis=0)
    own = values[0]
    return TriggerCurve(heading, axis, unit, x, own, np.minimum(low, own), np.maximum(high, own))


def declustered(study: ExcitationStudy) -> DeclusteredMap | None:
    """The map of the background of all types, and its events; None without places in the plane."""
    region, model = study.frame.region, study.model_
    if region is None or region.dimension != 2:
        return None
    background, clock = model.background_, clock_of(study)
    totals = [background.integral(0.0, clock.window.volume, k) for k in range(len(model.types_))]
    # backgrounds of types may be on different grids: those of the others are read off
    first, *others = (
        f * (total / f.integral())
        for f, total in zip((gridded(r, region) for r in background.places), totals, strict=True)
    )
    nodes = np.clip(first.grid.nodes(), *region.bounds())
    values = sum((f(nodes) for f in others), first.values.ravel()).reshape(first.values.shape)
    f, span = GridFunction(region, first.grid, values), clock.window.volume
    factor, words = readable(f.peak()[1] / span, region.volume_unit, clock.unit)
    data = place_map(f, factor / span)
    axes = (frame_axis(study.frame, 0), frame_axis(study.frame, 1))
    inside = model.history_.since(0.0)
    both = thinned(np.column_stack([inside.places, model.background_shares()]), MOST_DOTS)
    colours = shading(data.rate)
    if colours.peak < FLAT * float(np.nanmean(data.rate)):
        colours = Shading(colours.peak, 2.0 * colours.peak, 1.0)  # dots stand out in the middle
    figure = PageMap(data, colours, axes, words, factor * f.peak()[1] / span, None)
    return DeclusteredMap(figure, both[:, :2], both[:, 2])


def productive_events(study: ExcitationStudy) -> tuple[tuple[str, ...], ...]:
    """The events that triggered most, in the user's columns, and how many; headings first.

    How many is the sum of the probabilities of being the parent of each later event.
    """
    model, clock, frame = study.model_, clock_of(study), study.frame
    history = model.history_
    children = triggered_by_each(rate_given(model.rate_, history, model.observed_until_), 0.0)
    top = np.argsort(-children, kind="stable")[:MOST_PRODUCTIVE]
    top = top[children[top] >= LEAST_TOLD]
    rows: list[tuple[str, ...]] = []
    for i, when in zip(top.tolist(), clock.words(history.times[top]), strict=True):
        own = frame.own(history.places[i : i + 1])[0] if frame.columns else ()
        dated = when[: 10 if clock.spread >= SECONDS["day"] else 16].replace("T", " ")
        cells = [f"{children[i]:.1f}", dated]
        cells += [rounded(float(x), 5) for x in own]
        cells += [rounded(float(history.marks[i]))] * bool(study.mark)
        rows.append((*cells, *([str(model.types_[history.types[i]])] * bool(study.kind))))
    labels = [name for name in (study.mark, study.kind) if name]
    return (("triggered", clock.column, *frame.columns, *labels), *rows)


def followed_shares(study: ExcitationStudy) -> TriggerCurve:
    """The share of triggered events that follow within each lag, with a 90 % band."""
    model, unit = study.model_, clock_of(study).unit
    draws = (mean_trigger(model.rate_.drawn(k)) for k in range(len(model.rate_.draws)))
    mean = mean_trigger(model.rate_)
    x = np.geomspace(mean.lags[0], mean.lags[-1], TRIGGER_POINTS)
    values = np.stack([np.interp(x, *lag_shares(trigger)) for trigger in (mean, *draws)])
    return _curve("How soon", f"lag ({unit})", "share of the triggered events", x, values)


def triggered_outlook(study: ExcitationStudy, counts: list[Json]) -> PageOutlook | None:
    """The next day and week in numbers, and the fan of counts; None if it cannot be simulated."""
    facts = tuple(
        Fact(
            f"Next {part['next']}",
            f"{rounded(part['expected'])} events",
            f"{count(part['low'])} to {count(part['high'])}; at least one: "
            f"{percent(part['chance'])}",
        )
        for part in counts
    )
    try:
        blocks, clock = triggered_fan(study), clock_of(study)
    except OverflowError:
        return None
    low, high = (float(end) for end in blocks.edges[[0, -1]])
    shown = clock.replace(start=low, end=high)
    ticks = tuple((low + at * SECONDS[shown.unit], text) for at, text in clock_ticks(shown))
    words = f"Forecast from events known until {day_words(clock.end)}"
    return PageOutlook(facts, blocks, ChartAxis(clock.column, low, high, ticks), words)


def triggered_fan(study: ExcitationStudy) -> Fan:
    """Counts of the last blocks of time, and quantiles of those to come."""
    clock, model = clock_of(study), study.model_
    units, span = FAN_UNITS[clock.unit], clock.end - clock.start
    per_second = model.total_ / span
    unit = next((u for u in units if per_second * SECONDS[u] >= 1.0), units[-1])
    length = SECONDS[unit]
    past = int(np.clip(span // length, 1, PAST_BLOCKS))
    edges = clock.end + length * np.arange(-past, COMING_BLOCKS + 1, dtype=np.float64)
    on_axis = clock.axis(edges)
    seen = np.histogram(model.history_.times, on_axis[: past + 1])[0].astype(float)
    found = futures(study, clock.end, float(edges[-1]), random_state=study.random_state)
    paths, n_paths = found.simulated.paths, found.counts.shape[1]
    ends = [np.arange(n_paths + 1) - 0.5, on_axis[past:]]
    counts = np.histogramdd(np.column_stack([paths, found.simulated.events.times]), ends)[0]
    quantiles = np.quantile(counts, FAN_QUANTILES, axis=0, method="inverted_cdf")
    return Fan(unit, edges, seen, quantiles)


def gap_quantiles(found: ExcitationCheck) -> GapQuantiles | None:
    """Gaps between events in rescaled time; None if there are too few."""
    if found.gaps is None:
        return None
    # gaps of 0, of which there are few, have no logarithm
    least = 0.1 * float(found.gaps.exponential[0])
    return GapQuantiles(found.gaps.exponential, np.maximum(found.gaps.observed, least))


def cell_residuals(found: ExcitationCheck, model: SelfExciting) -> QuadratResiduals | None:
    """Residuals in cells where events are expected; None unless places are in the plane."""
    if found.places is None or found.places.expected.ndim != 2:
        return None
    shape, region = found.places.expected.shape, model.window.left  # type: ignore[attr-defined]
    ends = zip(*region.bounds(), shape, strict=True)
    x, y = (np.linspace(a, b, n + 1) for a, b, n in ends)
    low, high = (
        np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1).reshape(-1, 2)
        for a, b in ((x[:-1], y[:-1]), (x[1:], y[1:]))
    )
    kept = found.places.expected.ravel() > 1e-9
    r = found.places.residuals.ravel()
    return QuadratResiduals(r[kept], low[kept], high[kept], found.places.p_value)
