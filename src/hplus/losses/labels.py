"""Losses for labels -1 and 1."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from hplus._checks import Floats
from hplus._values import value
from hplus.losses.base import Loss, PiecewiseLinear


def _require_labels(loss: Loss, y: Floats) -> None:
    """An error unless all labels are -1 or 1."""
    other = y[np.abs(y) != 1.0]
    if len(other):
        raise ValueError(
            f"y must contain only labels -1 and 1 for {loss}, got {other[0]:.6g}: use "
            "KernelClassifier for other labels."
        )


@final
@value
class Hinge(PiecewiseLinear):
    """Φ = (1 - y·f)₊ for labels y = ±1: the support vector machine."""

    def bounds(self, y: Floats) -> tuple[Floats, Floats]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    require = _require_labels


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

    require = _require_labels


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

    require = _require_labels


@final
@value
class Perceptron(Loss):
    """Φ = (-y·f)₊ for labels y = ±1: only mistakes count. For streams, which start at f = 0."""

    def value(self, y: Floats, f: Floats) -> Floats:
        return np.maximum(-y * f, 0.0)

    def slope(self, y: Floats, f: Floats) -> Floats:
        return np.where(y * f <= 0.0, -y, 0.0)

    def curvature(self, y: Floats, f: Floats) -> Floats:
        return np.zeros(np.broadcast(y, f).shape)

    def conjugate(self, y: Floats, u: Floats) -> Floats:
        return np.where((u * y <= 0.0) & (u * y >= -1.0), 0.0, np.inf)

    require = _require_labels
