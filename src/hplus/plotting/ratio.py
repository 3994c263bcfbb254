"""The ratio of two rates: a curve with its band, or a map that fades where it may be 1."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self, final

import numpy as np

from hplus._checks import Bools, Floats, check_count, check_fraction
from hplus._values import value
from hplus.plotting.display import (
    BLUE,
    GREY,
    INK,
    LIGHT_BLUE,
    PALE,
    Display,
    PlotData,
    check_model,
    colour_bar,
    legend,
    open_frame,
    tidy,
)
from hplus.plotting.maps import draw_plane, map_data, plane_size
from hplus.plotting.words import axis_label
from hplus.rates.ratio import RateRatio
from hplus.windows import Window

STEPS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Ratios that a scale may be marked with, and their inverses."""

FADED = 0.8
"""How opaque the grey over ratios is that may be 1."""


@value
class RatioData(PlotData):
    """A ratio and bounds that hold it with probability `level`, arrays of one shape each."""

    window: Window
    ratio: Floats
    low: Floats
    high: Floats
    level: float

    @property
    def differs(self) -> Bools:
        """Where the bounds exclude 1; nowhere outside the window."""
        return (self.low > 1.0) | (self.high < 1.0)


@final
@value
class RatioCurve(RatioData):
    """A ratio at places x of a line, shape (p,) each."""

    x: Floats


@final
@value
class RatioMap(RatioData):
    """A ratio in cells of the plane, shape (rows, columns), NaN where a centre is outside.

    The edges of the cells are `x`, shape (columns + 1,), and `y`, shape (rows + 1,).
    """

    x: Floats
    y: Floats


def ratio_data(
    ratio: RateRatio, level: float = 0.9, points: int = 512, cells: int = 256
) -> RatioCurve | RatioMap:
    """The ratio and its bounds at equally spaced places of a line, or at the centres of cells."""
    window, level = check_model(ratio, (1, 2)), check_fraction("level", level)
    if window.dimension == 2:
        return _map(ratio, level, cells)
    (start,), (end,) = window.bounds()
    x = np.linspace(start, end, check_count("points", points, least=2))
    low, high = ratio.predict_interval(x[:, None], level)
    return RatioCurve(window, ratio.predict(x[:, None]), low, high, level, x)


def _map(ratio: RateRatio, level: float, cells: int) -> RatioMap:
    model: Any = SimpleNamespace(
        window=ratio.window, predict=ratio.predict, expected_count=ratio.count_ratio
    )
    found = map_data(model, cells)
    inside = ~np.isnan(found.rate)
    columns, rows = (0.5 * (edges[1:] + edges[:-1]) for edges in (found.x, found.y))
    centres = np.stack(np.meshgrid(columns, rows), axis=-1)[inside]
    bounds = []
    for bound in ratio.predict_interval(centres, level):
        bounds.append(np.full(inside.shape, np.nan))
        bounds[-1][inside] = bound
    return RatioMap(ratio.window, found.rate, bounds[0], bounds[1], level, found.x, found.y)


@final
class RateRatioDisplay(Display):
    """The ratio of two rates on a line, with its band, or in the plane, grey where it may be 1.

    Ratios are drawn on a log scale: twice as high is as far from 1 as half as high.
    """

    def __init__(self, data: RatioCurve | RatioMap) -> None:
        self.data = data

    @classmethod
    def from_ratio(
        cls,
        ratio: RateRatio,
        *,
        level: float = 0.9,
        points: int = 512,
        cells: int = 256,
        ax: Any = None,
    ) -> Self:
        """Draw the ratio `a / b` of two fitted rates, as `ratio_data` computes it."""
        return cls(ratio_data(ratio, level, points, cells)).plot(ax)

    def _size(self) -> tuple[float, float]:
        return (7.5, 3.6) if isinstance(self.data, RatioCurve) else plane_size(self.data.window)

    def _title(self) -> str:
        data = self.data
        share = float(np.mean(data.differs[~np.isnan(data.ratio)]))
        return f"ratio differs from 1 in {100.0 * share:.0f} % of the window"

    def _draw(self, ax: Any) -> None:
        if isinstance(self.data, RatioCurve):
            self._draw_curve(ax, self.data)
        else:
            self._draw_map(ax, self.data)

    def _draw_curve(self, ax: Any, data: RatioCurve) -> None:
        label = f"{100.0 * data.level:g} % interval"
        ax.fill_between(data.x, data.low, data.high, color=LIGHT_BLUE, lw=0, label=label)
        ax.axhline(1.0, color=INK, lw=0.8)
        ax.plot(data.x, data.ratio, color=GREY, lw=1.8, label="may be 1")
        sure = np.where(data.differs, data.ratio, np.nan)
        ax.plot(data.x, sure, color=BLUE, lw=1.8, label="differs from 1")
        tidy(ax, title=self._title(), xlabel=axis_label(data.window, 0), ylabel="ratio of rates")
        open_frame(ax)
        ax.margins(x=0.0)
        ax.set_yscale("log")
        bottom, top = ax.get_ylim()
        reach = max(-float(np.log(bottom)), float(np.log(top)))
        marks = [mark for mark in scale_marks(reach) if bottom <= mark <= top]
        ax.set_yticks(marks, labels=[ratio_words(mark) for mark in marks])
        ax.minorticks_off()
        ax.set_ylim(bottom, top * (top / bottom) ** 0.18)  # room for the legend
        legend(ax, loc="upper right", ncols=3, borderaxespad=0.1)

    def _draw_map(self, ax: Any, data: RatioMap) -> None:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        with np.errstate(divide="ignore"):
            logs = np.ma.masked_invalid(np.log(data.ratio))
        reach = min(float(np.abs(logs).max()), np.log(STEPS[-1])) or 0.1
        image = ax.pcolormesh(
            data.x, data.y, logs, cmap="RdBu_r", vmin=-reach, vmax=reach, rasterized=True
        )
        unsure = np.ma.masked_where(data.differs | np.isnan(data.ratio), np.zeros(logs.shape))
        ax.pcolormesh(
            data.x, data.y, unsure, cmap=ListedColormap([PALE]), alpha=FADED, rasterized=True
        )
        draw_plane(ax, data.window)
        bar = colour_bar(ax, image, "ratio of rates")
        marks = scale_marks(reach)
        bar.set_ticks(np.log(marks), labels=[ratio_words(mark) for mark in marks])
        xlabel, ylabel = axis_label(data.window, 0), axis_label(data.window, 1)
        tidy(ax, title=self._title(), xlabel=xlabel, ylabel=ylabel)
        label = f"{100.0 * data.level:g} % interval contains 1"
        where = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.1), "borderaxespad": 0.6}
        legend(ax, handles=[Patch(color=PALE, label=label)], **where)


def scale_marks(reach: float) -> list[float]:
    """Ratios to mark on a scale from -reach to reach in logs: 1, some above it, their inverses."""
    kept = [1.0]
    for step in STEPS:
        if np.log(step) <= reach and np.log(step / kept[-1]) >= 0.22 * reach:
            kept.append(step)
    return [1.0 / step for step in kept[:0:-1]] + kept


def ratio_words(ratio: float) -> str:
    """A ratio in words, such as "2 ×" or "1/2 ×"."""
    return f"{ratio:g} ×" if ratio >= 1.0 else f"1/{1.0 / ratio:g} ×"
