"""Newton's method for kernel machines with a smooth loss."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus.solvers.machines.gram import Gram
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import Status

SHORTEST_STEP = 1e-10
"""The line search gives up below this step length."""


def newton(
    gram: Gram, risk: Risk, *, tol: float = 1e-12, max_iter: int = 200
) -> tuple[Floats, int, Status]:
    """The coefficients c that minimise P(Kc, b), b the best bias, for a smooth loss.

    Stops when P of the iterate is within `tol`, relative to its size, of D at the coefficients
    given by its slopes. Returns (c, iterations, status).
    """
    n = len(risk.y)
    w, f = gram.weights(np.zeros(n)), np.zeros(n)
    status = Status.MAX_ITER
    for iteration in range(max_iter + 1):
        b, square = risk.best_bias(f), gram.inner(w, w, f)
        fixed = risk.coefficients(f, b)
        w_fixed = gram.weights(fixed)
        f_fixed = gram.values(w_fixed)
        P = risk.primal(f, b, square)
        D = risk.dual(fixed, gram.inner(w_fixed, w_fixed, f_fixed), b)
        if P - D <= tol * risk.size(f, b, square):
            status = Status.CONVERGED
        if status is Status.CONVERGED or iteration == max_iter:
            break
        h = risk.shares * risk.loss.curvature(risk.y, f + b)
        step = gram.newton(h, f, fixed, risk.penalty, bias=risk.bias) - w
        # by (2.2) the gradient of P is 2 penalty (f - f_fixed)
        slope = gram.inner(step, w, f) - gram.inner(step, w_fixed, f_fixed)
        t, f_new = _backtrack(gram, risk, w, f, step, P, 2.0 * risk.penalty * slope)
        if t < SHORTEST_STEP:
            status = Status.STALLED
            break
        w, f = w + t * step, f_new
    return gram.coefficients(w, fixed), iteration, status


def _backtrack(
    gram: Gram, risk: Risk, w: Floats, f: Floats, step: Floats, P: float, slope: float
) -> tuple[float, Floats]:
    """The first t of 1, ½, ¼, … with sufficient decrease of P (Armijo's rule), and f there."""
    step_f = gram.values(step)
    t = 1.0
    while t >= SHORTEST_STEP:
        new_w, new_f = w + t * step, f + t * step_f
        if np.isfinite(new_f).all():
            b = risk.best_bias(new_f)
            if risk.primal(new_f, b, gram.inner(new_w, new_w, new_f)) <= P + 1e-4 * t * slope:
                return t, new_f
        t *= 0.5
    return 0.0, f
