"""Non-negative weights of largest likelihood, without smoothing, and how far from the optimum.

max_{α >= 0} Σ_i log(Aα)_i - cᵀα is concave.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hplus._checks import Floats
from hplus._threads import one_thread_if_small
from hplus.rates.excitation.log_weights import Parts, log_likelihood, weighted_squares
from hplus.solvers.result import SolverResult, Status

PROMISED_GAP = 1e-4
"""The gap that is promised, in nats per event."""

AIMED_GAP = 1e-6
"""The gap at which the solver stops."""

MAX_BARRIER_STEPS = 100
FIRST_BARRIER = 1e-2
"""The first barrier, in nats per event."""

SHRINKING, BOUNDARY = 0.2, 0.99
"""How much the barrier shrinks in a step, and how much of the way to the boundary one may go."""

LEAST_START = 1e-9
"""The smallest weight to begin with, as a share of the events."""


def certified_gap(parts: Parts, weights: Floats) -> float:
    """How much larger the log likelihood can be at most [math, Eq. 6.3].

    With p = 1/λ and ρ = max_b (Aᵀp)_b / c_b, the optimum is at most Σ log λ - n + n log ρ.
    """
    used = parts.integrals > 0.0
    A, c = parts.rows[:, used], parts.integrals[used]
    n, p = len(A), 1.0 / (A @ weights[used])
    worst = float(np.max(A.T @ p / c))
    return float(n * np.log(worst) + c @ weights[used] - n)


def largest_likelihood(parts: Parts, start: Floats) -> tuple[Floats, SolverResult]:
    """The weights (B,) of largest likelihood, and their certificate: a primal-dual barrier method.

    With c scaled to 1, α ∘ s = μ for the slopes s = c - Aᵀ(1/λ), and μ goes to 0.
    """
    used = np.flatnonzero(parts.integrals > 0.0)
    c = parts.integrals[used]
    A, n = parts.rows[:, used] / c, len(parts.rows)
    a = np.maximum(start[used] * c, LEAST_START * n)
    mu, steps = FIRST_BARRIER * n / len(a), 0
    whole, s = Parts(A, np.ones(len(a))), mu / a
    with one_thread_if_small(len(a)):
        while certified_gap(whole, a) > AIMED_GAP * n and steps < MAX_BARRIER_STEPS:
            steps += 1
            a, s = _barrier_step(A, a, s, mu)
            mu = min(mu, SHRINKING * float(a @ s) / len(a))
    found = np.zeros(len(start))
    found[used] = a / c
    gap = certified_gap(parts, found)
    status = Status.CONVERGED if gap <= PROMISED_GAP * n else Status.MAX_ITER
    return found, SolverResult(status, steps, -log_likelihood(parts, found), gap, float(n))


def _barrier_step(A: Floats, a: Floats, s: Floats, mu: float) -> tuple[Floats, Floats]:
    """A step towards α ∘ s = μ, as long as the barrier function falls along it."""
    p = 1.0 / (A @ a)
    H = weighted_squares(A, p, np.ones(len(a)))
    H[np.diag_indices_from(H)] += s / a
    slope = 1.0 - A.T @ p - mu / a
    d = -cho_solve(cho_factor(H), slope)
    e = mu / a - s - s / a * d
    size = _largest(a, d)

    def barrier(a: Floats) -> float:
        return float(a.sum() - np.log(A @ a).sum() - mu * np.log(a).sum())

    value, falling = barrier(a), float(slope @ d)
    while (
        barrier(a + size * d) > value + 1e-4 * size * falling + 1e-12 * abs(value) and size > 1e-8
    ):
        size *= 0.5
    return a + size * d, s + _largest(s, e) * e


def _largest(x: Floats, d: Floats) -> float:
    """The largest step up to 1 that keeps x + step·d well above 0."""
    falling = d < 0.0
    return min(1.0, BOUNDARY * float(np.min(-x[falling] / d[falling], initial=np.inf)))
