"""Residuals of a rate: by quadrat in the plane, by rescaled time on a line."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
from scipy.stats import kstwo

from hplus._checks import Floats, shown
from hplus._values import value
from hplus.evaluation.goodness import SIGNIFICANCE, Check, check
from hplus.evaluation.residuals import CountTable
from hplus.evaluation.scores import Rate
from hplus.plotting.display import (
    BLUE,
    GREY,
    INK,
    PALE,
    THIN,
    Display,
    PlotData,
    check_model,
    colour_bar,
    legend,
    open_frame,
    tidy,
)
from hplus.plotting.maps import clip_to, draw_plane, place_of, plane_size
from hplus.plotting.words import axis_label, count_words, p_words
from hplus.windows import Box, Window

FAR = 2.0
"""Residuals farther from 0 than this are counted in the title and marked in the picture."""

LEAST_SCALE, MOST_SCALE = 3.0, 6.0
"""The colours of residuals reach at least and at most so far from 0."""

CENTRED: Any = {"ha": "center", "va": "center"}

MOST_NUMBERS = 150
"""Quadrats at most into which their residuals are written."""


@final
@value
class QuadratResiduals(PlotData):
    """Pearson's residuals (k,) in the boxes low[i] <= x <= high[i] of the plane, shape (k, 2)."""

    residuals: Floats
    low: Floats
    high: Floats
    p_value: float

    @property
    def far(self) -> int:
        """How many residuals are beyond ±2."""
        return int((np.abs(self.residuals) > FAR).sum())


@final
@value
class RescaledTimes(PlotData):
    """Sorted times Λ(t_i)/Λ(T) and the shares i/n of events up to them, shape (n,) each.

    A right rate keeps |share - time| <= `reach` everywhere with probability 0.95.
    """

    times: Floats
    shares: Floats
    reach: float
    statistic: float
    p_value: float

    @property
    def fits(self) -> bool:
        """Is the largest distance |share - time|, before and after each event, within reach?"""
        return self.statistic <= self.reach


def residual_data(found: Check) -> QuadratResiduals | RescaledTimes:
    """The residuals of a rate that `evaluation.check` found: rescaled times on a line, else by box.

    Boxes of three axes are pooled over the last.
    """
    if not isinstance(found, Check):
        raise TypeError(f"found must be what evaluation.check returns, got {shown(found)}.")
    return _by_quadrat(found) if found.rescaling is None else _by_time(found)


def _by_time(found: Check) -> RescaledTimes:
    """P(sup |F_n - F| <= reach) = 0.95, exactly, for the share F_n of n uniform times."""
    line = found.rescaling
    assert line is not None
    n = len(line.times)
    shares, reach = np.arange(1, n + 1) / n, float(kstwo.ppf(1.0 - SIGNIFICANCE, n))
    return RescaledTimes(line.times, shares, reach, line.statistic, line.p_value)


def _by_quadrat(found: Check) -> QuadratResiduals:
    """(observed - expected)/√expected of the boxes with the same first two axes, added up."""
    boxes = found.quadrats
    corners = np.hstack([boxes.low[:, :2], boxes.high[:, :2]])
    # boxes above each other have the same corners to the last bit: one row of a lattice
    corners, box = np.unique(corners, axis=0, return_inverse=True)
    sums = np.zeros((2, len(corners)))
    np.add.at(sums.T, box.ravel(), np.column_stack([boxes.observed, boxes.expected]))
    pooled = CountTable(*sums)
    return QuadratResiduals(pooled.residuals, corners[:, :2], corners[:, 2:], pooled.p_value)


@final
class ResidualDisplay(Display):
    """Where a rate is off: a map of residuals, white where it is right; on a line, a KS plot.

    With the `window` the axes have units and the map an outline.
    """

    def __init__(
        self, data: QuadratResiduals | RescaledTimes, window: Window | None = None
    ) -> None:
        self.data = data
        self.window = window

    @classmethod
    def from_estimator(
        cls,
        model: Rate,
        X: Any,
        *,
        quadrats: Any = None,
        random_state: Any = 0,
        ax: Any = None,
    ) -> Self:
        """Check a fitted model on events X (n, d) by `evaluation.check`, and draw what it finds."""
        window = check_model(model, (1, 2, 3))
        found = check(model, X, quadrats=quadrats, random_state=random_state)
        return cls(residual_data(found), window).plot(ax)

    @classmethod
    def from_check(cls, found: Check, *, window: Window | None = None, ax: Any = None) -> Self:
        """Draw what `evaluation.check` found."""
        return cls(residual_data(found), window).plot(ax)

    def _size(self) -> tuple[float, float]:
        if isinstance(self.data, RescaledTimes):
            return 4.6, 4.6
        return plane_size(self._place(self.data))

    def _draw(self, ax: Any) -> None:
        if isinstance(self.data, RescaledTimes):
            _draw_times(ax, self.data)
        else:
            self._draw_quadrats(ax, self.data)

    def _place(self, data: QuadratResiduals) -> Window:
        """The window of the plane or, unless it is known, the box around all quadrats."""
        if self.window is None:
            return Box(tuple(data.low.min(axis=0)), tuple(data.high.max(axis=0)))
        return place_of(self.window)

    def _draw_quadrats(self, ax: Any, data: QuadratResiduals) -> None:
        scale, place = colour_scale(data.residuals), self._place(data)
        image = _draw_boxes(ax, data, scale)
        clip_to(ax, image, place)
        draw_plane(ax, place)
        _write_residuals(ax, data, place)
        extend = "both" if np.abs(data.residuals).max() > scale else "neither"
        colour_bar(ax, image, "Pearson residual (+ more events, − fewer)", extend)
        title = f"{data.far} of {count_words(len(data.low), 'quadrat')} beyond ±{FAR:g}"
        xlabel, ylabel = axis_label(place, 0), axis_label(place, 1)
        tidy(ax, title=f"{title}, {p_words(data.p_value)}", xlabel=xlabel, ylabel=ylabel)


def colour_scale(residuals: Floats) -> float:
    """How far from 0 the colours reach: to the largest residual, but from 3 to 6."""
    return float(np.clip(np.abs(residuals).max(), LEAST_SCALE, MOST_SCALE))


def _draw_boxes(ax: Any, data: QuadratResiduals, scale: float) -> Any:
    """Every quadrat as a rectangle: red for more events than expected, blue for fewer."""
    from matplotlib.collections import PolyCollection

    (a, b), (c, d) = data.low.T, data.high.T
    corners = np.stack([np.stack(p, axis=-1) for p in ((a, b), (c, b), (c, d), (a, d))], axis=1)
    boxes = PolyCollection(list(corners), cmap="RdBu_r", edgecolors=PALE, linewidths=THIN)
    # clipped, as an infinite residual has no colour
    boxes.set(array=np.clip(data.residuals, -scale, scale), clim=(-scale, scale))
    return ax.add_collection(boxes)


def _write_residuals(ax: Any, data: QuadratResiduals, place: Window) -> None:
    """Residuals in numbers, as both ends of the colours are alike in grey.

    Not where less than a third of a quadrat is in the window, unless they are far from 0.
    """
    if len(data.residuals) > MOST_NUMBERS:
        return
    size = float(np.clip(60.0 / np.sqrt(len(data.residuals)), 5.0, 9.0))
    strong = 0.7 * colour_scale(data.residuals)
    for r, low, high in zip(data.residuals, data.low, data.high, strict=True):
        middle, share = middle_within(place, low, high)
        if share > 1.0 / 3.0 or abs(r) > FAR:
            colour = "white" if abs(r) > strong else INK
            ax.text(*middle, residual_words(r), **CENTRED, color=colour, fontsize=size)


def middle_within(place: Window, low: Floats, high: Floats) -> tuple[Floats, float]:
    """A point in the middle of what a box has of the window, shape (2,), and the box's share.

    Found on a lattice of 21 by 21 points; the middle of the box if none of them is inside.
    """
    steps = (np.indices((21, 21)).reshape(2, -1).T + 0.5) / 21.0
    inside = steps[place.contains(low + steps * (high - low))]
    if len(inside) == 0:
        return 0.5 * (low + high), 0.0
    nearest = np.argmin(np.linalg.norm(inside - inside.mean(axis=0), axis=1))
    return low + inside[nearest] * (high - low), len(inside) / len(steps)


def residual_words(r: float) -> str:
    """A residual with its sign; "new" for events where none were expected."""
    if np.isinf(r):
        return "new"
    return f"{r:+.1f}".replace("-", "−") if abs(r) >= 0.05 else "0"


def _draw_times(ax: Any, data: RescaledTimes) -> None:
    """Share of events against rescaled time, as a staircase, and the band of a right rate."""
    ends, n = np.array([0.0, 1.0]), len(data.times)
    band = f"{1.0 - SIGNIFICANCE:.0%} band".replace("%", " %")
    ax.fill_between(ends, ends - data.reach, ends + data.reach, color=PALE, lw=0, label=band)
    ax.plot(ends, ends, color=GREY, lw=THIN)
    # a staircase leaves the band exactly where the test, of its highest and lowest points, does
    times, shares = np.append(np.insert(data.times, 0, 0.0), 1.0), np.insert(data.shares, 0, 0.0)
    ax.step(times, np.append(shares, 1.0), where="post", color=BLUE, lw=1.6, label="events")
    inside = "stay in" if data.fits else "leave"
    title = f"{count_words(n)} {inside} the band, {p_words(data.p_value)}"
    tidy(ax, title=title, xlabel="share of the expected events", ylabel="share of the events")
    open_frame(ax)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    # on the side of the diagonal where the staircase is not
    legend(ax, loc="lower right" if data.times.mean() < 0.5 else "upper left")
