"""Calibration of a rate: events observed where it is low, and so on to where it is high."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np

from hplus._checks import Bools, Floats, shown
from hplus._values import value
from hplus.evaluation.goodness import Check, check
from hplus.evaluation.residuals import CALIBRATION_LEVEL
from hplus.evaluation.scores import Rate
from hplus.plotting.display import (
    BLUE,
    GREY,
    PALE,
    RED,
    THIN,
    Display,
    PlotData,
    check_model,
    legend,
    open_frame,
    tidy,
)
from hplus.plotting.words import count_words, rate_label
from hplus.windows import Window

LOGARITHM_FROM = 10.0
"""Highest over lowest rate above which the axes are logarithmic."""


@final
@value
class CalibrationData(PlotData):
    """Predicted and observed rates in bins of rising rate, shape (k,) each.

    `low` and `high`, shape (k,), bound 90 % of what would be observed if the prediction is right.
    """

    predicted: Floats
    observed: Floats
    low: Floats
    high: Floats

    @property
    def inside(self) -> Bools:
        """Does each observed rate lie in its interval? Shape (k,)."""
        return (self.low <= self.observed) & (self.observed <= self.high)

    @property
    def spread(self) -> float:
        """Highest over lowest predicted rate; 1 if some rate to be drawn is 0."""
        # a 0 has no place on a logarithmic axis, and must not vanish
        if min(self.observed.min(), self.low.min()) <= 0.0:
            return 1.0
        return float(self.predicted.max() / self.predicted.min())


def calibration_data(found: Check) -> CalibrationData:
    """Observed rate = predicted rate · observed count / expected count, and so its bounds.

    The expected counts are scaled to the number of events: totals agree.
    """
    if not isinstance(found, Check):
        raise TypeError(f"found must be what evaluation.check returns, got {shown(found)}.")
    bins = found.calibration
    # counts over expected counts are free of the bins' volumes, which nobody kept
    rate = bins.rates / bins.expected
    return CalibrationData(bins.rates, rate * bins.observed, rate * bins.low, rate * bins.high)


@final
class CalibrationDisplay(Display):
    """Observed against predicted rates; with the `window` the axes have units."""

    def __init__(self, data: CalibrationData, window: Window | None = None) -> None:
        self.data = data
        self.window = window

    @classmethod
    def from_estimator(cls, model: Rate, X: Any, *, ax: Any = None) -> Self:
        """Check a fitted model on events X (n, d) by `evaluation.check`, and draw what it finds."""
        window = check_model(model, (1, 2, 3))
        return cls(calibration_data(check(model, X)), window).plot(ax)

    @classmethod
    def from_check(cls, found: Check, *, window: Window | None = None, ax: Any = None) -> Self:
        """Draw what `evaluation.check` found."""
        return cls(calibration_data(found), window).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 4.8, 4.6

    def _draw(self, ax: Any) -> None:
        data, unit = self.data, rate_label(self.window)
        self._draw_intervals(ax)
        _draw_points(ax, data, data.inside, "o", BLUE, "observed")
        _draw_points(ax, data, ~data.inside, "X", RED, "observed, outside")
        bins = count_words(len(data.predicted), "bin")
        title = f"{data.inside.sum()} of {bins} in their {100.0 * CALIBRATION_LEVEL:g} % interval"
        tidy(ax, title=title, xlabel=f"predicted {unit}", ylabel=f"observed {unit}, same total")
        open_frame(ax)
        if data.spread > LOGARITHM_FROM:
            ax.set(xscale="log", yscale="log")
        legend(ax, loc="best")

    def _draw_intervals(self, ax: Any) -> None:
        """The diagonal, and around it what would be observed if the prediction is right."""
        x, intervals = self.data.predicted, np.array([self.data.low, self.data.high])
        labels = [f"{100.0 * CALIBRATION_LEVEL:g} % of counts", *[""] * (len(x) - 1)]
        # lines and not a collection, which the legend would not keep clear of
        ax.plot([x, x], intervals, color=PALE, lw=7, solid_capstyle="butt", label=labels)
        ax.plot(x[[0, -1]], x[[0, -1]], color=GREY, lw=THIN)


def _draw_points(
    ax: Any, data: CalibrationData, chosen: Bools, marker: str, colour: str, label: str
) -> None:
    if chosen.any():
        x, y = data.predicted[chosen], data.observed[chosen]
        ax.plot(x, y, marker, color=colour, ms=6, mec="white", mew=0.6, label=label)
