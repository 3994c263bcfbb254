"""Learning the scale of a Gaussian kernel from data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.optimize import minimize_scalar

from hplus._checks import Floats, Ints
from hplus._threads import one_thread_if_small
from hplus.kernels import Gaussian
from hplus.solvers.gram import cholesky
from hplus.solvers.representer import Points, train
from hplus.solvers.risk import Risk

ROWS = 500
"""Scales are learned from at most this many points."""

FOLDS = 5

LADDER = 2.0 ** np.arange(-4.0, 4.0)
"""The candidates, in units of √d standard deviations of the columns."""


def leave_one_out_scale(X: Floats, Y: Floats, shares: Floats, penalty: float) -> Gaussian:
    """The Gaussian with the smallest leave-one-out error of kernel ridge, in closed form.

    Each column's scale is its standard deviation times one common factor, which is learned.
    """
    rows = _subset(len(X))
    X, Y, shares = X[rows], Y[rows], shares[rows] / shares[rows].sum()
    unit = _spread(X)

    def error(log_factor: float) -> float:
        K = _gaussian(unit, np.exp(log_factor)).gram(X, X)
        return leave_one_out_error(K, Y, shares, penalty)

    grid = np.log(LADDER)
    errors = [error(g) for g in grid]
    best = int(np.argmin(errors))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    fine = minimize_scalar(error, bounds=(low, high), method="bounded", options={"xatol": 0.05})
    winner = fine.x if fine.fun < errors[best] else grid[best]
    return _gaussian(unit, float(np.exp(winner)))


def leave_one_out_error(K: Floats, Y: Floats, shares: Floats, penalty: float) -> float:
    """Σ_i p_i |y_i - f₋ᵢ(x_i)|², f₋ᵢ the ridge fit without point i [math, Eq. 2.9].

    With A = K + diag(penalty/p), y_i - f₋ᵢ(x_i) = (A⁻¹Y)_i/(A⁻¹)_ii. K is overwritten.
    """
    L = cholesky(K, penalty / shares)
    with one_thread_if_small(len(K)):
        inverse = np.tril(dtrtri(L, lower=1)[0])
        C = inverse.T @ (inverse @ np.reshape(Y, (len(Y), -1)))
    residuals = C / np.einsum("ki,ki->i", inverse, inverse)[:, None]
    return float(shares @ np.sum(residuals**2, axis=1))


def cross_validated_scale(X: Floats, risk: Risk, solver: str = "primal") -> Gaussian:
    """The Gaussian with the smallest mean loss on held-out fifths, among those of the ladder."""
    rows = _subset(len(X))
    X, risk = X[rows], _restricted(risk, rows)
    unit = _spread(X)
    kernels = [_gaussian(unit, factor) for factor in LADDER]
    return min(kernels, key=lambda kernel: held_out_loss(kernel, X, risk, solver))


def held_out_loss(kernel: Gaussian, X: Floats, risk: Risk, solver: str = "primal") -> float:
    """The loss on each fifth of the points, of the machine trained on the others, summed."""
    fold = np.arange(len(X)) % FOLDS
    total = 0.0
    for k in range(FOLDS):
        inside, outside = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        part = _restricted(risk, inside)
        if len(inside) and len(outside) and not (risk.bias and len(np.unique(part.y)) < 2):
            basis = Points(kernel, X[inside])
            trained = train(basis, part, solver)
            f = basis.function(trained.coefficients)(X[outside]) + trained.bias
            total += float(risk.shares[outside] @ risk.loss.value(risk.y[outside], f))
    return total


def _subset(n: int) -> Ints:
    """At most ROWS of n row numbers, in an order that has nothing to do with the rows."""
    return np.random.default_rng(0).permutation(n)[:ROWS]


def _restricted(risk: Risk, rows: Ints) -> Risk:
    shares = risk.shares[rows] * (risk.shares.sum() / risk.shares[rows].sum())
    return replace(risk, y=risk.y[rows], shares=shares)


def _spread(X: Floats) -> Floats:
    """The standard deviation of each column, 1 for a constant one, times √d."""
    spread = X.std(axis=0)
    return np.where(spread > 0.0, spread, 1.0) * np.sqrt(X.shape[1])


def _gaussian(unit: Floats, factor: float) -> Gaussian:
    return Gaussian(tuple((factor * unit).tolist()))
