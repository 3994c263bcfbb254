"""How well a rate fits: its residuals and its calibration, from what `evaluation.check` found."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
from scipy.stats import kstwo

from hplus._checks import Bools, Floats, shown
from hplus._values import value
from hplus.display.data.framing import PlotData
from hplus.evaluation.residuals import CountTable
from hplus.evaluation.verdicts import SIGNIFICANCE, Check
from hplus.windows import Window

LARGE_RESIDUAL = 2.0
"""Residuals farther from 0 than this are counted and always written in a figure."""

LEAST_COLOUR_REACH, MOST_COLOUR_REACH = 3.0, 6.0
"""The least and the largest residual at which the colour scale ends."""

LOGARITHM_FROM = 10.0
"""Highest over lowest rate above which the axes of a calibration are logarithmic."""


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
        return int((np.abs(self.residuals) > LARGE_RESIDUAL).sum())

    @property
    def colour_reach(self) -> float:
        """How far from 0 the colours reach: to the largest residual, limited to 3 to 6."""
        largest = np.abs(self.residuals).max()
        return float(np.clip(largest, LEAST_COLOUR_REACH, MOST_COLOUR_REACH))


@final
@value
class RescaledTimes(PlotData):
    """Sorted times Λ(t_i)/Λ(T) and the shares i/n of events up to them, shape (n,) each.

    If the rate is right, |share - time| <= `reach` everywhere with probability 0.95.
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

    def staircase(self) -> tuple[Floats, Floats]:
        """Times and the shares reached at them, from (0, 0) to (1, 1), to be drawn as steps."""
        # steps leave the band exactly where the test, of their highest and lowest points, does
        ends = (self.times, self.shares)
        x, y = (np.concatenate([[0.0], values, [1.0]]) for values in ends)
        return x, y


def residual_data(found: Check) -> QuadratResiduals | RescaledTimes:
    """The residuals that `evaluation.check` found: rescaled times on a line, otherwise by box.

    Boxes of three axes are pooled over the last.
    """
    line = _checked(found).rescaling
    if line is None:
        return _by_quadrat(found)
    n = len(line.times)
    # P(sup |F_n - F| <= reach) = 0.95, exactly, for the share F_n of so many uniform times
    shares, reach = np.arange(1, n + 1) / n, float(kstwo.ppf(1.0 - SIGNIFICANCE, line.size))
    return RescaledTimes(line.times, shares, reach, line.statistic, line.p_value)


@final
@value
class GapQuantiles(PlotData):
    """Quantiles of gaps between events in rescaled time, and of the exponential distribution.

    Both are in average gaps, shape (k,), and equal if events are independent of each other.
    """

    expected: Floats
    observed: Floats


def gap_data(found: Check) -> GapQuantiles | None:
    """The quantiles of the gaps that `evaluation.check` found; None if times are not known."""
    order = _checked(found).order
    if order is None:
        return None
    # gaps of 0, of which there are few, have no logarithm
    least = 0.1 * float(order.gaps.exponential[0])
    return GapQuantiles(order.gaps.exponential, np.maximum(order.gaps.observed, least))


def _checked(found: Any) -> Check:
    if not isinstance(found, Check):
        raise TypeError(f"found must be what evaluation.check returns, got {shown(found)}.")
    return found


def _by_quadrat(found: Check) -> QuadratResiduals:
    """Pearson's residuals of the boxes with the same first two axes, added up."""
    boxes = found.quadrats
    corners = np.hstack([boxes.low[:, :2], boxes.high[:, :2]])
    # boxes above each other have the same corners to the last bit: one row of a lattice
    corners, box = np.unique(corners, axis=0, return_inverse=True)
    sums = np.zeros((2, len(corners)))
    np.add.at(sums.T, box.ravel(), np.column_stack([boxes.observed, boxes.expected]))
    pooled = CountTable(*sums, variation=boxes.variation)
    return QuadratResiduals(pooled.residuals, corners[:, :2], corners[:, 2:], pooled.p_value)


def middle_within(place: Window, low: Floats, high: Floats) -> tuple[Floats, float]:
    """A point in the middle of the part of a box in the window, shape (2,), and that part's share.

    Found on a lattice of 21 by 21 points; the middle of the box if none of them is inside.
    """
    steps = (np.indices((21, 21)).reshape(2, -1).T + 0.5) / 21.0
    inside = steps[place.contains(low + steps * (high - low))]
    if len(inside) == 0:
        return 0.5 * (low + high), 0.0
    nearest = np.argmin(np.linalg.norm(inside - inside.mean(axis=0), axis=1))
    return low + inside[nearest] * (high - low), len(inside) / len(steps)


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
    def logarithmic(self) -> bool:
        """Should the axes be logarithmic? If rates differ much and none to be drawn is 0."""
        drawable = min(self.observed.min(), self.low.min()) > 0.0
        return drawable and bool(self.predicted.max() > LOGARITHM_FROM * self.predicted.min())

    def scaled(self, factor: float) -> Self:
        """The same rates in another unit."""
        return self.replace(**{name: factor * v for name, v in self.get_params().items()})


def calibration_data(found: Check) -> CalibrationData:
    """Observed rate = predicted rate · observed count / expected count; bounds alike.

    The expected counts are scaled to the number of events: totals agree.
    """
    bins = _checked(found).calibration
    # counts over expected counts are free of the bins' volumes, which are not stored
    rate = bins.rates / bins.expected
    return CalibrationData(bins.rates, rate * bins.observed, rate * bins.low, rate * bins.high)
