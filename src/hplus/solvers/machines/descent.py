"""Batch functional gradient descent."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus.kernels import Kernel
from hplus.solvers.machines.risk import Risk
from hplus.space import Function, loss_gradient, norm_gradient


def risk_gradient(f: Function, X: Floats, risk: Risk) -> Function:
    """∇P = Σ_i p_i Φ'(y_i, f(x_i)) k(x_i, ·) + 2 penalty f [math, Eq. 1.5], without bias."""
    slopes = risk.shares * risk.loss.slope(risk.y, f(X))
    if not np.isfinite(slopes).all() or np.abs(slopes).max() > 1e100:
        raise ValueError(f"loss must have finite slopes at the current function, got {risk.loss}.")
    return loss_gradient(f, slopes, X) + risk.penalty * norm_gradient(f)


def functional_gradient_descent(
    kernel: Kernel, X: Floats, risk: Risk, *, step: float = 0.5, iterations: int = 100
) -> Function:
    """f ← f - step ∇P from f = 0. Each gradient is a function on the data points, and so is f."""
    f = Function(kernel, X, np.zeros(len(X)))
    for _ in range(iterations):
        f = (f - step * risk_gradient(f, X, risk)).merged()
    return f
