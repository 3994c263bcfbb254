"""Many priors on few nodes at once, with dense matrices: modes, evidence, covariances.

The same problem as in `lattice`, for a batch of covariances K (c, G, G) that share the counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.solvers.lattice import normalised

STEPS, NEAR = 40, 1e-5
"""Newton steps at most, and the change of a log rate at which they end."""

LONGEST_STEP = 2.0


class Posteriors(NamedTuple):
    """For every prior: modes z (c, G), log evidence (c,), covariances (c, G, G)."""

    z: Floats
    log_evidence: Floats
    covariance: Floats

    @property
    def variance(self) -> Floats:
        """Of the log rate at each node, shape (c, G)."""
        return np.diagonal(self.covariance, axis1=1, axis2=2)


def posteriors(K: Floats, s: Floats, nu: Floats) -> Posteriors:
    """Laplace's approximation of every posterior, for counts s (G,) and exposures ν (G,).

    log evidence = Σ(sz - νe^z) - ½aᵀKa - ½ log det(I + RKR) - ½ log(1ᵀ(K + W⁻¹)⁻¹1), with a flat
    prior on the constant [math, Eq. 4.5].
    """
    s, nu = np.broadcast_to(s, K.shape[:2]), np.broadcast_to(nu, K.shape[:2])
    z = normalised(np.zeros(K.shape[:2]), s, nu)
    for _ in range(STEPS):
        R, L, ones, a, b = _newton(K, s, nu, z)
        dz = _times(K, a) + b - z
        largest = np.abs(dz).max()
        z = z + dz * np.minimum(1.0, LONGEST_STEP / np.maximum(np.abs(dz).max(1), 1e-300))[:, None]
        if largest < NEAR:
            break
    z = normalised(z, s, nu)
    spread = (R * ones).sum(axis=1)
    log_det = 2.0 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    fit = (s * z).sum(axis=1) - s.sum(axis=1) - 0.5 * (a * _times(K, a)).sum(axis=1)
    evidence = fit - 0.5 * log_det - 0.5 * np.log(spread)
    return Posteriors(z, evidence, _covariance(K, R, L, ones))


def _newton(K: Floats, s: Floats, nu: Floats, z: Floats) -> tuple[Any, Any, Any, Any, Any]:
    """R = √W, the Cholesky factor of I + RKR, its solution for R·1, charges a and constants b."""
    W = nu * np.exp(z)
    R = np.sqrt(W)
    B = R[:, :, None] * K * R[:, None, :]
    B[:, np.arange(K.shape[1]), np.arange(K.shape[1])] += 1.0
    L = np.linalg.cholesky(B)
    seen = R > 1e-150
    pull = np.where(seen, (s - W) / np.where(seen, R, 1.0), 0.0)
    x = np.linalg.solve(B, np.stack([R * z + pull, R], axis=-1))
    p, ones = R * x[..., 0], x[..., 1]
    b = p.sum(axis=1) / (R * ones).sum(axis=1)
    return R, L, ones, p - b[:, None] * R * ones, b[:, None]


def _covariance(K: Floats, R: Floats, L: Floats, ones: Floats) -> Floats:
    """K - KR(I + RKR)⁻¹RK + uuᵀ, u = (1 - KRx)/√(1ᵀRx) for the constant, x = (I + RKR)⁻¹R1."""
    V = np.linalg.solve(L, R[:, :, None] * K)
    u = (1.0 - _times(K, R * ones)) / np.sqrt((R * ones).sum(axis=1))[:, None]
    return K - np.swapaxes(V, 1, 2) @ V + u[:, :, None] * u[:, None, :]


def shifts(found: Posteriors, nu: Floats) -> Floats:
    """How far means lie from modes, -½ C(W∘v), shape (c, G) [math, Eq. 4.9]."""
    return -0.5 * _times(found.covariance, nu * np.exp(found.z) * found.variance)


def _times(M: Floats, x: Floats) -> Floats:
    return np.matmul(M, x[..., None])[..., 0]
