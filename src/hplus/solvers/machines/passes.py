"""The penalised mean loss over functions on landmarks, minimised in few passes over the rows.

With features Φ and f = Φv + b, all that Newton's method needs are sums over rows: of the losses,
of their slopes times (Φ, 1), and of their curvatures times (Φ, 1)ᵀ(Φ, 1). For the squared loss the
first ones are those of the normal equations, and one pass is all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from hplus._checks import Floats
from hplus.features import FeatureMap
from hplus.losses import Loss, Squared
from hplus.solvers.machines.gram import cholesky
from hplus.solvers.machines.representer import promised_gap
from hplus.solvers.result import SolverResult, Status

FEATURES_AT_ONCE = 2**22
"""Features of a block of rows that are computed at once."""

MAX_PASSES, MAX_STEP_HALVINGS = 50, 20
"""Passes over the rows, and halvings of a step, at most."""

Rows = Iterable[tuple[Floats, Floats, Floats]]
"""Points (n, d), targets (n,) and shares (n,), in chunks that can be gone through again."""


class QuadraticModel(NamedTuple):
    """P at weights and a bias (m + 1,), its size, gradient (m + 1,) and Hessian (m + 1, m + 1)."""

    at: Floats
    value: float
    size: float
    gradient: Floats
    hessian: Floats

    def step(self) -> Floats:
        """Newton's step."""
        return -cho_solve((cholesky(self.hessian.copy(), 0.0 * self.at), True), self.gradient)

    def after(self, step: Floats) -> QuadraticModel:
        """The model a step away, of a loss that is a parabola."""
        bent = self.hessian @ step
        value = self.value + float(self.gradient @ step + 0.5 * step @ bent)
        return QuadraticModel(self.at + step, value, value, self.gradient + bent, self.hessian)

    def gap(self, penalty: float) -> float:
        """How far P is above its least value, at most: P - penalty |v|² is convex.

        What a bias would still gain, which is not penalised, is estimated by its curvature.
        """
        g, b = self.gradient[:-1], self.gradient[-1]
        return float(g @ g) / (4.0 * penalty) + float(b * b / self.hessian[-1, -1])


class OnLandmarks(NamedTuple):
    """The weights v (m,) of features, the bias, and the quality of the solution."""

    weights: Floats
    bias: float
    result: SolverResult


def minimised(
    rows: Rows,
    features: FeatureMap,
    loss: Loss,
    penalty: float,
    *,
    bias: bool,
    start: OnLandmarks | None = None,
) -> OnLandmarks:
    """Minimise P = Σ p_i Φ(y_i, φ(x_i)·v + b) + penalty |v|², b = 0 unless `bias`.

    From a `start` that some of the rows led to, two or three passes are enough.
    """

    def look(at: Floats) -> QuadraticModel:
        return expanded(rows, features, loss, penalty, at, bias=bias)

    first = np.zeros(features.shape[1] + 1)
    if start is not None:
        first = np.append(start.weights, start.bias)
    found, passes, status = look(first), 1, Status.MAX_ITER
    if isinstance(loss, Squared):
        return _solved(found.after(found.step()), penalty, loss, 1, Status.CONVERGED)
    while passes < MAX_PASSES:
        if found.gap(penalty) <= 0.5 * promised_gap(loss) * found.size:
            status = Status.CONVERGED
            break
        lower, looks = _lower(look, found)
        passes += looks
        if lower is None:
            status = Status.STALLED
            break
        found = lower
    return _solved(found, penalty, loss, passes, status)


def _lower(
    look: Callable[[Floats], QuadraticModel], found: QuadraticModel
) -> tuple[QuadraticModel | None, int]:
    """The first of 1, ½, ¼, … Newton steps that lowers P enough (Armijo's rule); and looks."""
    step, t = found.step(), 1.0
    slope = float(found.gradient @ step)
    for looks in range(1, MAX_STEP_HALVINGS + 1):
        new = look(found.at + t * step)
        if new.value <= found.value + 1e-4 * t * slope:
            return new, looks
        t *= 0.5
    return None, MAX_STEP_HALVINGS


def _solved(
    found: QuadraticModel, penalty: float, loss: Loss, passes: int, status: Status
) -> OnLandmarks:
    result = SolverResult(status, passes, found.value, found.gap(penalty), found.size)
    judged = result.judged(promised_gap(loss))
    return OnLandmarks(found.at[:-1], float(found.at[-1]), judged)


def expanded(
    rows: Rows, features: FeatureMap, loss: Loss, penalty: float, at: Floats, *, bias: bool
) -> QuadraticModel:
    """P, its gradient and its Hessian at weights and bias (m + 1,), in one pass."""
    m = len(at) - 1
    value = size = 0.0
    gradient, hessian = np.zeros(m + 1), np.zeros((m + 1, m + 1))
    for X, y, p in rows:
        some = max(FEATURES_AT_ONCE // (m + 1), 1)
        for block in (slice(i, i + some) for i in range(0, len(X), some)):
            F = np.column_stack([features(X[block]), np.full(len(X[block]), float(bias))])
            f = F @ at
            losses = loss.value(y[block], f)
            value += float(p[block] @ losses)
            size += float(p[block] @ np.abs(losses))
            gradient += F.T @ (p[block] * loss.slope(y[block], f))
            bent = F * np.sqrt(p[block] * loss.curvature(y[block], f))[:, None]
            hessian += bent.T @ bent
    own = np.append(np.full(m, penalty), 0.0)
    square = float(own @ at**2)
    hessian[np.diag_indices(m + 1)] += 2.0 * own
    if not bias:
        hessian[m, m] = 1.0
    return QuadraticModel(at, value + square, size + square, gradient + 2.0 * own * at, hessian)
