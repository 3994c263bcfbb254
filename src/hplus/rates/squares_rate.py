"""What `Intensity` and `Density` learn: a rate by the road that `model` names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.utils import check_random_state

from hplus._checks import Floats, check_memory
from hplus.grids import TensorGrid, integrals_within
from hplus.kernels import Kernel
from hplus.positivity import SumOfSquares
from hplus.positivity.exp import GridFunction
from hplus.rates.covariates import Regression, coefficient_covariance, poisson_regression
from hplus.rates.prior import Field, Given, Texture
from hplus.rates.grid_rate import FARTHEST, GAP, GridRate, LogBand
from hplus.rates.levels import Level
from hplus.rates.window_features import FactorPosterior
from hplus.solvers.result import SolverResult
from hplus.rates.square_rate import learn_sos_rate, learn_square_rate, mean_square
from hplus.rates.statistic import DOUBLINGS, Statistic, finest_grid
from hplus.storage import storable
from hplus.rates.selection import Mixture, learn_priors
from hplus.rates.log_gaussian import learn_rate
from hplus.windows import Box, Window

MODELS = ("exp", "sos", "square")

CRITERIA = ("auto", "evidence", "thinning")

QUANTILES = ndtri((np.arange(101) + 0.5) / 101.0)
"""A normal variable as equally likely numbers."""

WIDEST = 5.0
"""Largest standard deviation of the log of a count: with more, nothing is known."""

WORK_ARRAYS = 40.0
"""Arrays of the size of the finest grid that a fit holds at once, at most."""

for registered in (Field, Texture, Given, GridRate, FactorPosterior, Statistic):
    storable(registered)


@storable
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

    @property
    def promised_gap(self) -> float:
        """The relative gap of the objective that the fit promised."""
        return GAP

    @cached_property
    def function(self) -> SumOfSquares:
        """The rate."""
        return self.squares * self.factor

    @cached_property
    def on_grid(self) -> GridFunction:
        """The rate at the nodes of a grid, for samples and the highest point."""
        return _on_grid(self.function, self.window)

    def integral(self, region: Window | None = None) -> float:
        """∫ of the rate over the part of a region in the window, or over all of it."""
        return _integral(self.function, self.window, region or self.window)

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that hold the rate at each point with probability `level`, (n,) each."""
        low, high = self.posterior.interval(X, level)
        return self.factor * low, self.factor * high

    def log_band(self, X: Floats, level: float) -> LogBand:
        """The log rate and how far its bounds lie from it; -inf where the rate is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            center, low, high = (np.log(f) for f in (self.function(X), *self.interval(X, level)))
            distances = np.nan_to_num([center - low, high - center], nan=FARTHEST)
        below, above = np.clip(distances, 0.0, FARTHEST)
        return LogBand(center, below, above)

    def count_draws(self, region: Window) -> Floats:
        """Equally likely values of the expected count of a region, shape (k,)."""
        mean = self.integral(region)
        if not mean > 0.0:
            return np.zeros(len(QUANTILES))
        part = _common_box(self.window, region) or region
        return mean * np.exp(min(self.posterior.log_count_sd(part), WIDEST) * QUANTILES)


class Wanted(NamedTuple):
    """A kernel divided by a penalty, NaN to learn it; priors with weights; or None to learn all.

    `criterion` says by what.
    """

    prior: Given | Mixture | None
    criterion: str


def learn_exp(statistic: Statistic, exposure: Floats, wanted: Wanted, seed: Any) -> GridRate:
    """The rate e^z on a grid; `exposure` are values at its nodes."""
    level = _binned(statistic, exposure)
    state = check_random_state(seed).randint(2**31 - 1)
    return learn_rate(statistic.window, level, wanted.prior, wanted.criterion, state)


def learn_mixture(statistic: Statistic, exposure: Floats, criterion: str) -> Mixture:
    """The priors that suit events, with their weights."""
    return learn_priors(statistic.window, _binned(statistic, exposure), criterion)


def _binned(statistic: Statistic, exposure: Floats) -> Level:
    """Events on the finest grid, refused if a fit on it would not fit in memory."""
    grid = statistic.grid
    need = 8.0 * WORK_ARRAYS * grid.size * {1: 2.0, 2: 2.25, 3: 2.75}[grid.dimension]
    check_memory(need, f"A fit on {grid.size} nodes", "fit fewer axes at a time")
    return Level(grid, statistic.counts, grid.integrals(statistic.window) * exposure)


def explained(statistic: Statistic, exposure: Floats, columns: Floats) -> Regression:
    """What covariates (p, *nodes) explain of the events."""
    mass = statistic.grid.integrals(statistic.window) * exposure
    return poisson_regression(columns, statistic.counts.sum(axis=0), mass)


def learn_with_covariates(
    statistic: Statistic, exposure: Floats, columns: Floats, wanted: Wanted, seed: Any
) -> tuple[GridRate, Floats, Floats]:
    """The rate e^{βᵀc + z}, β (p,) and its covariance, for covariates c (p, *nodes).

    What the covariates explain is exposure to the field z.
    """
    grid, found = statistic.grid, explained(statistic, exposure, columns)
    factor = np.exp(found.linear)
    rate = learn_exp(statistic, exposure * factor, wanted, seed)
    values = rate.function.values * _onto(rate.function.grid, factor, grid)
    whole = replace(rate, function=rate.function.replace(values=values))
    W = grid.integrals(statistic.window) * exposure * factor
    W *= statistic.total / W.sum()
    # how much the field varies over the window, as it was found
    field = np.log(rate.function.values)
    mass = rate.function.grid.integrals(statistic.window)
    mean = np.average(field, weights=mass)
    variance = float(np.average((field - mean) ** 2, weights=mass))
    coarse = rate.coarse
    C = np.stack([_onto(coarse, column, grid) for column in columns])
    W = coarse.bin(grid.nodes(), W.ravel())
    errors = coefficient_covariance(C, W, rate.leader.prior(coarse), variance)
    return whole, found.coefficients, errors


def _onto(coarse: TensorGrid, values: Floats, grid: TensorGrid) -> Floats:
    """Values at the nodes of a grid, at those of a coarser one."""
    return grid.interpolate(values, coarse.nodes()).reshape(coarse.shape)


def learn_squares(
    model: str,
    X: Floats,
    weights: Floats,
    window: Window,
    exposure: float,
    kernel: Kernel | None,
    penalty: float | None,
    seed: Any,
) -> SquaresRate:
    """The rate by a sum of squares, or by the mean of one square."""
    if model == "square":
        found = learn_square_rate(X, weights, window, exposure, kernel, penalty)
        squares = mean_square(found.posterior)
    else:
        found = learn_sos_rate(X, weights, window, exposure, kernel, penalty, seed)
        squares = found.function
    factor = float(weights.sum()) / exposure / _integral(squares, window, window)
    return SquaresRate(
        window,
        squares,
        found.posterior,
        factor,
        found.result,
        found.log_evidence,
        found.kernel,
        found.penalty,
    )


def _integral(f: SumOfSquares, window: Window, region: Window) -> float:
    """∫f over two windows' common part: exact for boxes, on the nodes of a grid elsewhere."""
    common = _common_box(window, region)
    if common is not None:
        return f.integral(common)
    g = _on_grid(f, window)
    return float(np.sum(integrals_within(g.grid, region, window) * g.values))


def _common_box(left: Window, right: Window) -> Box | None:
    """The box that two boxes share; None if they share none, or are no boxes."""
    a, b = left.box_bounds(), right.box_bounds()
    if a is None or b is None:
        return None
    low, high = np.maximum(a[0], b[0]), np.minimum(a[1], b[1])
    return Box(tuple(low.tolist()), tuple(high.tolist())) if np.all(low < high) else None


def _on_grid(f: SumOfSquares, window: Window) -> GridFunction:
    grid = finest_grid(window)
    for _ in range(DOUBLINGS[window.dimension] - 1):
        grid = grid.coarser()
    return GridFunction(window, grid, f(grid.nodes()).reshape(grid.shape))
