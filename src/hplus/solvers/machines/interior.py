"""An interior-point method for kernel machines with a piecewise linear loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats
from hplus.losses import PiecewiseLinear
from hplus.solvers.machines.gram import Gram, Solve
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import Status

MAX_IDLE_ITERATIONS = 15
"""Iterations without a smaller gap after which the method stops: rounding limits it."""


@dataclass(frozen=True)
class Arms:
    """c = offset + Σ_a sign_a v_a, 0 <= v_a <= top_a, at the cost Σ_a cost_a·v_a; arrays (a, n).

    Without a tube, one arm per point spans the box of c. With one, which costs tube·|c|, there are
    two arms, one on each side of 0.
    """

    offset: Floats
    sign: Floats
    top: Floats
    cost: Floats

    def coefficients(self, v: Floats) -> Floats:
        return self.offset + np.sum(self.sign * v, axis=0)


@dataclass(frozen=True)
class BoxIterate:
    """The arms v, the multipliers of v >= 0 and v <= top, and the bias b; or a step of these."""

    v: Floats
    low: Floats
    high: Floats
    b: float

    def moved(self, step: BoxIterate, t: float) -> BoxIterate:
        return BoxIterate(
            self.v + t * step.v,
            self.low + t * step.low,
            self.high + t * step.high,
            self.b + t * step.b,
        )


def interior_point(
    gram: Gram, risk: Risk, *, tol: float = 1e-9, max_iter: int = 100
) -> tuple[Floats, int, Status]:
    """The coefficients c that minimise P(Kc, b), b the best bias, for a piecewise linear loss.

    Solves the dual  min ½cᵀKc - yᵀc + tube·‖c‖₁  over the box of c, with Σ c_i = 0 for a bias,
    by Mehrotra's predictor-corrector method [math, Eq. 2.8]. Returns (c, iterations, status).
    """
    arms = _arms(risk)
    state = _start(gram, arms)
    best, best_gap, found = arms.coefficients(state.v), np.inf, 0
    for iteration in range(max_iter):
        c = arms.coefficients(state.v)
        f = gram.dot(c)
        b, square = risk.best_bias(f), float(c @ f)
        gap = risk.primal(f, b, square) - risk.dual(c, square, b)
        if gap <= tol * risk.size(f, b, square):
            return c, iteration, Status.CONVERGED
        if gap < best_gap:
            best, best_gap, found = c, gap, iteration
        if iteration - found > MAX_IDLE_ITERATIONS or not _inside(arms, state):
            return best, iteration, Status.STALLED
        state = _iterate(gram, risk.bias, arms, state, c, f)
    return best, max_iter, Status.MAX_ITER


def _arms(risk: Risk) -> Arms:
    assert isinstance(risk.loss, PiecewiseLinear)
    low, high = risk.box()
    tube, y = risk.loss.tube, risk.y
    if tube == 0.0:
        return Arms(low, np.ones((1, 1)), (high - low)[None], -y[None])
    sign = np.array([[1.0], [-1.0]])
    return Arms(np.zeros(len(y)), sign, np.stack([high, -low]), tube - sign * y)


def _start(gram: Gram, arms: Arms) -> BoxIterate:
    """A point inside the box with Σ c_i = 0, and multipliers of the size of its gradient."""
    v = 0.5 * arms.top
    if len(arms.top) == 1:
        low, high = arms.offset, arms.offset + arms.top[0]
        # c = α high + (1 - α) low, α Σ high + (1 - α) Σ low = 0, where that is possible
        share = -low.sum() / (high.sum() - low.sum())
        v = np.clip(share, 1e-12, 1.0 - 1e-12) * arms.top
    gradient = arms.sign * gram.dot(arms.coefficients(v)) + arms.cost
    size = float(np.abs(gradient).mean())
    multipliers = np.full_like(v, size if size > 0.0 else 1.0)
    return BoxIterate(v, multipliers, multipliers, 0.0)


def _inside(arms: Arms, state: BoxIterate) -> bool:
    """Are all v, top - v and multipliers positive? Rounding may make them 0."""
    parts = (state.v, arms.top - state.v, state.low, state.high)
    return all(bool(np.all(part > 0.0)) for part in parts)


def _iterate(
    gram: Gram, bias: bool, arms: Arms, now: BoxIterate, c: Floats, f: Floats
) -> BoxIterate:
    """One predictor-corrector step; both parts share a factorisation of K + diag(1/E)."""
    room = arms.top - now.v
    theta = now.low / now.v + now.high / room
    E = np.sum(1.0 / theta, axis=0)
    solve = gram.factor(1.0 / E)
    balance = solve(np.ones(len(c))) if bias else None
    gradient = arms.sign * (f + now.b) + arms.cost

    def direction(low: Floats | float, high: Floats | float) -> BoxIterate:
        """The Newton step towards v·z_low = low, (top - v)·z_high = high."""
        rho = low / now.v - high / room - gradient
        e = np.sum(arms.sign * rho / theta, axis=0)
        dc, db = _bordered(solve, balance, e / E, c)
        dv = _shared_out(arms, dc, theta, rho, e, E)
        d_low = low / now.v - now.low - now.low / now.v * dv
        d_high = high / room - now.high + now.high / room * dv
        return BoxIterate(dv, d_low, d_high, db)

    mu = _complementarity(arms, now)
    predictor = direction(0.0, 0.0)
    ahead = now.moved(predictor, _longest(arms, now, predictor))
    target = mu * (_complementarity(arms, ahead) / mu) ** 3
    corrector = direction(
        target - predictor.v * predictor.low, target + predictor.v * predictor.high
    )
    return now.moved(corrector, min(1.0, 0.995 * _longest(arms, now, corrector)))


def _bordered(solve: Solve, balance: Floats | None, r: Floats, c: Floats) -> tuple[Floats, float]:
    """Δc, Δb with (K + D)Δc + Δb = r and, for a bias, Σ(c + Δc) = 0."""
    x = solve(r)
    if balance is None:
        return x, 0.0
    db = float((c.sum() + x.sum()) / balance.sum())
    return x - db * balance, db


def _shared_out(arms: Arms, dc: Floats, theta: Floats, rho: Floats, e: Floats, E: Floats) -> Floats:
    """Δv = (ρ - sign (KΔc + Δb))/θ with Σ_a sign_a Δv_a = Δc; KΔc + Δb = (e - Δc)/E.

    The arm with the smaller θ, which may be close to 0, takes what the other leaves of Δc.
    """
    if len(theta) == 1:
        return dc[None]
    dv = (rho - arms.sign * ((e - dc) / E)) / theta
    first = theta[0] < theta[1]
    return np.stack([np.where(first, dc + dv[1], dv[0]), np.where(first, dv[1], dv[0] - dc)])


def _complementarity(arms: Arms, state: BoxIterate) -> float:
    total = np.sum(state.v * state.low + (arms.top - state.v) * state.high)
    return float(total) / (2 * state.v.size)


def _longest(arms: Arms, now: BoxIterate, step: BoxIterate) -> float:
    """The longest t <= 1 for which every v, top - v and multiplier stays at least 0."""
    values = np.stack([now.v, arms.top - now.v, now.low, now.high])
    slopes = np.stack([step.v, -step.v, step.low, step.high])
    falling = slopes < 0.0
    return min(1.0, float(np.min(-values[falling] / slopes[falling], initial=1.0)))
