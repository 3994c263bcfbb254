"""Non-negative weights of largest likelihood, without smoothing, and how far from the optimum.

max_{α >= 0} Σ_i log(Aα)_i - cᵀα is concave.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hplus._checks import Floats
from hplus._threads import one_thread_if_small
from hplus.rates.excitation.log_weights import Parts, log_likelihood
from hplus.solvers.result import SolverResult, Status

PROMISED_GAP = 1e-4
"""The gap that is promised, in nats per event."""

AIMED_GAP = 1e-6
"""The gap at which the solver stops."""

MAX_ACTIVE_SET_STEPS = 200
FIRST_PASSES = 20
"""Multiplicative updates before Newton's method."""

DAMPING = 1e-10


def certified_gap(parts: Parts, weights: Floats) -> float:
    """How much larger the log likelihood can be at most [math, Eq. 8.4].

    With p = 1/λ and ρ = max_b (Aᵀp)_b / c_b, the optimum is at most Σ log λ - n + n log ρ.
    """
    used = parts.integrals > 0.0
    A, c = parts.rows[:, used], parts.integrals[used]
    n, p = len(A), 1.0 / (A @ weights[used])
    worst = float(np.max(A.T @ p / c))
    return float(n * np.log(worst) + c @ weights[used] - n)


def largest_likelihood(parts: Parts, start: Floats) -> tuple[Floats, SolverResult]:
    """The weights (B,) of largest likelihood, and their certificate.

    Multiplicative updates, then Newton's method on the weights that are not held at 0.
    """
    A, c = parts
    n, a = len(A), np.maximum(start, 1e-12 * np.max(start))
    for _ in range(FIRST_PASSES):
        a = np.divide(a * (A.T @ (1.0 / (A @ a))), c, out=np.zeros_like(a), where=c > 0.0)
    value, steps = log_likelihood(parts, a), 0
    with one_thread_if_small(len(a)):
        while certified_gap(parts, a) > AIMED_GAP * n and steps < MAX_ACTIVE_SET_STEPS:
            steps += 1
            better = _newton_step(parts, a, value)
            a = a * (A.T @ (1.0 / (A @ a))) / np.where(c > 0.0, c, np.inf)
            if better is not None:
                a = better
            value = log_likelihood(parts, a)
    gap = certified_gap(parts, a)
    status = Status.CONVERGED if gap <= PROMISED_GAP * n else Status.MAX_ITER
    return a, SolverResult(status, steps, -value, gap, float(n))


def _newton_step(parts: Parts, a: Floats, value: float) -> Floats | None:
    """A projected Newton step from a that raises the likelihood; None if there is none."""
    A, c = parts
    p = 1.0 / (A @ a)
    slope = A.T @ p - c
    free = (a > 0.0) & (c > 0.0) | (slope > 0.0)
    held = free & (a <= 1e-9 * np.max(a)) & (slope < 0.0)
    free &= ~held
    J = p[:, None] * A[:, free]
    H = J.T @ J
    H[np.diag_indices_from(H)] *= 1.0 + DAMPING
    H[np.diag_indices_from(H)] += DAMPING * np.trace(H) / len(H)
    step = cho_solve(cho_factor(H), slope[free])
    size = 1.0
    for _ in range(25):
        new = np.zeros_like(a)
        new[free] = np.maximum(a[free] + size * step, 0.0)
        if log_likelihood(parts, new) > value:
            return new
        size *= 0.5
    return None
