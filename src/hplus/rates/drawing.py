"""Bounds of rates from equally likely values of them."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hplus._checks import Floats
from hplus.rates.bands import MAX_LOG_FACTOR, LogBand

RATE_DRAWS = 256
"""Equally likely values of a rate at a point, or of an expected count."""

POINTS_AT_ONCE = 2**14
"""Points whose values are held in memory at the same time."""


class Drawn(Protocol):
    """A rate that is known by equally likely values of it."""

    def function(self, X: Floats) -> Floats:
        """The rate at each point, shape (n,)."""

    def rate_draws(self, X: Floats, k: int) -> Floats:
        """About k equally likely values of the rate at each point, (n, k)."""


def quantiles_of_draws(rate: Drawn, X: Floats, p: list[float]) -> Floats:
    """Quantiles of the rate at each point, (len(p), n)."""
    parts = (X[i : i + POINTS_AT_ONCE] for i in range(0, max(len(X), 1), POINTS_AT_ONCE))
    found = [np.quantile(rate.rate_draws(part, RATE_DRAWS), p, axis=1) for part in parts]
    return np.concatenate(found, axis=1)


def interval_of_draws(rate: Drawn, X: Floats, level: float) -> tuple[Floats, Floats]:
    """Bounds that contain the rate at each point with probability `level`, (n,) each.

    The mean lies between them, however skewed the values are.
    """
    low, high = quantiles_of_draws(rate, X, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
    return low, np.maximum(high, rate.function(X))


def log_band_of_draws(rate: Drawn, X: Floats, level: float) -> LogBand:
    """The log of the median at each point, and the distances of the bounds from it."""
    return _band(quantiles_of_draws(rate, X, _band_levels(level)))


def band_of_values(values: Floats, level: float) -> LogBand:
    """The same from equally likely values (n, k)."""
    return _band(np.quantile(values, _band_levels(level), axis=1))


def _band_levels(level: float) -> list[float]:
    return [0.5 - 0.5 * level, 0.5, 0.5 + 0.5 * level]


def _band(quantiles: Floats) -> LogBand:
    low, center, high = np.log(np.maximum(quantiles, np.finfo(float).tiny))
    reach = (np.clip(x, 0.0, MAX_LOG_FACTOR) for x in (center - low, high - center))
    return LogBand(center, *reach)


def resampled(values: Floats, k: int) -> Floats:
    """k equally likely values from others, for each row, (n, k)."""
    p = (np.arange(k) + 0.5) / k
    return np.quantile(values, p, axis=1).T if values.shape[1] != k else values
