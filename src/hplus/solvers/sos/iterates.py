"""A problem of sums of squares at given slopes: responses of the blocks, objectives and gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats
from hplus.solvers.result import Status
from hplus.solvers.sos.blocks import InteriorResponse, Relaxation, Response
from hplus.solvers.sos.problem import LEAST_DIVISOR, Problem


@dataclass(frozen=True)
class DualSolution:
    """The slopes of the last iterate and the weights of every block."""

    x: Floats
    weights: tuple[Floats, ...]
    iterations: int
    status: Status


@dataclass(frozen=True)
class Iterate:
    """Slopes x, responses of the blocks, outputs z, G(x), its relaxation, and P."""

    x: Floats
    responses: tuple[Response, ...]
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
        """The gap relative to the size of P."""
        return self.gap / max(self.size, LEAST_DIVISOR) if np.isfinite(self.gap) else np.inf

    def solved(self, iterations: int, status: Status) -> DualSolution:
        """This iterate as the solution."""
        weights = tuple(response.weights for response in self.responses)
        return DualSolution(self.x, weights, iterations, status)


def evaluate(problem: Problem, x: Floats, relaxation: Relaxation) -> Iterate:
    """The iterate at slopes x."""
    a = problem.slopes(x)
    responses = [b.response(a[:, i], relaxation) for i, b in enumerate(problem.blocks)]
    return _iterate(problem, x, responses)


def relaxed(problem: Problem, now: Iterate, smoothing: float) -> Iterate:
    """The iterate at the same slopes with another barrier."""
    responses = [
        p.relaxed(smoothing) if isinstance(p, InteriorResponse) else p for p in now.responses
    ]
    return _iterate(problem, now.x, responses)


def _iterate(problem: Problem, x: Floats, responses: Sequence[Response]) -> Iterate:
    z = problem.outputs([response.values for response in responses])
    penalty = sum(response.penalty for response in responses)
    conjugate = float(problem.shares @ problem.rows.conjugate(x))
    return Iterate(
        x,
        tuple(responses),
        z,
        conjugate + sum(response.conjugate for response in responses),
        conjugate + sum(response.smoothed for response in responses),
        problem.primal(z, penalty),
        problem.size(z, penalty),
    )
