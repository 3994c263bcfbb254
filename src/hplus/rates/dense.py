"""Many priors on few nodes, with dense matrices: modes, evidence, covariances.

The same problem as in `modes`, for covariances K (c, G, G) that share the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dposv, dtrtrs

from hplus._checks import Floats, Ints
from hplus.rates.modes import normalised

MAX_DENSE_STEPS, LAST_LOG_STEP = 40, 1e-5
"""Newton steps at most, and the change of a log rate at which they end."""

MAX_DENSE_LOG_STEP = 2.0
"""Largest change of a log rate in one step."""


@dataclass(frozen=True)
class Posteriors:
    """For every prior K (c, G, G): modes z (c, G), log evidence (c,), R = √W there (c, G)."""

    z: Floats
    log_evidence: Floats
    K: Floats
    R: Floats

    def chosen(self, which: Ints) -> Posteriors:
        """The posteriors under some of the priors."""
        return Posteriors(self.z[which], self.log_evidence[which], self.K[which], self.R[which])

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the log rates under each prior, shape (c, G, G)."""
        return np.stack([_covariance(K, R) for K, R in zip(self.K, self.R, strict=True)])

    @property
    def variance(self) -> Floats:
        """The variance of the log rate at each node, shape (c, G)."""
        return np.diagonal(self.covariance, axis1=1, axis2=2)


def posteriors(K: Floats, s: Floats, nu: Floats) -> Posteriors:
    """Laplace's approximation of every posterior, for counts s (G,) and exposures ν (G,).

    log evidence = Σ(sz - νe^z) - ½aᵀKa - ½ log det(I + RKR) - ½ log(1ᵀ(K + W⁻¹)⁻¹1), with a flat
    prior on the constant [math, Eq. 4.5].
    """
    z, evidence = np.empty(K.shape[:2]), np.empty(len(K))
    start = normalised(np.zeros((1, len(s))), s[None], nu[None])[0]
    for i, prior in enumerate(K):
        # the mode under one prior is a good guess for the next
        start, evidence[i] = _mode(prior, s, nu, start)
        z[i] = start
    return Posteriors(z, evidence, K, np.sqrt(nu * np.exp(z)))


def _mode(K: Floats, s: Floats, nu: Floats, z: Floats) -> tuple[Floats, float]:
    """The most probable log rates under one prior by Newton's method, and the log evidence."""
    for _ in range(MAX_DENSE_STEPS):
        W = nu * np.exp(z)
        R = np.sqrt(W)
        seen = R > 1e-150
        pull = np.where(seen, (s - W) / np.where(seen, R, 1.0), 0.0)
        L, x = _solved(K, R, np.stack([R * z + pull, R], axis=1))
        p, ones = R * x[:, 0], R * x[:, 1]
        b = p.sum() / ones.sum()
        a = p - b * ones
        Ka = K @ a
        dz = Ka + b - z
        largest = np.abs(dz).max()
        z = z + dz * min(1.0, MAX_DENSE_LOG_STEP / max(largest, MAX_DENSE_LOG_STEP))
        if largest < LAST_LOG_STEP:
            break
    z = normalised(z[None], s[None], nu[None])[0]
    fit = s @ z - s.sum() - 0.5 * (a @ Ka)
    return z, float(fit - np.log(np.diagonal(L)).sum() - 0.5 * np.log(ones.sum()))


def _solved(K: Floats, R: Floats, rhs: Floats) -> tuple[Floats, Floats]:
    """The Cholesky factor L of I + RKR, and (I + RKR)⁻¹ rhs."""
    B = R[:, None] * K * R
    B.flat[:: len(R) + 1] += 1.0
    L, x, _ = dposv(B.T, rhs, lower=True, overwrite_a=True)
    return L, x


def _covariance(K: Floats, R: Floats) -> Floats:
    """K - KR(I + RKR)⁻¹RK + uuᵀ, u = (1 - KRx)/√(1ᵀRx) for the constant, x = (I + RKR)⁻¹R1."""
    L, x = _solved(K, R, R[:, None])
    ones = R * x[:, 0]
    V, _ = dtrtrs(L, R[:, None] * K, lower=True)
    u = (1.0 - K @ ones) / np.sqrt(ones.sum())
    return K - V.T @ V + np.outer(u, u)


def shifts(found: Posteriors, nu: Floats) -> Floats:
    """How far means lie from modes, -½ C(W∘v), shape (c, G) [math, Eq. 4.9]."""
    pull = nu * np.exp(found.z) * found.variance
    return -0.5 * np.matmul(found.covariance, pull[..., None])[..., 0]
