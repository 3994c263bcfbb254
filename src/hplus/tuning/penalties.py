"""Learning the penalty of kernel machines, with the scale of a Gaussian or for a given kernel.

Smooth losses are compared by approximate leave-one-out: one fit on features for each candidate, and
one Newton step away from each row. Losses with kinks take the scale from a smooth loss, and the
penalty by cross-validation. Candidates follow the units of y and of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from hplus._checks import Floats, Ints
from hplus._progress import each
from hplus._threads import one_thread_if_small
from hplus.features import Nystroem
from hplus.kernels import Kernel
from hplus.losses import Hinge, Huber, Logistic, PiecewiseLinear, PoissonLog
from hplus.solvers.machines.gram import cholesky
from hplus.solvers.machines.risk import Risk
from hplus.tuning.column_scales import MOST_SCALED_ROWS, own_scales
from hplus.tuning.scales import (
    SCALE_FACTORS,
    between,
    column_units,
    gaussian_of,
    has_labels,
    held_out_loss,
    learned_scale,
    restricted,
    rows_to_tune,
)

MOST_TUNED_ROWS = 1500
"""Penalties are learned from at most this many rows,"""

MIN_ROWS_OF_OWN_SCALES = 2 * MOST_TUNED_ROWS
"""From this many rows on columns may have scales of their own, learned from other rows."""

OWN_FACTORS = np.sqrt(2.0) ** np.arange(-1.0, 2.0)
"""Candidates in units of these scales."""

MOST_KINKED_ROWS = 300
"""or this many for losses with kinks other than the hinge loss,"""

MOST_TUNED_FEATURES = 300
"""on at most this many landmarks."""

RELATIVE_STEPS = 10.0 ** np.arange(0.0, -7.0, -1.0)
"""Candidate penalties in decreasing order, in units of the loss and the size of y."""

MAX_TUNING_STEPS = 30
"""Newton steps for one candidate."""

LARGEST_LEVERAGE = 1.0 - 1e-6
"""Leave-one-out divides by 1 minus the leverage of a row."""


CLOSE_CALL = 0.25
"""Of candidates whose loss is within this many standard errors of the smallest, the one with the
fewest degrees of freedom is taken: leave-one-out is easily misled by few rows."""


class Candidate(NamedTuple):
    """A kernel and a relative penalty, with the losses (n,) of rows left out, and its freedom."""

    kernel: Kernel
    relative: float
    losses: Floats
    freedom: float = 0.0

    @property
    def loss(self) -> float:
        """The sum over rows."""
        total = float(self.losses.sum())
        return total if np.isfinite(total) else np.inf


def kernel_and_penalty(
    X: Floats, risks: Sequence[Risk], kernel: Kernel | str, penalty: float | None, solver: str
) -> tuple[Kernel, float]:
    """Both, learned where they are "auto" and None; `risks` have the penalty that was given."""
    given = kernel if isinstance(kernel, Kernel) else None
    if penalty is None:
        return tuned(X, risks, given, solver)
    return learned_scale(X, risks, solver) if given is None else given, penalty


def tuned(
    X: Floats, risks: Sequence[Risk], kernel: Kernel | None, solver: str = "primal"
) -> tuple[Kernel, float]:
    """The kernel, a Gaussian with a learned scale if it is None, and the penalty.

    Several risks belong to several outputs or classes, which share both. The penalty is learned
    from some rows and then scaled to all, for the same sum of losses.
    """
    labelings = [risk.y for risk in risks if has_labels(risk.loss)]
    rows = rows_to_tune(len(X), MOST_TUNED_ROWS, labelings)
    parts = [restricted(risk, rows) for risk in risks]
    own = None
    if kernel is None and len(X) >= MIN_ROWS_OF_OWN_SCALES:
        own = _own_scales(X, risks, rows)
    best = _best_smooth(X[rows], [_smoothed(part) for part in parts], kernel, own)
    if isinstance(risks[0].loss, PiecewiseLinear):
        if not isinstance(risks[0].loss, Hinge) or solver == "primal":
            rows = rows[:MOST_KINKED_ROWS]
            parts = [restricted(risk, rows) for risk in risks]
        best = _best_kinked(X[rows], parts, best.kernel, solver)
    unit = penalty_unit(risks) * diagonal_of(best.kernel, X)
    return best.kernel, best.relative * unit * len(rows) / len(X)


def penalty_unit(risks: Sequence[Risk]) -> float:
    """The unit of penalties for k(x, x) = 1: the loss of a constant over the squared size of y."""
    return float(np.mean([_loss_per_square(risk) for risk in risks]))


def _loss_per_square(risk: Risk) -> float:
    constant = replace(risk, bias=True)
    b = constant.best_bias(np.zeros(len(risk.y))) if _bounded(risk) else 0.0
    value = float(risk.shares @ np.abs(risk.loss.value(risk.y, np.full(len(risk.y), b))))
    total, size = float(risk.shares.sum()), 1.0
    if not (has_labels(risk.loss) or isinstance(risk.loss, PoissonLog)):
        mean = float(risk.shares @ risk.y) / total
        size = float(np.sqrt(risk.shares @ (risk.y - mean) ** 2 / total))
        # what rounding leaves of a constant
        size = size if size > 1e-12 * float(np.abs(risk.y).max()) else 0.0
    return value / size**2 if value > 0.0 and size > 0.0 else total


def diagonal_of(kernel: Kernel, X: Floats) -> float:
    """The mean of k(x, x), or 1 if it is 0."""
    return float(np.mean(kernel.diag(X))) or 1.0


def _own_scales(X: Floats, risks: Sequence[Risk], rows: Ints) -> Floats | None:
    """Scales of columns (d,) from rows that are not among `rows`, which judge them."""
    more = rows_to_tune(len(X), len(rows) + MOST_SCALED_ROWS)
    others = more[~np.isin(more, rows)][:MOST_SCALED_ROWS]
    return own_scales(X[others], [restricted(_smoothed(risk), others) for risk in risks])


def _best_smooth(
    X: Floats, risks: Sequence[Risk], kernel: Kernel | None, own: Floats | None = None
) -> Candidate:
    """The best of all scales that are common to columns, and of those that are their own."""
    if kernel is not None:
        return _simplest(_along_path(kernel, X, risks))
    unit = column_units(X)
    found: dict[float, list[Candidate]] = {}
    for factor in each("learning the scale", SCALE_FACTORS.tolist()):
        found[factor] = _along_path(gaussian_of(unit, factor), X, risks)
    best = min(found, key=lambda factor: min(map(_loss_of, found[factor])))
    for factor in each("refining the scale", between(best)):
        found[factor] = _along_path(gaussian_of(unit, factor), X, risks)
    paths = list(found.values())
    if own is not None:
        paths += [_along_path(gaussian_of(own, t), X, risks) for t in OWN_FACTORS.tolist()]
    return _simplest([candidate for path in paths for candidate in path])


def _simplest(candidates: list[Candidate]) -> Candidate:
    """The candidate with the fewest degrees of freedom among those close to the best."""
    best = min(candidates, key=_loss_of)
    if not np.isfinite(best.loss):
        return best

    def close(other: Candidate) -> bool:
        with np.errstate(invalid="ignore"):
            more = other.losses - best.losses
        error = np.sqrt(len(more)) * float(np.std(more)) if np.isfinite(other.loss) else 0.0
        return other.loss <= best.loss + CLOSE_CALL * error

    return min(filter(close, candidates), key=lambda candidate: candidate.freedom)


def _along_path(kernel: Kernel, X: Floats, risks: Sequence[Risk]) -> list[Candidate]:
    """Candidates with decreasing penalties, and half-way around the best of them."""
    features = Nystroem(MOST_TUNED_FEATURES, random_state=0)(kernel, X)(X)
    unit = penalty_unit(risks) * diagonal_of(kernel, X)

    def candidates(relative: Floats) -> list[Candidate]:
        each_risk = [left_out(features, risk, relative * unit) for risk in risks]
        return [
            Candidate(kernel, t, sum(losses for losses, _ in rows), sum(df for _, df in rows))
            for t, *rows in zip(relative.tolist(), *each_risk, strict=False)
        ]

    with one_thread_if_small(len(X)):
        coarse = candidates(RELATIVE_STEPS)
        best = min(coarse, key=_loss_of).relative
        return coarse + candidates(best * np.sqrt(10.0) ** np.array([1.0, -1.0]))


def left_out(features: Floats, risk: Risk, penalties: Floats) -> list[tuple[Floats, float]]:
    """The losses (n,) of rows left out and the degrees of freedom, for decreasing penalties.

    Each fit starts from the one before. The list ends early once smaller penalties are worse.
    """
    F = np.column_stack([features, np.ones(len(features))]) if risk.bias else features
    ridge = np.full(F.shape[1], 2.0)
    w = np.zeros(F.shape[1])
    if risk.bias:
        ridge[-1], w[-1] = 1e-10, risk.best_bias(np.zeros(len(F)))
    found: list[tuple[Floats, float]] = []
    for penalty in penalties.tolist():
        w = _descend(F, ridge * penalty, risk, w)
        found.append(_left_out_losses(F, ridge * penalty, risk, w))
        totals = [float(losses.sum()) for losses, _ in found[-3:]]
        if len(totals) == 3 and totals[2] > totals[1] > totals[0]:
            break
    return found


def _left_out_losses(F: Floats, ridge: Floats, risk: Risk, w: Floats) -> tuple[Floats, float]:
    """p_i Φ(y_i, f_i + a g/(1 - a h)), with leverage a, slope g and curvature h; and Σ a h."""
    f = F @ w
    g, h, L = _derivatives(F, ridge, risk, f)
    a = np.sum(solve_triangular(L, F.T, lower=True, check_finite=False) ** 2, axis=0)
    left = f + a * g / (1.0 - np.minimum(a * h, LARGEST_LEVERAGE))
    with np.errstate(over="ignore"):
        losses = risk.shares * risk.loss.value(risk.y, left)
    return losses, float(a @ h)


def _descend(F: Floats, ridge: Floats, risk: Risk, w: Floats) -> Floats:
    """The minimum of Σ p Φ(y, Fw) + Σ ridge w²/2, by Newton's method from w."""

    def objective(w: Floats, f: Floats) -> float:
        return float(risk.shares @ risk.loss.value(risk.y, f)) + 0.5 * float(ridge @ w**2)

    f = F @ w
    now = objective(w, f)
    for _ in range(MAX_TUNING_STEPS):
        g, _, L = _derivatives(F, ridge, risk, f)
        slope = F.T @ g + ridge * w
        step = -cho_solve((L, True), slope, check_finite=False)
        gain = -float(slope @ step)
        if gain <= 1e-7 * (abs(now) + 1e-300):
            break
        t, df = 1.0, F @ step
        while t > 1e-6 and not objective(w + t * step, f + t * df) <= now - 1e-4 * t * gain:
            t *= 0.5
        w, f = w + t * step, f + t * df
        now = objective(w, f)
    return w


def _derivatives(F: Floats, ridge: Floats, risk: Risk, f: Floats) -> tuple[Floats, Floats, Floats]:
    """p Φ', p Φ'' and the Cholesky factor of FᵀpΦ''F + diag(ridge)."""
    g = risk.shares * risk.loss.slope(risk.y, f)
    h = risk.shares * risk.loss.curvature(risk.y, f)
    A = F * np.sqrt(h)[:, None]
    return g, h, cholesky(A.T @ A, ridge)


def _best_kinked(X: Floats, risks: Sequence[Risk], kernel: Kernel, solver: str) -> Candidate:
    """The penalty with the smallest cross-validated loss, stopping once smaller ones are worse."""
    unit = penalty_unit(risks) * diagonal_of(kernel, X)
    best = Candidate(kernel, 1.0, np.array([np.inf]))
    worse = 0
    for t in RELATIVE_STEPS.tolist():
        parts = [replace(risk, penalty=t * unit) for risk in risks]
        loss = sum(held_out_loss(kernel, X, part, solver) for part in parts)
        worse = 0 if loss < best.loss else worse + 1
        best = min(best, Candidate(kernel, t, np.array([loss])), key=_loss_of)
        if worse == 2:
            break
    return best


def _smoothed(risk: Risk) -> Risk:
    """A risk with a smooth loss in place of one with kinks."""
    if not isinstance(risk.loss, PiecewiseLinear):
        return risk
    if isinstance(risk.loss, Hinge):
        return replace(risk, loss=Logistic())
    middle = float(np.median(risk.y))
    threshold = 1.4826 * float(np.median(np.abs(risk.y - middle)))
    return replace(risk, loss=Huber(threshold or float(np.std(risk.y)) or 1.0))


def _bounded(risk: Risk) -> bool:
    """Has the mean loss of a constant a minimum at a finite number?"""
    if has_labels(risk.loss):
        return len(np.unique(risk.y)) == 2
    return not isinstance(risk.loss, PoissonLog) or bool(np.any(risk.y > 0.0))


def _loss_of(candidate: Candidate) -> float:
    return candidate.loss
