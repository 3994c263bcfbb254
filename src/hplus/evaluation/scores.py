"""Scores of rates: gain over a constant rate, paired differences, coverage, squared error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import (
    Floats,
    Seed,
    as_floats,
    as_points,
    check_finite,
    check_fraction,
    check_random_state,
)
from hplus.windows import Window


class Rate(Protocol):
    """A fitted rate λ >= 0 on a window, for example an `Intensity` or an `EdgeCorrectedKDE`."""

    window: Window

    def predict(self, X: Any) -> Floats:
        """λ(X[i]), shape (n,)."""

    def expected_count(self, regions: Window | Sequence[Window]) -> float | Floats:
        """∫λ over each region within the window, shape (r,); a float for a single window."""

    def score(self, X: Any) -> float:
        """The mean of log(λ(X[i])/∫λ)."""


def gain(model: Rate, X: Any) -> float:
    """The gain over a constant rate in nats per event: the mean of log(λ(x) |W| / ∫λ).

    X are events that were not used in the fit, shape (n, d), for example those `thin` held out.
    """
    return float(model.score(X)) + float(np.log(model.window.volume))


def thin(X: Any, share: float, random_state: Seed = None) -> tuple[Floats, Floats]:
    """Split events at random: each is in the first part with probability `share`.

    Both parts of a Poisson pattern (n, d) are Poisson patterns, independent of each other.
    """
    X, share = as_points("X", X), check_fraction("share", share)
    kept = check_random_state(random_state).random_sample(len(X)) < share
    return X[kept], X[~kept]


def paired(a: ArrayLike, b: ArrayLike) -> tuple[float, float]:
    """The mean of a - b, scores (n,) of two models on the same splits, and its standard error."""
    a, b = check_finite("a", as_floats("a", a)), check_finite("b", as_floats("b", b))
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        raise ValueError(
            f"a and b must have one score for each of the same splits, at least 2, got shapes "
            f"{a.shape} and {b.shape}."
        )
    return float(np.mean(a - b)), float(np.std(a - b, ddof=1) / np.sqrt(len(a)))


def coverage(low: ArrayLike, high: ArrayLike, truth: ArrayLike) -> float:
    """The share of places where low <= truth <= high, each of shape (n,) or one number."""
    low, high, truth = (
        check_finite(name, as_floats(name, given))
        for name, given in (("low", low), ("high", high), ("truth", truth))
    )
    try:
        return float(np.mean((low <= truth) & (truth <= high)))
    except ValueError:
        raise ValueError(
            f"low, high and truth must have the same shape, got {low.shape}, {high.shape} and "
            f"{truth.shape}."
        ) from None


def mean_squared_error(
    rate: Callable[[Floats], Floats],
    truth: Callable[[Floats], Floats],
    window: Window,
    order: int = 200,
) -> float:
    """∫_W (rate - truth)² / |W|, by the quadrature of the window of this order.

    Both are called on points (q, d): for example `model.predict` and `LAMBDA1.rate`.
    """
    nodes, weights = window.quadrature(order)
    return float(weights @ (rate(nodes) - truth(nodes)) ** 2 / window.volume)
