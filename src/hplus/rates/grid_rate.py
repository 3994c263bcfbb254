"""A rate on a grid with its uncertainty: the result of a fit of binned events."""

from __future__ import annotations

from dataclasses import dataclass

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
    def leader(self) -> Prior:
        """The prior of the largest weight."""
        return leading(self.mixture)

    def integral(self, region: Window | None = None) -> float:
        """∫ of the rate over the part of a region in the window, or over all of it."""
        return self.function.integral(region)

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that contain the rate at each point with probability `level`, (n,) each."""
        rate, (shift, reach) = self.function(X), self._error(X, level)
        low, high = (np.clip(shift + x, -MAX_LOG_FACTOR, MAX_LOG_FACTOR) for x in (-reach, reach))
        return rate * np.exp(low), rate * np.exp(high)

    def log_band(self, X: Floats, level: float) -> LogBand:
        """The same as the middle of the log rate and the distances of its bounds."""
        shift, reach = self._error(X, level)
        return LogBand(np.log(self.function(X)) + shift, reach, reach)

    def _error(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """The mean of log(true rate / rate) at each point, and how far bounds lie from it."""
        shift, spread = (self.coarse.interpolate(v, X) for v in (self.shift, self.spread))
        return shift, float(ndtri(0.5 + 0.5 * level)) * spread

    def count_draws(self, region: Window) -> Floats:
        """Draws of the expected count of a region, shape (k,)."""
        fine, coarse = self.function.grid.shape, self.coarse.shape
        ratios = tuple((n - 1) // (m - 1) for n, m in zip(fine, coarse, strict=True))
        where, hats = integrals_near(self.function.grid, region, self.function.window, ratios)
        mass = hats * self.function.values[where]
        for axis, ratio in enumerate(ratios):
            mass = np.moveaxis(restricted(np.moveaxis(mass, axis, 0), ratio), 0, axis)
        near = (
            slice(s.start // r, (s.stop - 1) // r + 1) for s, r in zip(where, ratios, strict=True)
        )
        draws = np.clip(self.draws[:, *near].astype(float), -MAX_LOG_FACTOR, MAX_LOG_FACTOR)
        return np.exp(draws).reshape(len(draws), -1) @ mass.ravel()
