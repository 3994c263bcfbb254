"""Error bands of rates by squares: their factor as a normal variable around the best one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.special import chndtrix, ndtri

from hplus._checks import Floats, check_fraction
from hplus._threads import one_thread_if_small
from hplus.kernels.integrals import product_integral
from hplus.positivity.sos import SumOfSquares
from hplus.rates.window_features import Setting
from hplus.windows import Window

MAX_BAND_EVENTS = 1500
"""Error bands are computed from at most this many events, which stand for all."""

BAND_ROWS = 2000
"""Points whose deviations are computed at once."""

FAR_DEVIATIONS = 6.0
"""Standard deviations from zero at which the other sign of a normal g does not matter."""


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
        tail = 0.5 * (1.0 - check_fraction("level", level))
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
        seen = np.einsum("ij,ij->i", self.psi @ Q, self.v)
        return float(self._sd(np.array([np.sum(Q**2)]), seen[None])[0])

    def _root_sd(self, X: Floats) -> Floats:
        f = self.function
        psi, U = (f.kernel.dot(X, f.centers, C) for C in (self.spread, f.factor))
        # ∇_R √f = φ uᵀ/‖u‖, u = Rᵀφ
        U /= np.maximum(np.linalg.norm(U, axis=1, keepdims=True), 1e-300)
        return self._sd(np.einsum("ij,ij->i", psi, psi), (psi @ self.psi.T) * (U @ self.v.T))

    def _sd(self, prior: Floats, seen: Floats) -> Floats:
        known = solve_triangular(self.root, seen.T, lower=True) if len(self.root) else seen.T
        return np.sqrt(np.maximum(prior - np.einsum("ij,ij->j", known, known), 0.0))


def laplace(s: Setting, R: Floats, D: Floats, least: float, observed: Floats) -> FactorPosterior:
    """The posterior of precision 2 D ⊗ I + 4Σ_i observed_i (φ_iφ_iᵀ) ⊗ (u_iu_iᵀ)/f_i².

    Eigenvalues of D (m, m) are raised to `least` > 0, so that changes R → RQ with an orthogonal Q,
    which leave f as it is, have a precision too. `observed` (n,) are weights of the events, 0 for
    those that D has already.
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
