"""Rates of events as the square of one function.

f = g², g(x) = φ(x)ᵀu, minimises, over u with g > 0 at the events,
    P(u) = -Σ w_i log g(x_i)² + uᵀBu,   B = ET + γI,
by Newton's method. P is convex there, and its dual has the same form,
    D(α) = 2Σ w_i (1 + log(α_i/w_i)) - αᵀH̃α,   α > 0,   H̃ = ΦB⁻¹Φᵀ,
with u = B⁻¹Φᵀα and α_i g(x_i) = w_i at the optimum.
The penalty costs some of the expected count: E∫f = Σw - γ‖u‖².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hplus._checks import Floats, check_positive
from hplus._threads import one_thread_if_small
from hplus.kernels import Kernel
from hplus.positivity.sos import SumOfSquares
from hplus.rates.kernel_search import Penalties, learn_kernel
from hplus.rates.squares_rate import FactorPosterior, SquaresRate, laplace
from hplus.rates.window_features import PENALTY_ROUNDING, Setting, WeightedEvents, setting
from hplus.solvers.result import SolverResult, Status
from hplus.solvers.sos.psd import GAP
from hplus.solvers.sos.sweeps import weighted_gram

MAX_SQUARE_STEPS, LAST_CHANGE, ROUGH_CHANGE = 100, 1e-6, 1e-2
"""Newton steps; the change of g, as a share of g, at the last one, and where that is rough."""

PENALTY_RANGE = 1.1e2
"""How many times larger or smaller than the usual one a penalty γ is tried."""

MAX_SQUARE_EVENTS = 4000
"""Events from which scales and penalties are learned at most."""


class SquareOptimum(NamedTuple):
    """x (m,) and Ax (n,) at the end of Newton's method."""

    x: Floats
    values: Floats
    iterations: int
    status: Status


def learn_square_rate(
    events: WeightedEvents, kernel: Kernel | None, penalty: float | None
) -> SquaresRate:
    """The square g² with the smallest -Σ w_i log g(x_i)² + E∫g² + γ‖g‖².

    A kernel or a penalty γ that is None is learned by the evidence.
    """
    if kernel is None or penalty is None:
        order = np.random.default_rng(0).permutation(len(events.w))
        some = events.thinned(order[:MAX_SQUARE_EVENTS])
        kernel, penalty = learn_kernel(some, kernel, penalty, by_evidence)
    s, penalty = setting(events, kernel), check_positive("penalty", penalty)
    s.require_reach()
    with one_thread_if_small(len(s.T)):
        B = quadratic_form(s, penalty)
        solved = solve_square(s.Phi, events.w, B, np.full(len(events.w), usual_root(s)))
        # the weighted Gram matrix of the events counts twice: 2(B - S) + 4S
        S = curvature(s.Phi, events.w, solved.values)
        posterior = laplace(s, solved.x[:, None], B + S, penalty, np.zeros(len(events.w)))
        f = posterior.function(events.X)
        result = certify(s.Phi, f, events.w, B, solved)
        evidence = log_evidence(B + S, penalty, result.objective)
    return SquaresRate.of(events, mean_square(posterior), posterior, result, penalty, evidence)


def quadratic_form(s: Setting, penalty: float) -> Floats:
    """B = ET + γI, shape (m, m)."""
    B = s.events.exposure * s.T
    B[np.diag_indices(len(B))] += penalty
    return B


def usual_root(s: Setting) -> float:
    """√f for a constant rate of the right count."""
    return float(np.sqrt(s.events.total / (s.events.exposure * s.events.window.volume)))


def newton(
    A: Floats, w: Floats, Q: Floats, values: Floats, near: float = LAST_CHANGE
) -> SquareOptimum:
    """The minimiser of ½xᵀQx - Σ w_i log (Ax)_i from any positive values in place of Ax.

    With W = diag(w/values²), (Q + AᵀWA) x = 2Aᵀ(w/values), values ← values + t (Ax - values);
    t = 1/(1 + ρ), ρ the largest change as a share of its value, keeps them positive and lowers
    the objective, whatever the weights: |D³| <= 2ρ D² along a step.
    """
    for iteration in range(1, MAX_SQUARE_STEPS + 1):
        H = Q + curvature(A, w, values)
        x = cho_solve(cho_factor(H, lower=True), A.T @ (2.0 * w / values))
        change = A @ x - values
        rho = float(np.max(np.abs(change) / values))
        values = values + change * (1.0 if rho < 0.25 else 1.0 / (1.0 + rho))
        if rho < near:
            return SquareOptimum(x, values, iteration, Status.CONVERGED)
    return SquareOptimum(x, values, MAX_SQUARE_STEPS, Status.MAX_ITER)


def solve_square(
    Phi: Floats, w: Floats, B: Floats, g: Floats, near: float = LAST_CHANGE
) -> SquareOptimum:
    """u (m,) and g at the events, from values g: by Newton's method in the smaller of two forms."""
    return (newton if len(w) >= len(B) else solve_dual)(Phi, w, B, g, near)


def solve_dual(
    Phi: Floats, w: Floats, B: Floats, g: Floats, near: float = LAST_CHANGE
) -> SquareOptimum:
    """u and g at the events, by Newton's method in α (n,): the better way for few events."""
    V = cho_solve(cho_factor(B, lower=True), Phi.T)
    found = newton(np.eye(len(w)), w, Phi @ V, w / g, near)
    u = V @ found.x
    return SquareOptimum(u, Phi @ u, found.iterations, found.status)


def certify(Phi: Floats, f: Floats, w: Floats, B: Floats, solved: SquareOptimum) -> SolverResult:
    """P from values f of the rate, and D from α ∝ w/√f with the best factor."""
    if not np.all(f > 0.0):
        return SolverResult(solved.status, solved.iterations, np.inf, np.inf, 1.0).judged(GAP)
    square = float(solved.x @ B @ solved.x)
    P, size = float(-w @ np.log(f)) + square, float(w @ np.abs(np.log(f))) + square
    alpha = w / np.sqrt(f)
    b = Phi.T @ alpha
    q = float(b @ cho_solve(cho_factor(B, lower=True), b))
    # max_t D(tα): t² = Σw/αᵀH̃α, where D = Σw + 2Σ w log(tα/w)
    D = float(w.sum() + w.sum() * np.log(w.sum() / q) + 2.0 * w @ np.log(alpha / w))
    gap = max(P - D, 0.0) if P - D >= -1e-9 * size else np.inf
    return SolverResult(solved.status, solved.iterations, P, gap, size).judged(GAP)


def log_evidence(H: Floats, penalty: float, objective: float) -> float:
    """-P + (m/2) log γ - ½ log det(Σ w φφᵀ/g² + B), H that matrix: log ∫exp(-P) dN(u; 0, I/2γ).

    By Laplace's approximation at one of the two optima, u and -u.
    """
    L = np.linalg.cholesky(H)
    half_log_det = float(np.log(np.diag(L)).sum())
    return -objective + 0.5 * len(H) * float(np.log(penalty)) - half_log_det


def mean_square(posterior: FactorPosterior) -> SumOfSquares:
    """E[g²] = (E g)² + var g, a sum of squares too: what to expect where g may have either sign."""
    f = posterior.function
    return SumOfSquares(f.kernel, f.centers, np.hstack([f.factor, posterior.spread]))


def curvature(A: Floats, w: Floats, values: Floats) -> Floats:
    """Σ w_i a_ia_iᵀ/values_i²."""
    return weighted_gram(A, (w / values**2)[:, None], A)


def by_evidence(s: Setting) -> Penalties:
    """Penalties by their evidence."""
    w, g = s.events.w, np.full(len(s.events.w), usual_root(s))

    def score(penalty: float) -> float:
        nonlocal g
        B = quadratic_form(s, penalty)
        with one_thread_if_small(len(B)):
            solved = solve_square(s.Phi, w, B, g, ROUGH_CHANGE)
            if not np.all(solved.values > 0.0):
                return -np.inf
            g = solved.values
            P = float(-2.0 * w @ np.log(g) + solved.x @ B @ solved.x)
            return log_evidence(B + curvature(s.Phi, w, g), penalty, P)

    least = max(s.usual / PENALTY_RANGE, PENALTY_ROUNDING * s.unit)
    return Penalties(s.usual, least, s.usual * PENALTY_RANGE, score)
