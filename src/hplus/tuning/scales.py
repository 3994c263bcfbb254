"""Learning the scale of a Gaussian kernel, and penalties, from data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.optimize import minimize_scalar

from hplus._checks import Floats, Ints
from hplus._progress import each, step
from hplus._threads import one_thread_if_small
from hplus.features import Pivots
from hplus.kernels import Gaussian, Kernel
from hplus.losses import LABEL_LOSSES, Loss, Squared
from hplus.positivity import Cone, Diagonal, Full, Paper
from hplus.solvers.machines.gram import cholesky
from hplus.solvers.machines.representer import AllPoints, train
from hplus.solvers.machines.risk import Risk
from hplus.solvers.sos.learning import level_of, regression
from hplus.solvers.sos.problem import Problem
from hplus.solvers.sos.psd import solve
from hplus.solvers.sos.rowwise import OneOutput, RowLoss

MOST_ROWS = 1000
"""Scales are learned from at most this many rows."""

MOST_BOUNDED_ROWS = 300
"""The same for losses with bounded slopes, which take longer."""

FOLDS = 5

SCALE_FACTORS = 2.0 ** np.arange(-4.0, 4.0)
"""Candidate scales, in units of √d standard deviations of the columns."""

RELATIVE_PENALTIES = 10.0 ** np.arange(0.0, -6.0, -1.0)
"""Candidate penalties in decreasing order, in units of the loss of a constant function."""

MOST_FEATURES = 200
"""At most this many features are used to compare scales and penalties of sums of squares."""


def learned_scale(X: Floats, risks: Sequence[Risk], solver: str = "primal") -> Gaussian:
    """The best Gaussian for risks: by leave-one-out for the squared loss, else by folds."""
    if isinstance(risks[0].loss, Squared):
        shares, penalty = risks[0].shares, risks[0].penalty
        Y = np.stack([risk.y for risk in risks], axis=1)
        center = shares @ Y / shares.sum() if risks[0].bias else 0.0
        return leave_one_out_scale(X, Y - center, shares, penalty)
    return cross_validated_scale(X, risks, solver)


def leave_one_out_scale(X: Floats, Y: Floats, shares: Floats, penalty: float) -> Gaussian:
    """The Gaussian with the smallest leave-one-out error of kernel ridge, in closed form.

    The scale of each column is its standard deviation times one common factor, which is learned.
    """
    rows = _subset(len(X))
    X, Y, shares = X[rows], Y[rows], shares[rows] / shares[rows].sum()
    unit = column_units(X)

    def error(log_factor: float) -> float:
        K = gaussian_of(unit, np.exp(log_factor)).gram(X, X)
        return leave_one_out_error(K, Y, shares, penalty)

    grid = np.log(SCALE_FACTORS)
    errors = [error(g) for g in each("learning the scale", grid)]
    best = int(np.argmin(errors))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    fine = minimize_scalar(error, bounds=(low, high), method="bounded", options={"xatol": 0.05})
    winner = fine.x if fine.fun < errors[best] else grid[best]
    return gaussian_of(unit, float(np.exp(winner)))


def leave_one_out_error(K: Floats, Y: Floats, shares: Floats, penalty: float) -> float:
    """Σ_i p_i |y_i - f₋ᵢ(x_i)|², f₋ᵢ the ridge fit without point i [math, Eq. 2.9].

    With A = K + diag(penalty/p), y_i - f₋ᵢ(x_i) = (A⁻¹Y)_i/(A⁻¹)_ii. K is overwritten.
    """
    L = cholesky(K, penalty / shares)
    with one_thread_if_small(len(K)):
        inverse = np.tril(dtrtri(L, lower=1)[0])
        C = inverse.T @ (inverse @ np.reshape(Y, (len(Y), -1)))
    residuals = C / np.einsum("ki,ki->i", inverse, inverse)[:, None]
    return float(shares @ np.sum(residuals**2, axis=1))


def cross_validated_scale(X: Floats, risks: Sequence[Risk], solver: str = "primal") -> Gaussian:
    """The Gaussian with the smallest 5-fold cross-validated loss, summed over `risks`.

    Several risks belong to several classes, each against the rest. If a class is too rare for any
    fold to be held out, the factor is 1.
    """
    rows = _subset(len(X), [risk.y for risk in risks if has_labels(risk.loss)])
    parts = [restricted(risk, rows) for risk in risks]
    unit = column_units(X[rows])

    def loss(factor: float) -> float:
        kernel = gaussian_of(unit, factor)
        return sum(held_out_loss(kernel, X[rows], part, solver) for part in parts)

    ladder = each("learning the scale", SCALE_FACTORS.tolist())
    losses = {factor: loss(factor) for factor in ladder}
    best = min(losses, key=losses.__getitem__)
    if not np.isfinite(losses[best]):
        return gaussian_of(unit, 1.0)
    halfway = each("refining the scale", between(best))
    losses |= {factor: loss(factor) for factor in halfway}
    return gaussian_of(unit, min(losses, key=losses.__getitem__))


def between(best: float) -> tuple[float, float]:
    """Two more candidates, half-way from the best one to its neighbours."""
    return best / np.sqrt(2.0), best * np.sqrt(2.0)


def held_out_loss(kernel: Kernel, X: Floats, risk: Risk, solver: str = "primal") -> float:
    """The 5-fold cross-validated mean loss of a kernel machine.

    Labels are spread evenly over the folds; infinite if no fold leaves both of them to train on.
    """
    labels = has_labels(risk.loss)
    fold = _folds(risk.y if labels else np.zeros(len(X)))
    total = weight = 0.0
    for k in range(FOLDS):
        inside, outside = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        trainable = len(inside) and (not labels or len(np.unique(risk.y[inside])) == 2)
        if trainable and len(outside):
            basis = AllPoints(kernel, X[inside])
            trained = train(basis, restricted(risk, inside), solver)
            f = basis.function(trained.coefficients)(X[outside]) + trained.bias
            total += float(risk.shares[outside] @ risk.loss.value(risk.y[outside], f))
            weight += float(risk.shares[outside].sum())
    return total / weight if weight > 0.0 else np.inf


def cross_validated_squares(
    X: Floats, y: Floats, shares: Floats, loss: Loss, kernel: Kernel | str, cone: Cone | None
) -> tuple[Kernel, Cone]:
    """The kernel and the cone, learned by cross-validation where they are not given.

    The kernel "auto" is a Gaussian, and the cone None a `Full` one with learned penalties. For a
    smaller cone the scale is learned in the full cone with the same penalty. At most 1,000 rows
    are used, 300 for losses with bounded slopes; penalties are then scaled to all rows.
    """
    if isinstance(kernel, Kernel) and cone is not None:
        return kernel, cone
    rows = _subset(len(X))[: _most_rows(OneOutput(loss, y))]
    share = len(rows) / len(X)
    X, y, shares = X[rows], y[rows], shares[rows] / shares[rows].sum()
    unit = column_units(X)

    def compare(factor: float) -> dict[tuple[float, Full], float]:
        k = kernel if isinstance(kernel, Kernel) else gaussian_of(unit, factor)
        cones = penalty_path(k, X, y, shares, loss) if cone is None else [_as_full(cone)]
        losses = held_out_squares(k, X, y, shares, loss, cones)
        return {(factor, c): value for c, value in zip(cones, losses, strict=True)}

    if isinstance(kernel, Kernel):
        step("learning penalties", 0, 1)
        losses = compare(1.0)
        step("learning penalties", 1, 1)
        return kernel, _for_more_rows(min(losses, key=losses.__getitem__)[1], share)
    ladder = each("learning the scale", SCALE_FACTORS.tolist())
    losses = {key: value for f in ladder for key, value in compare(f).items()}
    best, _ = min(losses, key=losses.__getitem__)
    for factor in each("refining the scale", between(best)):
        losses |= compare(factor)
    best, learned = min(losses, key=losses.__getitem__)
    return gaussian_of(unit, best), cone or _for_more_rows(learned, share)


def held_out_squares(
    kernel: Kernel, X: Floats, y: Floats, shares: Floats, loss: Loss, cones: Sequence[Full]
) -> Floats:
    """The cross-validated mean loss of a sum of squares, for each of the cones."""
    features = tuning_features(kernel, X)
    return held_out_losses([regression(loss, y, shares, features, cone) for cone in cones])


def tuning_features(kernel: Kernel, X: Floats) -> Floats:
    """Features of X that are accurate enough to compare scales and penalties."""
    return Pivots(1e-6)(kernel, X)(X)[:, :MOST_FEATURES]


def learned_cone(
    kernel: Kernel,
    X: Floats,
    rows: RowLoss,
    shares: Floats,
    problem: Callable[[RowLoss, Floats, Floats, Full], Problem],
) -> Full:
    """The cone Full(t/10, t) with the smallest cross-validated loss, for outputs of unit size.

    `problem` builds a problem from rows, their shares, their features and a cone.
    """
    some = _subset(len(X))[: _most_rows(rows)]
    features, part = tuning_features(kernel, X[some]), rows.part(some)
    weights = shares[some] / shares[some].sum()
    # a large trace penalty would pull small functions, such as the gap between two quantiles, to 0
    cones = [Full(0.1 * t, t) for t in RELATIVE_PENALTIES.tolist()]
    path = [problem(part, weights, features, cone) for cone in cones]
    losses = held_out_losses(path, "learning penalties")
    return _for_more_rows(cones[int(np.argmin(losses))], len(some) / len(X))


def _most_rows(rows: RowLoss) -> int:
    return MOST_BOUNDED_ROWS if rows.boxed.any() else MOST_ROWS


def _for_more_rows(cone: Full, share: float) -> Full:
    """Penalties for all rows from penalties learned on a share of them, for the same sum."""
    return Full(share * cone.trace, share * cone.frobenius)


def held_out_losses(path: Sequence[Problem], stage: str | None = None) -> Floats:
    """The cross-validated mean loss of each problem on a path of decreasing penalties.

    All problems share their features, and each starts from the solution of the one before. With a
    `stage`, the progress over the folds is reported.
    """
    n, losses = len(path[0].shares), np.zeros(len(path))
    fold, folds = np.arange(n) % FOLDS, range(min(FOLDS, n) if n > 1 else 0)
    for k in folds if stage is None else each(stage, folds):
        start = softness = None
        for i, problem in enumerate(path):
            solved = solve(problem.part(fold != k), start, softness, tolerance=1e-3)
            start, softness = solved.x, problem.hardest
            each_row = problem.rows.value(problem.outputs(problem.values(solved.weights)))
            losses[i] += float(problem.shares[fold == k] @ each_row[fold == k])
    return losses


def penalty_path(kernel: Kernel, X: Floats, y: Floats, shares: Floats, loss: Loss) -> list[Full]:
    """Penalties in decreasing order, which follow the units of y and k."""
    level = level_of(y, shares)
    size = level / (float(shares @ kernel.diag(X)) or 1.0)  # the size of A for a constant function
    value = float(shares @ np.abs(loss.value(y, np.full(y.shape, level)))) or level
    return [Full(t * value / size, t * value / size**2) for t in RELATIVE_PENALTIES.tolist()]


def _as_full(cone: Cone) -> Full:
    """The full cone with the same penalty."""
    if isinstance(cone, Diagonal | Paper):
        return Full(0.0, 2.0 * cone.penalty)
    assert isinstance(cone, Full)
    return cone


def has_labels(loss: Loss) -> bool:
    """Is this a loss for labels -1 and 1?"""
    return isinstance(loss, tuple(LABEL_LOSSES.values()))


def _folds(labels: Floats) -> Ints:
    """The fold of each point; the points of each label take turns."""
    fold = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        fold[rows] = np.arange(len(rows)) % FOLDS
    return fold


def _subset(n: int, labelings: Sequence[Floats] = ()) -> Ints:
    return rows_to_tune(n, MOST_ROWS, labelings)


def rows_to_tune(n: int, most: int, labelings: Sequence[Floats] = ()) -> Ints:
    """About `most` of n row numbers, in random order.

    At least 2 FOLDS rows of every label are included, if there are that many.
    """
    order = np.random.default_rng(0).permutation(n)
    rare = [order[labels[order] == 1.0][: 2 * FOLDS] for labels in labelings]
    rare += [order[labels[order] == -1.0][: 2 * FOLDS] for labels in labelings]
    rows = np.concatenate([*rare, order[:most]])
    return rows[np.sort(np.unique(rows, return_index=True)[1])]


def restricted(risk: Risk, rows: Ints) -> Risk:
    """The risk of some points, with shares rescaled to the same sum."""
    shares = risk.shares[rows] * (risk.shares.sum() / risk.shares[rows].sum())
    return replace(risk, y=risk.y[rows], shares=shares)


def column_units(X: Floats) -> Floats:
    """√d times the standard deviation of each column, or √d for a constant column."""
    spread = X.std(axis=0)
    return np.where(spread > 0.0, spread, 1.0) * np.sqrt(X.shape[1])


def gaussian_of(unit: Floats, factor: float) -> Gaussian:
    return Gaussian(tuple((factor * unit).tolist()))
