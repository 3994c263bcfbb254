"""The convex problem of sums of squares: a loss at each row, blocks of unknown functions, iterates.

min Σ_i p_i ℓ_i(z_i) + Σ_b penalty_b(g_b),   z_i = (g_1(x_i), …, g_B(x_i)) C   [math, Eq. 3.4]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hplus._checks import Floats
from hplus.solvers.result import Status
from hplus.solvers.sos.blocks import FunctionBlock, InteriorResponse, Relaxation, Response, Squares
from hplus.solvers.sos.rowwise import RowLoss, Rows
from hplus.solvers.sos.sweeps import values_of

FEW_FEATURES, MANY_ROWS, SHRINK = 100, 40, 4
"""Problems with more features, or more rows per feature, start from a solution on a quarter of
them."""

NEGLIGIBLE_OBJECTIVE = 1e-6
"""An objective below this share of the usual loss counts as zero."""

EASY_SHARE, HARD_SHARE = 1e-2, 2e-2
"""A problem is easy if the frobenius penalty is this share of the loss, and hard if it is below
this share of an easy one."""

LEAST_DIVISOR = 1e-100
"""Replaces zero in a division."""


@dataclass(frozen=True)
class Problem:
    """Rows with shares p (n,), blocks of unknown functions, and their mixing C (B, outputs).

    `level` is the expected size of the outputs.
    """

    rows: RowLoss
    shares: Floats
    blocks: tuple[FunctionBlock, ...]
    mixing: Floats
    level: float = 1.0

    @property
    def width(self) -> int:
        """The number of features."""
        return self.blocks[0].features.shape[1]

    def slopes(self, x: Floats) -> Floats:
        """The slopes a (n, B) of the blocks."""
        return (x @ self.mixing.T) * self.shares[:, None]

    def outputs(self, values: list[Floats]) -> Floats:
        """z (n, outputs) from the values of the blocks."""
        return np.stack(values, axis=1) @ self.mixing

    def primal(self, z: Floats, penalty: float) -> float:
        """P = Σ p ℓ(z) + penalty."""
        return float(self.shares @ self.rows.value(z)) + penalty

    def size(self, z: Floats, penalty: float) -> float:
        """Σ p |ℓ(z)| + penalty: P, unless losses take both signs; not far below the usual loss."""
        here = float(self.shares @ np.abs(self.rows.value(z))) + penalty
        return max(here, NEGLIGIBLE_OBJECTIVE * self.usual_loss)

    @cached_property
    def usual_loss(self) -> float:
        """Σ p |ℓ| for constant outputs of half the level, a poor fit."""
        z = np.full(self.rows.low.shape, 0.5 * self.level)
        return float(self.shares @ np.abs(self.rows.value(z)))

    @cached_property
    def isotropic(self) -> float:
        """c for which c‖φ(x)‖² is nearest to the level."""
        norms, p = self._norms, self.shares
        return self.level * float(p @ norms) / max(float(p @ norms**2), LEAST_DIVISOR)

    @property
    def hardest(self) -> float:
        """The smallest frobenius penalty."""
        return min(block.stiffness for block in self.blocks)

    @property
    def softness(self) -> float:
        """A frobenius penalty to start with, small for functions of the expected size.

        0 if the true penalty is not much smaller.
        """
        easy = EASY_SHARE * self.usual_loss / max(self.isotropic, LEAST_DIVISOR) ** 2
        return easy if self.isotropic > 0.0 and self.hardest < HARD_SHARE * easy else 0.0

    def start(self, weights: Sequence[Floats] | None = None) -> Floats:
        """Slopes to start with: those at given functions, or at sums of squares c‖φ(x)‖²."""
        if weights is not None:
            values = self.values(weights)
        else:
            f, zero = self.isotropic * self._norms, np.zeros(len(self.shares))
            values = [f if isinstance(block, Squares) else zero for block in self.blocks]
        # away from zero, where slopes may be infinite
        least = [1e-2 * self.level if isinstance(b, Squares) else -np.inf for b in self.blocks]
        values = [np.maximum(f, floor) for f, floor in zip(values, least, strict=True)]
        return self.rows.start(self.outputs(values))

    def values(self, weights: Sequence[Floats]) -> list[Floats]:
        """The values at the rows of the functions with these weights, one for each block."""
        pairs = zip(self.blocks, weights, strict=True)
        return [values_of(block.features, w) for block, w in pairs]

    @property
    def has_many_rows(self) -> bool:
        """Are there far more rows than features?"""
        return len(self.shares) > MANY_ROWS * max(self.width, FEW_FEATURES)

    @property
    def has_spare_features(self) -> bool:
        """Are there many features, the first quarter of which represents every row roughly?"""
        if self.width <= FEW_FEATURES:
            return False
        first = self.blocks[0].features[:, : self.width // SHRINK]
        return bool(np.all(np.einsum("ij,ij->i", first, first) >= 0.1 * self._norms))

    @property
    def bounded(self) -> bool:
        """Are some slopes bounded on both sides?"""
        return bool(self.rows.boxed.any())

    def thinned(self) -> Problem:
        """The problem at a quarter of its rows, whose functions are close to the optimum."""
        return self.part(slice(None, None, SHRINK))

    def part(self, rows: Rows) -> Problem:
        """The problem at some of its rows."""
        blocks = tuple(block.part(rows) for block in self.blocks)
        shares = self.shares[rows] / self.shares[rows].sum()
        return replace(self, rows=self.rows.part(rows), shares=shares, blocks=blocks)

    def narrowed(self) -> Problem:
        """The problem on a quarter of its features, whose slopes are close to the optimum."""
        width = self.width // SHRINK
        return replace(self, blocks=tuple(block.narrowed(width) for block in self.blocks))

    @property
    def _norms(self) -> Floats:
        return self.blocks[0].norms


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
