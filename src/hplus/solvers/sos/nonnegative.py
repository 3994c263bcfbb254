"""Functions Σ_j α_j k²(z_j, ·) with α >= 0: the diagonal cone of the sums of squares.

Minimises  P(α) = Σ_i p_i Φ(y_i, f_i) + penalty αᵀQα,  f = Bα,  over α >= 0, for B = k²(X, Z) of
shape (n, m) and Q = k²(Z, Z), whose entries are all non-negative: so f >= 0 by construction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import nnls

from hplus._checks import Floats
from hplus._threads import one_thread_if_small
from hplus.losses import Loss, PiecewiseLinear, Poisson, Squared
from hplus.solvers.machines.gram import cholesky, pivoted_root
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import SolverResult, Status
from hplus.solvers.sos.slopes import Slopes, SmoothSlopes, slopes_of

SQUARED_GAP, CONE_GAP = 1e-8, 1e-6
"""The relative gaps promised for the squared loss and for the others."""

MAX_IDLE_ITERATIONS = 15
"""Iterations without progress after which the method stops: rounding limits it."""

SHORT_STEP = 0.2
"""If less than this share of a step is possible, the iterate is too close to the boundary."""

NEGLIGIBLE_WEIGHTS = (1e-5, 1e-7, 1e-9)
"""Shares of the largest weight below which weights are set to 0, if the gap allows it."""

NEGLIGIBLE_KERNEL = 1e-100
"""A kernel value below this share of the largest counts as 0."""

Solution = tuple[Floats, Floats, int, Status]
"""Weights α (m,), slopes u (n,) of the loss in the dual, iterations, status."""


@dataclass(frozen=True)
class ConeIterate:
    """The weights α, the multipliers ν of α >= 0, and V of the slopes; or a step of these."""

    alpha: Floats
    nu: Floats
    V: Floats

    def moved(self, step: ConeIterate, t: float) -> ConeIterate:
        return ConeIterate(self.alpha + t * step.alpha, self.nu + t * step.nu, self.V + t * step.V)


def solve_nonnegative(risk: Risk, B: Floats, Q: Floats) -> Solution:
    """The weights α >= 0 that minimise P, and the slopes u that certify them.

    The squared loss uses non-negative least squares, other losses an interior-point method.
    """
    _require(risk, B)
    with one_thread_if_small(len(Q)):
        if isinstance(risk.loss, Squared):
            try:
                return _least_squares(risk, B, Q)
            except RuntimeError:  # the active-set method needed too many steps
                pass
        if (u := _slopes_at_zero(risk, B)) is not None:
            return np.zeros(len(Q)), u, 0, Status.CONVERGED
        alpha, u, iterations, status = _interior_point(risk, B, Q)
        return _pruned(risk, B, Q, alpha, u), u, iterations, status


def certify(
    risk: Risk,
    B: Floats,
    Q: Floats,
    alpha: Floats,
    u: Floats,
    iterations: int,
    status: Status,
    *,
    least: Floats | float = 0.0,
) -> SolverResult:
    """P at α, with a certified gap.

    The dual point is u or the slopes at α, whichever gives the better bound; `least` is explained
    in `lower_bound`.
    """
    f = B @ alpha
    square = float(alpha @ (Q @ alpha))
    P, size = risk.primal(f, 0.0, square), risk.size(f, 0.0, square)
    points = (u, risk.loss.slope(risk.y, f))
    D = max(lower_bound(risk, B, Q, alpha, v, least) for v in points)
    # at the optimum rounding may leave D slightly above P
    result = SolverResult(status, iterations, P, max(P - D, 0.0), size)
    return result.judged(promised_gap(risk.loss))


def lower_bound(
    risk: Risk, B: Floats, Q: Floats, alpha: Floats, u: Floats, least: Floats | float = 0.0
) -> float:
    """D = -Σ p_i Φ*(y_i, u_i) - penalty wᵀQw <= min P, if  s = Bᵀ(pu) + 2 penalty Qw >= least.

    Then  Σ p_i Φ(y_i, f_i) >= (pu)ᵀf - Σ p_i Φ*  and  (pu)ᵀBα = sᵀα - 2 penalty wᵀQα, where
    sᵀα >= 0 for all α of the cone: s >= 0 for α >= 0, and a smaller cone may require a larger s.
    w is α, increased where s is too small; this is always possible, as Q has no negative entries.
    """
    # slightly towards 0, which is in the domain, so that rounding at its edge does not matter
    u = u * (1.0 - 8.0 * np.finfo(float).eps)
    conjugates = float(risk.shares @ risk.loss.conjugate(risk.y, u))
    Qw = Q @ alpha
    s = B.T @ (risk.shares * u) + 2.0 * risk.penalty * Qw
    lack = np.maximum(least - s, 0.0) / (2.0 * risk.penalty)
    square = min(_raised(Q, alpha, Qw, t, lack) for t in (lack, alpha))
    return -conjugates - risk.penalty * square


def _raised(Q: Floats, w: Floats, Qw: Floats, t: Floats, lack: Floats) -> float:
    """wᵀQw after w ← w + θt, with the smallest θ for which θQt >= lack."""
    short = lack > 0.0
    if not short.any():
        return float(w @ Qw)
    Qt = Q @ t
    if np.any(Qt[short] <= np.finfo(float).tiny):
        return np.inf
    theta = float(np.max(lack[short] / Qt[short]))
    return float(w @ Qw + 2.0 * theta * (t @ Qw) + theta**2 * (t @ Qt))


def promised_gap(loss: Loss) -> float:
    """The relative gap that a fit with this loss is expected to certify."""
    return SQUARED_GAP if isinstance(loss, Squared) else CONE_GAP


def _require(risk: Risk, B: Floats) -> None:
    """Raise for a loss with a tube, and for counts where no function of the cone is positive."""
    loss = risk.loss
    if isinstance(loss, PiecewiseLinear) and loss.tube > 0.0:
        raise ValueError(
            f"loss must not be ε-insensitive in the diagonal cone, got {loss}: use Huber."
        )
    if isinstance(loss, Poisson):
        lost = (risk.y > 0.0) & (B.max(axis=1) <= NEGLIGIBLE_KERNEL * B.max())
        if lost.any():
            raise ValueError(
                "k(x, z) must be positive for some center z at every row x with y > 0, got 0 in "
                f"row {int(np.argmax(lost))}: use more landmarks or a wider kernel."
            )


def _least_squares(risk: Risk, B: Floats, Q: Floats) -> Solution:
    """‖√p (Bα - y)‖² + ‖√penalty Lᵀα‖², Q = LLᵀ, by active sets: many α are exactly 0."""
    L = pivoted_root(Q, 1e-15 * Q.diagonal().max(initial=0.0))
    sqrt_p = np.sqrt(risk.shares)
    A = np.vstack([sqrt_p[:, None] * B, np.sqrt(risk.penalty) * L.T])
    b = np.concatenate([sqrt_p * risk.y, np.zeros(L.shape[1])])
    alpha = np.asarray(nnls(A, b)[0])
    return alpha, risk.loss.slope(risk.y, B @ alpha), 1, Status.CONVERGED


def _slopes_at_zero(risk: Risk, B: Floats) -> Floats | None:
    """The slopes at f = 0 if α = 0 is optimal, i.e. if Bᵀ(pu) >= 0."""
    f = np.zeros(len(risk.y))
    if not np.isfinite(risk.loss.value(risk.y, f)).all():
        return None
    u = risk.loss.slope(risk.y, f)
    return u if np.all(B.T @ (risk.shares * u) >= 0.0) else None


def _interior_point(
    risk: Risk, B: Floats, Q: Floats, *, tol: float = 1e-9, max_iter: int = 100
) -> Solution:
    """Mehrotra's predictor-corrector method for α >= 0, with slopes of the loss as variables."""
    slopes = slopes_of(risk)
    state = _start(risk, B, Q, slopes)
    best, best_gap = (state.alpha, slopes.slopes(state.V)), np.inf
    smallest, found = np.inf, 0
    for iteration in range(max_iter):
        alpha, u, mu = state.alpha, slopes.slopes(state.V), _complementarity(slopes, state)
        now = certify(risk, B, Q, alpha, u, iteration, Status.CONVERGED)
        if now.gap < best_gap:
            best, best_gap, found = (alpha, u), now.gap, iteration
        if mu < 0.5 * smallest:
            smallest, found = mu, iteration
        if now.relative_gap <= tol:
            return *best, iteration, Status.CONVERGED
        if iteration - found > MAX_IDLE_ITERATIONS:
            return *best, iteration, Status.STALLED
        state = _iterate(risk, B, Q, slopes, state)
    return *best, max_iter, Status.MAX_ITER


def _start(risk: Risk, B: Floats, Q: Floats, slopes: Slopes) -> ConeIterate:
    """Equal weights of the best size, and multipliers of the size of the terms of the gradient."""
    alpha = np.full(len(Q), _best_size(risk, B.sum(axis=1), float(Q.sum())))
    V = slopes.start(B @ alpha)
    terms = B.T @ (risk.shares * slopes.reach(V)) + 2.0 * risk.penalty * (Q @ alpha)
    return ConeIterate(alpha, np.full(len(Q), terms.mean()), V)


def _best_size(risk: Risk, f: Floats, square: float) -> float:
    """The c > 0 that minimises P for values cf and a squared norm c²·square, up to a factor 2."""

    def rises(c: float) -> bool:
        slope = risk.shares @ (f * risk.loss.slope(risk.y, c * f))
        return bool(slope + 2.0 * risk.penalty * c * square > 0.0)

    # the optimum for the squared loss and |y|, halved or doubled at most ten times
    c = float(risk.shares @ np.abs(f * risk.y))
    c = c / float(risk.shares @ f**2 + risk.penalty * square) if c > 0.0 else 1.0
    up = rises(c)
    for _ in range(10):
        if rises(c) is not up:
            break
        c *= 0.5 if up else 2.0
    return c


def _iterate(risk: Risk, B: Floats, Q: Floats, slopes: Slopes, now: ConeIterate) -> ConeIterate:
    """One predictor-corrector step; both parts share a factorisation."""
    p, f = risk.shares, B @ now.alpha
    gradient = B.T @ (p * slopes.slopes(now.V)) + 2.0 * risk.penalty * (Q @ now.alpha)
    still = ConeIterate(np.zeros_like(now.alpha), np.zeros_like(now.nu), np.zeros_like(now.V))
    D = slopes.line(now.V, f, 0.0, still.V)[0]
    # (2 penalty Q + BᵀpDB + diag(ν/α)) Δα = (target - ΔαΔν)/α - gradient - Bᵀ(pe)
    F = B * np.sqrt(p * D)[:, None]
    L = cholesky(F.T @ F + 2.0 * risk.penalty * Q, now.nu / now.alpha)

    def direction(target: float, ahead: ConeIterate) -> ConeIterate:
        e = slopes.line(now.V, f, target, ahead.V)[1]
        goal = (target - ahead.alpha * ahead.nu) / now.alpha
        d = cho_solve((L, True), goal - gradient - B.T @ (p * e), check_finite=False)
        d_nu = goal - now.nu - now.nu / now.alpha * d
        return ConeIterate(d, d_nu, slopes.follow(now.V, D * (B @ d) + e, target, ahead.V))

    # far from a parabola the target must fall slowly, and a second-order correction misleads
    careful, mu = isinstance(slopes, SmoothSlopes), _complementarity(slopes, now)
    step = direction(0.0, still)
    ahead = now.moved(step, _longest(slopes, now, step))
    ratio = min(_complementarity(slopes, ahead) / mu, 1.0) ** 3
    step = direction(mu * max(ratio, 0.1), still) if careful else direction(mu * ratio, step)
    if _longest(slopes, now, step) < SHORT_STEP:
        step = direction(mu, still)  # back to the central path first
    return now.moved(step, min(1.0, 0.995 * _longest(slopes, now, step)))


def _complementarity(slopes: Slopes, state: ConeIterate) -> float:
    """The mean of the products that vanish at the optimum."""
    products = slopes.products(state.V)
    total = float(state.alpha @ state.nu) + float(products.sum())
    return total / (len(state.nu) + products.size)


def _longest(slopes: Slopes, now: ConeIterate, step: ConeIterate) -> float:
    """The longest t <= 1 for which everything that must be positive stays non-negative."""
    values = np.concatenate([now.alpha, now.nu, slopes.room(now.V).ravel()])
    changes = np.concatenate([step.alpha, step.nu, slopes.room(step.V).ravel()])
    falling = changes < 0.0
    with np.errstate(over="ignore"):  # an infinite distance sets no limit
        reach = -values[falling] / changes[falling]
    return min(1.0, float(np.min(reach, initial=1.0)))


def _pruned(risk: Risk, B: Floats, Q: Floats, alpha: Floats, u: Floats) -> Floats:
    """α with negligible weights set to exactly 0, if the certified gap stays small."""

    def gap(a: Floats) -> float:
        return certify(risk, B, Q, a, u, 0, Status.CONVERGED).relative_gap

    bound = max(gap(alpha), 0.01 * CONE_GAP)
    for share in NEGLIGIBLE_WEIGHTS:
        pruned = np.where(alpha > share * alpha.max(), alpha, 0.0)
        if gap(pruned) <= bound:
            return pruned
    return alpha
