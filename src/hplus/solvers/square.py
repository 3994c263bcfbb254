"""Rates of events as squares: the square of one function, or a sum of squares.

Square: f = g², g(x) = φ(x)ᵀu, minimises, over u with g > 0 at the events,
    P(u) = -Σ w_i log g(x_i)² + uᵀBu,   B = ET + γI,
by Newton's method. P is convex there, and its dual has the same form,
    D(α) = 2Σ w_i (1 + log(α_i/w_i)) - αᵀH̃α,   α > 0,   H̃ = ΦB⁻¹Φᵀ,
with u = B⁻¹Φᵀα and α_i g(x_i) = w_i at the optimum.
Sum of squares: f = φᵀAφ, A ⪰ 0, minimises by the solver of `psd`
    -Σ w_i log f(x_i) + E tr(TA) + λ tr A + (μ/2)‖A‖²,   μ a small share of λ.
Penalties cost some of the expected count: E∫f = Σw - γ‖u‖², and Σw - λ tr A - μ‖A‖².
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils import check_random_state

from hplus._checks import Bools, Floats, check_positive
from hplus._progress import step
from hplus._threads import one_thread_if_small
from hplus.kernels import Kernel
from hplus.positivity import Full
from hplus.positivity.sos import SumOfSquares
from hplus.solvers.rates import (
    ROUNDING,
    Choice,
    Events,
    FactorPosterior,
    Judge,
    LearnedRate,
    Setting,
    as_events,
    best_gaussian,
    best_penalty,
    laplace,
    setting,
)
from hplus.solvers.result import SolverResult, Status
from hplus.solvers.sos.learning import likelihood, with_few_columns
from hplus.solvers.sos.psd import GAP, Problem, solve
from hplus.solvers.sos.psd import certify as certify_mean
from hplus.solvers.sos.sweeps import values_of, weighted_gram
from hplus.windows import Window

LIMIT, NEAR, ROUGH = 100, 1e-6, 1e-2
"""Newton steps; the change of g, as a share of g, before the last one, and where that is rough."""

FARTHEST = 1.1e2
"""How many times larger or smaller than the usual one a penalty γ is tried."""

FOLDS, USUAL = 3, 1e-2
"""Thinned parts that are held out in turn; the first trace penalty, in units of E tr T."""

SQUARE_ROWS, SOS_ROWS, SOS_WIDTH = 4000, 1000, 200
"""From how many events scales and penalties are learned at most, and on how many features."""

WEAKEST, STRONGEST = 0.9e-5, 1.1e-1
"""Trace penalties that are compared, in units of E tr T: stronger ones cost most of the count."""

SEARCH = 12
"""Kernels that a search tries as a rule, for those who ask how far it has come."""

FROBENIUS = 1e-2
"""The frobenius penalty, small beside the trace penalty: it makes the problem easy to solve."""


class Solved(NamedTuple):
    """x (m,) and Ax (n,) at the end of Newton's method."""

    x: Floats
    values: Floats
    iterations: int
    status: Status


def learn_square_rate(
    X: Any,
    w: Any,
    window: Window,
    exposure: float,
    kernel: Kernel | None,
    penalty: float | None,
) -> LearnedRate:
    """The square g² with the smallest -Σ w_i log g(x_i)² + E∫g² + γ‖g‖².

    A kernel or a penalty γ that is None is learned by the evidence.
    """
    events = as_events(X, w, window, exposure)
    if kernel is None or penalty is None:
        kernel, penalty = _tuned_square(events, kernel, penalty)
    s, penalty = setting(events, kernel), check_positive("penalty", penalty)
    s.require_reach()
    with one_thread_if_small(len(s.T)):
        B = quadratic_form(s, penalty)
        solved = solve_square(s.Phi, events.w, B, np.full(len(events.w), usual_root(s)))
        # the weighted Gram matrix of the events counts twice: 2(B - S) + 4S
        S = _curvature(s.Phi, events.w, solved.values)
        posterior = laplace(s, solved.x[:, None], B + S, penalty, np.zeros(len(events.w)))
        f = posterior.function(events.X)
        result = certify(s.Phi, f, events.w, B, solved)
        evidence = log_evidence(B + S, penalty, result.objective)
    return LearnedRate(posterior.function, posterior, result, evidence, kernel, penalty)


def quadratic_form(s: Setting, penalty: float) -> Floats:
    """B = ET + γI, shape (m, m)."""
    B = s.events.exposure * s.T
    B[np.diag_indices(len(B))] += penalty
    return B


def usual_root(s: Setting) -> float:
    """√f for a constant rate of the right count."""
    return float(np.sqrt(s.events.total / (s.events.exposure * s.events.window.volume)))


def newton(Q: Floats, A: Floats, w: Floats, values: Floats, near: float = NEAR) -> Solved:
    """The minimiser of ½xᵀQx - Σ w_i log (Ax)_i from any positive values in place of Ax.

    With W = diag(w/values²), (Q + AᵀWA) x = 2Aᵀ(w/values), values ← values + t (Ax - values);
    t = 1/(1 + ρ), ρ the largest change as a share of its value, keeps them positive and lowers
    the objective, whatever the weights: |D³| <= 2ρ D² along a step.
    """
    for iteration in range(1, LIMIT + 1):
        H = Q + _curvature(A, w, values)
        x = cho_solve(cho_factor(H, lower=True), A.T @ (2.0 * w / values))
        change = A @ x - values
        rho = float(np.max(np.abs(change) / values))
        values = values + change * (1.0 if rho < 0.25 else 1.0 / (1.0 + rho))
        if rho < near:
            return Solved(x, values, iteration, Status.CONVERGED)
    return Solved(x, values, LIMIT, Status.MAX_ITER)


def solve_square(Phi: Floats, w: Floats, B: Floats, g: Floats, near: float = NEAR) -> Solved:
    """u (m,) and g at the events, from values g: in the smaller of the two forms."""
    return (solve_features if len(w) >= len(B) else solve_dual)(Phi, w, B, g, near)


def solve_features(Phi: Floats, w: Floats, B: Floats, g: Floats, near: float = NEAR) -> Solved:
    """u and g at the events, by Newton's method in the m features."""
    return newton(B, Phi, w, g, near)


def solve_dual(Phi: Floats, w: Floats, B: Floats, g: Floats, near: float = NEAR) -> Solved:
    """u and g at the events, by Newton's method in α (n,): the better way for few events."""
    V = cho_solve(cho_factor(B, lower=True), Phi.T)
    found = newton(Phi @ V, np.eye(len(w)), w, w / g, near)
    u = V @ found.x
    return Solved(u, Phi @ u, found.iterations, found.status)


def certify(Phi: Floats, f: Floats, w: Floats, B: Floats, solved: Solved) -> SolverResult:
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


def _curvature(A: Floats, w: Floats, values: Floats) -> Floats:
    """Σ w_i a_ia_iᵀ/values_i²."""
    return weighted_gram(A, (w / values**2)[:, None], A)


def _tuned_square(
    events: Events, kernel: Kernel | None, penalty: float | None
) -> tuple[Kernel, float]:
    order = np.random.default_rng(0).permutation(len(events.w))
    some = events.thinned(order[:SQUARE_ROWS])

    def judge(candidate: Kernel, start: float | None) -> Choice:
        s = setting(some, candidate)
        if kernel is None and not s.resolved:
            return Choice(-np.inf, candidate, penalty or s.usual)
        return by_evidence(s, penalty, start)

    return _choice(events.window, kernel, judge)


def _choice(window: Window, kernel: Kernel | None, judge: Judge) -> tuple[Kernel, float]:
    stage, tried, most = "learning penalties", 0, 1 if kernel is not None else SEARCH

    def counted(candidate: Kernel, start: float | None) -> Choice:
        nonlocal tried
        step(stage, min(tried, most), most)
        tried += 1
        return judge(candidate, start)

    best = best_gaussian(window, counted) if kernel is None else counted(kernel, None)
    step(stage, most, most)
    return best.kernel, best.penalty


def by_evidence(s: Setting, penalty: float | None, start: float | None) -> Choice:
    """The penalty of the largest evidence, if none is given."""
    usual = s.usual if start is None else start
    if s.unseen:
        return Choice(-np.inf, s.features.kernel, penalty or usual)
    w, g = s.events.w, np.full(len(s.events.w), usual_root(s))

    def score(candidate: float) -> float:
        nonlocal g
        least = max(s.usual / FARTHEST, ROUNDING * s.unit)
        if penalty is None and not least <= candidate <= s.usual * FARTHEST:
            return -np.inf
        B = quadratic_form(s, candidate)
        with one_thread_if_small(len(B)):
            solved = solve_square(s.Phi, w, B, g, ROUGH)
            if not np.all(solved.values > 0.0):
                return -np.inf
            g = solved.values
            P = float(-2.0 * w @ np.log(g) + solved.x @ B @ solved.x)
            return log_evidence(B + _curvature(s.Phi, w, g), candidate, P)

    if penalty is not None:
        return Choice(score(penalty), s.features.kernel, penalty)
    return best_penalty(score, usual, s.features.kernel)


def learn_sos_rate(
    X: Any,
    w: Any,
    window: Window,
    exposure: float,
    kernel: Kernel | None,
    penalty: float | None,
    random_state: Any,
) -> LearnedRate:
    """The sum of squares with the smallest -Σ w_i log f(x_i) + E∫f + λ tr A + (μ/2)‖A‖².

    A kernel or a penalty λ that is None is learned by held-out thinned parts of the events.
    """
    events = as_events(X, w, window, exposure)
    if kernel is None or penalty is None:
        kernel, penalty = _tuned_sos(events, kernel, penalty, random_state)
    s, penalty = setting(events, kernel), check_positive("penalty", penalty)
    s.require_reach()
    problem = sos_problem(s, penalty)
    solved = solve(problem)
    with one_thread_if_small(problem.width):
        weights = with_few_columns(problem, solved.weights)
        level = events.total / events.exposure
        posterior = _posterior(s, np.sqrt(level) * weights[0], penalty)
        z = problem.outputs([posterior.function(events.X) / level])
        result = certify_mean(problem, replace(solved, weights=weights), z)
    # with f = (Σw/E) h the objective is Σw (that of h - log(Σw/E))
    result = replace(
        result,
        objective=events.total * (result.objective - float(np.log(level))),
        gap=events.total * result.gap,
        size=events.total * result.size,
    )
    return LearnedRate(posterior.function, posterior, result, np.nan, kernel, penalty)


def sos_problem(s: Setting, penalty: float) -> Problem:
    """-Σ p_i log h(x_i) + ∫h + penalties, for the shares p = w/Σw and f = (Σw/E) h."""
    events = s.events
    frobenius = _frobenius(s, penalty) * events.total / events.exposure
    cone = Full(penalty / events.exposure, frobenius / events.exposure)
    return likelihood(events.w / events.total, s.Phi, s.T, cone, 1.0 / events.window.volume)


def _frobenius(s: Setting, penalty: float) -> float:
    """μ, so small that a constant rate f = c‖φ‖² pays FROBENIUS/2 of its trace penalty."""
    return FROBENIUS * penalty * s.unit / s.events.total


def _posterior(s: Setting, R: Floats, penalty: float) -> FactorPosterior:
    """D = ET + λI + μA - Σ w φφᵀ/f, positive semidefinite at the optimum by dual feasibility.

    It is singular along R and, where λ is small, next to singular in many other directions. There
    the columns of R are given a prior of the right size: r of them have the usual γ times r.
    """
    B = quadratic_form(s, penalty) + _frobenius(s, penalty) * (R @ R.T)
    S = _curvature(s.Phi, s.events.w, np.linalg.norm(s.Phi @ R, axis=1))
    return laplace(s, R, B - S, R.shape[1] * s.usual, s.events.w)


def _tuned_sos(
    events: Events, kernel: Kernel | None, penalty: float | None, random_state: Any
) -> tuple[Kernel, float]:
    order = check_random_state(random_state).permutation(len(events.w))
    some = events.thinned(order[:SOS_ROWS])
    # every search starts from the slopes -1/f of the last one
    slopes: list[Floats | None] = [None] * FOLDS

    def judge(candidate: Kernel, start: float | None) -> Choice:
        s = setting(some, candidate, SOS_WIDTH)
        if kernel is None and not s.resolved:
            return Choice(-np.inf, candidate, penalty or USUAL * s.unit)
        return by_thinning(s, penalty, start, slopes)

    return _choice(events.window, kernel, judge)


def by_thinning(
    s: Setting, penalty: float | None, start: float | None, slopes: list[Floats | None]
) -> Choice:
    """The penalty, if none is given, with the largest likelihood of parts that f has not seen.

    The likelihood Σ w log f - E∫f sees the count that a penalty costs; that of f/∫f would not.
    `slopes` are where the solver starts for each part, and are replaced by where it ends.
    """
    kernel, folds = s.features.kernel, min(FOLDS, len(s.events.w))
    usual = USUAL * s.unit if start is None else start
    if folds < 2 or s.unseen:
        return Choice(-np.inf if s.unseen else 0.0, kernel, penalty or usual)
    fold = np.arange(len(s.events.w)) % folds

    def score(candidate: float) -> float:
        if penalty is None and not WEAKEST <= candidate / s.unit <= STRONGEST:
            return -np.inf
        gains = np.empty(folds)
        for k in range(folds):
            gains[k], slopes[k] = _held_out(s, fold == k, candidate, slopes[k])
        return float(gains.sum())

    if penalty is not None:
        return Choice(score(penalty), kernel, penalty)
    return best_penalty(score, usual, kernel)


def _held_out(s: Setting, out: Bools, penalty: float, start: Floats | None) -> tuple[float, Floats]:
    """Σ w log h - Σw∫h of the events `out`, h learned from the others, and the slopes -1/h."""
    rest = np.flatnonzero(~out)
    problem = sos_problem(replace(s, events=s.events.thinned(rest), Phi=s.Phi[rest]), penalty)
    softness = None if start is None else problem.hardest
    solved = solve(problem, start, softness, tolerance=ROUGH)
    (R,) = solved.weights
    f, mass = values_of(s.Phi[out], R), float(np.sum(R * (s.T @ R)))
    with np.errstate(divide="ignore"):  # f may be 0 where it has seen nothing
        return float(s.events.w[out] @ (np.log(f) - mass)), solved.x
