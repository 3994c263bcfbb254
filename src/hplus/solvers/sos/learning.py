"""From data to certified functions: features, solution of the dual, thin factors, certificate.

`learn` solves a problem on the features of a map and returns the function of every block, a
weighted sum of kernels (`Function`) or a sum of squares (`SumOfSquares`), certified with fresh
kernel values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hplus._checks import Floats, check_memory
from hplus._threads import one_thread_if_small
from hplus.features import Nystroem, NystroemMap, Pivots
from hplus.kernels import Kernel
from hplus.losses import Loss
from hplus.positivity.cones import Full
from hplus.positivity.sos import SumOfSquares
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import SolverResult
from hplus.solvers.sos.blocks import Squares
from hplus.solvers.sos.nonnegative import certify as certify_nonnegative
from hplus.solvers.sos.nonnegative import solve_nonnegative
from hplus.solvers.sos.paper_cone import paper_cone
from hplus.solvers.sos.problem import Problem
from hplus.solvers.sos.psd import GAP, certify, solve
from hplus.solvers.sos.rowwise import OneOutput, Surprise
from hplus.space import Function

TRUNCATION, EXACT = 1e-9, 1e-13
"""Features are truncated at this share of the largest k(x, x): in general, and for kernels with
finitely many features."""


Learned = tuple[tuple[Function | SumOfSquares, ...], SolverResult]
"""The function of every block, and the quality of the solution."""


def feature_map(kernel: Kernel, X: Floats, landmarks: Nystroem | None) -> NystroemMap:
    """Features on the landmarks or, without any, on all points that the kernel distinguishes."""
    if landmarks is None:
        finite = kernel.feature_count(X.shape[1]) is not None
        return Pivots(EXACT if finite else TRUNCATION)(kernel, X)
    check_fit_memory(len(X), min(len(X), landmarks.landmarks), 1)
    return landmarks(kernel, X)


def check_fit_memory(n: int, m: int, blocks: int) -> None:
    """Raise MemoryError before a fit of n rows on m features allocates too much."""
    need = 8.0 * (3.0 + 2.0 * blocks) * n * m + 48.0 * blocks * m * m
    check_memory(
        need, f"A fit of {n} points on {m} landmarks", "set landmarks, or use fewer of them"
    )


def level_of(y: Floats, shares: Floats) -> float:
    """The size of the targets: their mean absolute value, or 1 if that is almost zero."""
    level = float(shares @ np.abs(y)) / float(shares.sum())
    return level if level > 1e-100 else 1.0


def regression(loss: Loss, y: Floats, shares: Floats, features: Floats, cone: Full) -> Problem:
    """The problem of one sum of squares with one loss."""
    block = Squares(features, cone.trace, cone.frobenius)
    return Problem(OneOutput(loss, y), shares, (block,), np.ones((1, 1)), level_of(y, shares))


def likelihood(
    shares: Floats, features: Floats, measure: Floats, cone: Full, level: float
) -> Problem:
    """The problem  min -Σ p_i log f(x_i) + ∫f  over sums of squares, with ∫f = <measure, A>.

    `level` is the expected size of f, such as one over the volume.
    """
    block = Squares(features, cone.trace, cone.frobenius, measure)
    return Problem(Surprise(len(shares)), shares, (block,), np.ones((1, 1)), level)


def learn(problem: Problem, features: NystroemMap, X: Floats) -> Learned:
    """Solve a problem whose blocks are on `features` of the rows X, and certify the solution."""
    check_fit_memory(len(X), problem.width, len(problem.blocks))
    solved = solve(problem)
    with one_thread_if_small(problem.width):
        weights = with_few_columns(problem, solved.weights)
        functions = tuple(_function(features, w) for w in weights)
        # fresh kernel values: the certificate is for the functions that predict
        z = problem.outputs([f(X) for f in functions])
        return functions, certify(problem, replace(solved, weights=weights), z)


def with_few_columns(problem: Problem, weights: tuple[Floats, ...]) -> tuple[Floats, ...]:
    """Factors with as few columns as keep the objective within a share of the promised gap."""

    def objective(candidate: tuple[Floats, ...]) -> float:
        penalties = (b.penalty_of(w) for b, w in zip(problem.blocks, candidate, strict=True))
        return problem.primal(problem.outputs(problem.values(candidate)), sum(penalties))

    best, bound = weights, objective(weights)
    bound += 0.2 * GAP * abs(bound)
    for share in 10.0 ** np.arange(-12.0, 0.0):
        candidate = tuple(_largest_columns(w, share) for w in weights)
        if not objective(candidate) <= bound:
            break
        best = candidate
    return best


def learn_diagonal(
    kernel: Kernel, X: Floats, Z: Floats, risk: Risk
) -> tuple[SumOfSquares, SolverResult]:
    """Σ_j α_j k(z_j, ·)² with α >= 0, for the rows X of the risk and distinct points Z."""
    check_memory(
        24.0 * len(Z) * (len(X) + len(Z)),
        f"A fit of {len(X)} points with {len(Z)} weights",
        "set landmarks, for example landmarks=1000",
    )
    B, Q = kernel.gram(X, Z) ** 2, kernel(Z) ** 2
    alpha, u, iterations, status = solve_nonnegative(risk, B, Q)
    result = certify_nonnegative(risk, B, Q, alpha, u, iterations, status)
    return _squares_of_kernels(kernel, Z, alpha), result


def learn_paper(
    kernel: Kernel, X: Floats, y: Floats, shares: Floats, penalty: float
) -> tuple[SumOfSquares, SolverResult]:
    """Σ_l α_l k(x_l, ·)² in the cone of [bagnell2015], for the squared loss."""
    Z, inverse = np.unique(X, axis=0, return_inverse=True)
    mass, total = np.zeros(len(Z)), np.zeros(len(Z))
    np.add.at(mass, inverse.ravel(), shares)
    np.add.at(total, inverse.ravel(), shares * y)
    mean = total / mass
    alpha, result = paper_cone(kernel(Z), mean, mass, penalty)
    # Σ p (f - y)² = Σ p (f - ȳ)² + Σ p (y - ȳ)² for targets at the same point
    rest = float(shares @ (y - mean[inverse.ravel()]) ** 2)
    result = replace(result, objective=result.objective + rest, size=result.size + rest)
    return _squares_of_kernels(kernel, Z, alpha), result


def _squares_of_kernels(kernel: Kernel, Z: Floats, alpha: Floats) -> SumOfSquares:
    kept = alpha > 0.0
    return SumOfSquares(kernel, Z[kept], np.sqrt(alpha[kept]))


def _largest_columns(weights: Floats, share: float) -> Floats:
    """The columns of a factor whose squared norm is above a share of the largest."""
    if weights.ndim == 1:
        return weights
    squares = np.einsum("ij,ij->j", weights, weights)
    return weights[:, squares > share * squares.max(initial=0.0)]


def _function(features: NystroemMap, weights: Floats) -> Function | SumOfSquares:
    kind = Function if weights.ndim == 1 else SumOfSquares
    return kind(features.kernel, features.centers, features.root @ weights)
