"""Charts of a self-exciting rate: trigger curves on log axes, and the declustered map."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from hplus._checks import Floats
from hplus.display.canvas import CHART_SIZE, Canvas, shape
from hplus.display.chart_axes import ChartAxis, log_ticks
from hplus.display.charts import PERCENTS
from hplus.display.excitation_figures import DeclusteredMap, TriggerCurve
from hplus.display.map_charts import MAP_WIDTH, cut_out, map_canvas, map_image, rate_reader

MOST_DECADES = 7.0
"""Decades of a trigger curve below its highest value that are drawn."""

PROBABLE = 2.0 / 3.0
"""The probability from which an event is drawn as one of the background, or as triggered."""


def trigger_chart(curve: TriggerCurve) -> Element:
    """What an event adds, on logarithmic axes, with its band."""
    top = float(np.log10(curve.high.max())) + 0.1
    floor = 10.0 ** (top - MOST_DECADES)
    values, low, high = (
        np.log10(np.maximum(y, floor)) for y in (curve.values, curve.low, curve.high)
    )
    # bands of what is hardly there reach far down: they are cut below the curve's lowest decade
    bottom = max(float(np.floor(values.min() - 0.3)), top - MOST_DECADES)
    low = np.maximum(low, bottom)
    x = np.log10(curve.x)
    start, end = float(x[0]), float(x[-1])
    across = ChartAxis(curve.axis, start, end, log_ticks(start, end))
    up = ChartAxis(f"{curve.unit}, added", bottom, top, log_ticks(bottom, top))
    canvas = Canvas(across, up, *CHART_SIZE, left=64.0, top=26.0)
    around = np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]])
    return canvas.svg(
        *canvas.axes(5, 5),
        canvas.path(*around, "band", closed=True),
        canvas.path(x, np.maximum(values, bottom), "curve"),
        label=f"{curve.heading}: {curve.unit} that an event adds",
    )


def share_chart(curve: TriggerCurve) -> Element:
    """The share of triggered events up to each lag, on a logarithmic axis of lags."""
    x = np.log10(curve.x)
    start, end = float(x[0]), float(x[-1])
    across = ChartAxis(curve.axis, start, end, log_ticks(start, end))
    canvas = Canvas(across, ChartAxis(curve.unit, 0.0, 1.0, PERCENTS), *CHART_SIZE, top=26.0)
    around = np.concatenate([x, x[::-1]]), np.concatenate([curve.high, curve.low[::-1]])
    return canvas.svg(
        *canvas.axes(5, 5),
        canvas.path(*around, "band", closed=True),
        canvas.path(x, curve.values, "curve"),
        label=f"The {curve.unit} that follow within each lag",
    )


def background_map(found: DeclusteredMap) -> Element:
    """The background with its events: likely of the background, likely triggered, or either."""
    figure = found.figure
    canvas, p = map_canvas(figure, MAP_WIDTH), found.background
    groups = {
        "dots": p >= PROBABLE,
        "dots either": (p < PROBABLE) & (p > 1.0 - PROBABLE),
        "dots triggered": p <= 1.0 - PROBABLE,
    }
    root = np.sqrt(max(len(p), 1))
    size = float(np.clip(70.0 / root, 1.3, 3.6))
    dots = [_dots(canvas, found.events[own], name, size) for name, own in groups.items()]
    return canvas.svg(
        *cut_out(canvas, figure.data.place, "window", map_image(canvas, figure), *dots),
        *canvas.axes(5, 5, lines=False),
        rate_reader(canvas, figure),
        label=f"Map of the background rate, {figure.unit}",
        class_="chart map",
    )


def _dots(canvas: Canvas, events: Floats, class_: str, size: float) -> Element:
    points = np.round(canvas.pixels(*events.T), 1).tolist()
    path = "".join(f"M{x:g} {y:g}h0" for x, y in points)
    return shape("path", class_=class_, d=path, stroke_width=size, stroke_opacity=0.75)
