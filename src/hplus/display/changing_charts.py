"""Small maps of where events are more and less frequent than usual at some time of the cycle."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from hplus.display.canvas import Canvas, shape
from hplus.display.chart_axes import ChartAxis
from hplus.display.data.changing_maps import ChangingMaps, changing_maps
from hplus.display.map_charts import FLATTEST, SMALL_WIDTH, TALLEST, cut_out
from hplus.rates.separable import SeparableRate
from hplus.studies.event_facts import map_words
from hplus.studies.event_study import EventStudy
from hplus.wording import times

LEAST_SHOWN = 0.03
"""Log ratios closer to 0 than this share of the largest have no colour."""


def page_changes(study: EventStudy) -> ChangingMaps | None:
    """How the map of a study changes with time; None if it does not, or there is no map."""
    rate = study.model_.rate_
    if not isinstance(rate, SeparableRate) or rate.by_time is None:
        return None
    return changing_maps(rate.by_time) if rate.window.left.dimension == 2 else None


def change_words(study: EventStudy, found: ChangingMaps) -> str:
    """What the maps show, in two sentences."""
    (most, when), (least, then) = found.extremes
    held = study.holdout_
    judged = "" if held is None else map_words(held.map_by_time)
    ends = f"Events are up to {times(most)} times as frequent as on the average map ({when})"
    text = f"{ends}, and down to {times(least)} times ({then})."
    return f"{judged[:1].upper()}{judged[1:]}. {text}" if judged else text


def change_map(found: ChangingMaps, index: int) -> Element:
    """The map of one part of the cycle: cells with more events in one colour, fewer in another."""
    (x0, y0), (x1, y1) = found.place.bounds()
    ratio = float(np.clip((y1 - y0) / (x1 - x0), FLATTEST, TALLEST))
    axes = ChartAxis("", float(x0), float(x1)), ChartAxis("", float(y0), float(y1))
    canvas = Canvas(*axes, SMALL_WIDTH, SMALL_WIDTH * ratio, 0.0, 0.0, 0.0, 0.0)
    part, boxes = found.parts[index], []
    for i, j in np.argwhere(~np.isnan(part.ratios)).tolist():
        strength = float(np.log(part.ratios[i, j])) / max(found.reach, np.finfo(float).tiny)
        if abs(strength) < LEAST_SHOWN:
            continue
        low = found.low + (i, j) * found.side
        (x, below), (right, y) = canvas.pixels(*np.stack([low, low + found.side], axis=1)).tolist()
        sign = "more" if strength > 0.0 else "fewer"
        box = {"x": x, "y": y, "width": right - x, "height": below - y}
        boxes.append(
            shape("rect", class_=sign, fill_opacity=0.9 * abs(strength), stroke="none", **box)
        )
    cut = cut_out(canvas, found.place, f"window-change-{index}", *boxes)
    return canvas.svg(*cut, label=f"Map over the average map, {part.label}")
