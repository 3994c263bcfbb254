"""What every loss has: value, slope, curvature and convex conjugate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value


@value
class Loss(Value, ABC):
    """A loss Φ(y, f), convex in f."""

    @abstractmethod
    def value(self, y: Floats, f: Floats) -> Floats:
        """Φ(y, f)."""

    @abstractmethod
    def slope(self, y: Floats, f: Floats) -> Floats:
        """∂Φ/∂f, a subgradient at a kink."""

    @abstractmethod
    def curvature(self, y: Floats, f: Floats) -> Floats:
        """∂²Φ/∂f², 0 at a kink."""

    @abstractmethod
    def conjugate(self, y: Floats, u: Floats) -> Floats:
        """Φ*(y, u) = sup_f u·f - Φ(y, f), infinite outside its domain."""

    def slope_range(self, y: Floats) -> tuple[Floats, Floats]:
        """low <= high, an interval that contains the slopes at every f >= 0."""
        return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)

    def conjugate_slope(self, y: Floats, u: Floats) -> Floats:
        """∂Φ*/∂u: the f at which the slope of Φ is u, for u inside `slope_range`."""
        raise NotImplementedError(f"{self} has no closed form for the slope of its conjugate.")

    def conjugate_curvature(self, y: Floats, u: Floats) -> Floats:
        """∂²Φ*/∂u²."""
        raise NotImplementedError(f"{self} has no closed form for the curvature of its conjugate.")

    def mean(self, f: Floats) -> Floats:
        """The prediction for a target where the function has the value f."""
        return f

    def require(self, y: Floats) -> None:
        """An error for targets outside the domain of the loss."""


@value
class PiecewiseLinear(Loss):
    """Φ = sup over u in [low, high] of u·(f - y) - tube·|u|: high beyond y + tube, low below."""

    tube = 0.0

    @abstractmethod
    def bounds(self, y: Floats) -> tuple[Floats, Floats]:
        """low <= 0 <= high, the steepest slopes on both sides, each of the shape of y."""

    @final
    def value(self, y: Floats, f: Floats) -> Floats:
        low, high = self.bounds(y)
        r = f - y
        return high * np.maximum(r - self.tube, 0.0) - low * np.maximum(-r - self.tube, 0.0)

    @final
    def slope(self, y: Floats, f: Floats) -> Floats:
        low, high = self.bounds(y)
        r = f - y
        return np.where(r > self.tube, high, np.where(r < -self.tube, low, 0.0))

    @final
    def curvature(self, y: Floats, f: Floats) -> Floats:
        return np.zeros(np.broadcast(y, f).shape)

    @final
    def conjugate(self, y: Floats, u: Floats) -> Floats:
        low, high = self.bounds(y)
        return np.where((low <= u) & (u <= high), u * y + self.tube * np.abs(u), np.inf)

    @final
    def slope_range(self, y: Floats) -> tuple[Floats, Floats]:
        return self.bounds(y)

    @final
    def conjugate_slope(self, y: Floats, u: Floats) -> Floats:
        return y + self.tube * np.sign(u)

    @final
    def conjugate_curvature(self, y: Floats, u: Floats) -> Floats:
        return np.zeros(np.broadcast(y, u).shape)
