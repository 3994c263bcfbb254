"""Newton directions for the dual of sums of squares: by conjugate gradients, or directly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_solve

from hplus._checks import Floats
from hplus.solvers.machines.gram import cholesky
from hplus.solvers.sos.barrier import Barrier
from hplus.solvers.sos.blocks import InteriorResponse, curves
from hplus.solvers.sos.problem import LEAST_DIVISOR, Iterate, Problem

MAX_CG_STEPS = 500

DIRECT_HARD, DIRECT_EASY = (1000, 2**24), (250, 2**18)
"""Systems are solved directly up to this many slopes and products of features: more for hard ones,
which are ill-conditioned."""

Operator = Callable[[Floats], Floats]


def direction(
    problem: Problem, now: Iterate, barrier: Barrier, downhill: Floats, aim: float
) -> Floats:
    """d with ∇²(G + barrier) d = downhill, all per unit of share."""
    curvature = problem.rows.conjugate_curvature(now.x)
    outputs = np.arange(now.x.shape[1])
    curvature[:, outputs, outputs] += barrier.curvature(now.x)
    products = len(now.x) * sum(response.weights.size for response in now.responses)
    hard = barrier.boxed.any() or any(isinstance(p, InteriorResponse) for p in now.responses)
    slopes, most = DIRECT_HARD if hard else DIRECT_EASY
    if now.x.size <= slopes and products <= most:
        return _direct(problem, now, curvature, downhill)
    # accurate enough for quadratic convergence, but not beyond the tolerance
    gap = max(now.relative_gap, 1e-12)
    enough = min(0.1, max(np.sqrt(gap), 0.3 * np.sqrt(aim / gap)))
    accuracy = 1e-3 if barrier.boxed.any() else enough
    return _iterative(problem, now, curvature, downhill, accuracy)


def _direct(problem: Problem, now: Iterate, curvature: Floats, downhill: Floats) -> Floats:
    """By a Cholesky factorisation of √p ∇² √p, for few rows."""
    n, K = now.x.shape
    root = np.sqrt(problem.shares)
    H = np.zeros((n, K, n, K))
    H[np.arange(n), :, np.arange(n), :] = curvature
    for c, response in zip(problem.mixing, now.responses, strict=True):
        J = root[:, None] * response.curve_matrix() * root
        H += c[:, None, None] * (J[:, None, :, None] * c)
    free = problem.rows.free.ravel()
    H = H.reshape(n * K, n * K)[np.ix_(free, free)]
    r = (root[:, None] * downhill).ravel()[free]
    d = np.zeros(n * K)
    L = cholesky(H, np.full(len(H), LEAST_DIVISOR))
    d[free] = cho_solve((L, True), r, check_finite=False)
    return d.reshape(n, K) / root[:, None]


def _iterative(
    problem: Problem, now: Iterate, curvature: Floats, downhill: Floats, accuracy: float
) -> Floats:
    """By conjugate gradients with a row-wise preconditioner."""
    free, C, p = problem.rows.free, problem.mixing, problem.shares

    def curve(d: Floats) -> Floats:
        parts = curves(now.responses, problem.slopes(d))
        return np.where(free, _apply(curvature, d) + problem.outputs(parts), 0.0)

    diagonals = np.stack([response.curve_diagonal() for response in now.responses], axis=1)
    blocks = curvature + np.einsum("i,ib,bk,bl->ikl", p, diagonals, C, C, optimize=True)
    outputs = np.arange(now.x.shape[1])
    blocks[:, outputs, outputs] += 1e-14 * blocks[:, outputs, outputs].max() + LEAST_DIVISOR
    inverse = np.linalg.inv(blocks)
    return _conjugate_gradients(curve, lambda r: _apply(inverse, r), downhill, p, accuracy)


def _apply(blocks: Floats, d: Floats) -> Floats:
    """Each row's matrix (outputs, outputs) times its row of d."""
    return np.einsum("ikl,il->ik", blocks, d)


def _conjugate_gradients(
    curve: Operator, precondition: Operator, r: Floats, p: Floats, accuracy: float
) -> Floats:
    """d with curve(d) = r, to a relative `accuracy`, in the inner product weighted by p."""

    def inner(a: Floats, b: Floats) -> float:
        return float(np.einsum("i,ik,ik->", p, a, b))

    d, q = np.zeros_like(r), precondition(r)
    square = first = inner(r, q)
    for _ in range(MAX_CG_STEPS):
        if square <= accuracy**2 * first:
            break
        curved = curve(q)
        length = square / inner(q, curved)
        d, r = d + length * q, r - length * curved
        z = precondition(r)
        square, previous = inner(r, z), square
        q = z + (square / previous) * q
    return d
