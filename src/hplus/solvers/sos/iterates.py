"""A problem of sums of squares at some slopes: the blocks' answers, both objectives, the gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats
from hplus.solvers.result import Status
from hplus.solvers.sos.blocks import Ease, InteriorPoint, Point
from hplus.solvers.sos.problem import TINY, Problem


@dataclass(frozen=True)
class DualSolution:
    """The slopes of the last iterate and the weights of every block there."""

    x: Floats
    weights: tuple[Floats, ...]
    iterations: int
    status: Status


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

    def solved(self, iterations: int, status: Status) -> DualSolution:
        """This iterate as the answer."""
        weights = tuple(point.weights for point in self.points)
        return DualSolution(self.x, weights, iterations, status)


def evaluate(problem: Problem, x: Floats, ease: Ease) -> Iterate:
    """The blocks' answers to slopes x, and what they give."""
    a = problem.slopes(x)
    return _iterate(problem, x, [b.answer(a[:, i], ease) for i, b in enumerate(problem.blocks)])


def eased(problem: Problem, now: Iterate, smoothing: float) -> Iterate:
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
