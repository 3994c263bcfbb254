"""Displays of a rate or a density, as a curve or a map, and of the ratio of two rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from hplus._checks import Floats
from hplus.display.data.framing import check_events, last_axis, thinned
from hplus.display.data.rate_data import (
    CurveData,
    MapData,
    RatioCurve,
    RatioMap,
    curve_data,
    map_data,
    ratio_data,
)
from hplus.display.plots import (
    BLUE,
    GREY,
    INK,
    LIGHT_BLUE,
    MOST_MARKS,
    PALE,
    Display,
    colour_bar,
    draw_plane,
    legend,
    opacity,
    plane_size,
    tidy_open,
    tidy_plane,
)
from hplus.estimators.density import Density
from hplus.evaluation.scores import Rate
from hplus.rates.ratio import RateRatio
from hplus.windows import Box
from hplus.wording import (
    AXES,
    axis_words,
    events_words,
    level_words,
    number,
    quantity,
    rate_words,
    ratio_words,
    window_words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SQUARE_ROOT_FROM = 10.0
"""The ratio of the largest rate to the median from which colours follow the square root."""

RATIO_TICKS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Ratios that a scale may be marked with, and their inverses."""

FADED = 0.8
"""Opacity of the grey over ratios that may be 1."""


@final
class IntensityCurveDisplay(Display):
    """The curve of a rate or a density with its band, and a rug of events X (n, 1) if given."""

    def __init__(self, data: CurveData, X: Any = None) -> None:
        self.data = data
        self.events = check_events(data.window, X)

    @classmethod
    def from_estimator(
        cls,
        model: Rate | Density,
        X: Any = None,
        *,
        level: float | None = 0.9,
        points: int = 512,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the rate, or the density, of a fitted model, as `curve_data` computes it."""
        return cls(curve_data(model, level, points, X), X).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 7.5, 3.6

    def _title(self) -> str:
        window, expected = self.data.window, self.data.expected
        title = events_words(self.data.noun, self.events, expected)
        if self.data.noun == "density":
            return title
        mean = number(expected / window.volume, 3) + f" per {window.unit}" * bool(window.unit)
        return f"{title}, mean rate {mean}"

    def _draw(self, ax: Axes) -> None:
        data = self.data
        if data.low is not None and data.high is not None and data.level is not None:
            _draw_band(ax, data.x, data.low, data.high, data.level)
        ax.plot(data.x, data.rate, color=BLUE, lw=1.8, label=data.noun, solid_capstyle="round")
        if self.events is not None:
            self._draw_rug(ax, thinned(self.events, MOST_MARKS)[:, 0])
        height = rate_words(data.window) if data.noun == "rate" else data.noun
        tidy_open(ax, title=self._title(), xlabel=axis_words(data.window, 0), ylabel=height)
        ax.margins(x=0.0)
        ax.set_ylim(bottom=0.0)
        if data.high is not None:
            # a sixth of the height is kept free for the legend
            ax.set_ylim(top=1.2 * float(data.high.max()))
            legend(ax, loc="upper right", ncols=2, borderaxespad=0.1)

    def _draw_rug(self, ax: Axes, x: Floats) -> None:
        """A stroke for each event, as long everywhere: heights are shares of the axes."""
        across = ax.get_xaxis_transform()
        ax.vlines(x, 0.0, 0.04, color=INK, lw=0.7, alpha=opacity(len(x)), transform=across)


def _draw_band(ax: Axes, x: Floats, low: Floats, high: Floats, level: float) -> None:
    ax.fill_between(x, low, high, color=LIGHT_BLUE, lw=0, label=level_words(level))


@final
class IntensityMapDisplay(Display):
    """A rate or a density as an image, with the window's outline and a dot for each event X (n, d).

    Colours follow the rate or, where its largest value is far above its median, the square root.
    """

    def __init__(self, data: MapData, X: Any = None) -> None:
        self.data = data
        events = check_events(data.window, X)
        self.events = None if events is None else events[data.place.contains(events[:, :2])]

    @classmethod
    def from_estimator(
        cls,
        model: Rate | Density,
        X: Any = None,
        *,
        cells: int = 256,
        at: float | None = None,
        view: Box | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the rate, or the density, of a fitted model, as `map_data` computes it.

        `view` is the part of the plane to draw, to see what is smaller than a cell of the map.
        """
        return cls(map_data(model, cells, at, X, view), X).plot(ax)

    def _size(self) -> tuple[float, float]:
        return plane_size(self.data.place)

    def _title(self) -> str:
        data = self.data
        title = events_words(data.noun, self.events, data.expected)
        if data.noun == "rate":
            title = f"{title}, window {window_words(data.place)}"
        if data.window.dimension == 2:
            return title
        axis = last_axis(data.window)
        if data.at is None:
            return f"{title}\n{data.noun} averaged over {quantity(axis.volume, axis.unit)}"
        return f"{title}\n{data.noun} at {AXES[2]} = {quantity(data.at, axis.unit)}"

    def _draw(self, ax: Axes) -> None:
        from matplotlib.colors import PowerNorm

        data = self.data
        peak = np.nanmax(data.rate)
        steep = bool(peak > SQUARE_ROOT_FROM * np.nanmedian(data.rate))
        # from 0 on, or a rate that is nearly constant would look like one that is not
        norm = PowerNorm(0.5 if steep else 1.0, vmin=0.0, vmax=peak or 1.0)
        rates = np.ma.masked_invalid(data.rate)
        # pixels even in a vector graphic, where thousands of cells would show their seams
        image = ax.pcolormesh(data.x, data.y, rates, norm=norm, cmap="viridis", rasterized=True)
        if self.events is not None:
            _draw_dots(ax, thinned(self.events, MOST_MARKS)[:, :2])
        draw_plane(ax, data.place)
        label = rate_words(data.window) if data.noun == "rate" else data.noun
        colour_bar(ax, image, label + ", square-root colours" * steep)
        tidy_plane(ax, data.place, self._title())


def _draw_dots(ax: Axes, events: Floats) -> None:
    """A small white dot for each event (n, 2), fainter if there are many; its rim is dark."""
    size = float(np.clip(300.0 / np.sqrt(max(len(events), 1)), 1.5, 12.0))
    # the rim is seen where the rate is high and the colours are light
    alpha, edge = opacity(len(events)), 0.03 * size
    x, y = events.T
    ax.scatter(x, y, s=size, color="white", edgecolor=INK, linewidth=edge, alpha=alpha)


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
        ax: Axes | None = None,
    ) -> Self:
        """Draw the ratio `a / b` of two fitted rates, as `ratio_data` computes it."""
        return cls(ratio_data(ratio, level, points, cells)).plot(ax)

    def _size(self) -> tuple[float, float]:
        return (7.5, 3.6) if isinstance(self.data, RatioCurve) else plane_size(self.data.window)

    def _title(self) -> str:
        data = self.data
        share = float(np.mean(data.differs[~np.isnan(data.ratio)]))
        return f"ratio differs from 1 in {100.0 * share:.0f} % of the window"

    def _draw(self, ax: Axes) -> None:
        if isinstance(self.data, RatioCurve):
            self._draw_curve(ax, self.data)
        else:
            self._draw_map(ax, self.data)

    def _draw_curve(self, ax: Axes, data: RatioCurve) -> None:
        _draw_band(ax, data.x, data.low, data.high, data.level)
        ax.axhline(1.0, color=INK, lw=0.8)
        ax.plot(data.x, data.ratio, color=GREY, lw=1.8, label="may be 1")
        sure = np.where(data.differs, data.ratio, np.nan)
        ax.plot(data.x, sure, color=BLUE, lw=1.8, label="differs from 1")
        xlabel = axis_words(data.window, 0)
        tidy_open(ax, title=self._title(), xlabel=xlabel, ylabel="ratio of rates")
        ax.margins(x=0.0)
        ax.set_yscale("log")
        bottom, top = ax.get_ylim()
        reach = max(-float(np.log(bottom)), float(np.log(top)))
        ticks = [tick for tick in scale_ticks(reach) if bottom <= tick <= top]
        ax.set_yticks(ticks, labels=[ratio_words(tick) for tick in ticks])
        ax.minorticks_off()
        ax.set_ylim(bottom, top * (top / bottom) ** 0.18)  # room for the legend
        legend(ax, loc="upper right", ncols=3, borderaxespad=0.1)

    def _draw_map(self, ax: Axes, data: RatioMap) -> None:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        with np.errstate(divide="ignore"):
            logs = np.ma.masked_invalid(np.log(data.ratio))
        reach = min(float(np.abs(logs).max()), np.log(RATIO_TICKS[-1])) or 0.1
        image = ax.pcolormesh(
            data.x, data.y, logs, cmap="RdBu_r", vmin=-reach, vmax=reach, rasterized=True
        )
        unsure = np.ma.masked_where(data.differs | np.isnan(data.ratio), np.zeros(logs.shape))
        grey = ListedColormap([PALE])
        ax.pcolormesh(data.x, data.y, unsure, cmap=grey, alpha=FADED, rasterized=True)
        draw_plane(ax, data.window)
        bar = colour_bar(ax, image, "ratio of rates")
        ticks = scale_ticks(reach)
        bar.set_ticks(np.log(ticks).tolist(), labels=[ratio_words(tick) for tick in ticks])
        tidy_plane(ax, data.window, self._title())
        label = f"{level_words(data.level)} contains 1"
        where = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.1), "borderaxespad": 0.6}
        legend(ax, handles=[Patch(color=PALE, label=label)], **where)


def scale_ticks(reach: float) -> list[float]:
    """Ratios to tick on a scale from -reach to reach in logs: 1, some above it, their inverses."""
    kept = [1.0]
    for step in RATIO_TICKS:
        if np.log(step) <= reach and np.log(step / kept[-1]) >= 0.22 * reach:
            kept.append(step)
    return [1.0 / step for step in kept[:0:-1]] + kept
