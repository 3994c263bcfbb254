"""Losses for regression: the mean, the median, a quantile, and robust losses between them."""

from __future__ import annotations

from typing import final

import numpy as np

from hplus._checks import Floats, check_fraction, check_nonnegative, check_positive
from hplus._values import value
from hplus.losses.base import Loss, PiecewiseLinear


@final
@value
class Squared(Loss):
    """Φ = (f - y)²: the mean."""

    def value(self, y: Floats, f: Floats) -> Floats:
        return (f - y) ** 2

    def slope(self, y: Floats, f: Floats) -> Floats:
        return 2.0 * (f - y)

    def curvature(self, y: Floats, f: Floats) -> Floats:
        return np.full(np.broadcast(y, f).shape, 2.0)

    def conjugate(self, y: Floats, u: Floats) -> Floats:
        return u * y + u**2 / 4.0

    def conjugate_slope(self, y: Floats, u: Floats) -> Floats:
        return y + u / 2.0

    def conjugate_curvature(self, y: Floats, u: Floats) -> Floats:
        return np.full(np.broadcast(y, u).shape, 0.5)


@final
@value
class Absolute(PiecewiseLinear):
    """Φ = |f - y|: the median."""

    def bounds(self, y: Floats) -> tuple[Floats, Floats]:
        return np.full(y.shape, -1.0), np.ones(y.shape)


@final
@value
class Quantile(PiecewiseLinear):
    """Φ = level·(y - f)₊ + (1 - level)·(f - y)₊: the quantile at `level`."""

    level: float = 0.5

    def __post_init__(self) -> None:
        self._set(level=check_fraction("level", self.level))

    def bounds(self, y: Floats) -> tuple[Floats, Floats]:
        return np.full(y.shape, -self.level), np.full(y.shape, 1.0 - self.level)


@final
@value
class EpsilonInsensitive(PiecewiseLinear):
    """Φ = (|f - y| - tube)₊: errors inside the tube cost nothing."""

    tube: float = 0.1

    def __post_init__(self) -> None:
        self._set(tube=check_nonnegative("tube", self.tube))

    def bounds(self, y: Floats) -> tuple[Floats, Floats]:
        return np.full(y.shape, -1.0), np.ones(y.shape)


@final
@value
class Huber(Loss):
    """Φ = r²/2 for |r| <= threshold, threshold·|r| - threshold²/2 beyond; r = f - y."""

    threshold: float = 1.0

    def __post_init__(self) -> None:
        self._set(threshold=check_positive("threshold", self.threshold))

    def value(self, y: Floats, f: Floats) -> Floats:
        inner = np.minimum(np.abs(f - y), self.threshold)
        return inner * (np.abs(f - y) - 0.5 * inner)

    def slope(self, y: Floats, f: Floats) -> Floats:
        return np.clip(f - y, -self.threshold, self.threshold)

    def curvature(self, y: Floats, f: Floats) -> Floats:
        return (np.abs(f - y) <= self.threshold).astype(np.float64)

    def conjugate(self, y: Floats, u: Floats) -> Floats:
        return np.where(np.abs(u) <= self.threshold, u * y + 0.5 * u**2, np.inf)

    def slope_range(self, y: Floats) -> tuple[Floats, Floats]:
        return np.full(y.shape, -self.threshold), np.full(y.shape, self.threshold)

    def conjugate_slope(self, y: Floats, u: Floats) -> Floats:
        return y + u

    def conjugate_curvature(self, y: Floats, u: Floats) -> Floats:
        return np.ones(np.broadcast(y, u).shape)
