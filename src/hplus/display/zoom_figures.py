"""Maps that zoom: what a page needs to draw a rate at every scale, in its attributes."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable
from typing import final
from xml.etree.ElementTree import Element

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.display.canvas import Canvas, shape
from hplus.display.chart_axes import ChartAxis
from hplus.display.colours import Bytes, ramp
from hplus.display.data.framing import outline, same_unit
from hplus.display.data.hot_spots import HotSpots
from hplus.display.data.map_pyramid import CHILDREN, MapPyramid, map_pyramid
from hplus.display.data.margins import Margins
from hplus.display.map_charts import MAP_WIDTH, map_canvas, rate_map
from hplus.display.page_figures import PageMap, period_unit
from hplus.files.places import EARTH_RADIUS
from hplus.studies.event_study import EventStudy
from hplus.studies.event_weights import counted_noun
from hplus.studies.frames import Frame
from hplus.wording import per

MOST_DECADES = 8.0
"""Decades below the highest rate that bytes tell apart; lower rates are shown as 0."""

MOST_VERTICES = 100_000
"""Vertices of an outline that a page draws at most."""


@final
@value
class ZoomMap(Value):
    """A map of a page at every scale, the words for the count of a cell, and where the map is."""

    figure: PageMap
    pyramid: MapPyramid
    smooth: bool
    counts: str
    frame: Frame


def zoom_map(study: EventStudy, sums: Margins, figure: PageMap | None) -> ZoomMap | None:
    """The map of a study in cells of every size, in the unit of its figure."""
    rate = sums.finest
    if figure is None or rate is None:
        return None
    window = figure.data.place
    factor = figure.data.expected / rate.integral()
    pyramid = map_pyramid(rate, window).scaled(factor)
    unit = period_unit(study)[0] if sums.line is not None else study.exposure_.unit
    counts = (per(unit) if unit else "events").replace("events", counted_noun(study.frame), 1)
    return ZoomMap(figure, pyramid, sums.fine is None, counts, study.frame)


def zoomable(zoom: ZoomMap, spots: HotSpots) -> Element:
    """The map of a rate, and all that a script needs to draw it at every scale."""
    figure, pyramid = zoom.figure, zoom.pyramid
    canvas = map_canvas(figure, MAP_WIDTH)
    cells, lowest, highest = packed(pyramid)
    rings = [ring for ring, _ in outline(figure.data.place)]
    if sum(map(len, rings)) > MOST_VERTICES:
        step = -(-sum(map(len, rings)) // MOST_VERTICES)
        rings = [np.vstack([ring[:-1:step], ring[-1:]]) for ring in rings]
    (x, y), (right, above) = _shares(canvas, np.array([pyramid.low, pyramid.low + pyramid.sides]))
    corners = np.hstack([_shares(canvas, spots.low), _shares(canvas, spots.high)])
    boxes = np.column_stack(
        [corners[:, [0, 3]], corners[:, 2] - corners[:, 0], corners[:, 1] - corners[:, 3]]
    )
    inner = canvas.inner()
    return shape(
        "div",
        rate_map(figure, spots),
        class_="zoom",
        data_cells=cells,
        data_count=str(len(pyramid.rates)),
        data_depth=str(pyramid.depth),
        data_range=_words([lowest, highest]),
        data_root=_words([x, y, right - x, y - above]),
        data_outline=_floats(_shares(canvas, np.concatenate(rings))),
        data_rings=_words(map(len, rings)),
        data_dots=None if figure.events is None else _floats(_shares(canvas, figure.events)),
        data_spots=";".join(map(_words, boxes.tolist())) if spots.stand_out else "",
        data_inner=_words([inner[name] for name in ("x", "y", "width", "height")]),
        data_ramp=ramp().tobytes().hex(),
        data_smooth=str(int(zoom.smooth)),
        data_scale=str(int(same_unit(figure.data.place))),
        data_unit=figure.unit,
        data_counts=zoom.counts,
        data_per_area=f"{1.0 / figure.factor:.6g}",
        **_places(zoom),
    )


def _places(zoom: ZoomMap) -> dict[str, str]:
    """How the axes are labelled, and how places are told in the user's own columns."""
    place, units = zoom.frame.place, zoom.figure.data.place.axis_units
    axes = [_axis(axis, unit) for axis, unit in zip(zoom.figure.axes, units, strict=True)]
    # times have labels of their own
    names = zoom.frame.columns[:2] if len(zoom.frame.columns) > 1 else ()
    found = {"data_axes": json.dumps(axes), "data_names": json.dumps(names)}
    if place is not None:
        found["data_lonlat"] = _words([place.west, place.south, place.parallel, EARTH_RADIUS])
    return found


def _axis(axis: ChartAxis, unit: str) -> dict[str, object]:
    return {"low": axis.low, "high": axis.high, "unit": unit, "ticks": axis.ticks}


def packed(pyramid: MapPyramid) -> tuple[str, float, float]:
    """The cells of a pyramid as compressed text, and the rates that bytes 1 and 255 stand for.

    A byte for each cell, the difference of its value from that of the cell around it; then a bit
    for each cell: is it divided? Values are even steps of the log rate, 0 for lower ones.
    """
    values, lowest, highest = log_bytes(pyramid.rates)
    around = np.concatenate([[0], np.repeat(np.flatnonzero(pyramid.split), CHILDREN)])
    steps = values - values[around]
    steps[0] = values[0]
    raw = steps.tobytes() + np.packbits(pyramid.split).tobytes()
    return b64encode(zlib.compress(raw, 9)).decode(), lowest, highest


def log_bytes(rates: Floats) -> tuple[Bytes, float, float]:
    """Rates (n,) as bytes, in even steps of their logarithm, and the rates of bytes 1 and 255."""
    highest = float(rates.max()) or 1.0
    known = rates[rates >= highest * 10.0**-MOST_DECADES]
    lowest = float(known.min()) if len(known) else highest
    if not lowest < highest:
        lowest = 0.5 * highest
    with np.errstate(divide="ignore"):
        shares = np.log(rates / lowest) / np.log(highest / lowest)
    steps = np.round(1.0 + 254.0 * np.maximum(shares, -1.0))
    return np.clip(steps, 0, 255).astype(np.uint8), lowest, highest


def _shares(canvas: Canvas, X: Floats) -> Floats:
    """Places (n, 2) as shares of the map: to the right, and down."""
    inner = canvas.inner()
    pixels = canvas.pixels(*X.T)
    return (pixels - [inner["x"], inner["y"]]) / [inner["width"], inner["height"]]


def _floats(X: Floats) -> str:
    return b64encode(np.ascontiguousarray(X, dtype="<f4").tobytes()).decode()


def _words(numbers: Iterable[float]) -> str:
    return " ".join(f"{x:.9g}" for x in numbers)
