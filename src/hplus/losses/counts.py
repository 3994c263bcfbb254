"""Losses for counts: the negative log-likelihood of a Poisson distribution."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.special import xlogy

from hplus._checks import Floats
from hplus._values import value
from hplus.losses.base import Loss


def _require_counts(loss: Loss, y: Floats) -> None:
    """An error for a negative count."""
    if np.any(y < 0.0):
        raise ValueError(
            f"Negative values in y: targets of {loss} must be at least 0, got {y.min():.6g}."
        )


def _exp(f: Floats) -> Floats:
    """exp(f), inf where it overflows."""
    with np.errstate(over="ignore"):
        return np.exp(f)


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

    def slope_range(self, y: Floats) -> tuple[Floats, Floats]:
        # where y = 0 the loss is f itself
        return np.where(y > 0.0, -np.inf, 1.0), np.ones(y.shape)

    def conjugate_slope(self, y: Floats, u: Floats) -> Floats:
        return np.where(y > 0.0, y / np.where(y > 0.0, 1.0 - u, 1.0), 0.0)

    def conjugate_curvature(self, y: Floats, u: Floats) -> Floats:
        return np.where(y > 0.0, y / np.where(y > 0.0, 1.0 - u, 1.0) ** 2, 0.0)

    require = _require_counts


@final
@value
class PoissonLog(Loss):
    """Φ = exp(f) - y·f: a count y with mean exp(f)."""

    def value(self, y: Floats, f: Floats) -> Floats:
        return _exp(f) - y * f

    def slope(self, y: Floats, f: Floats) -> Floats:
        return _exp(f) - y

    def curvature(self, y: Floats, f: Floats) -> Floats:
        return np.broadcast_to(_exp(f), np.broadcast(y, f).shape)

    def conjugate(self, y: Floats, u: Floats) -> Floats:
        # (u + y) log(u + y) - (u + y), u >= -y
        t = u + y
        return np.where(t >= 0.0, xlogy(np.maximum(t, 0.0), np.maximum(t, 0.0)) - t, np.inf)

    def mean(self, f: Floats) -> Floats:
        return _exp(f)

    require = _require_counts
