"""A user's own convex loss."""

from __future__ import annotations

from typing import Protocol, final

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import Floats, as_floats
from hplus._values import value
from hplus.losses.base import Loss


class ConvexLoss(Protocol):
    """What a user's own loss must have."""

    def value(self, y: Floats, f: Floats) -> ArrayLike:
        """Φ(y, f)."""

    def slope(self, y: Floats, f: Floats) -> ArrayLike:
        """∂Φ/∂f."""


@final
@value
class Own(Loss):
    """A user's own convex loss: any object with `value(y, f)` and `slope(y, f)` on arrays.

    The curvature is a finite difference of slopes, the conjugate a bisection on the slope.
    """

    loss: ConvexLoss

    def value(self, y: Floats, f: Floats) -> Floats:
        return _one_each("value", self.loss.value(y, f), y)

    def slope(self, y: Floats, f: Floats) -> Floats:
        return _one_each("slope", self.loss.slope(y, f), y)

    def curvature(self, y: Floats, f: Floats) -> Floats:
        h = 1e-6 * np.maximum(1.0, np.abs(f))
        return np.maximum(self.slope(y, f + h) - self.slope(y, f - h), 0.0) / (2.0 * h)

    def require(self, y: Floats) -> None:
        for method in (self.value, self.slope):
            if np.isnan(method(y, np.zeros(y.shape))).any():
                raise ValueError(f"loss.{method.__name__}(y, f) must not be NaN, got NaN at f = 0.")
        self._require_derivative(y[:20])

    def _require_derivative(self, y: Floats) -> None:
        """Compare slopes with differences of values: the certificate of a fit relies on both."""
        h = 1e-5
        for f in (y - 1.3, y - 0.1, y + 0.2, y + 1.7):
            rise = (self.value(y, f + h) - self.value(y, f - h)) / (2.0 * h)
            slope = self.slope(y, f)
            wrong = np.abs(rise - slope) > 1e-3 * (1.0 + np.abs(slope))
            if np.any(wrong & np.isfinite(rise)):
                i = int(np.argmax(wrong))
                raise ValueError(
                    f"loss.slope must be the derivative of loss.value, got {slope[i]:.4g} where "
                    f"the value changes by {rise[i]:.4g} (y = {y[i]:.4g}, f = {f[i]:.4g})."
                )

    def conjugate(self, y: Floats, u: Floats) -> Floats:
        low, high = np.full(np.shape(u), -1.0), np.ones(np.shape(u))
        for _ in range(60):  # widen until slope(low) <= u <= slope(high), as far as 1e18
            low = np.where(self.slope(y, low) > u, 2.0 * low, low)
            high = np.where(self.slope(y, high) < u, 2.0 * high, high)
        for _ in range(120):
            middle = 0.5 * (low + high)
            steep = self.slope(y, middle) > u
            low, high = np.where(steep, low, middle), np.where(steep, middle, high)
        return u * low - self.value(y, low)


def _one_each(method: str, numbers: ArrayLike, y: Floats) -> Floats:
    """What a user's loss returned; an error unless it is one number per target."""
    out = as_floats(f"the return value of loss.{method}", numbers)
    if out.shape != y.shape:
        raise ValueError(
            f"loss.{method}(y, f) must return an array of shape {y.shape}, like y, got {out.shape}."
        )
    return out
