"""Pieces of a chart: a frame that turns numbers into pixels, its axes, lines and bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.report.axes import Axis, Mark
from hplus.report.markup import Markup, element, join

CHART = (400.0, 330.0)
"""Width and height of a chart of which two stand beside each other, scaled with the page."""


@final
@value
class Canvas(Value):
    """A chart of `width` by `height` with margins around the part where data are drawn."""

    x: Axis
    y: Axis
    width: float
    height: float
    left: float = 52.0
    right: float = 14.0
    top: float = 14.0
    bottom: float = 44.0

    def px(self, x: Any) -> Any:
        """Pixels from the left of places on the x axis."""
        span = self.width - self.left - self.right
        return self.left + span * (np.asarray(x, float) - self.x.low) / (self.x.high - self.x.low)

    def py(self, y: Any) -> Any:
        """Pixels from the top of places on the y axis."""
        span = self.height - self.top - self.bottom
        share = (np.asarray(y, float) - self.y.low) / (self.y.high - self.y.low)
        return self.height - self.bottom - span * share

    def inner(self) -> dict[str, float]:
        """The part where data are drawn, as attributes of a rectangle."""
        width, height = self.width - self.left - self.right, self.height - self.top - self.bottom
        return {"x": self.left, "y": self.top, "width": width, "height": height}

    def svg(self, *children: Any, label: str, class_: str = "chart") -> Markup:
        """The chart as an element that scales with the page; `label` says what it shows."""
        return element(
            "svg",
            *children,
            class_=class_,
            viewBox=f"0 0 {self.width:g} {self.height:g}",
            role="img",
            aria_label=label,
        )

    def path(self, x: Floats, y: Floats) -> str:
        """A line through places of both axes."""
        return line_path(np.column_stack([self.px(x), self.py(y)]))

    def x_axis(self, about: int = 6, *, lines: bool = False) -> Markup:
        """Marks and the label below the data; with faint lines across."""
        base = self.height - self.bottom
        parts: list[Markup] = []
        for at, text in _within(self.x.marked(about), self.x):
            x = float(self.px(at))
            if lines:
                parts.append(_line("grid", x, self.top, x, base))
            parts.append(_line("tick", x, base, x, base + 4.0))
            anchor = "start" if x < self.left + 8 and len(text) > 6 else "middle"
            anchor = "end" if x > self.width - self.right - 8 and len(text) > 3 else anchor
            parts.append(written(x, base + 18.0, text, anchor))
        middle = 0.5 * (self.left + self.width - self.right)
        parts.append(written(middle, self.height - 6.0, self.x.label, "middle", "axis-name"))
        return join(*parts)

    def y_axis(self, about: int = 5, *, lines: bool = True) -> Markup:
        """Marks left of the data, with faint lines across, and the label above them."""
        parts: list[Markup] = []
        for at, text in _within(self.y.marked(about), self.y):
            y = float(self.py(at))
            if lines:
                parts.append(_line("grid", self.left, y, self.width - self.right, y))
            else:
                parts.append(_line("tick", self.left - 4.0, y, self.left, y))
            parts.append(written(self.left - 7.0, y + 4.0, text, "end"))
        return join(*parts)

    def y_name(self, dx: float = 0.0) -> Markup:
        """The label of the y axis, above it and read like any other line."""
        return written(2.0 + dx, self.top - 8.0, self.y.label, "start", "axis-name")


def _within(marks: Sequence[Mark], axis: Axis) -> list[Mark]:
    slack = 1e-9 * (axis.high - axis.low)
    return [mark for mark in marks if axis.low - slack <= mark[0] <= axis.high + slack]


def _line(class_: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    return element("path", class_=class_, d=f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}")


def written(
    x: float, y: float, text: str, anchor: str = "start", class_: str | None = None
) -> Markup:
    """Text at a place of the chart."""
    return element("text", text, x=x, y=y, text_anchor=anchor, class_=class_)


def line_path(points: Floats) -> str:
    """M x y L x y … through points (n, 2) in pixels; those that look alike are left out."""
    tenths = np.round(points, 1)
    kept = np.append(True, np.any(np.diff(tenths, axis=0) != 0.0, axis=1))
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in tenths[kept].tolist())


def rings_path(rings: Sequence[Floats]) -> str:
    """Closed rings (n, 2) in pixels as one path."""
    return "".join(f"{line_path(ring)}Z" for ring in rings)


def dots_path(points: Floats) -> str:
    """A dot at each point (n, 2), drawn by the round end of a line without length."""
    return "".join(f"M{x:g} {y:g}h0" for x, y in np.round(points, 1).tolist())
