"""A rate by squares on a window, with its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from hplus._checks import Floats
from hplus.grids import integrals_within
from hplus.kernels import Kernel
from hplus.positivity import SumOfSquares
from hplus.positivity.exp import GridFunction
from hplus.rates.factor_posterior import FactorPosterior
from hplus.rates.fitted import MAX_LOG_FACTOR, LogBand
from hplus.rates.grid_rate import PROMISED_GAP
from hplus.rates.statistic import GRID_DOUBLINGS, finest_grid
from hplus.rates.window_features import WeightedEvents
from hplus.solvers.result import SolverResult
from hplus.windows import Box, Window

NORMAL_QUANTILES = ndtri((np.arange(101) + 0.5) / 101.0)
"""A normal variable as equally likely numbers."""

MAX_LOG_COUNT_SD = 5.0
"""Largest standard deviation of the log of a count: with more, nothing is known."""


@dataclass(frozen=True)
class SquaresRate:
    """A rate by squares on a window, scaled by `factor` to the events that were seen."""

    window: Window
    squares: SumOfSquares
    posterior: FactorPosterior
    factor: float
    result: SolverResult
    log_evidence: float
    kernel: Kernel
    penalty: float

    @classmethod
    def of(
        cls,
        events: WeightedEvents,
        squares: SumOfSquares,
        posterior: FactorPosterior,
        result: SolverResult,
        penalty: float,
        log_evidence: float = np.nan,
    ) -> SquaresRate:
        """Squares scaled to as many events as were seen."""
        total = _integral(squares, events.window, events.window)
        factor = events.total / events.exposure / total
        return cls(
            events.window,
            squares,
            posterior,
            factor,
            result,
            log_evidence,
            squares.kernel,
            penalty,
        )

    @property
    def promised_gap(self) -> float:
        """The relative gap of the objective that the fit promised."""
        return PROMISED_GAP

    @cached_property
    def function(self) -> SumOfSquares:
        """The rate."""
        return self.squares * self.factor

    @cached_property
    def on_grid(self) -> GridFunction:
        """The function that is sampled and has the highest point: the rate on a grid."""
        return _on_grid(self.function, self.window)

    def integral(self, region: Window | None = None) -> float:
        """∫ of the rate over the part of a region in the window, or over all of it."""
        return _integral(self.function, self.window, region or self.window)

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that contain the rate at each point with probability `level`, (n,) each."""
        low, high = self.posterior.interval(X, level)
        return self.factor * low, self.factor * high

    def log_band(self, X: Floats, level: float) -> LogBand:
        """The log rate and how far its bounds lie from it; -inf where the rate is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            center, low, high = (np.log(f) for f in (self.function(X), *self.interval(X, level)))
            distances = np.nan_to_num([center - low, high - center], nan=MAX_LOG_FACTOR)
        below, above = np.clip(distances, 0.0, MAX_LOG_FACTOR)
        return LogBand(center, below, above)

    def count_draws(self, region: Window) -> Floats:
        """Equally likely values of the expected count of a region, shape (k,)."""
        mean = self.integral(region)
        if not mean > 0.0:
            return np.zeros(len(NORMAL_QUANTILES))
        part = _common_box(self.window, region) or region
        sd = min(self.posterior.log_count_sd(part), MAX_LOG_COUNT_SD)
        return mean * np.exp(sd * NORMAL_QUANTILES)


def _integral(f: SumOfSquares, window: Window, region: Window) -> float:
    """∫f over the intersection of two windows: exact for boxes, otherwise on a grid."""
    common = _common_box(window, region)
    if common is not None:
        return f.integral(common)
    g = _on_grid(f, window)
    return float(np.sum(integrals_within(g.grid, region, window) * g.values))


def _common_box(left: Window, right: Window) -> Box | None:
    """The intersection of two boxes; None if it is empty or one of them is not a box."""
    a, b = left.box_bounds(), right.box_bounds()
    if a is None or b is None:
        return None
    low, high = np.maximum(a[0], b[0]), np.minimum(a[1], b[1])
    return Box(tuple(low.tolist()), tuple(high.tolist())) if np.all(low < high) else None


def _on_grid(f: SumOfSquares, window: Window) -> GridFunction:
    grid = finest_grid(window)
    for _ in range(GRID_DOUBLINGS[window.dimension] - 1):
        grid = grid.coarser()
    return GridFunction(window, grid, f(grid.nodes()).reshape(grid.shape))
