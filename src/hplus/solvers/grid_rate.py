"""A rate on a grid and how sure it is: what a fit of binned events gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, pdtr

from hplus._checks import Floats
from hplus.grids import TensorGrid, integrals_within
from hplus.positivity.exp import GridFunction
from hplus.solvers.fields import Given, Texture
from hplus.solvers.result import SolverResult
from hplus.windows import Window

FARTHEST = 100.0
"""Log of the factor by which a rate may be off: where it is more, nothing is known."""


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
    draws: Any
    mixture: tuple[tuple[float, Texture | Given], ...]
    result: SolverResult
    log_evidence: float
    quadrature_error: float

    @property
    def on_grid(self) -> GridFunction:
        """The rate at the nodes of a grid, for samples and the highest point: itself."""
        return self.function

    @property
    def leader(self) -> Texture | Given:
        """The prior of the largest weight."""
        return max(self.mixture, key=lambda part: part[0])[1]

    def integral(self, region: Window | None = None) -> float:
        """∫ of the rate over the part of a region in the window, or over all of it."""
        return self.function.integral(region)

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that hold the rate at each point with probability `level`, (n,) each."""
        rate = self.function(X)
        shift, spread = (self.coarse.interpolate(v, X) for v in (self.shift, self.spread))
        reach = float(ndtri(0.5 + 0.5 * level)) * spread
        low, high = (np.clip(shift + x, -FARTHEST, FARTHEST) for x in (-reach, reach))
        return rate * np.exp(low), rate * np.exp(high)

    def count_draws(self, region: Window) -> Floats:
        """Draws of the expected count of a region, shape (k,)."""
        grid = self.function.grid
        mass = integrals_within(grid, region, self.function.window) * self.function.values
        while grid.shape != self.coarse.shape:
            grid, mass = grid.coarser(), grid.restrict(mass)
        k = len(self.draws)
        draws = np.clip(self.draws.reshape(k, -1).astype(float), -FARTHEST, FARTHEST)
        return np.exp(draws) @ mass.ravel()


def mixed_poisson_quantile(means: Floats, p: float) -> float:
    """The smallest count k with P(N <= k) >= p for N Poisson with one of the means (s,)."""
    low, high = -1.0, float(np.ceil(np.max(means) + 12.0 * np.sqrt(np.max(means)) + 30.0))
    while high - low > 1.0:
        middle = np.floor((low + high) / 2.0)
        if np.mean(pdtr(middle, means)) >= p:
            high = middle
        else:
            low = middle
    return high
