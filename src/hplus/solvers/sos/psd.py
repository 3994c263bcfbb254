"""Sums of squares by their dual: semismooth Newton, with a barrier where slopes are bounded.

The dual of a `Problem` minimises, over the slopes x (n, outputs),
    G(x) = Σ_i p_i ℓ_i*(x_i) + Σ_b ψ_b(p ∘ (x Cᵀ)_b)   [math, Eq. 3.5]
and -G(x) <= min <= P(g) for every x and g, so that each iterate carries a certified gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hplus._checks import Floats
from hplus._threads import one_thread_if_small
from hplus.solvers.result import SolverResult, Status
from hplus.solvers.sos.barrier import Barrier
from hplus.solvers.sos.blocks import Relaxation
from hplus.solvers.sos.directions import direction
from hplus.solvers.sos.problem import DualSolution, Iterate, Problem, evaluate, relaxed

GAP, AIM = 1e-6, 1e-7
"""The relative gap that is promised, and the one that the solver aims at."""

MAX_NEWTON_STEPS, MAX_ROUGH_STEPS = 100, 30
"""Newton steps of each of the two methods, and for a rough solution."""


def solve(
    problem: Problem,
    start: Floats | None = None,
    softness: float | None = None,
    tolerance: float = AIM,
) -> DualSolution:
    """Minimise G from the slopes `start` (n, outputs), down from penalties of at least `softness`.

    By default the slopes are those of functions of the expected level. `softness` is a frobenius
    penalty at which the problem is easy; it decreases as the gap closes. With a large `tolerance`,
    for a rough solution, the second method is not tried.
    """
    softness = problem.softness if softness is None else softness
    if start is None and problem.has_many_rows and not problem.bounded:
        # bounded slopes would lie at their bounds, which is a poor start
        few = solve(problem.thinned(), tolerance=1e-3)
        start, softness = problem.start(few.weights), 0.0
    elif start is None and problem.has_spare_features:
        start, softness = solve(problem.narrowed(), None, softness, tolerance=1e-3).x, 0.0
    start = problem.start() if start is None else start
    with one_thread_if_small(problem.width):
        solved = _descend(problem, start, softness, tolerance)
        if solved.status is Status.CONVERGED or tolerance > GAP:
            return solved
        sure = _follow_path(problem, tolerance)
        return replace(sure, iterations=solved.iterations + sure.iterations)


def certify(problem: Problem, solved: DualSolution, z: Floats) -> SolverResult:
    """P and -G from the weights of the functions, their outputs z at the rows, and the slopes."""
    pairs = zip(problem.blocks, solved.weights, strict=True)
    penalty = sum(block.penalty_of(w) for block, w in pairs)
    P, size = problem.primal(z, penalty), problem.size(z, penalty)
    x = np.clip(solved.x, problem.rows.low, problem.rows.high)
    a = problem.slopes(x)
    D = -float(problem.shares @ problem.rows.conjugate(x)) - sum(
        block.conjugate(a[:, b]) for b, block in enumerate(problem.blocks)
    )
    # at the optimum rounding may leave D slightly above P; more would mean a wrong bound
    sound = np.isfinite(P - D) and P - D >= -1e-9 * size
    gap = max(P - D, 0.0) if sound else np.inf
    return SolverResult(solved.status, solved.iterations, P, gap, size).judged(GAP)


def _descend(problem: Problem, start: Floats, softness: float, tolerance: float) -> DualSolution:
    """Semismooth Newton, from an easy frobenius penalty down to the actual one."""
    barrier = Barrier.around(problem.rows)
    hardest = problem.hardest
    relaxation = Relaxation(softness=max(softness, hardest))
    now = evaluate(problem, barrier.pulled_in(start), relaxation)
    barrier = barrier.balanced(problem.rows.conjugate_slope(now.x) - now.z)
    step, iterations = Step(1.0, cut=False), 0
    while (
        iterations < (MAX_NEWTON_STEPS if tolerance <= GAP else MAX_ROUGH_STEPS)
        and step.length > 0.0
    ):
        true = relaxation.softness <= hardest
        if true and now.relative_gap <= tolerance:
            return now.solved(iterations, Status.CONVERGED)
        if not true and not step.cut and now.relative_gap < 0.5:
            relaxation = Relaxation(softness=max(hardest, 0.2 * relaxation.softness))
            now = evaluate(problem, now.x, relaxation)
        iterations += 1
        together = barrier.complementarity(now.x, problem.shares)
        target = step.centring * max(together, 0.03 * now.gap)
        now, barrier, step = _newton_step(problem, now, barrier, target, relaxation, tolerance)
    return now.solved(iterations, Status.MAX_ITER if step.length > 0.0 else Status.STALLED)


def _follow_path(problem: Problem, tolerance: float) -> DualSolution:
    """An interior-point method: Newton with a barrier for A ≻ 0 that decreases with the gap.

    Slower than `_descend` on large problems, but reliable for tiny penalties.
    """
    barrier = Barrier.around(problem.rows)
    sides = 2.0 * float(problem.shares @ barrier.boxed.sum(axis=1))
    weight = sides + sum(block.features.shape[1] for block in problem.blocks)
    target = problem.usual_loss / weight
    now = evaluate(problem, barrier.pulled_in(problem.start()), Relaxation(smoothing=target))
    barrier = barrier.balanced(problem.rows.conjugate_slope(now.x) - now.z)
    step, iterations = Step(1.0, cut=False), 0
    while iterations < MAX_NEWTON_STEPS and step.length > 0.0:
        if now.relative_gap <= tolerance:
            return now.solved(iterations, Status.CONVERGED)
        iterations += 1
        target = min(target, step.centring * now.gap / weight)
        now = relaxed(problem, now, target)
        relaxation = Relaxation(smoothing=target)
        now, barrier, step = _newton_step(problem, now, barrier, target, relaxation, tolerance)
    return now.solved(iterations, Status.MAX_ITER if step.length > 0.0 else Status.STALLED)


@dataclass(frozen=True)
class Step:
    """The length of a step, and whether the line search had to cut it."""

    length: float
    cut: bool

    @property
    def centring(self) -> float:
        """The factor by which to reduce the barrier: a small one after a long step."""
        return 0.05 if self.length > 0.9 else 0.2 if self.length > 0.3 else 0.5


def _newton_step(
    problem: Problem,
    now: Iterate,
    barrier: Barrier,
    target: float,
    relaxation: Relaxation,
    aim: float,
) -> tuple[Iterate, Barrier, Step]:
    """One Newton step on G plus the barrier: the next iterate, its barrier, and the step."""
    rows, p = problem.rows, problem.shares
    target = target if barrier.boxed.any() else 0.0
    downhill = now.z - rows.conjugate_slope(now.x) + barrier.force(now.x, target)
    downhill = np.where(rows.free, downhill, 0.0)
    d = direction(problem, now, barrier, downhill, aim)
    merit = now.smoothed + barrier.value(now.x, target, p)
    promise = float(p @ (downhill * d).sum(axis=1))
    length, cut = barrier.longest(now.x, d), False
    while length > 1e-10:
        x = now.x + length * d
        if np.isfinite(rows.conjugate(x)).all():
            there = evaluate(problem, x, relaxation)
            bound = merit - 1e-4 * length * promise + 1e-12 * abs(merit)
            if there.smoothed + barrier.value(x, target, p) <= bound:
                return there, barrier.moved(now.x, d, target), Step(length, cut)
        length, cut = 0.5 * length, True
    return now, barrier, Step(0.0, cut=True)
