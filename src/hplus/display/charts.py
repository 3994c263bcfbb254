"""Charts: curves of a rate, calibration, rescaled times, concentration and scores."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from hplus._checks import Floats
from hplus.display.canvas import CHART_SIZE, Canvas, shape, written
from hplus.display.chart_axes import ChartAxis, log_ticks
from hplus.display.data.check_data import CalibrationData, GapQuantiles, RescaledTimes
from hplus.display.data.margins import Concentration
from hplus.display.page_figures import PageCurve
from hplus.studies.holdouts import Holdout
from hplus.wording import NBSP, percent, rounded

WIDE, NARROW = (880.0, 330.0), (400.0, 300.0)
"""Width and height of a curve on a wide page and on a narrow one."""

PERCENTS = tuple((0.25 * k, f"{25 * k}{NBSP}%") for k in range(5))

ENDS = (0.0, 1.0)

BAR_HEIGHT = 56.0
"""Height of a bar with its name."""


def rate_chart(curve: PageCurve, *, wide: bool) -> Element:
    """The curve of a rate with its band and a rug of events, for a wide or a narrow page."""
    data = curve.data
    assert data.low is not None
    assert data.high is not None
    y = ChartAxis(curve.unit, 0.0, 1.08 * float(data.high.max()) or 1.0)
    canvas = Canvas(curve.axis, y, *(WIDE if wide else NARROW), top=30.0)
    top = int(data.rate.argmax())
    around = np.concatenate([data.x, data.x[::-1]]), np.concatenate([data.high, data.low[::-1]])
    return canvas.svg(
        *canvas.axes(8 if wide else 4, 4),
        canvas.path(*around, "band", closed=True),
        canvas.path(data.x, data.rate, "curve"),
        _dot(canvas, float(data.x[top]), float(data.rate[top]), "peak", 4.0),
        None if curve.events is None else _rug(canvas, curve.events),
        label=f"Curve of the rate, {curve.unit}",
        class_="chart wide" if wide else "chart narrow",
    )


def _dot(canvas: Canvas, x: float, y: float, class_: str, r: float = 4.5) -> Element:
    return shape("circle", class_=class_, cx=canvas.px(x), cy=canvas.py(y), r=r)


def _rug(canvas: Canvas, events: Floats) -> Element:
    """A stroke for each event, fainter the more there are."""
    base = canvas.height - canvas.bottom
    places = np.unique(np.round(canvas.pixels(events, np.zeros(len(events)))[:, 0], 1)).tolist()
    faint = float(np.clip(9.0 / np.sqrt(max(len(events), 1)), 0.15, 0.7))
    path = "".join(f"M{x:g} {base:g}v-7" for x in places)
    return shape("path", class_="rug", d=path, stroke_opacity=faint)


def calibration_chart(data: CalibrationData) -> Element:
    """Observed against expected rates with 90 % limits; logarithmic where rates differ much."""
    logs = data.logarithmic
    rates = np.stack([data.predicted, data.observed, data.low, data.high])
    drawn = np.log10(rates) if logs else rates
    start = float(drawn.min()) - 0.06 if logs else 0.0
    end = float(drawn.max()) + 0.06 if logs else 1.06 * float(drawn.max())
    x = ChartAxis("expected rate, × average", start, end, log_ticks(start, end) if logs else ())
    canvas = Canvas(x, x.replace(label="observed rate, × average"), *CHART_SIZE, top=26.0)
    bins = list(zip(*drawn.tolist(), data.inside.tolist(), strict=True))
    return canvas.svg(
        *canvas.axes(4, 4),
        canvas.path((start, end), (start, end), "ideal"),
        *(canvas.path((x, x), (low, high), "limits") for x, _, low, high, _ in bins),
        *(_dot(canvas, x, y, "point" if ok else "point off") for x, y, _, _, ok in bins),
        label="Observed against expected rates",
    )


def rescaled_chart(data: RescaledTimes) -> Element:
    """The share of events up to each share of the expected ones, and the band of a right rate."""
    x = ChartAxis("share of the expected events", 0.0, 1.0, PERCENTS)
    canvas = Canvas(x, x.replace(label="share of the events"), *CHART_SIZE, top=26.0, right=20.0)
    times, shares = (np.repeat(values, 2) for values in data.staircase())
    r = min(data.reach, 1.0)
    return canvas.svg(
        *canvas.axes(5, 5),
        canvas.path((0, 0, 1 - r, 1, 1, r), (0, r, 1, 1, 1 - r, 0), "band", closed=True),
        canvas.path(ENDS, ENDS, "ideal"),
        canvas.path(times[1:], shares[:-1], "curve"),
        label=f"Share of {len(data.times)} events against the share expected",
    )


def gap_chart(data: GapQuantiles) -> Element:
    """Gaps between events against those of independent events, on logarithmic axes."""
    drawn = np.log10(np.stack([data.expected, data.observed]))
    start, end = float(drawn.min()) - 0.1, float(drawn.max()) + 0.1
    x = ChartAxis("gap if independent, × average", start, end, log_ticks(start, end))
    canvas = Canvas(x, x.replace(label="gap observed, × average"), *CHART_SIZE, top=26.0)
    return canvas.svg(
        *canvas.axes(4, 4),
        canvas.path((start, end), (start, end), "ideal"),
        *(_dot(canvas, x, y, "point", 2.5) for x, y in drawn.T.tolist()),
        label="Gaps between events against those of independent events",
    )


def concentration_chart(dense: Concentration, extent: str, noun: str) -> Element:
    """The share of the events in the busiest shares of the window, and where half of them are."""
    x = ChartAxis(f"share of the {extent}, busiest first", 0.0, 1.0, PERCENTS)
    y = ChartAxis(f"share of the {noun}", 0.0, 1.0, PERCENTS)
    canvas = Canvas(x, y, CHART_SIZE[0], 250.0, top=26.0, right=20.0)
    shares, half = np.linspace(0.0, 1.0, 201), dense.holding(0.5)
    x0, y0, text = canvas.px(half) + 10.0, canvas.py(0.5) + 16.0, f"half in {percent(half)}"
    return canvas.svg(
        *canvas.axes(5, 5),
        canvas.path(ENDS, ENDS, "ideal"),
        canvas.path(shares, np.interp(shares, dense.window, dense.events), "curve"),
        canvas.path((0.0, half, half), (0.5, 0.5, 0.0), "drop"),
        _dot(canvas, half, 0.5, "peak"),
        written(x0, y0, text, "start", "label"),
        label=f"Share of the {noun} against share of the {extent}",
    )


def score_bars(held: Holdout) -> Element:
    """Gains of three models over a constant rate, ours with its standard error."""
    gains = {
        "This model": held.gain,
        f"KDE ({held.kde})" if held.kde else "Kernel density estimate": held.kde_gain,
        "Constant rate": 0.0,
    }
    high = max(0.02, 1.15 * max(held.gain + held.gain_error, held.kde_gain))
    low = min(0.0, 1.15 * min(held.gain - held.gain_error, held.kde_gain))
    x, y = ChartAxis("nats per event", low, high), ChartAxis("", 0.0, 1.0)
    canvas = Canvas(x, y, CHART_SIZE[0], BAR_HEIGHT * len(gains) + 44.0, 12.0, 16.0, 4.0, 42.0)
    bars = [_bar(canvas, name, gain, i) for i, (name, gain) in enumerate(gains.items())]
    a, b = canvas.px(held.gain - held.gain_error), canvas.px(held.gain + held.gain_error)
    whisker = shape("path", class_="whisker", d=f"M{a:.1f} 32H{b:.1f}M{a:.1f} 28v8M{b:.1f} 28v8")
    label = "Scores on held-out events"
    return canvas.svg(*canvas.x_axis(4, lines=True), *bars, whisker, label=label)


def _bar(canvas: Canvas, name: str, gain: float, i: int) -> Element:
    zero, x, y = canvas.px(0.0), canvas.px(gain), BAR_HEIGHT * i + 24.0
    box = {"x": min(zero, x), "y": y, "width": max(abs(x - zero), 1.5), "height": 16.0, "rx": 2.0}
    return shape(
        "g",
        written(canvas.left, y - 7.0, name, "start", "bar-name"),
        written(canvas.width - canvas.right, y - 7.0, rounded(gain, 2), "end", "bar-value"),
        shape("rect", class_="theirs" if i else "ours", **box),
    )
