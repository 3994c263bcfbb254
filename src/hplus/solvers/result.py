"""What a solver says when it stops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np


class Status(Enum):
    """How a solver ended; the value is the advice."""

    CONVERGED = "The certified gap is within the tolerance."
    MAX_ITER = (
        "The number of iterations was reached before the tolerance. Raise the penalty, or scale "
        "the columns of X and y to unit size."
    )
    STALLED = (
        "No step improved the objective any more: rounding limits the accuracy. Raise the "
        "penalty, or scale the columns of X and y to unit size."
    )


@dataclass(frozen=True)
class SolverResult:
    """A solution's quality: `objective` is at most `gap` above the smallest value there is.

    The gap is recomputed from the solution by code that is not the solver's [math, Eq. 2.5].
    """

    status: Status
    iterations: int
    objective: float
    gap: float
    size: float
    """What the gap is compared with: |objective|, or more for losses of both signs."""

    def judged(self, tolerance: float) -> SolverResult:
        """The result with the status that its certificate gives, whatever the solver said."""
        if self.relative_gap <= tolerance:
            return replace(self, status=Status.CONVERGED)
        failed = self.status is not Status.CONVERGED
        return self if failed else replace(self, status=Status.STALLED)

    @property
    def relative_gap(self) -> float:
        """gap / size."""
        return self.gap / max(self.size, float(np.finfo(float).tiny))
