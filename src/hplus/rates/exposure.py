"""Exposure and covariates: what multiplies a rate, given as functions or arrays over a window.

The exposure is how long or how often each place was observed. Log rates depend linearly on
covariates, with coefficients from a Poisson regression on the nodes of a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import distance_transform_edt

from hplus._checks import Floats, as_floats, check_finite, check_positive
from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.rates.binned import BinnedStatistic
from hplus.rates.grid_rate import GridRate
from hplus.rates.levels import Level
from hplus.rates.torus import Covariance

OverWindow = Callable[[Floats], ArrayLike] | ArrayLike
"""A number, a function of points, or values on a regular grid over the window's bounding box."""

CovariatesGiven = OverWindow | Mapping[str, OverWindow]
"""One covariate, or several by name."""

MAX_UNEXPOSED = 1e-6
"""Share of the events that may lie where the exposure is 0: rounding at its edge."""

ONE_CELL = 1.8
"""Spacings within which nodes share a cell, in at most three dimensions."""

MAX_REGRESSION_STEPS, LAST_COEFFICIENT_STEP = 100, 1e-10
"""Newton steps at most, and the size of the last one."""

MAX_COEFFICIENT_STEP = 2.0
"""Largest change of a coefficient in one step."""


class Effects(NamedTuple):
    """Coefficients β (p,) of covariates, and the factor e^{βᵀc} of the rate at the nodes.

    The columns c (p, *nodes) have mean 0 and size 1 under the exposure; `sizes` are those of the
    covariates themselves.
    """

    names: tuple[str, ...]
    sizes: Floats
    columns: Floats
    values: Floats
    factor: Floats

    @property
    def coefficients(self) -> dict[str, float]:
        """β by name, per unit of each covariate."""
        return self._by_name(self.values)

    def errors(self, rate: GridRate, level: Level) -> dict[str, float]:
        """Standard errors of the coefficients, for the rate learned with `factor` as exposure."""
        field, grid = rate.function, rate.coarse
        logs, mass = np.log(field.values), field.grid.integrals(level.window)
        # how much the field varies over the window, as it was found
        variance = float(np.average((logs - np.average(logs, weights=mass)) ** 2, weights=mass))
        C = np.stack([on_grid(level.grid, column, grid) for column in self.columns])
        W = level.exposure * (level.total / level.exposure.sum())
        W = grid.bin(level.grid.nodes(), W.ravel())
        covariance = coefficient_covariance(C, W, rate.leader.covariance(grid), variance)
        return self._by_name(np.sqrt(np.diagonal(covariance)))

    def applied(self, rate: GridRate, level: Level) -> GridRate:
        """The rate e^{βᵀc + z} from the rate e^z."""
        f = rate.function
        values = f.values * on_grid(level.grid, self.factor, f.grid)
        return replace(rate, function=f.replace(values=values))

    def _by_name(self, numbers: Floats) -> dict[str, float]:
        """Numbers for each column, per unit of the covariate."""
        return dict(zip(self.names, (numbers / self.sizes).tolist(), strict=True))


class Exposed(NamedTuple):
    """Binned events with their exposure, and the effects of covariates, which multiply it.

    `exposure` is at the nodes, without the effects.
    """

    level: Level
    exposure: Floats
    effects: Effects | None

    def plain(self) -> tuple[GridFunction | None, Floats]:
        """The rate if events followed the covariates alone, up to a factor, and the exposure.

        A constant exposure is one number, of shape (); None if the rate is constant too.
        """
        window, grid = self.level.window, self.level.grid
        constant = np.ptp(self.exposure) == 0.0
        exposure = np.array(self.exposure.flat[0]) if constant else self.exposure
        if self.effects is None and constant:
            return None, exposure
        factor = np.ones(grid.shape) if self.effects is None else self.effects.factor
        return GridFunction(window, grid, factor), exposure


def exposed(
    statistic: BinnedStatistic, exposure: OverWindow, covariates: CovariatesGiven | None
) -> Exposed:
    """Binned events with their exposure, and the effects of covariates."""
    statistic, values = with_exposure(statistic, exposure)
    if covariates is None:
        return Exposed(Level.of(statistic, values), values, None)
    effects = fit_effects(covariates, statistic, values)
    return Exposed(Level.of(statistic, values * effects.factor), values, effects)


def with_exposure(
    statistic: BinnedStatistic, exposure: OverWindow
) -> tuple[BinnedStatistic, Floats]:
    """Events, and the exposure at each node: at least 0, and above 0 somewhere and at events.

    An event at the edge of the exposed area is binned on nodes on both sides of it; those with
    exposure 0 pass their share on to the nearest one inside.
    """
    grid = statistic.grid
    if not callable(exposure) and np.ndim(exposure) == 0:
        return statistic, np.full(grid.shape, check_positive("exposure", exposure))
    values = at_nodes("exposure", exposure, grid)
    check_exposures(values)
    unexposed = values <= 0.0
    apart, nearest = distance_transform_edt(unexposed, return_indices=True)
    events = statistic.counts.sum(axis=0)
    lost = float(events[apart > ONE_CELL].sum())
    if lost > MAX_UNEXPOSED * statistic.total:
        raise ValueError(
            f"exposure must be above 0 where events occurred, got 0 around {lost:.6g} of "
            f"{statistic.total:.6g} events: correct the exposure or drop them."
        )
    if not np.any(events[unexposed]):
        return statistic, values
    counts = np.where(unexposed, 0.0, statistic.counts)
    strays = np.nonzero(unexposed & (events > 0.0))
    for part, given in zip(counts, statistic.counts, strict=True):
        np.add.at(part, tuple(axis[strays] for axis in nearest), given[strays])
    return statistic.replace(counts=counts), values


def check_exposures(values: Floats) -> None:
    """An error unless the exposure is at least 0 everywhere and above 0 somewhere."""
    if np.any(values < 0.0) or not np.any(values > 0.0):
        raise ValueError(
            f"exposure must be at least 0 everywhere and above 0 somewhere, got values from "
            f"{values.min():.6g} to {values.max():.6g}."
        )


def at_nodes(name: str, given: OverWindow, grid: TensorGrid) -> Floats:
    """A function, or an array of values on a regular grid over the box, at the nodes of `grid`."""
    return values_at(name, given, (grid.low, grid.high), grid.nodes()).reshape(grid.shape)


def values_at(
    name: str, given: OverWindow, bounds: tuple[ArrayLike, ArrayLike], points: Floats
) -> Floats:
    """A function, or an array of values on a regular grid over a box, at points, shape (n,)."""
    if callable(given):
        values = check_finite(name, as_floats(name, given(points)))
        if values.shape != (len(points),):
            raise ValueError(
                f"{name} must give one number for each of the {len(points)} points it is called "
                f"with, got shape {values.shape}."
            )
        return values
    values = check_finite(name, as_floats(name, given))
    low, high = (tuple(np.asarray(end).tolist()) for end in bounds)
    if values.ndim != len(low) or min(values.shape) < 2:
        raise ValueError(
            f"{name} must be an array with {len(low)} axes of at least 2 values, the first "
            f"and last on the edges of the window, got shape {values.shape}."
        )
    return TensorGrid(low, high, values.shape).interpolate(values, points)


def fit_effects(given: CovariatesGiven, statistic: BinnedStatistic, exposure: Floats) -> Effects:
    """The coefficients of one covariate, or of several by name, by a Poisson regression."""
    grid = statistic.grid
    named = given if isinstance(given, Mapping) else {"covariate": given}
    if not named:
        raise ValueError("covariates must name at least one covariate, got {}: use None for none.")
    mass = grid.integrals(statistic.window) * exposure
    shares, columns, sizes = mass / mass.sum(), [], []
    for name, one in named.items():
        values = at_nodes(f"covariate {name!r}", one, grid)
        values = values - np.sum(shares * values)
        size = float(np.sqrt(np.sum(shares * values**2)))
        if not size > 1e-12 * (1.0 + np.abs(values).max()):
            raise ValueError(f"covariate {name!r} must vary over the window, got a constant.")
        columns.append(values / size)
        sizes.append(size)
    C = np.stack(columns)
    beta = poisson_regression(C, statistic.counts.sum(axis=0), mass)
    factor = np.exp((beta @ C.reshape(len(C), -1)).reshape(mass.shape))
    return Effects(tuple(named), np.array(sizes), C, beta, factor)


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

    A = CᵀWC, C with a column of ones [math, Eq. 4.10]. K is scaled down to the `variance` that the
    field was found to have, if that is less.
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


def on_grid(grid: TensorGrid, values: Floats, other: TensorGrid) -> Floats:
    """Values at the nodes of a grid, at those of another one."""
    return grid.interpolate(values, other.nodes()).reshape(other.shape)
