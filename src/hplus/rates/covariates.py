"""Covariates: what log rates depend on linearly, by a Poisson regression on the nodes of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.grids import TensorGrid
from hplus.rates.exposure import OverWindow, at_nodes, with_exposure
from hplus.rates.grid_rate import GridRate
from hplus.rates.levels import Level
from hplus.rates.statistic import Statistic
from hplus.rates.torus import Covariance

CovariatesGiven = OverWindow | Mapping[str, OverWindow]
"""One covariate, or several by name."""

MAX_REGRESSION_STEPS, LAST_COEFFICIENT_STEP = 100, 1e-10
"""Newton steps at most, and the size of the last one."""

MAX_COEFFICIENT_STEP = 2.0
"""Largest change of a coefficient in one step."""


class Covariates(NamedTuple):
    """Columns (p, *nodes) of mean 0 and size 1 under the exposure, their names and sizes."""

    columns: Floats
    names: tuple[str, ...]
    sizes: Floats

    def by_name(self, numbers: Floats) -> dict[str, float]:
        """Numbers for each column, per unit of the covariate."""
        return dict(zip(self.names, (numbers / self.sizes).tolist(), strict=True))


class Effects(NamedTuple):
    """Coefficients β (p,) of covariates c, and the factor e^{βᵀc} of the rate at the nodes."""

    covariates: Covariates
    values: Floats
    factor: Floats

    @property
    def coefficients(self) -> dict[str, float]:
        """β by name, per unit of each covariate."""
        return self.covariates.by_name(self.values)

    def errors(self, rate: GridRate, level: Level) -> dict[str, float]:
        """Standard errors of the coefficients, for the rate learned with `factor` as exposure."""
        field, grid = rate.function, rate.coarse
        logs, mass = np.log(field.values), field.grid.integrals(level.window)
        # how much the field varies over the window, as it was found
        variance = float(np.average((logs - np.average(logs, weights=mass)) ** 2, weights=mass))
        C = np.stack([_onto(grid, column, level.grid) for column in self.covariates.columns])
        W = level.exposure * (level.total / level.exposure.sum())
        W = grid.bin(level.grid.nodes(), W.ravel())
        covariance = coefficient_covariance(C, W, rate.leader.covariance(grid), variance)
        return self.covariates.by_name(np.sqrt(np.diagonal(covariance)))

    def applied(self, rate: GridRate, level: Level) -> GridRate:
        """The rate e^{βᵀc + z} from the rate e^z."""
        f = rate.function
        values = f.values * _onto(f.grid, self.factor, level.grid)
        return replace(rate, function=f.replace(values=values))


def exposed(
    statistic: Statistic, exposure: OverWindow, covariates: CovariatesGiven | None
) -> tuple[Level, Effects | None]:
    """Binned events with their exposure, and the effects of covariates, which multiply it."""
    statistic, values = with_exposure(statistic, exposure)
    if covariates is None:
        return Level.of(statistic, values), None
    effects = fit_effects(covariates, statistic, values)
    return Level.of(statistic, values * effects.factor), effects


def fit_effects(given: CovariatesGiven, statistic: Statistic, exposure: Floats) -> Effects:
    """The coefficients of covariates by a Poisson regression of the events."""
    found = covariates_at_nodes(given, statistic, exposure)
    C, mass = found.columns, statistic.grid.integrals(statistic.window) * exposure
    beta = poisson_regression(C, statistic.counts.sum(axis=0), mass)
    factor = np.exp((beta @ C.reshape(len(C), -1)).reshape(mass.shape))
    return Effects(found, beta, factor)


def covariates_at_nodes(
    given: CovariatesGiven, statistic: Statistic, exposure: Floats
) -> Covariates:
    """One covariate, or several by name, none of them constant."""
    grid = statistic.grid
    named = given if isinstance(given, Mapping) else {"covariate": given}
    if not named:
        raise ValueError("covariates must name at least one covariate, got {}: use None for none.")
    mass = grid.integrals(statistic.window) * exposure
    mass = mass / mass.sum()
    columns, sizes = [], []
    for name, one in named.items():
        values = at_nodes(f"covariate {name!r}", one, grid)
        values = values - np.sum(mass * values)
        size = float(np.sqrt(np.sum(mass * values**2)))
        if not size > 1e-12 * (1.0 + np.abs(values).max()):
            raise ValueError(f"covariate {name!r} must vary over the window, got a constant.")
        columns.append(values / size)
        sizes.append(size)
    return Covariates(np.stack(columns), tuple(named), np.array(sizes))


def poisson_regression(C: Floats, s: Floats, nu: Floats) -> Floats:
    """β (p,) with the smallest Σ ν e^{b + βᵀC} - s(b + βᵀC) over β and b.

    For covariates C (p, *grid) of mean 0 and size 1, counts s and exposures ν of the grid's shape.
    """
    C = C.reshape(len(C), -1)
    X = np.vstack([np.ones(C.shape[1]), C])
    s, nu = s.ravel(), nu.ravel()
    beta = np.zeros(len(X))
    beta[0] = np.log(s.sum() / nu.sum())
    for _ in range(MAX_REGRESSION_STEPS):
        W = nu * np.exp(beta @ X)
        step = np.linalg.lstsq((X * W) @ X.T, X @ (s - W), rcond=1e-12)[0]
        step *= min(1.0, MAX_COEFFICIENT_STEP / max(float(np.abs(step).max()), 1e-300))
        beta = beta + step
        if np.abs(step).max() < LAST_COEFFICIENT_STEP:
            break
    return beta[1:]


def coefficient_covariance(
    C: Floats, W: Floats, K: Covariance, variance: float | None = None
) -> Floats:
    """The covariance of β where counts W (*grid) vary with a field: A⁻¹(A + CᵀWKWC)A⁻¹, (p, p).

    A = CᵀWC, C with a column of ones [math, Eq. 4.10]. K is scaled
    down to the `variance` that the field was found to have, if that is less.
    """
    X = np.concatenate([np.ones((1, *W.shape)), C.reshape(len(C), *W.shape)])
    flat = X.reshape(len(X), -1)
    WX = (X * W).reshape(len(X), -1)
    A = WX @ flat.T
    spread = K.apply(X * W).reshape(len(X), -1)
    inverse = np.linalg.pinv(A)
    share = 1.0
    if variance is not None:
        first = np.zeros((1, *W.shape))
        first.flat[0] = 1.0
        share = min(1.0, variance / float(K.apply(first).flat[0]))
    return (inverse @ (A + share * (WX @ spread.T)) @ inverse)[1:, 1:]


def _onto(coarse: TensorGrid, values: Floats, grid: TensorGrid) -> Floats:
    """Values at the nodes of a grid, at those of a coarser one."""
    return grid.interpolate(values, coarse.nodes()).reshape(coarse.shape)
