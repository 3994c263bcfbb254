"""The interface of every fitted rate, whatever its model."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import pdtr

from hplus._checks import Floats
from hplus.positivity.exp import GridFunction
from hplus.solvers.result import SolverResult
from hplus.windows import Window

MAX_LOG_FACTOR = 100.0
"""Log of the factor by which a rate may be off: where it is more, nothing is known."""


class LogBand(NamedTuple):
    """The center of a log rate, and how far its bounds lie below and above it, shape (n,) each."""

    center: Floats
    below: Floats
    above: Floats

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The bounds of the rate."""
        return np.exp(self.center - self.below), np.exp(self.center + self.above)

    def inverse(self) -> LogBand:
        """The band of 1/rate."""
        return LogBand(-self.center, self.above, self.below)

    def times(self, other: LogBand) -> LogBand:
        """The band of a product of independent rates: distances add by the root of their squares.

        The center is NaN for 0 times infinity.
        """
        below, above = (
            np.minimum(np.hypot(a, b), MAX_LOG_FACTOR)
            for a, b in ((self.below, other.below), (self.above, other.above))
        )
        with np.errstate(invalid="ignore"):
            return LogBand(self.center + other.center, below, above)


class OnGrid(Protocol):
    """A rate that can be sampled and searched for its highest point."""

    def sample(self, n: int, random_state: np.random.RandomState) -> Floats:
        """n independent points with density λ/∫λ, shape (n, d)."""

    def peak(self) -> tuple[Floats, float]:
        """The point with the highest rate, shape (d,), and the rate there."""


class FittedRate(Protocol):
    """A rate of events on a window, with its uncertainty."""

    @property
    def function(self) -> Callable[[Floats], Floats]:
        """The rate at points (n, d), shape (n,)."""

    @property
    def on_grid(self) -> OnGrid:
        """The rate as a function that can be sampled and has a highest point."""

    @property
    def result(self) -> SolverResult:
        """How well the fit was solved."""

    def integral(self, region: Window | None = None) -> float:
        """∫ of the rate over the part of a region in the window, or over all of it."""

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that contain the rate at each point with probability `level`, (n,) each."""

    def log_band(self, X: Floats, level: float) -> LogBand:
        """The same on the log scale: a center, and the distances of the bounds from it."""

    def count_draws(self, region: Window) -> Floats:
        """Equally likely values of the expected count of a region, shape (k,)."""


class GriddedRate(FittedRate, Protocol):
    """A rate that is known at the nodes of a grid over the whole window."""

    @property
    def on_grid(self) -> GridFunction:
        """The rate on the grid."""


def mixed_poisson_quantile(means: Floats, p: float) -> Floats:
    """The smallest counts k with P(N <= k) >= p for N Poisson with one of the means (..., s)."""
    most = np.max(means, axis=-1)
    low, high = np.full(most.shape, -1.0), np.ceil(most + 12.0 * np.sqrt(most) + 30.0)
    while np.any(high - low > np.maximum(np.spacing(high), 1.0)):
        middle = np.maximum(np.floor((low + high) / 2.0), 0.0)
        enough = np.mean(pdtr(middle[..., None], means), axis=-1) >= p
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return high
