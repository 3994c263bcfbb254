"""Newton's method for kernel machines with a smooth loss."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus.solvers.gram import Gram
from hplus.solvers.result import Status
from hplus.solvers.risk import Risk

SHORTEST_STEP = 1e-10


def newton(
    gram: Gram, risk: Risk, *, tol: float = 1e-12, max_iter: int = 200
) -> tuple[Floats, int, Status]:
    """The coefficients c that minimise P(Kc, b), b the best bias, for a smooth loss.

    Stops when P of the iterate is within `tol`, relative, of D of the coefficients that its
    slopes give. Returns (c, iterations, status).
    """
    c = f = np.zeros(len(risk.y))
    b = risk.best_bias(f)
    for iteration in range(max_iter):
        fixed = risk.coefficients(f, b)
        f_fixed = gram.dot(fixed)
        P = risk.primal(f, b, float(c @ f))
        if P - risk.dual(fixed, float(fixed @ f_fixed), b) <= tol * abs(P):
            return c, iteration, Status.CONVERGED
        goal = fixed + _correction(gram, risk, f, b, f_fixed, fixed)
        step_c, step_f = goal - c, gram.dot(goal) - f
        t = _backtrack(risk, c, f, step_c, step_f, P)
        if t < SHORTEST_STEP:
            return c, iteration, Status.STALLED
        c, f = c + t * step_c, f + t * step_f
        b = risk.best_bias(f)
    return c, max_iter, Status.MAX_ITER


def _correction(
    gram: Gram, risk: Risk, f: Floats, b: float, f_fixed: Floats, fixed: Floats
) -> Floats:
    """t with (K + D) t + β = f - K c_fixed, D = 2 penalty/(p Φ''), and Σ(c_fixed + t) = 0.

    Linearising c = -p Φ'/(2 penalty) at f gives c_fixed + t as the next coefficients; where Φ''
    vanishes they are c_fixed.
    """
    curvature = risk.shares * risk.loss.curvature(risk.y, f + b)
    curved = curvature > 1e-12 * curvature.max(initial=0.0)
    d = np.full(len(f), np.inf)
    d[curved] = 2.0 * risk.penalty / curvature[curved]
    if not risk.bias:
        return gram.factor(d)(f - f_fixed)
    right = np.stack([f - f_fixed, np.ones(len(f))], axis=1)
    t, ones = gram.factor(d)(right).T
    spread = ones.sum()
    return t - ones * ((fixed.sum() + t.sum()) / spread) if spread > 0.0 else t


def _backtrack(risk: Risk, c: Floats, f: Floats, step_c: Floats, step_f: Floats, P: float) -> float:
    """The first of 1, ½, ¼, … that lowers P by a share of what the slope promises."""
    b = risk.best_bias(f)
    slopes = risk.shares * risk.loss.slope(risk.y, f + b)
    promise = float(slopes @ step_f) + 2.0 * risk.penalty * float(c @ step_f)
    t = 1.0
    while t >= SHORTEST_STEP:
        new_c, new_f = c + t * step_c, f + t * step_f
        new_b = risk.best_bias(new_f) if np.isfinite(new_f).all() else b
        if risk.primal(new_f, new_b, float(new_c @ new_f)) <= P + 1e-4 * t * promise:
            return t
        t *= 0.5
    return 0.0
