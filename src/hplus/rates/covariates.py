"""What log rates depend on linearly: a Poisson regression on the nodes of a grid."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Floats

STEPS, NEAR = 100, 1e-10
"""Newton steps at most, and the size of the last one."""

LONGEST_STEP = 2.0


class Regression(NamedTuple):
    """Coefficients β (p,) of covariates C (p, *grid), and the log rate's part βᵀC (*grid)."""

    coefficients: Floats
    linear: Floats


def poisson_regression(C: Floats, s: Floats, nu: Floats) -> Regression:
    """β and b with the smallest Σ ν e^{b + βᵀC} - s(b + βᵀC), for C of mean 0 and size 1.

    C has shape (p, *grid), counts s and exposures ν the grid's.
    """
    shape, C = s.shape, C.reshape(len(C), -1)
    X = np.vstack([np.ones(C.shape[1]), C])
    s, nu = s.ravel(), nu.ravel()
    beta = np.zeros(len(X))
    beta[0] = np.log(s.sum() / nu.sum())
    for _ in range(STEPS):
        W = nu * np.exp(beta @ X)
        step = np.linalg.lstsq((X * W) @ X.T, X @ (s - W), rcond=1e-12)[0]
        step *= min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-300))
        beta = beta + step
        if np.abs(step).max() < NEAR:
            break
    return Regression(beta[1:], (beta[1:] @ C).reshape(shape))


def coefficient_covariance(
    C: Floats, W: Floats, covariance: Any, variance: float | None = None
) -> Floats:
    """The covariance of β where counts W (*grid) vary with a field: A⁻¹(A + CᵀWKWC)A⁻¹, (p, p).

    `covariance` multiplies by K; A = CᵀWC, C with a column of ones [math, Eq. 4.10]. K is scaled
    down to the `variance` that the field was found to have, if that is less.
    """
    X = np.concatenate([np.ones((1, *W.shape)), C.reshape(len(C), *W.shape)])
    flat = X.reshape(len(X), -1)
    WX = (X * W).reshape(len(X), -1)
    A = WX @ flat.T
    spread = covariance.apply(X * W).reshape(len(X), -1)
    inverse = np.linalg.pinv(A)
    share = 1.0
    if variance is not None:
        first = np.zeros((1, *W.shape))
        first.flat[0] = 1.0
        share = min(1.0, variance / float(covariance.apply(first).flat[0]))
    return (inverse @ (A + share * (WX @ spread.T)) @ inverse)[1:, 1:]
