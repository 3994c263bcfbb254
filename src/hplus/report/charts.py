"""Charts as SVG: curves of a rate, calibration, rescaled times, concentration and scores."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.plotting import CalibrationData
from hplus.plotting.calibration import LOGARITHM_FROM
from hplus.plotting.residuals import RescaledTimes
from hplus.report.axes import Axis, Mark
from hplus.report.drawing import CHART, Canvas, line_path, written
from hplus.report.figures import Curve
from hplus.report.markup import Markup, element
from hplus.report.surfaces import Concentration
from hplus.report.words import TIED, percent, rounded

WIDE, NARROW = (880.0, 330.0), (400.0, 300.0)
"""Width and height of a curve on a wide page and on a narrow one."""

PERCENTS = tuple((0.25 * k, f"{25 * k}{TIED}%") for k in range(5))

ENDS = np.array([0.0, 1.0])

BAR = 56.0
"""Height of a bar with its name."""


class Score(NamedTuple):
    """Who predicts, its gain over a constant rate and the standard error, 0 if there is none."""

    name: str
    gain: float
    error: float


def rate_curve(curve: Curve, *, wide: bool) -> Markup:
    """The curve of a rate with its band and a rug of events, for a wide or a narrow page."""
    width, height = WIDE if wide else NARROW
    found = curve.course
    y = Axis(curve.unit, 0.0, 1.08 * float(found.high.max()) or 1.0)
    canvas = Canvas(curve.axis, y, width, height, top=30.0)
    top = int(found.rate.argmax())
    peak = {"cx": float(canvas.px(found.x[top])), "cy": float(canvas.py(found.rate[top]))}
    return canvas.svg(
        canvas.y_axis(4),
        canvas.x_axis(8 if wide else 4),
        canvas.y_name(),
        element("path", class_="band", d=_band(canvas, found.x, found.low, found.high)),
        element("path", class_="curve", d=canvas.path(found.x, found.rate)),
        element("circle", class_="peak", r=4.0, **peak),
        None if curve.events is None else _rug(canvas, curve.events),
        label=f"Curve of the rate, {curve.unit}",
        class_="chart wide" if wide else "chart narrow",
    )


def _band(canvas: Canvas, x: Floats, low: Floats, high: Floats) -> str:
    """The region between two curves."""
    there, back = (np.column_stack([canvas.px(x), canvas.py(y)]) for y in (high, low))
    return f"{line_path(np.vstack([there, back[::-1]]))}Z"


def _rug(canvas: Canvas, events: Floats) -> Markup:
    """A stroke for each event, fainter the more there are."""
    base = canvas.height - canvas.bottom
    places = np.unique(np.round(canvas.px(events), 1)).tolist()
    faint = float(np.clip(9.0 / np.sqrt(max(len(events), 1)), 0.15, 0.7))
    path = "".join(f"M{x:g} {base:g}v-7" for x in places)
    return element("path", class_="rug", d=path, stroke_opacity=faint)


def calibration_chart(data: CalibrationData) -> Markup:
    """Observed against expected rates with 90 % limits; logarithmic where rates differ much."""
    logs = data.spread > LOGARITHM_FROM
    rates = np.stack([data.predicted, data.observed, data.low, data.high])
    shown = np.log10(rates) if logs else rates
    start = float(shown.min()) - 0.06 if logs else 0.0
    end = float(shown.max()) + 0.06 if logs else 1.06 * float(shown.max())
    marks = _log_marks(start, end) if logs else ()
    x = Axis("expected rate, × average", start, end, marks)
    canvas = Canvas(x, x.replace(label="observed rate, × average"), *CHART, top=26.0)
    places = canvas.px(shown[0]).tolist()
    points, low, high = (canvas.py(row).tolist() for row in shown[1:])
    limits = [
        element("path", class_="limits", d=f"M{place:.1f} {a:.1f}V{b:.1f}")
        for place, a, b in zip(places, low, high, strict=True)
    ]
    dots = [
        element("circle", class_="point" if inside else "point off", cx=place, cy=point, r=4.5)
        for place, point, inside in zip(places, points, data.inside, strict=True)
    ]
    diagonal = canvas.path(np.array([start, end]), np.array([start, end]))
    return canvas.svg(
        canvas.y_axis(4),
        canvas.x_axis(4),
        canvas.y_name(),
        element("path", class_="ideal", d=diagonal),
        *limits,
        *dots,
        label="Observed against expected rates",
    )


def _log_marks(low: float, high: float) -> tuple[Mark, ...]:
    """Powers of ten, with 2 and 5 times or 3 times them where there are few."""
    digits = (1,) if high - low > 3.0 else (1, 3) if high - low > 1.5 else (1, 2, 5)
    powers = range(math.floor(low), math.ceil(high) + 1)
    found = ((math.log10(m) + p, rounded(m * 10.0**p)) for p in powers for m in digits)
    return tuple(mark for mark in found if low <= mark[0] <= high)


def rescaled_chart(data: RescaledTimes) -> Markup:
    """The share of events up to each share of the expected ones, and the band of a right rate."""
    x = Axis("share of the expected events", 0.0, 1.0, PERCENTS)
    canvas = Canvas(x, x.replace(label="share of the events"), *CHART, top=26.0, right=20.0)
    # a staircase: the share rises where an event is
    times = np.repeat(np.concatenate([[0.0], data.times, [1.0]]), 2)[1:]
    shares = np.repeat(np.concatenate([[0.0], data.shares, [1.0]]), 2)[:-1]
    r = min(data.reach, 1.0)
    corners = np.array([[0, 0], [0, r], [1 - r, 1], [1, 1], [1, 1 - r], [r, 0]], dtype=float)
    band = np.column_stack([canvas.px(corners[:, 0]), canvas.py(corners[:, 1])])
    return canvas.svg(
        canvas.y_axis(5),
        canvas.x_axis(5),
        canvas.y_name(),
        element("path", class_="band", d=f"{line_path(band)}Z"),
        element("path", class_="ideal", d=canvas.path(ENDS, ENDS)),
        element("path", class_="curve", d=canvas.path(times, shares)),
        label=f"Share of {len(data.times)} events against the share expected",
    )


def concentration_chart(dense: Concentration, extent: str) -> Markup:
    """The share of the events in the busiest shares of the window, and where half of them are."""
    x = Axis(f"share of the {extent}, busiest first", 0.0, 1.0, PERCENTS)
    y = Axis("share of the events", 0.0, 1.0, PERCENTS)
    canvas = Canvas(x, y, CHART[0], 250.0, top=26.0, right=20.0)
    shares, half = np.linspace(0.0, 1.0, 201), dense.holding(0.5)
    held = np.interp(shares, dense.window, dense.events)
    at, middle, base = float(canvas.px(half)), float(canvas.py(0.5)), float(canvas.py(0.0))
    return canvas.svg(
        canvas.y_axis(5),
        canvas.x_axis(5),
        canvas.y_name(),
        element("path", class_="ideal", d=canvas.path(ENDS, ENDS)),
        element("path", class_="curve", d=canvas.path(shares, held)),
        element("path", class_="drop", d=f"M{canvas.left:g} {middle:.1f}H{at:.1f}V{base:.1f}"),
        element("circle", class_="peak", cx=at, cy=middle, r=4.5),
        written(at + 10.0, middle + 16.0, f"half in {percent(half)}", "start", "told"),
        label=f"Share of the events against share of the {extent}",
    )


def score_bars(scores: list[Score]) -> Markup:
    """Bars of scores with their standard errors; the first is ours."""
    high = max(0.02, 1.15 * max(score.gain + score.error for score in scores))
    low = min(0.0, 1.15 * min(score.gain - score.error for score in scores))
    x, y = Axis("nats per event", low, high), Axis("", 0.0, 1.0)
    canvas = Canvas(x, y, CHART[0], BAR * len(scores) + 44.0, 12.0, 16.0, 4.0, 42.0)
    bars = [_bar(canvas, score, i) for i, score in enumerate(scores)]
    return canvas.svg(canvas.x_axis(4, lines=True), *bars, label="Scores on events held out")


def _bar(canvas: Canvas, score: Score, i: int) -> Markup:
    zero, x, y = float(canvas.px(0.0)), float(canvas.px(score.gain)), BAR * i + 24.0
    a, b = (float(canvas.px(score.gain + sign * score.error)) for sign in (-1.0, 1.0))
    whisker = f"M{a:.1f} {y + 8:.1f}H{b:.1f}M{a:.1f} {y + 4:.1f}v8M{b:.1f} {y + 4:.1f}v8"
    return element(
        "g",
        written(canvas.left, y - 7.0, score.name, "start", "bar-name"),
        written(canvas.width - canvas.right, y - 7.0, rounded(score.gain, 2), "end", "bar-value"),
        element(
            "rect",
            class_="theirs" if i else "ours",
            x=min(zero, x),
            y=y,
            width=max(abs(x - zero), 1.5),
            height=16.0,
            rx=2.0,
        ),
        element("path", class_="whisker", d=whisker) if score.error > 0.0 else None,
    )
