"""Maps: the rate with its colours, small ones to compare, and residuals."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np
from scipy.ndimage import distance_transform_edt

from hplus._checks import Floats
from hplus.display.canvas import CHART_SIZE, Canvas, line_path, shape, written
from hplus.display.chart_axes import ChartAxis, Tick, round_ticks
from hplus.display.colours import Shading, hex_colour, image_uri, text_bytes
from hplus.display.data.check_data import LARGE_RESIDUAL, QuadratResiduals, middle_within
from hplus.display.data.framing import outline, same_unit
from hplus.display.data.hot_spots import HotSpots
from hplus.display.data.rate_data import MapData
from hplus.display.page_figures import PageMap, PartMap
from hplus.windows import Window
from hplus.wording import residual_words, rounded

MAP_WIDTH, SMALL_WIDTH = 480.0, 200.0
"""Widths of a map and of a small one, in pixels, scaled with the page."""

LEFT, RIGHT, TOP, BOTTOM = 50.0, 10.0, 26.0, 46.0
"""Margins of a map."""

READ_PIXELS = 96
"""Pixels on a side of the map that a script reads the rate from."""

ROOTS = {1.0: "", 0.5: ", square-root colours", 0.25: ", fourth-root colours"}
"""Words for the power of the rate that colours follow."""

TALLEST, FLATTEST = 1.25, 0.45
"""The largest and the smallest height of a map, over its width."""

BAR_TICK_GAP = 0.08
"""Share of the colours between two ticks under them, at least."""

MOST_WRITTEN_BOXES = 36
"""Boxes up to which every residual is written, and not only the large ones."""


def rate_map(figure: PageMap, spots: HotSpots) -> Element:
    """The map of a rate with axes, outline, events as dots, and the ranks of the hot spots."""
    canvas = map_canvas(figure, MAP_WIDTH)
    dots = None if figure.events is None else _dots(canvas, figure.events)
    return canvas.svg(
        *cut_out(canvas, figure.data.place, "window", map_image(canvas, figure), dots),
        shape("g", *canvas.axes(5, 5, lines=False), class_="axes"),
        *(_spot(canvas, spots, i) for i in range(len(spots.expected)) if spots.stand_out),
        label=f"Map of the rate, {figure.unit}",
        class_="chart map",
    )


def map_canvas(figure: PageMap, width: float) -> Canvas:
    """Both axes to one scale if they share a unit and the map is not a strip."""
    ratio = _proportion(figure.data)
    to_scale = same_unit(figure.data.place) and FLATTEST / 2.0 <= ratio <= 2.0 * TALLEST
    ratio = float(np.clip(ratio, FLATTEST, TALLEST)) if to_scale else 0.8
    height = (width - LEFT - RIGHT) * ratio + TOP + BOTTOM
    return Canvas(*figure.axes, width, height, LEFT, RIGHT, TOP, BOTTOM)


def _proportion(data: MapData) -> float:
    """Height over width of a map."""
    return float(np.ptp(data.y) / np.ptp(data.x))


def cut_out(
    canvas: Canvas, place: Window, name: str, *inside: Element | None
) -> tuple[Element, ...]:
    """Shapes cut along the outline of a window, and the outline; `name` is unique in the page."""
    rings = [line_path(canvas.pixels(*ring.T)) for ring, _ in outline(place)]
    d = "".join(f"{ring}Z" for ring in rings)
    return (
        shape("clipPath", shape("path", d=d, clip_rule="evenodd"), id=name),
        shape("g", *inside, clip_path=f"url(#{name})"),
        shape("path", class_="outline", d=d),
    )


def map_image(canvas: Canvas, figure: PageMap | PartMap) -> Element:
    """The pixels of a rate, stretched over the data's part of a chart."""
    shares = figure.shading.shares(figure.data.rate)
    # pixels across the outline are cut along it: those with their centre outside need a colour too
    nearest = distance_transform_edt(np.isnan(shares), return_distances=False, return_indices=True)
    href = image_uri(shares[tuple(nearest)][::-1])
    return shape("image", href=href, preserveAspectRatio="none", **canvas.inner())


def _dots(canvas: Canvas, events: Floats) -> Element:
    """Smaller and fainter dots the more there are, each the round end of a line without length."""
    root = np.sqrt(max(len(events), 1))
    size, faint = np.clip(45.0 / root, 0.9, 3.0), np.clip(14.0 / root, 0.22, 0.8)
    points = np.round(canvas.pixels(*events.T), 1).tolist()
    path = "".join(f"M{x:g} {y:g}h0" for x, y in points)
    return shape(
        "path", class_="dots", d=path, stroke_width=float(size), stroke_opacity=float(faint)
    )


def _spot(canvas: Canvas, spots: HotSpots, i: int) -> Element:
    """The cell of a hot spot, and its rank beside it, on the side where there is room."""
    box = _box(canvas, spots.low[i], spots.high[i])
    room = box["x"] + box["width"] < canvas.width - canvas.right - 20.0
    at, anchor = (box["x"] + box["width"] + 4.0, "start") if room else (box["x"] - 4.0, "end")
    rank = written(at, box["y"] + 0.5 * box["height"] + 4.5, str(i + 1), anchor)
    return shape("g", shape("rect", rx=1.0, **box), rank, class_="spot")


def _box(canvas: Canvas, low: Floats, high: Floats) -> dict[str, float]:
    """A box between two corners, as attributes of a rectangle."""
    (x, below), (right, y) = canvas.pixels(*np.stack([low, high], axis=1)).tolist()
    return {"x": x, "y": y, "width": right - x, "height": below - y}


def rate_reader(canvas: Canvas, figure: PageMap) -> Element:
    """An empty rectangle over the map with what a script needs to show the rate at a pointer."""
    colours, rate = figure.shading, figure.data.rate
    rows, columns = (np.linspace(0, n - 1, min(n, READ_PIXELS)).astype(int) for n in rate.shape)
    return shape(
        "rect",
        class_="reader",
        fill="none",
        pointer_events="all",
        data_shares=text_bytes(colours.shares(rate[np.ix_(rows, columns)])),
        data_columns=str(len(columns)),
        data_top=f"{colours.top:.6g}",
        data_more="over " if colours.peak > colours.top else "",
        data_power=colours.power,
        data_unit=figure.unit,
        **canvas.inner(),
    )


def colour_bar(figure: PageMap) -> Element:
    """The colours of a map with the rates they stand for."""
    x, y = ChartAxis("", 0.0, 1.0, _bar_ticks(figure.shading)), ChartAxis("", 0.0, 1.0)
    canvas = Canvas(x, y, MAP_WIDTH, 56.0, LEFT, RIGHT, 18.0, 26.0)
    stops = [shape("stop", offset=f"{5 * k}%", stop_color=hex_colour(k / 20)) for k in range(21)]
    return canvas.svg(
        shape("linearGradient", *stops, id="ramp"),
        written(LEFT, 10.0, figure.unit + ROOTS[figure.shading.power], "start", "axis-name"),
        shape("rect", rx=2.0, fill="url(#ramp)", **canvas.inner()),
        shape("g", *canvas.x_axis(len(x.ticks)), class_="ticks"),
        label=f"Colours from 0 to {rounded(figure.shading.top)} {figure.unit}",
        class_="chart map bar",
    )


def _bar_ticks(colours: Shading) -> tuple[Tick, ...]:
    """Round rates under the colours, spread evenly where colours follow a root of the rate."""
    top, root = colours.top, 1.0 / colours.power
    if colours.power == 1.0:
        ticks = list(round_ticks(0.0, top, 5))
    else:
        rates = [float(f"{top * share**root:.1g}") for share in (0.2, 0.4, 0.6, 0.8, 1.0)]
        ticks = [(0.0, "0"), *((rate, rounded(rate)) for rate in rates if rate <= top)]
    if colours.peak > top:
        # the last label is long and ends at the right edge
        below = [tick for tick in ticks if tick[0] < 0.8**root * top]
        ticks = [*below, (top, f"over {rounded(top, 2)}")]
    apart: list[Tick] = []
    for rate, text in ticks:
        share = (rate / top) ** colours.power
        if not apart or share - apart[-1][0] > BAR_TICK_GAP:
            apart.append((share, text))
    return tuple(apart)


def small_map(part: PartMap, index: int) -> Element:
    """A map without axes, to be compared with its neighbours."""
    x, y = (ChartAxis("", float(e[0]), float(e[-1])) for e in (part.data.x, part.data.y))
    ratio = float(np.clip(_proportion(part.data), FLATTEST, TALLEST))
    canvas = Canvas(x, y, SMALL_WIDTH, SMALL_WIDTH * ratio, 0.0, 0.0, 0.0, 0.0)
    cut = cut_out(canvas, part.data.place, f"window-{index}", map_image(canvas, part))
    return canvas.svg(*cut, label=f"Map of the rate, {part.label}")


def residual_map(data: QuadratResiduals, figure: PageMap) -> Element:
    """Boxes with more events than expected in one colour, with fewer in another."""
    canvas, place = map_canvas(figure, CHART_SIZE[0]), figure.data.place
    every, boxes, numbers = len(data.residuals) <= MOST_WRITTEN_BOXES, [], []
    for r, low, high in zip(data.residuals.tolist(), data.low, data.high, strict=True):
        box = _box(canvas, low, high)
        strength = 0.04 + 0.8 * min(abs(r) / data.colour_reach, 1.0) ** 1.4
        sign = "more" if r > 0.0 else "fewer"
        boxes.append(shape("rect", class_=sign, fill_opacity=strength, **box))
        middle, share = middle_within(place, low, high)
        if abs(r) > LARGE_RESIDUAL or (every and share > 0.15):
            size = min(0.34 * box["width"], 0.8 * box["height"], 12.0)
            numbers.append(_residual(canvas, r, middle, size))
    cut, inside, edge = cut_out(canvas, place, "window-residuals", *boxes)
    return canvas.svg(
        cut,
        inside,
        *numbers,
        edge,
        *canvas.axes(5, 5, lines=False),
        label="Map of residuals",
    )


def _residual(canvas: Canvas, r: float, middle: Floats, size: float) -> Element:
    """A residual in numbers, in the middle of the part of its box in the window."""
    ((x, y),) = canvas.pixels(*middle).tolist()
    found = written(x, y + 0.35 * size, residual_words(r), "middle", "value")
    # as a style: an attribute would yield to the style sheet
    found.set("style", f"font-size:{size:.1f}px")
    return found
