"""Support vector machines by libsvm's dual, through scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from hplus._checks import Floats, check_memory
from hplus.kernels import Gaussian, Kernel, Linear, Polynomial
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import Status

CACHE_MEGABYTES = 400

LEAST_ITERATIONS = 200_000
"""The iteration limit of libsvm is at least this; each iteration updates one pair of points."""


def svm_dual(kernel: Kernel, X: Floats, risk: Risk, *, tol: float) -> tuple[Floats, int, Status]:
    """The coefficients c for the hinge loss with a bias; 0 <= y_i c_i <= p_i/(2 penalty).

    Stops when no optimality condition is violated by more than `tol`. Gaussian, Linear and
    Polynomial kernels are computed by libsvm itself; others need their n x n Gram matrix.
    Returns (c, iterations, status).
    """
    points, settings = _native(kernel, X)
    limit = max(LEAST_ITERATIONS, 100 * len(X))  # it may not terminate where k(x, x) is huge
    machine = SVC(C=1.0, tol=tol, cache_size=CACHE_MEGABYTES, max_iter=limit, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate will show it
        machine.fit(points, risk.y, sample_weight=risk.shares / (2.0 * risk.penalty))
    c = np.zeros(len(X))
    c[machine.support_] = machine.dual_coef_[0]
    return c, int(machine.n_iter_[0]), Status.CONVERGED


def _native(kernel: Kernel, X: Floats) -> tuple[Floats, dict[str, str | float]]:
    """The input of libsvm: points and its own kernel, or a Gram matrix."""
    if isinstance(kernel, Gaussian):
        A = kernel.select(X)
        # libsvm computes x² + z² - 2xz, which cancels far from the origin
        return kernel.shrink(A - A.mean(axis=0)), {"kernel": "rbf", "gamma": 0.5}
    if isinstance(kernel, Linear):
        return kernel.select(X), {"kernel": "linear"}
    if isinstance(kernel, Polynomial):
        power = {"gamma": 1.0, "degree": kernel.degree, "coef0": kernel.offset}
        return kernel.select(X), {"kernel": "poly", **power}
    n = len(X)
    check_memory(
        16.0 * n * n,
        f"The Gram matrix of {n} points for libsvm",
        'use a Gaussian, Linear or Polynomial kernel, or loss="squared_hinge" with landmarks',
    )
    return kernel(X), {"kernel": "precomputed"}
