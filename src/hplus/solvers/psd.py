"""Sums of squares by their dual: semismooth Newton, with a barrier where slopes have bounds.

The problem is  min Σ_i p_i ℓ_i(z_i) + Σ_b penalty_b(g_b),  where the outputs z_i = (g_1, …, g_B) C
of row i mix the unknown functions g_b of `blocks`. Its dual is in the slopes x (n, outputs):
    minimise  G(x) = Σ_i p_i ℓ_i*(x_i) + Σ_b ψ_b(p ∘ (x Cᵀ)_b)   [math, Eq. 3.5]
and -G(x) <= min <= P(g) for every x and g, so that each iterate carries a certified gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve

from hplus._checks import Floats
from hplus._threads import one_thread_if_small
from hplus.solvers.barrier import Barrier
from hplus.solvers.blocks import Block, Ease, InteriorPoint, Point
from hplus.solvers.gram import cholesky
from hplus.solvers.result import SolverResult, Status
from hplus.solvers.rowwise import RowLoss

GAP, AIM = 1e-6, 1e-7
"""The relative gap that is promised, and the one that the solver aims at."""

LIMIT = 100
"""Newton steps of each of the two methods."""

COARSE, SHRINK = 100, 4
"""Problems with more features start from the solution with a fourth of them."""

CG_LIMIT = 500

DENSE, DENSE_PRODUCTS = 1000, 2**24
"""Up to so many slopes, and products of features at all rows, systems are solved directly."""

NEGLIGIBLE = 1e-6
"""An objective below this share of the usual loss counts as zero."""

EASY = 1e-2
"""The share of the loss that the frobenius penalty has where a problem is easy."""

TINY = 1e-100
"""In place of zero in a division."""

Operator = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Problem:
    """Rows with shares p (n,), blocks of unknown functions, and their mixing C (B, outputs).

    `level` is the size of outputs that one would expect.
    """

    rows: RowLoss
    shares: Floats
    blocks: tuple[Block, ...]
    mixing: Floats
    level: float = 1.0

    @property
    def width(self) -> int:
        """The number of features."""
        return self.blocks[0].features.shape[1]

    def slopes(self, x: Floats) -> Floats:
        """The slopes a (n, B) that the blocks are asked with."""
        return (x @ self.mixing.T) * self.shares[:, None]

    def outputs(self, values: list[Floats]) -> Floats:
        """z (n, outputs) from the values of the blocks."""
        return np.stack(values, axis=1) @ self.mixing

    def primal(self, z: Floats, penalty: float) -> float:
        """P = Σ p ℓ(z) + penalty."""
        return float(self.shares @ self.rows.value(z)) + penalty

    def size(self, z: Floats, penalty: float) -> float:
        """Σ p |ℓ(z)| + penalty: P, but for losses of both signs; never far below the usual."""
        here = float(self.shares @ np.abs(self.rows.value(z))) + penalty
        return max(here, NEGLIGIBLE * self.usual_loss)

    @cached_property
    def usual_loss(self) -> float:
        """Σ p |ℓ| for outputs of half the level, which fit nothing well."""
        z = np.full(self.rows.low.shape, 0.5 * self.level)
        return float(self.shares @ np.abs(self.rows.value(z)))

    @cached_property
    def isotropic(self) -> float:
        """c for which the functions c‖φ(x)‖² come nearest to the level."""
        norms, p = self._norms, self.shares
        return self.level * float(p @ norms) / max(float(p @ norms**2), TINY)

    @property
    def easy(self) -> float:
        """A frobenius penalty of which functions of the size of the level pay little."""
        c = self.isotropic
        return EASY * self.usual_loss / c**2 if c > 0.0 else 0.0

    def start(self) -> Floats:
        """Slopes to begin with, those of the functions c‖φ(x)‖²."""
        return self.rows.start(np.maximum(self.isotropic * self._norms, 1e-2 * self.level))

    @cached_property
    def _norms(self) -> Floats:
        features = self.blocks[0].features
        return np.einsum("ij,ij->i", features, features)


@dataclass(frozen=True)
class Iterate:
    """Slopes x, the blocks' answers, outputs z, G(x), a smooth stand-in for G, and P."""

    x: Floats
    points: tuple[Point, ...]
    z: Floats
    dual: float
    smoothed: float
    primal: float
    size: float

    @property
    def gap(self) -> float:
        """P + G."""
        gap = self.primal + self.dual
        return gap if np.isfinite(gap) else np.inf

    @property
    def relative_gap(self) -> float:
        """The gap in units of the size of P."""
        return self.gap / max(self.size, TINY) if np.isfinite(self.gap) else np.inf

    def solved(self, iterations: int, status: Status) -> Solved:
        """This iterate as the answer."""
        weights = tuple(point.weights for point in self.points)
        return Solved(self.x, weights, iterations, status)


@dataclass(frozen=True)
class Solved:
    """The slopes of the last iterate and the weights of every block there."""

    x: Floats
    weights: tuple[Floats, ...]
    iterations: int
    status: Status


def solve(
    problem: Problem,
    start: Floats | None = None,
    softness: float | None = None,
    tolerance: float = AIM,
) -> Solved:
    """Minimise G from the slopes `start` (n, outputs), down from penalties of at least `softness`.

    Without a start, slopes of the expected level. `softness` is a frobenius penalty at which the
    problem is easy, which falls as the gap closes; by default the problem's own.
    """
    start = problem.start() if start is None else start
    softness = problem.easy if softness is None else softness
    if problem.width > COARSE:
        few = narrowed(problem, problem.width // SHRINK)
        start, softness = solve(few, start, softness, 1e-3).x, 0.0
    with one_thread_if_small(problem.width):
        solved = _descend(problem, start, softness, tolerance)
        if solved.status is Status.CONVERGED:
            return solved
        return _follow_path(problem, tolerance)


def narrowed(problem: Problem, width: int) -> Problem:
    """The problem on the first features only: its slopes are good ones for the whole."""
    return replace(problem, blocks=tuple(block.narrowed(width) for block in problem.blocks))


def certify(
    problem: Problem,
    weights: tuple[Floats, ...],
    z: Floats,
    x: Floats,
    iterations: int,
    status: Status,
) -> SolverResult:
    """P and -G from the functions' weights, their outputs z at the rows and the slopes x alone."""
    penalty = sum(block.penalty_of(w) for block, w in zip(problem.blocks, weights, strict=True))
    P, size = problem.primal(z, penalty), problem.size(z, penalty)
    inside = np.clip(x, problem.rows.low, problem.rows.high)
    a = problem.slopes(inside)
    D = -float(problem.shares @ problem.rows.conjugate(inside)) - sum(
        block.conjugate(a[:, b]) for b, block in enumerate(problem.blocks)
    )
    gap = max(P - D, 0.0) if np.isfinite(P - D) else np.inf
    result = SolverResult(status, iterations, P, gap, size)
    if result.relative_gap <= GAP:
        return replace(result, status=Status.CONVERGED)
    return result if status is not Status.CONVERGED else replace(result, status=Status.STALLED)


def _descend(problem: Problem, start: Floats, softness: float, tolerance: float) -> Solved:
    """Semismooth Newton, from an easy frobenius penalty down to the true one."""
    barrier = Barrier.around(problem.rows)
    hardest = min(getattr(block, "frobenius", np.inf) for block in problem.blocks)
    ease = Ease(softness=max(softness, hardest))
    now = _evaluate(problem, barrier.pulled_in(start), ease)
    barrier = barrier.balanced(problem.rows.conjugate_slope(now.x) - now.z)
    step, iterations = Step(1.0, cut=False), 0
    while iterations < LIMIT and step.length > 0.0:
        true = ease.softness <= hardest
        if true and now.relative_gap <= tolerance:
            return now.solved(iterations, Status.CONVERGED)
        if not true and not step.cut and now.relative_gap < 0.5:
            ease = Ease(softness=max(hardest, 0.2 * ease.softness))
            now = _evaluate(problem, now.x, ease)
        iterations += 1
        together = barrier.complementarity(now.x, problem.shares)
        target = step.centring * max(together, 0.03 * now.gap)
        now, barrier, step = _newton_step(problem, now, barrier, target, ease)
    return now.solved(iterations, Status.MAX_ITER if step.length > 0.0 else Status.STALLED)


def _follow_path(problem: Problem, tolerance: float) -> Solved:
    """An interior point method: Newton with a barrier for A ≻ 0 that falls with the gap.

    Slower than `_descend` on large problems, but sure where the penalties are next to nothing.
    """
    barrier = Barrier.around(problem.rows)
    sides = 2.0 * float(problem.shares @ barrier.boxed.sum(axis=1))
    weight = sides + sum(block.features.shape[1] for block in problem.blocks)
    target = problem.usual_loss / weight
    now = _evaluate(problem, barrier.pulled_in(problem.start()), Ease(smoothing=target))
    barrier = barrier.balanced(problem.rows.conjugate_slope(now.x) - now.z)
    step, iterations = Step(1.0, cut=False), 0
    while iterations < LIMIT and step.length > 0.0:
        if now.relative_gap <= tolerance:
            return now.solved(iterations, Status.CONVERGED)
        iterations += 1
        target = min(target, step.centring * now.gap / weight)
        now = _eased(problem, now, target)
        now, barrier, step = _newton_step(problem, now, barrier, target, Ease(smoothing=target))
    return now.solved(iterations, Status.MAX_ITER if step.length > 0.0 else Status.STALLED)


def _evaluate(problem: Problem, x: Floats, ease: Ease) -> Iterate:
    a = problem.slopes(x)
    return _iterate(problem, x, [b.answer(a[:, i], ease) for i, b in enumerate(problem.blocks)])


def _eased(problem: Problem, now: Iterate, smoothing: float) -> Iterate:
    """The same slopes with another barrier."""
    points = [p.eased(smoothing) if isinstance(p, InteriorPoint) else p for p in now.points]
    return _iterate(problem, now.x, points)


def _iterate(problem: Problem, x: Floats, points: Sequence[Point]) -> Iterate:
    z = problem.outputs([point.values for point in points])
    penalty = sum(point.penalty for point in points)
    conjugate = float(problem.shares @ problem.rows.conjugate(x))
    return Iterate(
        x,
        tuple(points),
        z,
        conjugate + sum(point.conjugate for point in points),
        conjugate + sum(point.smoothed for point in points),
        problem.primal(z, penalty),
        problem.size(z, penalty),
    )


@dataclass(frozen=True)
class Step:
    """The length of a step, and whether the line search had to cut it."""

    length: float
    cut: bool

    @property
    def centring(self) -> float:
        """How far to bring a barrier down next: boldly after a long step."""
        return 0.05 if self.length > 0.9 else 0.2 if self.length > 0.3 else 0.5


def _newton_step(
    problem: Problem, now: Iterate, barrier: Barrier, target: float, ease: Ease
) -> tuple[Iterate, Barrier, Step]:
    """One step of Newton's method on G plus the barrier, and what it leads to."""
    rows, p = problem.rows, problem.shares
    target = target if barrier.boxed.any() else 0.0
    downhill = now.z - rows.conjugate_slope(now.x) + barrier.force(now.x, target)
    downhill = np.where(rows.low < rows.high, downhill, 0.0)
    d = _direction(problem, now, barrier, downhill)
    merit = now.smoothed + barrier.value(now.x, target, p)
    promise = float(p @ (downhill * d).sum(axis=1))
    length, cut = barrier.longest(now.x, d), False
    while length > 1e-10:
        x = now.x + length * d
        if np.isfinite(rows.conjugate(x)).all():
            there = _evaluate(problem, x, ease)
            bound = merit - 1e-4 * length * promise + 1e-12 * abs(merit)
            if there.smoothed + barrier.value(x, target, p) <= bound:
                return there, barrier.moved(now.x, d, target), Step(length, cut)
        length, cut = 0.5 * length, True
    return now, barrier, Step(0.0, cut=True)


def _direction(problem: Problem, now: Iterate, barrier: Barrier, downhill: Floats) -> Floats:
    """d with ∇²(G + barrier) d = downhill, all per unit of share."""
    curvature = problem.rows.conjugate_curvature(now.x)
    outputs = np.arange(now.x.shape[1])
    curvature[:, outputs, outputs] += barrier.curvature(now.x)
    products = len(now.x) * sum(point.weights.size for point in now.points)
    if now.x.size <= DENSE and products <= DENSE_PRODUCTS:
        return _direct(problem, now, curvature, downhill)
    # Newton squares the error, but no better than to end below the tolerance
    gap = max(now.relative_gap, 1e-12)
    enough = min(0.1, max(np.sqrt(gap), 0.3 * np.sqrt(AIM / gap)))
    accuracy = 1e-3 if barrier.boxed.any() else enough
    return _iterative(problem, now, curvature, downhill, accuracy)


def _direct(problem: Problem, now: Iterate, curvature: Floats, downhill: Floats) -> Floats:
    """By Cholesky factorisation of the matrix √p ∇² √p, for few rows."""
    n, K = now.x.shape
    root = np.sqrt(problem.shares)
    H = np.zeros((n, K, n, K))
    H[np.arange(n), :, np.arange(n), :] = curvature
    for c, point in zip(problem.mixing, now.points, strict=True):
        J = root[:, None] * point.curve_matrix() * root
        H += c[:, None, None] * (J[:, None, :, None] * c)
    free = (problem.rows.low < problem.rows.high).ravel()
    H = H.reshape(n * K, n * K)[np.ix_(free, free)]
    r = (root[:, None] * downhill).ravel()[free]
    d = np.zeros(n * K)
    L = cholesky(H, np.full(len(H), TINY))
    d[free] = cho_solve((L, True), r, check_finite=False)
    return d.reshape(n, K) / root[:, None]


def _iterative(
    problem: Problem, now: Iterate, curvature: Floats, downhill: Floats, accuracy: float
) -> Floats:
    """By conjugate gradients, preconditioned row by row."""
    free, C, p = problem.rows.low < problem.rows.high, problem.mixing, problem.shares

    def curve(d: Floats) -> Floats:
        a = problem.slopes(d)
        parts = [point.curve(a[:, b]) for b, point in enumerate(now.points)]
        return np.where(free, _apply(curvature, d) + problem.outputs(parts), 0.0)

    diagonals = np.stack([point.curve_diagonal() for point in now.points], axis=1)
    blocks = curvature + np.einsum("i,ib,bk,bl->ikl", p, diagonals, C, C, optimize=True)
    outputs = np.arange(now.x.shape[1])
    blocks[:, outputs, outputs] += 1e-14 * blocks[:, outputs, outputs].max() + TINY
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
    for _ in range(CG_LIMIT):
        if square <= accuracy**2 * first:
            break
        curved = curve(q)
        length = square / inner(q, curved)
        d, r = d + length * q, r - length * curved
        z = precondition(r)
        square, previous = inner(r, z), square
        q = z + (square / previous) * q
    return d
