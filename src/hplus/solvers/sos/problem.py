"""The convex problem of sums of squares: rows with a loss, blocks of unknown functions.

min Σ_i p_i ℓ_i(z_i) + Σ_b penalty_b(g_b),   z_i = (g_1(x_i), …, g_B(x_i)) C   [math, Eq. 3.4]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hplus._checks import Floats
from hplus.solvers.sos.blocks import FunctionBlock, Squares
from hplus.solvers.sos.rowwise import RowLoss, Rows
from hplus.solvers.sos.sweeps import values_of

FEW_FEATURES, MANY_ROWS, SHRINK = 100, 40, 4
"""Problems with more features, or more rows a feature, start from a fourth of them."""

NEGLIGIBLE = 1e-6
"""An objective below this share of the usual loss counts as zero."""

EASY, HARD = 1e-2, 2e-2
"""The share of the loss that the frobenius penalty has where a problem is easy, and the share of
that penalty below which a problem is hard."""

TINY = 1e-100
"""In place of zero in a division."""


@dataclass(frozen=True)
class Problem:
    """Rows with shares p (n,), blocks of unknown functions, and their mixing C (B, outputs).

    `level` is the size of outputs that one would expect.
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
    def hardest(self) -> float:
        """The smallest frobenius penalty."""
        return min(block.stiffness for block in self.blocks)

    @property
    def softness(self) -> float:
        """A frobenius penalty to begin with, of which functions of the level's size pay little.

        0 if the true one is not much smaller.
        """
        easy = EASY * self.usual_loss / max(self.isotropic, TINY) ** 2
        return easy if self.isotropic > 0.0 and self.hardest < HARD * easy else 0.0

    def start(self, weights: Sequence[Floats] | None = None) -> Floats:
        """Slopes to begin with: those of some functions, or of sums of squares c‖φ(x)‖²."""
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
        """The values at the rows of every block's function with these weights."""
        pairs = zip(self.blocks, weights, strict=True)
        return [values_of(block.features, w) for block, w in pairs]

    @property
    def has_many_rows(self) -> bool:
        """Far more rows than a feature needs?"""
        return len(self.shares) > MANY_ROWS * max(self.width, FEW_FEATURES)

    @property
    def has_spare_features(self) -> bool:
        """Many features, of which the first fourth represents every row to some extent?"""
        if self.width <= FEW_FEATURES:
            return False
        first = self.blocks[0].features[:, : self.width // SHRINK]
        return bool(np.all(np.einsum("ij,ij->i", first, first) >= 0.1 * self._norms))

    @property
    def bounded(self) -> bool:
        """Are slopes bounded on both sides?"""
        return bool(self.rows.boxed.any())

    def thinned(self) -> Problem:
        """The problem at every so-many-th of its rows: its functions are near the best."""
        return self.part(slice(None, None, SHRINK))

    def part(self, rows: Rows) -> Problem:
        """The problem at some of its rows."""
        blocks = tuple(block.part(rows) for block in self.blocks)
        shares = self.shares[rows] / self.shares[rows].sum()
        return replace(self, rows=self.rows.part(rows), shares=shares, blocks=blocks)

    def narrowed(self) -> Problem:
        """The problem on its first features only: its slopes are near the best."""
        width = self.width // SHRINK
        return replace(self, blocks=tuple(block.narrowed(width) for block in self.blocks))

    @property
    def _norms(self) -> Floats:
        return self.blocks[0].norms
