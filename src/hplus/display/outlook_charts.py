"""The outlook of a report: counts that were observed, and the fan of those to come."""

from __future__ import annotations

from typing import final
from xml.etree.ElementTree import Element

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.display.canvas import Canvas
from hplus.display.chart_axes import ChartAxis, clock_ticks
from hplus.display.charts import NARROW, WIDE
from hplus.display.provenance import Fact
from hplus.studies.event_study import EventStudy
from hplus.studies.event_weights import counted_noun
from hplus.studies.prospects import Fan, fan, outlook_facts, prospects, variation_words
from hplus.studies.share_changes import change_facts
from hplus.studies.spans import SECONDS
from hplus.wording import count, day_words, rounded


@final
@value
class PageOutlook(Value):
    """Counts to come with their 90 % intervals, the fan of a chart, and how much counts vary.

    `change` tells of the place whose share has changed most, and is empty if none has.
    """

    facts: tuple[Fact, ...]
    fan: Fan
    axis: ChartAxis
    variation: str
    noun: str = "events"
    change: str = ""


@final
@value
class TrialOutlook(Value):
    """The count of the next trial with its 90 % interval, and how much counts vary: no fan."""

    facts: tuple[Fact, ...]
    variation: str
    fan: None = None


def page_outlook(study: EventStudy) -> PageOutlook | TrialOutlook | None:
    """The outlook of a study; None if it has no forecast."""
    blocks, clock = fan(study), study.frame.clock
    if clock is None:
        return _next_trial(study)
    if blocks is None:
        return None
    noun = counted_noun(study.frame)
    facts = [
        Fact(
            f"Next {name}",
            f"{rounded(part.expected)} {noun}",
            f"{count(part.low)} to {count(part.high)}, until {day_words(period.end)}",
        )
        for name, period, part in prospects(study)
    ]
    low, high = (float(end) for end in blocks.edges[[0, -1]])
    shown = clock.replace(cycle="", start=low, end=high)
    ticks = tuple((low + at * SECONDS[shown.unit], text) for at, text in clock_ticks(shown))
    axis = ChartAxis(clock.column, low, high, ticks)
    variation, change = variation_words(study), (change_facts(study) or {"words": ""})["words"]
    return PageOutlook(tuple(facts), blocks, axis, _sentence(variation), noun, _sentence(change))


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _next_trial(study: EventStudy) -> TrialOutlook | None:
    found = outlook_facts(study)
    if found is None:
        return None
    (part,), words = found["counts"], found["variation"]
    bounds = f"{count(part['low'])} to {count(part['high'])}"
    fact = Fact(f"Next {part['next']}", f"{rounded(part['expected'])} events", bounds)
    return TrialOutlook((fact,), _sentence(words))


def fan_chart(outlook: PageOutlook, *, wide: bool) -> Element:
    """Counts of blocks of time, then the 50 % and 90 % intervals of those to come."""
    blocks, seen = outlook.fan, len(outlook.fan.observed)
    top = 1.08 * float(max(blocks.observed.max(), blocks.quantiles.max(), 1.0))
    unit = {"h": "hour", "min": "minute", "s": "second"}.get(blocks.unit, blocks.unit)
    y = ChartAxis(f"{outlook.noun} per {unit}", 0.0, top)
    canvas = Canvas(outlook.axis, y, *(WIDE if wide else NARROW), top=30.0)
    past, coming = blocks.edges[: seen + 1], blocks.edges[seen:]
    low, lower, middle, upper, high = (np.repeat(q, 2) for q in blocks.quantiles)
    now = float(past[-1])
    return canvas.svg(
        *canvas.axes(8 if wide else 4, 4),
        _band(canvas, _twice(coming), low, high),
        _band(canvas, _twice(coming), lower, upper),
        canvas.path(_twice(past), np.repeat(blocks.observed, 2), "seen"),
        canvas.path(_twice(coming), middle, "curve"),
        canvas.path((now, now), (0.0, top), "ideal"),
        label=f"Events per {unit}, observed and forecast",
        class_="chart wide" if wide else "chart narrow",
    )


def _twice(edges: Floats) -> Floats:
    """Both ends of each block, as the corners of stairs."""
    return np.repeat(edges, 2)[1:-1]


def _band(canvas: Canvas, x: Floats, low: Floats, high: Floats) -> Element:
    around = np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]])
    return canvas.path(*around, "band", closed=True)
