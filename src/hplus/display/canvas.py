"""A chart as elements of SVG, in pixels."""

from __future__ import annotations

from typing import final
from xml.etree.ElementTree import Element, tostring

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.display.chart_axes import ChartAxis

CHART_SIZE = (400.0, 330.0)
"""Width and height of a chart in a row of two, in pixels; charts scale with the page."""


def shape(tag: str, *children: Element | None, **attributes: str | float | None) -> Element:
    """A shape; `class_` and `stroke_width` become class and stroke-width, None is left out.

    Numbers are rounded to a hundredth of a pixel.

    >>> shape("circle", cx=1.23456, stroke_width=2.0, class_="peak").attrib
    {'cx': '1.23', 'stroke-width': '2', 'class': 'peak'}
    """
    given = {
        name.rstrip("_").replace("_", "-"): _text(part)
        for name, part in attributes.items()
        if part is not None
    }
    found = Element(tag, given)
    found.extend(child for child in children if child is not None)
    return found


def markup(chart: Element) -> str:
    """A chart as text, in which everything that is not markup is escaped."""
    return tostring(chart, encoding="unicode", short_empty_elements=False)


def _text(given: str | float) -> str:
    return f"{given:.2f}".rstrip("0").rstrip(".") if isinstance(given, float) else str(given)


@final
@value
class Canvas(Value):
    """A chart of `width` by `height` with margins around the part where data are drawn."""

    x: ChartAxis
    y: ChartAxis
    width: float
    height: float
    left: float = 52.0
    right: float = 14.0
    top: float = 14.0
    bottom: float = 44.0

    def px(self, x: float) -> float:
        """Pixels from the left of a place on the x axis."""
        return float(self.pixels(x, self.y.low)[0, 0])

    def py(self, y: float) -> float:
        """Pixels from the top of a place on the y axis."""
        return float(self.pixels(self.x.low, y)[0, 1])

    def pixels(self, x: ArrayLike, y: ArrayLike) -> Floats:
        """Pixels from the left and from the top of places on both axes, shape (n, 2)."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        across = (x - self.x.low) / (self.x.high - self.x.low)
        up = (y - self.y.low) / (self.y.high - self.y.low)
        box = self.inner()
        below = box["y"] + box["height"]
        return np.column_stack([box["x"] + box["width"] * across, below - box["height"] * up])

    def inner(self) -> dict[str, float]:
        """The part where data are drawn, as attributes of a rectangle."""
        width, height = self.width - self.left - self.right, self.height - self.top - self.bottom
        return {"x": self.left, "y": self.top, "width": width, "height": height}

    def svg(self, *children: Element | None, label: str, class_: str = "chart") -> Element:
        """The chart, which scales with the page; `label` says what it shows."""
        box = f"0 0 {self.width:g} {self.height:g}"
        return shape("svg", *children, class_=class_, viewBox=box, role="img", aria_label=label)

    def path(self, x: ArrayLike, y: ArrayLike, class_: str, *, closed: bool = False) -> Element:
        """A line through places of both axes."""
        d = line_path(self.pixels(x, y)) + "Z" * closed
        return shape("path", class_=class_, d=d)

    def axes(self, x_ticks: int, y_ticks: int, *, lines: bool = True) -> tuple[Element, ...]:
        """Both axes with their labels; `lines` adds a faint grid at the ticks of the y axis."""
        name = written(2.0, self.top - 8.0, self.y.label, "start", "axis-name")
        return (*self._y_axis(y_ticks, lines), *self.x_axis(x_ticks), name)

    def x_axis(self, ticks: int, *, lines: bool = False) -> list[Element]:
        """Ticks and the label below the data; `lines` adds a faint grid."""
        base = self.height - self.bottom
        parts: list[Element] = []
        for at, text in self.x.ticks_about(ticks):
            x = self.px(at)
            if lines:
                parts.append(_line("grid", x, self.top, x, base))
            parts.append(_line("tick", x, base, x, base + 4.0))
            anchor = "start" if x < self.left + 8 and len(text) > 6 else "middle"
            anchor = "end" if x > self.width - self.right - 8 and len(text) > 3 else anchor
            parts.append(written(x, base + 18.0, text, anchor))
        if self.x.label:
            middle = 0.5 * (self.left + self.width - self.right)
            parts.append(written(middle, self.height - 6.0, self.x.label, "middle", "axis-name"))
        return parts

    def _y_axis(self, ticks: int, lines: bool) -> list[Element]:
        """Ticks left of the data, or a faint grid."""
        parts: list[Element] = []
        for at, text in self.y.ticks_about(ticks):
            y = self.py(at)
            if lines:
                parts.append(_line("grid", self.left, y, self.width - self.right, y))
            else:
                parts.append(_line("tick", self.left - 4.0, y, self.left, y))
            parts.append(written(self.left - 7.0, y + 4.0, text, "end"))
        return parts


def _line(class_: str, x1: float, y1: float, x2: float, y2: float) -> Element:
    return shape("path", class_=class_, d=f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}")


def written(
    x: float, y: float, text: str, anchor: str = "start", class_: str | None = None
) -> Element:
    """Text at a place of the chart."""
    found = shape("text", x=x, y=y, text_anchor=anchor, class_=class_)
    found.text = text
    return found


def line_path(points: Floats) -> str:
    """M x y L x y … through points (n, 2), to a tenth of a pixel, without repeated ones."""
    tenths = np.round(points, 1)
    kept = np.append(True, np.any(np.diff(tenths, axis=0) != 0.0, axis=1))
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in tenths[kept].tolist())
