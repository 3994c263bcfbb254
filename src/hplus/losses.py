"""Losses: how wrong is f where y was seen? Value, slope, curvature and convex conjugate.

Losses are frozen values that know nothing of kernels or data. All arguments are arrays of one
shape: `y` the targets, `f` the values of a function, `u` a slope. The conjugate is
Φ*(y, u) = sup_f u·f - Φ(y, f) [math, Eq. 2.4]; it certifies how good a fit is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from hplus._checks import (
    Floats,
    as_floats,
    check_choice,
    check_fraction,
    check_nonnegative,
    check_positive,
    shown,
)
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

    def mean(self, f: Floats) -> Floats:
        """What to predict for a target where the function has the value f."""
        return f

    def require(self, y: Floats) -> None:
        """Refuse targets that the loss is not made for."""


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


@final
@value
class Hinge(PiecewiseLinear):
    """Φ = (1 - y·f)₊ for labels y = ±1: the support vector machine."""

    def bounds(self, y: Floats) -> tuple[Floats, Floats]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def require(self, y: Floats) -> None:
        _require_labels(self, y)


@final
@value
class SquaredHinge(Loss):
    """Φ = (1 - y·f)₊² for labels y = ±1."""

    def value(self, y: Floats, f: Floats) -> Floats:
        return np.maximum(1.0 - y * f, 0.0) ** 2

    def slope(self, y: Floats, f: Floats) -> Floats:
        return -2.0 * y * np.maximum(1.0 - y * f, 0.0)

    def curvature(self, y: Floats, f: Floats) -> Floats:
        return np.where(y * f < 1.0, 2.0, 0.0)

    def conjugate(self, y: Floats, u: Floats) -> Floats:
        return np.where(u * y <= 0.0, u * y + u**2 / 4.0, np.inf)

    def require(self, y: Floats) -> None:
        _require_labels(self, y)


@final
@value
class Logistic(Loss):
    """Φ = log(1 + exp(-y·f)) for labels y = ±1; f is the log-odds of y = 1."""

    def value(self, y: Floats, f: Floats) -> Floats:
        return np.logaddexp(0.0, -y * f)

    def slope(self, y: Floats, f: Floats) -> Floats:
        return -y * expit(-y * f)

    def curvature(self, y: Floats, f: Floats) -> Floats:
        return expit(f) * expit(-f)

    def conjugate(self, y: Floats, u: Floats) -> Floats:
        # t log t + (1 - t) log(1 - t), t = -u·y
        t = np.clip(-u * y, 0.0, 1.0)
        return np.where(t == -u * y, xlogy(t, t) + xlog1py(1.0 - t, -t), np.inf)

    def mean(self, f: Floats) -> Floats:
        return expit(f)

    def require(self, y: Floats) -> None:
        _require_labels(self, y)


@final
@value
class Poisson(Loss):
    """Φ = f - y·log f, f >= 0: a count y with mean f."""

    def value(self, y: Floats, f: Floats) -> Floats:
        inside = (f > 0.0) | ((f == 0.0) & (y == 0.0))
        return np.where(inside, f - xlogy(y, np.maximum(f, np.finfo(float).tiny)), np.inf)

    def slope(self, y: Floats, f: Floats) -> Floats:
        return 1.0 - y / np.maximum(f, np.finfo(float).tiny)

    def curvature(self, y: Floats, f: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.where(y > 0.0, y / np.maximum(f, np.finfo(float).tiny) ** 2, 0.0)

    def conjugate(self, y: Floats, u: Floats) -> Floats:
        # y log(y/(1 - u)) - y for u < 1, and 0 for y = 0, u <= 1
        inside = (u < 1.0) | ((u == 1.0) & (y == 0.0))
        slack = np.where(u < 1.0, 1.0 - u, 1.0)
        return np.where(inside, xlogy(y, y / slack) - y, np.inf)

    def require(self, y: Floats) -> None:
        _require_counts(self, y)


@final
@value
class PoissonLog(Loss):
    """Φ = exp(f) - y·f: a count y with mean exp(f)."""

    def value(self, y: Floats, f: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(f) - y * f

    def slope(self, y: Floats, f: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(f) - y

    def curvature(self, y: Floats, f: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.broadcast_to(np.exp(f), np.broadcast(y, f).shape)

    def conjugate(self, y: Floats, u: Floats) -> Floats:
        # (u + y) log(u + y) - (u + y), u >= -y
        t = u + y
        return np.where(t >= 0.0, xlogy(np.maximum(t, 0.0), np.maximum(t, 0.0)) - t, np.inf)

    def mean(self, f: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(f)

    def require(self, y: Floats) -> None:
        _require_counts(self, y)


@final
@value
class Own(Loss):
    """A user's own convex loss: any object with `value(y, f)` and `slope(y, f)` on arrays.

    The curvature is a difference of slopes, the conjugate a bisection on the slope.
    """

    loss: Any

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
                raise ValueError(f"loss.{method.__name__}(y, f) must not be NaN, got one at f = 0.")
        self._require_derivative(y[:20])

    def _require_derivative(self, y: Floats) -> None:
        """Compare slopes with differences of values: a certificate is as true as they are."""
        h = 1e-5
        for f in (y - 1.3, y - 0.1, y + 0.2, y + 1.7):
            rise = (self.value(y, f + h) - self.value(y, f - h)) / (2.0 * h)
            slope = self.slope(y, f)
            wrong = np.abs(rise - slope) > 1e-3 * (1.0 + np.abs(slope))
            if np.any(wrong & np.isfinite(rise)):
                i = int(np.argmax(wrong))
                raise ValueError(
                    f"loss.slope must be the derivative of loss.value, got {slope[i]:.4g} where "
                    f"the value rises by {rise[i]:.4g} (y = {y[i]:.4g}, f = {f[i]:.4g})."
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


LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "absolute": Absolute,
    "quantile": Quantile,
    "huber": Huber,
    "epsilon_insensitive": EpsilonInsensitive,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "poisson": Poisson,
    "poisson_log": PoissonLog,
}
"""Every loss by its name."""

LOSS_CLASSES: tuple[type[Loss], ...] = tuple(LOSSES.values())


def as_loss(loss: Any) -> Loss:
    """A loss from its name, from a loss, or from an object with `value` and `slope`."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        return LOSSES[check_choice("loss", loss, LOSSES)]()
    if isinstance(loss, type):
        raise TypeError(f"loss must be an object, got the class {loss.__name__}: call it first.")
    if _is_own(loss):
        return Own(loss)
    raise ValueError(
        f"loss must be one of {', '.join(map(repr, LOSSES))} or an object with value(y, f) and "
        f"slope(y, f), got {shown(loss)}."
    )


def _is_own(loss: Any) -> bool:
    return callable(getattr(loss, "value", None)) and callable(getattr(loss, "slope", None))


def _one_each(method: str, numbers: Any, y: Floats) -> Floats:
    """What a user's loss gave, refused unless it is one number for each target."""
    out = as_floats(f"the numbers of loss.{method}", numbers)
    if out.shape != y.shape:
        raise ValueError(
            f"loss.{method}(y, f) must give an array of the shape of y, {y.shape}, got {out.shape}."
        )
    return out


def _require_labels(loss: Loss, y: Floats) -> None:
    other = y[np.abs(y) != 1.0]
    if len(other):
        raise ValueError(
            f"{loss} needs labels -1 and 1 in y, got {other[0]:.6g}: use KernelClassifier for "
            "other labels."
        )


def _require_counts(loss: Loss, y: Floats) -> None:
    if np.any(y < 0.0):
        raise ValueError(
            f"Negative values in y: {loss} needs targets of at least 0, got {y.min():.6g}."
        )
