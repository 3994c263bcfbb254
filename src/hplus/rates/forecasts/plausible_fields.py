"""Which scales and deviations of the fields of a log rate are plausible, before any count is seen.

A point (7,) is: log scale and log deviation of a smooth, a slow and a fast field, and the bend. The
deviation of the smooth field is that over its scale: how fast a trend rises says nothing about how
long it lasts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.rates.forecasts.log_rate import Fields

LEAST_DEVIATION, MOST_DEVIATION = 0.0005, 2.0
"""Deviations of the fields of a log rate."""

TAIL_FREEDOM = 3.0
"""Log deviations of the slow and the fast field have Student's distribution: large ones remain."""

USUAL_BEND, BEND_SPREAD = -3.0, 2.5
LEAST_BEND, MOST_BEND = -6.0, 5.0
"""How a sum of fields becomes a rate: from a product of factors to a sum of terms."""

STRAIGHTNESS = 64.0
"""The usual scale of the smooth field, in observation periods: how long a trend goes on."""

NEW_SHARE = 0.25
"""The usual scale of a slow field that changes from period to period, in periods."""


class Plausible(NamedTuple):
    """Centers, spreads and bounds of points, (7,) each."""

    center: Floats
    spread: Floats
    low: Floats
    high: Floats

    def log_density(self, point: Floats) -> float:
        """The log density of a point, but for a constant."""
        x = (point - self.center) / self.spread
        k, tails = TAIL_FREEDOM, x[[3, 5]]
        x[[3, 5]] = 0.0
        return -0.5 * float(x @ x + (k + 1.0) * np.log1p(tails**2 / k).sum())


def plausible(block: float, span: float) -> Plausible:
    """What is plausible for blocks of this length in an observation period of this span."""
    middle, trend = np.sqrt(8.0 * block * span), STRAIGHTNESS * span
    s, S, fast = LEAST_DEVIATION, MOST_DEVIATION, max(16.0 * block, 0.05 * span)
    center = np.log([trend, 0.0025 / span, middle, 0.005, 2.0 * block, 0.01])
    low = np.log([0.2 * span, 0.25 * s / span, 2.0 * block, s, 0.25 * block, s])
    high = np.log([8.0 * trend, 2.0 * S / span, 3.0 * span, S, fast, S])
    return Plausible(
        np.append(center, USUAL_BEND),
        np.array([1.5, 2.0, 1.2, 2.0, 1.0, 2.0, BEND_SPREAD]),
        np.append(low, LEAST_BEND),
        np.append(high, MOST_BEND),
    )


def plausible_in_steps(prior: Plausible, period: float) -> Plausible:
    """What is plausible if the slow field is constant in each period: the next is nearly new."""
    center, low = prior.center.copy(), prior.low.copy()
    center[2], low[2] = np.log(NEW_SHARE * period), np.log(0.4 * NEW_SHARE * period)
    return prior._replace(center=center, low=low)


def as_fields(point: Floats) -> Fields:
    """The fields of a point (7,)."""
    h, rise, h1, s1, h2, s2 = np.exp(point[:6]).tolist()
    return Fields((h, h * rise), (h1, s1), (h2, s2), float(point[6]))
