"""A rate by squares on a window, with its uncertainty: its factor as a normal variable."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.special import chndtrix, ndtri

from hplus._checks import Floats
from hplus._threads import one_thread_if_small
from hplus.grids import integrals_within
from hplus.kernels import Kernel
from hplus.kernels.integrals import product_integral
from hplus.positivity import SumOfSquares
from hplus.positivity.exp import GridFunction
from hplus.rates.bands import MAX_LOG_FACTOR, LogBand
from hplus.rates.binned import GRID_DOUBLINGS, finest_grid
from hplus.rates.grid_rate import PROMISED_GAP
from hplus.rates.window_features import Setting, WeightedEvents
from hplus.solvers.result import SolverResult
from hplus.windows import Box, Window

MAX_BAND_EVENTS = 1500
"""Error bands are computed from at most this many events, which stand for all."""

BAND_ROWS = 2000
"""Points whose deviations are computed at once."""

FAR_DEVIATIONS = 6.0
"""Standard deviations from zero at which the other sign of a normal g does not matter."""

NORMAL_QUANTILES = ndtri((np.arange(101) + 0.5) / 101.0)
"""A normal variable as equally likely numbers."""

MAX_LOG_COUNT_SD = 5.0
"""Largest standard deviation of the log of a count: with more, nothing is known."""


@dataclass(frozen=True)
class FactorPosterior:
    """The factor R of a rate as a normal variable around the best one (Laplace's approximation).

    Its precision is 2 D ⊗ I + Σ_i (φ_iφ_iᵀ) ⊗ (v_iv_iᵀ), v_i = 2√w_i Rᵀφ_i/f_i. With
    ψ(x) = (2D)^-½φ(x) = spreadᵀk(centers, x), the covariance of the numbers tr(δRᵀφ(x)uᵀ) is that
    of a Gaussian process with kernel (ψᵀψ')(uᵀu') observed at ψ_i, v_i with noise of variance 1.

    Shapes: spread (m, k), psi (s, k), v (s, r); root (s, s) is the observations' Cholesky factor.
    """

    function: SumOfSquares
    spread: Floats
    psi: Floats
    v: Floats
    root: Floats

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds between which f(X[i]) lies with probability `level`, shape (n,) each.

        With one column g² for a normal g; with more (√f ± z sd)², not below 0.
        """
        tail = 0.5 * (1.0 - level)
        f, sd = np.sqrt(self.function(X)), self.root_sd(X)
        if self.function.factor.shape[1] == 1:
            return square_quantile(f, sd, tail), square_quantile(f, sd, 1.0 - tail)
        z = -ndtri(tail)
        return np.maximum(f - z * sd, 0.0) ** 2, (f + z * sd) ** 2

    def root_sd(self, X: Floats) -> Floats:
        """The standard deviation of √f(X[i]), to first order, shape (n,)."""
        parts = np.array_split(X, max(1, len(X) // BAND_ROWS))
        return np.concatenate([self._root_sd(part) for part in parts])

    def log_count_sd(self, region: Window) -> float:
        """The standard deviation of log ∫_A f, to first order; infinite where f is 0."""
        f = self.function
        TC = product_integral(f.kernel, region, f.centers) @ f.factor
        count = float(np.sum(f.factor * TC))
        if not count > 0.0:
            return np.inf
        # ∇_R log ∫_A f = 2 T_A R/∫_A f
        Q = self.spread.T @ TC * (2.0 / count)
        cross = np.einsum("ij,ij->i", self.psi @ Q, self.v)
        return float(self._sd(np.array([np.sum(Q**2)]), cross[None])[0])

    def _root_sd(self, X: Floats) -> Floats:
        f = self.function
        psi, U = (f.kernel.dot(X, f.centers, C) for C in (self.spread, f.factor))
        # ∇_R √f = φ uᵀ/‖u‖, u = Rᵀφ
        U /= np.maximum(np.linalg.norm(U, axis=1, keepdims=True), 1e-300)
        return self._sd(np.einsum("ij,ij->i", psi, psi), (psi @ self.psi.T) * (U @ self.v.T))

    def _sd(self, prior: Floats, cross: Floats) -> Floats:
        known = solve_triangular(self.root, cross.T, lower=True) if len(self.root) else cross.T
        return np.sqrt(np.maximum(prior - np.einsum("ij,ij->j", known, known), 0.0))


def laplace(s: Setting, R: Floats, D: Floats, least: float, observed: Floats) -> FactorPosterior:
    """The posterior of precision 2 D ⊗ I + 4Σ_i observed_i (φ_iφ_iᵀ) ⊗ (u_iu_iᵀ)/f_i².

    Eigenvalues of D (m, m) are raised to `least` > 0, so that changes R → RQ with an orthogonal Q,
    which leave f as it is, have a precision too. `observed` (n,) are weights of the events, 0 for
    those that D already includes.
    """
    with one_thread_if_small(len(D)):
        eigenvalues, P = eigh(D)
        whitened = P / np.sqrt(2.0 * np.maximum(eigenvalues, least))
    rows = np.flatnonzero(observed)
    few = rows[np.random.default_rng(0).permutation(len(rows))[:MAX_BAND_EVENTS]]
    w = observed[few] * (observed.sum() / max(observed[few].sum(), 1e-300))
    psi, U = s.Phi[few] @ whitened, s.Phi[few] @ R
    v = U * (2.0 * np.sqrt(w) / np.einsum("ij,ij->i", U, U))[:, None]
    root = np.linalg.cholesky(np.eye(len(few)) + (psi @ psi.T) * (v @ v.T))
    return FactorPosterior(s.function(R), s.features.root @ whitened, psi, v, root)


def square_quantile(mean: Floats, sd: Floats, p: float) -> Floats:
    """The p-quantile of g² for g ~ N(mean, sd²), mean >= 0: noncentral χ² with one degree."""
    sd = np.maximum(sd, 1e-150)
    ratio = mean / sd
    near = sd**2 * chndtrix(p, 1.0, np.minimum(ratio, FAR_DEVIATIONS) ** 2)
    return np.where(ratio < FAR_DEVIATIONS, near, (mean + ndtri(p) * sd) ** 2)


@dataclass(frozen=True)
class SquaresRate:
    """A rate by squares on a window, scaled by `factor` to the number of events."""

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
        """Squares scaled to the number of events."""
        window, kernel = events.window, squares.kernel
        factor = events.total / events.exposure / _integral(squares, window, window)
        return cls(window, squares, posterior, factor, result, log_evidence, kernel, penalty)

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
