"""Linear algebra of kernel machines, dense or by features.

Kernel ridge and the interior-point method reduce to products with K and to the linear system
(K + diag(d)) x = r for various diagonals d > 0, Newton's method to a weighted ridge system. A
function is represented by its weights: the coefficients c themselves, or v = Φᵀc with features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpstrf

from hplus._checks import Floats
from hplus._threads import one_thread_if_small

Solve = Callable[[Floats], Floats]

NEGLIGIBLE_CURVATURE = 1e-12
"""Curvatures below this share of the largest count as 0."""


class Gram(ABC):
    """A Gram matrix K of n points."""

    @abstractmethod
    def dot(self, c: Floats) -> Floats:
        """K c, for c of shape (n,) or (n, outputs)."""

    @abstractmethod
    def factor(self, d: Floats) -> Solve:
        """The map r ↦ x with (K + diag(d)) x = r; x = 0 where d = ∞."""

    @abstractmethod
    def solve_once(self, d: Floats, r: Floats) -> Floats:
        """x with (K + diag(d)) x = r, d finite; may overwrite K, so this must be the last call."""

    @abstractmethod
    def weights(self, c: Floats) -> Floats:
        """The weights of Σ_i c_i k(x_i, ·)."""

    @abstractmethod
    def values(self, w: Floats) -> Floats:
        """The values at the n points of the function with weights w."""

    @abstractmethod
    def inner(self, v: Floats, w: Floats, f: Floats) -> float:
        """The inner product of the functions with weights v and w; f are values of the second."""

    @abstractmethod
    def coefficients(self, w: Floats, fixed: Floats) -> Floats:
        """c of the function with weights w; `fixed` are the coefficients that its slopes give."""

    @abstractmethod
    def newton(self, h: Floats, f: Floats, fixed: Floats, penalty: float, *, bias: bool) -> Floats:
        """The weights that solve  c = fixed - h (Kc + β - f)/(2 penalty), with Σ c = 0 for a bias.

        This is the representer equation with the slope of the loss linearised at f and h its
        curvature; β is the change of the bias, 0 without one.
        """


@final
class DenseGram(Gram):
    """K as a matrix (n, n)."""

    def __init__(self, K: Floats) -> None:
        self.K = K

    def dot(self, c: Floats) -> Floats:
        return self.K @ c

    def factor(self, d: Floats) -> Solve:
        active = np.flatnonzero(np.isfinite(d))
        whole = len(active) == len(d)
        A = self.K.copy() if whole else self.K[np.ix_(active, active)]
        L = cholesky(A, d[active])

        def solve(r: Floats) -> Floats:
            x = np.zeros_like(r)
            if len(active):
                x[active] = cho_solve((L, True), r[active], check_finite=False)
            return x

        return solve

    def solve_once(self, d: Floats, r: Floats) -> Floats:
        return cho_solve((cholesky(self.K, d), True), r, check_finite=False)

    def weights(self, c: Floats) -> Floats:
        return c

    def values(self, w: Floats) -> Floats:
        return self.K @ w

    def inner(self, v: Floats, w: Floats, f: Floats) -> float:
        return float(v @ f)

    def coefficients(self, w: Floats, fixed: Floats) -> Floats:
        return w

    def newton(self, h: Floats, f: Floats, fixed: Floats, penalty: float, *, bias: bool) -> Floats:
        # c = fixed + t, (K + 2γ/h) t + β = f - K fixed, t = 0 where h = 0 [math, Eq. 2.7]
        curved = h > NEGLIGIBLE_CURVATURE * h.max(initial=0.0)
        d = np.full(len(f), np.inf)
        d[curved] = 2.0 * penalty / h[curved]
        t, ones = self.factor(d)(np.stack([f - self.dot(fixed), np.ones(len(f))], axis=1)).T
        spread = ones.sum()
        if bias and spread > 0.0:
            t = t - ones * ((fixed.sum() + t.sum()) / spread)
        return fixed + t


@final
class FeatureGram(Gram):
    """K = Φ Φᵀ for features Φ (n, m): all costs are n m²."""

    def __init__(self, features: Floats) -> None:
        self.features = features

    def dot(self, c: Floats) -> Floats:
        return self.features @ (self.features.T @ c)

    def factor(self, d: Floats) -> Solve:
        # (D + ΦΦᵀ)⁻¹ = E - E Φ (I + Φᵀ E Φ)⁻¹ Φᵀ E,  E = D⁻¹
        E = 1.0 / d
        inner = self._ridge(E, 1.0)

        def solve(r: Floats) -> Floats:
            e = E if r.ndim == 1 else E[:, None]
            return e * (r - self.features @ inner(self.features.T @ (e * r)))

        return solve

    def solve_once(self, d: Floats, r: Floats) -> Floats:
        return self.factor(d)(r)

    def weights(self, c: Floats) -> Floats:
        return self.features.T @ c

    def values(self, w: Floats) -> Floats:
        return self.features @ w

    def inner(self, v: Floats, w: Floats, f: Floats) -> float:
        return float(v @ w)

    def coefficients(self, w: Floats, fixed: Floats) -> Floats:
        # of the many c with Φᵀc = w, the nearest to `fixed`
        scale = float(np.einsum("ij,ij->", self.features, self.features))
        solve = self._ridge(np.ones(len(fixed)), 1e-14 * scale)
        return fixed + self.features @ solve(w - self.weights(fixed))

    def newton(self, h: Floats, f: Floats, fixed: Floats, penalty: float, *, bias: bool) -> Floats:
        # (Φᵀ h Φ + 2γI) v + β Φᵀh = Φᵀr,  hᵀΦ v + β Σh = Σr,  r = h f + 2γ fixed [math, Eq. 2.11]
        r = h * f + 2.0 * penalty * fixed
        solve = self._ridge(h, 2.0 * penalty)
        v = solve(self.features.T @ r)
        if not bias:
            return v
        q = self.features.T @ h
        across = solve(q)
        spread = h.sum() - q @ across
        return v - across * ((r.sum() - q @ v) / spread) if spread > 0.0 else v

    def _ridge(self, h: Floats, ridge: float) -> Solve:
        """The map r ↦ x with (Φᵀ diag(h) Φ + ridge I) x = r."""
        F = self.features * np.sqrt(h)[:, None]
        L = cholesky(F.T @ F, np.full(F.shape[1], ridge))

        def solve(r: Floats) -> Floats:
            with one_thread_if_small(len(L)):
                return cho_solve((L, True), r, check_finite=False)

        return solve


def cholesky(K: Floats, d: Floats) -> Floats:
    """L with K + diag(d) = L Lᵀ, written over the symmetric K.

    If rounding has left K + diag(d) indefinite, the diagonal is increased until it is not: the
    final solution is certified independently of the systems solved on the way.
    """
    diagonal = K.diagonal() + d
    jitter = 0.0
    while True:
        np.fill_diagonal(K, diagonal * (1.0 + jitter))
        try:
            with one_thread_if_small(len(K)):
                # K.T is K in LAPACK's order, and only its lower triangle is overwritten
                return cho_factor(K.T, lower=True, overwrite_a=True, check_finite=False)[0]
        except LinAlgError:
            jitter = max(10.0 * jitter, 1e-14)
            for i in range(len(K)):
                K[i, i + 1 :] = K[i + 1 :, i]


def compact(K: Floats) -> Gram:
    """K by features if its rank is small enough for that to pay off, otherwise dense."""
    features = pivoted_root(K, 1e-14 * max(K.diagonal().max(initial=0.0), 1e-300))
    return DenseGram(K) if 3 * features.shape[1] > len(K) else FeatureGram(features)


def pivoted_root(K: Floats, tolerance: float) -> Floats:
    """R (n, rank) with K = RRᵀ, by Cholesky factorisation with pivots above `tolerance`."""
    L, pivots, rank, _ = dpstrf(K, tol=tolerance, lower=1)
    root = np.empty((len(K), rank))
    root[pivots - 1] = np.tril(L[:, :rank])
    return root
