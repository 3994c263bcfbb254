"""Losses: value, slope, curvature and convex conjugate.

Losses are frozen values, independent of kernels and data. All arguments are arrays of one shape:
`y` the targets, `f` the values of a function, `u` a slope. The conjugate is
Φ*(y, u) = sup_f u·f - Φ(y, f) [math, Eq. 2.4]; it certifies how good a fit is.
"""

from __future__ import annotations

from typing import TypeGuard

from hplus._checks import check_choice, shown
from hplus.losses.base import Loss, PiecewiseLinear
from hplus.losses.counts import Poisson, PoissonLog
from hplus.losses.labels import Hinge, Logistic, Perceptron, SquaredHinge
from hplus.losses.own import ConvexLoss, Own
from hplus.losses.regression import Absolute, EpsilonInsensitive, Huber, Quantile, Squared

__all__ = [
    "LABEL_LOSSES",
    "LOSSES",
    "LOSS_CLASSES",
    "Absolute",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Own",
    "Perceptron",
    "PiecewiseLinear",
    "Poisson",
    "PoissonLog",
    "Quantile",
    "Squared",
    "SquaredHinge",
    "as_loss",
]

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
"""Every loss that has a name."""

LABEL_LOSSES = {name: LOSSES[name] for name in ("hinge", "squared_hinge", "logistic")}
"""The losses for labels that batch estimators accept."""

LOSS_CLASSES: tuple[type[Loss], ...] = (*LOSSES.values(), Perceptron)
"""Every loss class."""


def as_loss(loss: object) -> Loss:
    """A loss from its name, from a loss, or from an object with `value` and `slope`."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        return LOSSES[check_choice("loss", loss, LOSSES)]()
    if isinstance(loss, type):
        raise TypeError(f"loss must be an instance, got {shown(loss)}.")
    if _is_own(loss):
        return Own(loss)
    raise ValueError(
        f"loss must be one of {', '.join(map(repr, LOSSES))} or an object with value(y, f) and "
        f"slope(y, f), got {shown(loss)}."
    )


def _is_own(loss: object) -> TypeGuard[ConvexLoss]:
    return callable(getattr(loss, "value", None)) and callable(getattr(loss, "slope", None))
