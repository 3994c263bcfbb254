"""The one linear system of the kernel machines, (K + diag(d)) x = r, dense or by features.

Kernel ridge, Newton's method for smooth losses and the interior point method for the others all
come down to products with K and to this system, each with its own diagonal d > 0. Entries d = ∞
pin x to 0 there, so a solver's inactive points drop out of the factorisation.
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
        """x with (K + diag(d)) x = r, d finite; nothing else may be asked afterwards."""


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
                with one_thread_if_small(len(active)):
                    x[active] = cho_solve((L, True), r[active], check_finite=False)
            return x

        return solve

    def solve_once(self, d: Floats, r: Floats) -> Floats:
        L = cholesky(self.K, d)
        with one_thread_if_small(len(L)):
            return cho_solve((L, True), r, check_finite=False)


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
        F = self.features * np.sqrt(E)[:, None]
        L = cholesky(F.T @ F, np.ones(F.shape[1]))

        def solve(r: Floats) -> Floats:
            e = E if r.ndim == 1 else E[:, None]
            with one_thread_if_small(len(L)):
                inner = cho_solve((L, True), self.features.T @ (e * r), check_finite=False)
            return e * (r - self.features @ inner)

        return solve

    def solve_once(self, d: Floats, r: Floats) -> Floats:
        return self.factor(d)(r)


def cholesky(K: Floats, d: Floats) -> Floats:
    """L with K + diag(d) = L Lᵀ, written over the symmetric K.

    Where rounding has left K + diag(d) indefinite, the diagonal grows until it is not: the
    solution of the machine is certified afterwards, whatever system was solved on the way.
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
            below = np.tril(K, -1)
            K[:] = below + below.T


def compact(K: Floats) -> Gram:
    """K as features if its rank is small enough to pay, by pivoted Cholesky; else K as it is."""
    L, pivots, rank, _ = dpstrf(K, tol=1e-14 * max(K.diagonal().max(initial=0.0), 1e-300), lower=1)
    if 3 * rank > len(K):
        return DenseGram(K)
    features = np.empty((len(K), rank))
    features[pivots - 1] = np.tril(L[:, :rank])
    return FeatureGram(features)
