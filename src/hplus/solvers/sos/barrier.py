"""A logarithmic barrier on bounded slopes, with its multipliers (primal-dual interior-point)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hplus._checks import Bools, Floats
from hplus.solvers.sos.rowwise import RowLoss

LEAST_MARGIN = 0.02
"""Slopes start at least this share of their box away from its sides."""

LEAST_SLACK = float(np.finfo(float).tiny)
"""Slacks in logarithms are at least this."""

LARGEST_SHARE = 0.99
"""A step covers at most this share of the distance to the nearest side."""


@dataclass(frozen=True)
class Barrier:
    """low < x < high where `boxed`, with multipliers `lower`, `upper` >= 0 of the two sides.

    All arrays have shape (n, outputs), and multipliers are per unit of a row's share. Without any
    box the barrier has no effect.
    """

    boxed: Bools
    low: Floats
    high: Floats
    lower: Floats
    upper: Floats

    @classmethod
    def around(cls, rows: RowLoss) -> Self:
        """The barrier of the rows' bounds, with multipliers 0."""
        boxed = rows.boxed
        low, high = np.where(boxed, rows.low, -1.0), np.where(boxed, rows.high, 1.0)
        zero = np.zeros(boxed.shape)
        return cls(boxed, low, high, zero, zero)

    def pulled_in(self, x: Floats) -> Floats:
        """x, moved into the interior of the box."""
        margin = LEAST_MARGIN * (self.high - self.low)
        return np.where(self.boxed, np.clip(x, self.low + margin, self.high - margin), x)

    def balanced(self, gradient: Floats) -> Self:
        """Equal multipliers of the size of a gradient."""
        size = float(np.abs(gradient[self.boxed]).mean()) if self.boxed.any() else 0.0
        multipliers = np.where(self.boxed, size or 1.0, 0.0)
        return replace(self, lower=multipliers, upper=multipliers)

    def complementarity(self, x: Floats, shares: Floats) -> float:
        """The mean product of a slack and its multiplier."""
        if not self.boxed.any():
            return 0.0
        below, above = self._slacks(x)
        weight = 2.0 * float(shares @ self.boxed.sum(axis=1))
        return float(shares @ (below * self.lower + above * self.upper).sum(axis=1)) / weight

    def value(self, x: Floats, target: float, shares: Floats) -> float:
        """-target Σ p (log(x - low) + log(high - x))."""
        if target == 0.0:
            return 0.0
        below, above = self._slacks(x)
        logs = np.log(np.maximum(below, LEAST_SLACK)) + np.log(np.maximum(above, LEAST_SLACK))
        return -target * float(shares @ logs.sum(axis=1))

    def force(self, x: Floats, target: float) -> Floats:
        """-∇ of the barrier, per unit of share."""
        below, above = self._slacks(x)
        return np.where(self.boxed, target / below - target / above, 0.0)

    def curvature(self, x: Floats) -> Floats:
        """The primal-dual curvature of the barrier, per unit of share."""
        below, above = self._slacks(x)
        return self.lower / below + self.upper / above

    def longest(self, x: Floats, d: Floats) -> float:
        """The longest step along d, at most 1, that stays inside the box."""
        below, above = self._slacks(x)
        return min(self._reach(below, d), self._reach(above, -d))

    def moved(self, x: Floats, d: Floats, target: float) -> Self:
        """The multipliers after a Newton step d of the slopes x, with their own step length."""
        below, above = self._slacks(x)
        lower = np.where(self.boxed, (target - self.lower * d) / below - self.lower, 0.0)
        upper = np.where(self.boxed, (target + self.upper * d) / above - self.upper, 0.0)
        t = min(self._reach(self.lower, lower), self._reach(self.upper, upper))
        return replace(self, lower=self.lower + t * lower, upper=self.upper + t * upper)

    def _slacks(self, x: Floats) -> tuple[Floats, Floats]:
        """x - low and high - x, 1 where there is no box."""
        below, above = np.where(self.boxed, x - self.low, 1.0), self.high - x
        return below, np.where(self.boxed, above, 1.0)

    def _reach(self, slack: Floats, change: Floats) -> float:
        falling = self.boxed & (change < 0.0)
        return min(
            1.0, LARGEST_SHARE * float(np.min(-slack[falling] / change[falling], initial=np.inf))
        )
