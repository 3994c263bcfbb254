"""A rate on a grid with its uncertainty: the result of a fit of binned events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from hplus._checks import Floats, Reals
from hplus.grids import TensorGrid, integrals_near, restricted
from hplus.positivity.exp import GridFunction
from hplus.rates.bands import MAX_LOG_FACTOR, LogBand
from hplus.rates.prior import Mixture, Prior, leading
from hplus.solvers.result import SolverResult
from hplus.windows import Window

PROMISED_GAP, LARGE_GRID, LARGE_GRID_GAP = 1e-6, 50_000, 1e-4
"""The relative gap that is promised; nodes of a large grid, and the gap that is promised there."""


def promised_gap(nodes: int) -> float:
    """The relative gap that a fit on this many nodes promises.

    On a large grid it is wider, as the last digits would take minutes; it is still a hundredth of
    how much the rate moves when such a grid is refined.
    """
    return PROMISED_GAP if nodes <= LARGE_GRID else LARGE_GRID_GAP


@dataclass(frozen=True)
class GridRate:
    """The rate, and on a coarser grid the distribution of log(true rate / rate).

    There it has the mean `shift` and the standard deviation `spread` at each node, and `draws`
    (k, *grid) are draws of it. `mixture` holds the priors with their weights.
    """

    function: GridFunction
    coarse: TensorGrid
    shift: Floats
    spread: Floats
    draws: Reals
    mixture: Mixture
    result: SolverResult
    log_evidence: float
    quadrature_error: float

    @property
    def on_grid(self) -> GridFunction:
        """The function that is sampled and has the highest point: the rate itself."""
        return self.function

    @property
    def promised_gap(self) -> float:
        """The relative gap of the objective that the fit promised."""
        return promised_gap(self.function.grid.size)

    @property
    def finest_sides(self) -> Floats:
        """The sides of the smallest cells that the rate tells apart, (d,): those of the grid."""
        return self.function.grid.spacing

    @property
    def leader(self) -> Prior:
        """The prior of the largest weight."""
        return leading(self.mixture)

    def integral(self) -> float:
        """∫ of the rate over the window."""
        return self.function.integral()

    def integrals(self, regions: Sequence[Window]) -> Floats:
        """∫ of the rate over the part of each region in the window, shape (r,)."""
        return self.function.integrals(regions)

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that contain the rate at each point with probability `level`, (n,) each."""
        rate, (shift, reach) = self.function(X), self._error(X, level)
        low, high = (np.clip(shift + x, -MAX_LOG_FACTOR, MAX_LOG_FACTOR) for x in (-reach, reach))
        return rate * np.exp(low), rate * np.exp(high)

    def candidates(self) -> Floats:
        """The point with the highest rate, (1, d)."""
        return self.function.peak()[0][None]

    def without(self, X: Floats) -> Floats:
        """The rate at each point if an event there had not been learned from, (n,).

        It is the harmonic mean: an event multiplies the posterior by the rate there [gelfand1994].
        """
        shift, spread = self.coarse.interpolate(self.shift, X), self.deviations(X)
        logs = np.clip(shift - 0.5 * spread**2, -MAX_LOG_FACTOR, MAX_LOG_FACTOR)
        return self.function(X) * np.exp(logs)

    def rate_draws(self, X: Floats, k: int) -> Floats:
        """k equally likely values of the rate at each point, (n, k)."""
        shift, spread = self.coarse.interpolate(self.shift, X), self.deviations(X)
        z = ndtri((np.arange(k) + 0.5) / k)
        logs = np.clip(shift[:, None] + spread[:, None] * z, -MAX_LOG_FACTOR, MAX_LOG_FACTOR)
        return self.function(X)[:, None] * np.exp(logs)

    def deviations(self, X: Floats) -> Floats:
        """The standard deviation of the log rate at each point, (n,)."""
        return self.coarse.interpolate(self.spread, X)

    def log_band(self, X: Floats, level: float) -> LogBand:
        """The same as the middle of the log rate and the distances of its bounds."""
        shift, reach = self._error(X, level)
        return LogBand(np.log(self.function(X)) + shift, reach, reach)

    def _error(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """The mean of log(true rate / rate) at each point, and how far bounds lie from it."""
        shift, spread = (self.coarse.interpolate(v, X) for v in (self.shift, self.spread))
        return shift, float(ndtri(0.5 + 0.5 * level)) * spread

    def count_draws(self, regions: Sequence[Window]) -> Floats:
        """Draws of the expected count of each region, shape (r, k)."""
        f, coarse = self.function, np.subtract(self.coarse.shape, 1)
        ratios = (np.subtract(f.grid.shape, 1) // coarse).tolist()
        found = np.empty((len(regions), len(self.draws)))
        for i, (where, hats) in enumerate(integrals_near(f.grid, regions, f.window, ratios)):
            mass = hats * f.values[where]
            for axis, ratio in enumerate(ratios):
                mass = np.moveaxis(restricted(np.moveaxis(mass, axis, 0), ratio), 0, axis)
            near = tuple(
                slice(s.start // r, (s.stop - 1) // r + 1)
                for s, r in zip(where, ratios, strict=True)
            )
            found[i] = mass.ravel() @ self.draw_factors[near].reshape(-1, len(self.draws))
        return found

    @cached_property
    def draw_factors(self) -> Floats:
        """Draws of true rate / rate at each node of the coarser grid, (*grid, k)."""
        draws = np.moveaxis(self.draws, 0, -1).astype(float)
        return np.exp(np.clip(draws, -MAX_LOG_FACTOR, MAX_LOG_FACTOR))
