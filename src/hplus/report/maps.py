"""Maps as SVG: the rate with its colours, small ones to compare, and where a rate is off."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus.plotting.residuals import (
    QuadratResiduals,
    colour_scale,
    middle_within,
    residual_words,
)
from hplus.report.axes import Axis, Mark, round_marks
from hplus.report.colours import hex_colour, image_uri, text_bytes
from hplus.report.drawing import CHART, Canvas, dots_path, rings_path, written
from hplus.report.figures import Part, Place
from hplus.report.markup import Markup, element
from hplus.report.spots import Spots
from hplus.report.surfaces import Surface
from hplus.report.words import rounded

WIDTH, SMALL = 480.0, 200.0
"""Widths of a map and of a small one, in pixels, scaled with the page."""

LEFT, RIGHT, TOP, BOTTOM = 50.0, 10.0, 26.0, 46.0
"""Margins of a map."""

READ_PIXELS = 96
"""Pixels on a side of the map that a script reads the rate from."""

TALLEST, FLATTEST = 1.25, 0.45
"""Height over width of a map at most and at least."""

APART = 34.0
"""Pixels between two marks under the colours, at least."""

FAR, FEW = 1.95, 36
"""Residuals that are written whatever there is room for, and boxes in which all are."""


def rate_map(place: Place, spots: Spots) -> Markup:
    """The map of a rate with axes, outline, events as dots, and the ranks of the hot spots."""
    canvas = _canvas(place, WIDTH)
    rings = _rings(canvas, place.surface)
    dots = None if place.events is None else _dots(canvas, place.events)
    return canvas.svg(
        element("clipPath", element("path", d=rings, clip_rule="evenodd"), id="window"),
        element("g", _image(canvas, place.surface), dots, clip_path="url(#window)"),
        element("path", class_="outline", d=rings),
        canvas.x_axis(5),
        canvas.y_axis(5, lines=False),
        canvas.y_name(),
        *(_spot(canvas, spots, i) for i in range(len(spots.expected))),
        _reader(canvas, place),
        label=f"Map of the rate, {place.unit}",
        class_="chart map",
    )


def _canvas(place: Place, width: float) -> Canvas:
    """Both axes to one scale if one ruler measures them and the map is no strip."""
    w, h = (place.surface.high - place.surface.low).tolist()
    one = place.one_ruler and FLATTEST / 2.0 <= h / w <= 2.0 * TALLEST
    ratio = float(np.clip(h / w, FLATTEST, TALLEST)) if one else 0.8
    height = (width - LEFT - RIGHT) * ratio + TOP + BOTTOM
    return Canvas(place.axes[0], place.axes[1], width, height, LEFT, RIGHT, TOP, BOTTOM)


def _pixels(canvas: Canvas, points: Floats) -> Floats:
    return np.column_stack([canvas.px(points[:, 0]), canvas.py(points[:, 1])])


def _rings(canvas: Canvas, surface: Surface) -> str:
    return rings_path([_pixels(canvas, ring) for ring in surface.rings])


def _image(canvas: Canvas, surface: Surface) -> Markup:
    """The pixels of a rate, stretched over the data's part of a chart."""
    return element(
        "image",
        href=image_uri(surface.shares[::-1]),
        preserveAspectRatio="none",
        **canvas.inner(),
    )


def _dots(canvas: Canvas, events: Floats) -> Markup:
    """Smaller and fainter dots the more there are."""
    root = np.sqrt(max(len(events), 1))
    size, faint = np.clip(45.0 / root, 0.9, 3.0), np.clip(14.0 / root, 0.22, 0.8)
    path = dots_path(_pixels(canvas, events))
    return element(
        "path", class_="dots", d=path, stroke_width=float(size), stroke_opacity=float(faint)
    )


def _spot(canvas: Canvas, spots: Spots, i: int) -> Markup:
    """The cell of a hot spot, and its rank beside it, on the side where there is room."""
    x, y2 = _pixels(canvas, spots.low[i : i + 1])[0].tolist()
    x2, y = _pixels(canvas, spots.high[i : i + 1])[0].tolist()
    room = x2 < canvas.width - canvas.right - 20.0
    at, anchor = (x2 + 4.0, "start") if room else (x - 4.0, "end")
    return element(
        "g",
        element("rect", x=x, y=y, width=x2 - x, height=y2 - y, rx=1.0),
        written(at, 0.5 * (y + y2) + 4.5, str(i + 1), anchor),
        class_="spot",
    )


def _reader(canvas: Canvas, place: Place) -> Markup:
    """An empty rectangle over the map with what a script needs to tell the rate under a pointer."""
    surface = place.surface
    rows, columns = (
        np.linspace(0, n - 1, min(n, READ_PIXELS)).astype(int) for n in surface.rate.shape
    )
    shares = np.where(surface.inside, surface.shares, np.nan)[np.ix_(rows, columns)]
    return element(
        "rect",
        class_="reader",
        fill="none",
        pointer_events="all",
        data_shares=text_bytes(shares),
        data_columns=len(columns),
        data_top=f"{surface.top:.6g}",
        data_more="over " if surface.peak > surface.top else "",
        data_power=surface.power,
        data_unit=place.unit,
        **canvas.inner(),
    )


def colour_bar(place: Place) -> Markup:
    """The colours of a map with the rates they stand for."""
    surface, inner = place.surface, WIDTH - LEFT - RIGHT
    stops = [element("stop", offset=f"{5 * k}%", stop_color=hex_colour(k / 20)) for k in range(21)]
    marks: list[Markup] = []
    last = -APART
    for at, text in _bar_marks(surface):
        x = LEFT + inner * (at / surface.top) ** surface.power
        if x - last > APART:
            anchor = "end" if x > WIDTH - RIGHT - 12.0 else "middle"
            marks.append(element("path", class_="tick", d=f"M{x:.1f} 30v4"))
            marks.append(written(x, 48.0, text, anchor))
            last = x
    return element(
        "svg",
        element("linearGradient", *stops, id="ramp"),
        written(LEFT, 10.0, place.unit, "start", "axis-name"),
        element("rect", x=LEFT, y=18.0, width=inner, height=12.0, rx=2.0, fill="url(#ramp)"),
        *marks,
        class_="chart map bar",
        viewBox=f"0 0 {WIDTH:g} 56",
        role="img",
        aria_label=f"Colours from 0 to {rounded(surface.top)} {place.unit}",
    )


def _bar_marks(surface: Surface) -> list[Mark]:
    """Round rates under the colours, spread evenly where colours follow a root of the rate."""
    top = surface.top
    if surface.power == 1.0:
        marks = list(round_marks(0.0, top, 5))
    else:
        rates = [
            float(f"{top * s ** (1.0 / surface.power):.1g}") for s in (0.2, 0.4, 0.6, 0.8, 1.0)
        ]
        marks = [(0.0, "0"), *((rate, rounded(rate)) for rate in rates if rate <= top)]
    if surface.peak > top:
        below = [mark for mark in marks if mark[0] < (0.85 ** (1.0 / surface.power)) * top]
        marks = [*below, (top, f"over {rounded(top, 2)}")]
    return marks


def small_map(part: Part) -> Markup:
    """A map without axes, to be compared with its neighbours."""
    canvas = _small_canvas(part.surface)
    return canvas.svg(
        element("g", _image(canvas, part.surface), clip_path="url(#window-small)"),
        element("path", class_="outline", d=_rings(canvas, part.surface)),
        label=f"Map of the rate, {part.label}",
    )


def small_window(part: Part) -> Markup:
    """The outline along which all small maps are cut."""
    rings = _rings(_small_canvas(part.surface), part.surface)
    path = element("path", d=rings, clip_rule="evenodd")
    cut = element("clipPath", path, id="window-small")
    return element("svg", cut, class_="unseen", aria_hidden="true")


def _small_canvas(surface: Surface) -> Canvas:
    w, h = (surface.high - surface.low).tolist()
    x, y = (
        Axis("", a, b) for a, b in zip(surface.low.tolist(), surface.high.tolist(), strict=True)
    )
    ratio = float(np.clip(h / w, FLATTEST, TALLEST))
    return Canvas(x, y, SMALL, SMALL * ratio, 0.0, 0.0, 0.0, 0.0)


def residual_map(data: QuadratResiduals, place: Place) -> Markup:
    """Boxes with more events than expected in one colour, with fewer in another."""
    canvas, scale = _canvas(place, CHART[0]), colour_scale(data.residuals)
    every, boxes, said = len(data.residuals) <= FEW, [], []
    for r, low, high in zip(data.residuals.tolist(), data.low, data.high, strict=True):
        x, y2 = _pixels(canvas, low[None])[0].tolist()
        x2, y = _pixels(canvas, high[None])[0].tolist()
        strength = 0.04 + 0.8 * min(abs(r) / scale, 1.0) ** 1.4
        side = {"x": x, "y": y, "width": x2 - x, "height": y2 - y, "fill_opacity": strength}
        boxes.append(element("rect", class_="more" if r > 0.0 else "fewer", **side))
        if every or abs(r) > FAR:
            middle, share = middle_within(place.window, low, high)
            if share > 0.15 or abs(r) > FAR:
                size = min(0.34 * (x2 - x), 0.8 * (y2 - y), 12.0)
                said.append(_residual(canvas, r, middle, size))
    rings = _rings(canvas, place.surface)
    return canvas.svg(
        element("clipPath", element("path", d=rings, clip_rule="evenodd"), id="window-off"),
        element("g", *boxes, clip_path="url(#window-off)"),
        *said,
        element("path", class_="outline", d=rings),
        canvas.x_axis(5),
        canvas.y_axis(5, lines=False),
        canvas.y_name(),
        label="Map of residuals",
    )


def _residual(canvas: Canvas, r: float, middle: Floats, size: float) -> Markup:
    """A residual in numbers, in the middle of what its box has of the window."""
    x, y = float(canvas.px(middle[0])), float(canvas.py(middle[1])) + 0.35 * size
    words = residual_words(r)
    # as a style: an attribute would yield to the style sheet
    style = f"font-size:{size:.1f}px"
    return element("text", words, x=x, y=y, text_anchor="middle", class_="value", style=style)
