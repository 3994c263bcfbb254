"""What a solver returns about its solution: a status with advice, and a certified gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np


class Status(Enum):
    """How a solver ended; the value is advice for the user."""

    CONVERGED = "The certified gap is within the tolerance."
    MAX_ITER = (
        "The maximum number of iterations was reached before the tolerance. Raise the penalty, or "
        "scale the columns of X and y to unit size."
    )
    STALLED = (
        "No step improved the objective any further: rounding limits the accuracy. Raise the "
        "penalty, or scale the columns of X and y to unit size."
    )


@dataclass(frozen=True)
class SolverResult:
    """The quality of a solution: `objective` is at most `gap` above its minimum.

    The gap is recomputed from the solution by code that is not the solver's [math, Eq. 2.5].
    """

    status: Status
    iterations: int
    objective: float
    gap: float
    size: float
    """The scale of the gap: |objective|, or more for losses of both signs."""

    @staticmethod
    def total(results: Sequence[SolverResult]) -> SolverResult:
        """The result of several problems solved separately, with the worst of their statuses."""
        return SolverResult(
            max((r.status for r in results), key=list(Status).index),
            sum(r.iterations for r in results),
            sum(r.objective for r in results),
            sum(r.gap for r in results),
            sum(r.size for r in results),
        )

    def judged(self, tolerance: float) -> SolverResult:
        """The result with the status that follows from its gap, whatever the solver reported."""
        if self.relative_gap <= tolerance:
            return replace(self, status=Status.CONVERGED)
        failed = self.status is not Status.CONVERGED
        return self if failed else replace(self, status=Status.STALLED)

    @property
    def relative_gap(self) -> float:
        """gap / size."""
        return self.gap / max(self.size, float(np.finfo(float).tiny))
