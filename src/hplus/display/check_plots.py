"""Displays of how well a rate fits: residuals and calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from hplus._checks import Bools
from hplus.display.data.check_data import (
    LARGE_RESIDUAL,
    CalibrationData,
    QuadratResiduals,
    RescaledTimes,
    calibration_data,
    middle_within,
    residual_data,
)
from hplus.display.data.framing import check_model, place_of
from hplus.display.plots import (
    BLUE,
    GREY,
    INK,
    PALE,
    RED,
    THIN,
    Display,
    clip_to,
    colour_bar,
    draw_plane,
    legend,
    plane_size,
    tidy_open,
    tidy_plane,
)
from hplus.evaluation.goodness import check
from hplus.evaluation.residuals import CALIBRATION_LEVEL
from hplus.evaluation.scores import Rate
from hplus.evaluation.verdicts import SIGNIFICANCE, Check
from hplus.windows import Box, Window
from hplus.wording import counted, level_words, p_words, rate_words, residual_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection


MOST_NUMBERED_QUADRATS = 150
"""Quadrats at most into which their residuals are written."""


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
        ax: Axes | None = None,
    ) -> Self:
        """Check a fitted model on events X (n, d) by `evaluation.check`, and draw what it finds."""
        window = check_model(model, (1, 2, 3))
        found = check(model, X, quadrats=quadrats, random_state=random_state)
        return cls.from_check(found, window=window, ax=ax)

    @classmethod
    def from_check(
        cls, found: Check, *, window: Window | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw what `evaluation.check` found."""
        return cls(residual_data(found), window).plot(ax)

    def _size(self) -> tuple[float, float]:
        if isinstance(self.data, RescaledTimes):
            return 4.6, 4.6
        return plane_size(self._place(self.data))

    def _draw(self, ax: Axes) -> None:
        if isinstance(self.data, RescaledTimes):
            _draw_times(ax, self.data)
        else:
            self._draw_quadrats(ax, self.data)

    def _place(self, data: QuadratResiduals) -> Window:
        """The window of the plane or, unless it is known, the box around all quadrats."""
        if self.window is None:
            return Box(tuple(data.low.min(axis=0)), tuple(data.high.max(axis=0)))
        return place_of(self.window)

    def _draw_quadrats(self, ax: Axes, data: QuadratResiduals) -> None:
        place = self._place(data)
        image = _draw_boxes(ax, data)
        clip_to(ax, image, place)
        draw_plane(ax, place)
        _write_residuals(ax, data, place)
        extend = "both" if np.abs(data.residuals).max() > data.colour_reach else "neither"
        colour_bar(ax, image, "Pearson residual (+ more events, − fewer)", extend)
        title = f"{data.far} of {counted(len(data.low), 'quadrat')} beyond ±{LARGE_RESIDUAL:g}"
        tidy_plane(ax, place, f"{title}, {p_words(data.p_value)}")


def _draw_boxes(ax: Axes, data: QuadratResiduals) -> PolyCollection:
    """Every quadrat as a rectangle: red for more events than expected, blue for fewer."""
    from matplotlib.collections import PolyCollection

    (a, b), (c, d) = data.low.T, data.high.T
    corners = np.stack([np.stack(p, axis=-1) for p in ((a, b), (c, b), (c, d), (a, d))], axis=1)
    boxes = PolyCollection(list(corners), cmap="RdBu_r", edgecolors=PALE, linewidths=THIN)
    reach = data.colour_reach
    # clipped, as an infinite residual has no colour
    boxes.set(array=np.clip(data.residuals, -reach, reach), clim=(-reach, reach))
    ax.add_collection(boxes)
    return boxes


def _write_residuals(ax: Axes, data: QuadratResiduals, place: Window) -> None:
    """Residuals in numbers, as both ends of the colours look alike in grey.

    Not where less than a third of a quadrat is in the window, unless they are far from 0.
    """
    if len(data.residuals) > MOST_NUMBERED_QUADRATS:
        return
    size = float(np.clip(60.0 / np.sqrt(len(data.residuals)), 5.0, 9.0))
    for r, low, high in zip(data.residuals, data.low, data.high, strict=True):
        middle, share = middle_within(place, low, high)
        if share > 1.0 / 3.0 or abs(r) > LARGE_RESIDUAL:
            colour = "white" if abs(r) > 0.7 * data.colour_reach else INK
            x, y = middle.tolist()
            words = residual_words(float(r))
            ax.text(x, y, words, ha="center", va="center", color=colour, fontsize=size)


def _draw_times(ax: Axes, data: RescaledTimes) -> None:
    """Share of events against rescaled time, as a staircase, and the band of a right rate."""
    ends = np.array([0.0, 1.0])
    band = f"{100.0 * (1.0 - SIGNIFICANCE):g} % band"
    ax.fill_between(ends, ends - data.reach, ends + data.reach, color=PALE, lw=0, label=band)
    ax.plot(ends, ends, color=GREY, lw=THIN)
    ax.step(*data.staircase(), where="post", color=BLUE, lw=1.6, label="events")
    inside = "stay in" if data.fits else "leave"
    title = f"{counted(len(data.times))} {inside} the band, {p_words(data.p_value)}"
    tidy_open(ax, title=title, xlabel="share of the expected events", ylabel="share of the events")
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    # on the side of the diagonal where the staircase is not
    legend(ax, loc="lower right" if data.times.mean() < 0.5 else "upper left")


@final
class CalibrationDisplay(Display):
    """Observed against predicted rates; with the `window` the axes have units."""

    def __init__(self, data: CalibrationData, window: Window | None = None) -> None:
        self.data = data
        self.window = window

    @classmethod
    def from_estimator(cls, model: Rate, X: Any, *, ax: Axes | None = None) -> Self:
        """Check a fitted model on events X (n, d) by `evaluation.check`, and draw what it finds."""
        window = check_model(model, (1, 2, 3))
        return cls.from_check(check(model, X), window=window, ax=ax)

    @classmethod
    def from_check(
        cls, found: Check, *, window: Window | None = None, ax: Axes | None = None
    ) -> Self:
        """Draw what `evaluation.check` found."""
        return cls(calibration_data(found), window).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 4.8, 4.6

    def _draw(self, ax: Axes) -> None:
        data, unit = self.data, rate_words(self.window)
        self._draw_intervals(ax)
        _draw_points(ax, data, data.inside, "o", BLUE, "observed")
        _draw_points(ax, data, ~data.inside, "X", RED, "observed, outside")
        bins = counted(len(data.predicted), "bin")
        title = f"{data.inside.sum()} of {bins} in their {level_words(CALIBRATION_LEVEL)}"
        ylabel = f"observed {unit}, scaled to the same total"
        tidy_open(ax, title=title, xlabel=f"predicted {unit}", ylabel=ylabel)
        if data.logarithmic:
            ax.set(xscale="log", yscale="log")
        legend(ax, loc="best")

    def _draw_intervals(self, ax: Axes) -> None:
        """The diagonal, and around it what would be observed if the prediction is right."""
        x, intervals = self.data.predicted, np.array([self.data.low, self.data.high])
        labels = [f"{100.0 * CALIBRATION_LEVEL:g} % of counts", *[""] * (len(x) - 1)]
        # lines and not a collection, which the legend would not keep clear of
        ax.plot([x, x], intervals, color=PALE, lw=7, solid_capstyle="butt", label=labels)
        ax.plot(x[[0, -1]], x[[0, -1]], color=GREY, lw=THIN)


def _draw_points(
    ax: Axes, data: CalibrationData, chosen: Bools, marker: str, colour: str, label: str
) -> None:
    if chosen.any():
        x, y = data.predicted[chosen], data.observed[chosen]
        ax.plot(x, y, marker, color=colour, ms=6, mec="white", mew=0.6, label=label)
