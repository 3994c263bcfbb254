"""The full cone of sums of squares by cvxpy: a slow oracle for small problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from hplus._checks import Floats
from hplus.losses import Absolute, Huber, Loss, Poisson, Quantile, Squared
from hplus.solvers.sos.paper_cone import load_cvxpy, solve_program


def full_cone_reference(
    features: Floats,
    y: Floats,
    shares: Floats,
    loss: Loss,
    trace: float,
    frobenius: float,
    solver: str = "CLARABEL",
    eps: float = 1e-9,
) -> tuple[Floats, float]:
    """A (m, m) ⪰ 0 that minimises Σ_i p_i Φ(y_i, φ_iᵀAφ_i) + trace·tr A + (frobenius/2)‖A‖²_F.

    φ_i are the rows of `features` (n, m). Slow, and A ⪰ 0 only up to `eps`: an oracle for small
    problems. Returns (A, objective).
    """
    cp = load_cvxpy()
    A = cp.Variable((features.shape[1],) * 2, PSD=True)
    f = cp.sum(cp.multiply(features @ A, features), axis=1)
    penalty = trace * cp.trace(A) + 0.5 * frobenius * cp.sum_squares(A)
    problem = cp.Problem(cp.Minimize(shares @ _loss(cp, loss, y, f) + penalty))
    solve_program(cp, problem, solver, eps)
    return np.asarray(A.value), float(problem.value)


def _loss(cp: Any, loss: Loss, y: Floats, f: Any) -> Any:
    """Φ(y_i, f_i) as a cvxpy expression, shape (n,)."""
    match loss:
        case Squared():
            return cp.square(f - y)
        case Absolute():
            return cp.abs(f - y)
        case Quantile(level=level):
            return cp.maximum((1.0 - level) * (f - y), level * (y - f))
        case Huber(threshold=threshold):
            return 0.5 * cp.huber(f - y, threshold)
        case Poisson():
            return f - cp.multiply(y, cp.log(f)) if np.any(y > 0.0) else f
    raise ValueError(
        f"loss must be Squared, Absolute, Quantile, Huber or Poisson for the reference, got {loss}."
    )
