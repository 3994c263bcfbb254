"""A scale of its own for each column, by the evidence of a Gaussian process.

What is explained is the step that a loss wants from the best constant: y less its mean for the
squared loss, and the like for others. Columns that do not matter get long scales.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from hplus._checks import Floats
from hplus._threads import one_thread_if_small
from hplus.solvers.machines.risk import Risk

FIRST_ROWS, MOST_SCALED_ROWS = 500, 1000
"""Rows that the search starts with, and that it ends with."""

FIRST_STEPS, LAST_STEPS = 40, 10
"""Steps of the search with the first rows and with all of them."""

CONSTANT_VARIANCE = 10.0
"""The variance of a constant, in units of that of the targets."""

PRIOR_SPREAD = 3.0
"""The standard deviation of log(1/s²) about that of a common scale."""

RATE_BOUNDS, SIGNAL_BOUNDS, NOISE_BOUNDS = (-12.0, 5.0), (-4.0, 5.0), (-5.0, 3.0)
"""Bounds of log(1/s²) in units of standard deviations, and of the logarithms of the variances."""


def own_scales(X: Floats, risks: Sequence[Risk]) -> Floats | None:
    """A scale (d,) for each column of X (n, d); None if no target varies.

    Several risks belong to several outputs or classes, which share the scales.
    """
    Z = np.stack([_wanted_step(risk) for risk in risks], axis=1)
    Z = Z[:, Z.std(axis=0) > 0.0]
    spread = X.std(axis=0)
    if Z.shape[1] == 0 or not spread.any():
        return None
    spread = np.where(spread > 0.0, spread, 1.0)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    X, d = (X - X.mean(axis=0)) / spread, X.shape[1]
    noises = 1.0 / np.maximum(risks[0].shares / risks[0].shares.mean(), 1e-3)
    theta = np.concatenate([np.full(d, -np.log(d)), [0.0, np.log(0.5)]])
    bounds = [RATE_BOUNDS] * d + [SIGNAL_BOUNDS, NOISE_BOUNDS]
    with one_thread_if_small(min(len(X), MOST_SCALED_ROWS)):
        for n, steps in ((FIRST_ROWS, FIRST_STEPS), (MOST_SCALED_ROWS, LAST_STEPS)):
            data = X[:n], Z[:n], noises[:n]
            options = {"maxiter": steps}
            theta = minimize(
                evidence, theta, data, jac=True, method="L-BFGS-B", bounds=bounds, options=options
            ).x
    return np.asarray(spread * np.exp(-0.5 * theta[:d]))


def _wanted_step(risk: Risk) -> Floats:
    """-Φ'(y, b) at the best constant b, shape (n,)."""
    constant = risk.best_bias(np.zeros(len(risk.y))) if risk.bias else 0.0
    return -risk.loss.slope(risk.y, np.full(len(risk.y), constant))


def evidence(theta: Floats, X: Floats, Z: Floats, noises: Floats) -> tuple[float, Floats]:
    """-log p(Z | θ) - log p(θ) and its gradient, θ the logarithms of 1/s² (d,), signal and noise.

    Every column of Z (n, outputs) is N(0, signal·k(X, X) + constant + noise·diag(noises)).
    """
    n, d = X.shape
    rates, (signal, noise) = np.exp(theta[:d]), np.exp(theta[d:])
    K = signal * _gaussian(X * np.sqrt(rates))
    A = K + CONSTANT_VARIANCE
    A[np.diag_indices(n)] += noise * noises
    L, info = dpotrf(A, lower=1)
    if info:
        return np.inf, np.zeros(d + 2)
    C = dpotrs(L, Z, lower=1)[0]
    outputs = Z.shape[1]
    value = 0.5 * float(np.sum(Z * C)) + outputs * float(np.log(np.diag(L)).sum())
    inverse = np.tril(dpotri(L, lower=1)[0])
    # ∂value/∂A = (outputs A⁻¹ - C Cᵀ)/2
    W = 0.5 * (outputs * (inverse + np.tril(inverse, -1).T) - C @ C.T)
    trace = float(np.diag(W) @ noises)
    W *= K
    # Σ_ij W_ij (x_i - x_j)² = 2 (Σ_i x_i² Σ_j W_ij - xᵀWx), for each column
    pull = 2.0 * (W.sum(axis=1) @ X**2 - np.einsum("ij,ij->j", X, W @ X))
    away = (theta[:d] + np.log(d)) / PRIOR_SPREAD
    value += 0.5 * float(away @ away)
    gradient = np.concatenate([-0.5 * rates * pull, [float(W.sum()), noise * trace]])
    gradient[:d] += away / PRIOR_SPREAD
    return value, gradient


def _gaussian(X: Floats) -> Floats:
    """exp(-|x - x'|²/2) of all pairs of rows of X (n, d)."""
    half = 0.5 * np.einsum("ij,ij->i", X, X)
    return np.exp(np.minimum(X @ X.T - half[:, None] - half, 0.0))
