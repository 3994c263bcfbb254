"""Whole space as a unit cube: by a wide normal density of each column, or of its logarithm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from hplus._checks import Bools, Floats

BASE_WIDTH = 3.0
"""Standard deviation of the normal density on whole space, in those of the data."""

OFFSETS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Candidates for c in log(x + c), in units of the median of the values above 0."""

LEAST_GAIN = 0.05
"""Nats per value by which a normal density of log(x + c) must be better than one of x,"""

LEAST_TOTAL_GAIN = 3.0
"""and nats of all values together."""


class UnitMap(NamedTuple):
    """U_j = F((g_j(x_j) - center_j)/scale_j), F the normal distribution function; arrays (d,).

    g(x) = x, or log(x + offset) for x >= 0 if the offset is finite; F then starts at x = 0.
    """

    center: Floats
    scale: Floats
    offset: Floats

    @property
    def lower(self) -> Floats:
        """The lower limit of each column: 0 on the log scale, otherwise -∞."""
        return np.where(np.isfinite(self.offset), 0.0, -np.inf)

    def mapped(self, X: Floats) -> Floats:
        """U (n, d), between 0 and 1; 0 below the lower limit."""
        start = self._start()
        return np.clip((ndtr(self._standardised(X)) - start) / (1.0 - start), 0.0, 1.0)

    def unmapped(self, U: Floats) -> Floats:
        """X (n, d) from U strictly inside the cube, or from the nearest such point."""
        start = self._start()
        tiny = np.finfo(float).tiny
        t = ndtri(np.clip(start + U * (1.0 - start), tiny, 1.0 - 2.0**-53))
        G = self.center + self.scale * t
        with np.errstate(over="ignore"):
            X = np.exp(np.minimum(G, 700.0)) - np.where(self._logs(), self.offset, 0.0)
        return np.where(self._logs(), np.maximum(X, 0.0), G)

    def slopes(self, X: Floats) -> Floats:
        """∂U_j/∂x_j (n, d); 0 below the lower limit."""
        t, inner = self._standardised(X), self._inner(X)
        with np.errstate(invalid="ignore"):
            q = norm.pdf(t) * inner / self.scale / (1.0 - self._start())
        return np.where((X >= self.lower) & np.isfinite(inner), q, 0.0)

    def relative_bends(self, X: Floats) -> Floats:
        """(∂²U_j/∂x_j²)/(∂U_j/∂x_j) (n, d)."""
        t, inner = self._standardised(X), self._inner(X)
        bends = -(t / self.scale) * inner - np.where(self._logs(), inner, 0.0)
        return np.where((X >= self.lower) & np.isfinite(bends), bends, 0.0)

    def _logs(self) -> Bools:
        return np.isfinite(self.offset)

    def _standardised(self, X: Floats) -> Floats:
        shifted = np.maximum(X, self.lower) + np.where(self._logs(), self.offset, 0.0)
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(self._logs(), shifted, 1.0))
        return (np.where(self._logs(), logs, X) - self.center) / self.scale

    def _inner(self, X: Floats) -> Floats:
        """g'(x)."""
        with np.errstate(divide="ignore"):
            steep = 1.0 / np.where(self._logs(), np.maximum(X, 0.0) + self.offset, 1.0)
        return np.where(self._logs(), steep, 1.0)

    def _start(self) -> Floats:
        """F at the lower limit (d,): 0, unless the offset is above 0."""
        with np.errstate(divide="ignore"):
            g = np.log(np.where(self._logs(), self.offset, 0.0))
        return ndtr((g - self.center) / self.scale)


def learned_map(X: Floats, weights: Floats) -> UnitMap:
    """The map for values X (n, d); skewed columns without negative values by their logs."""
    columns = [_learned_column(x, weights) for x in X.T]
    center, spread, offset = (np.array(each) for each in zip(*columns, strict=True))
    return UnitMap(center, BASE_WIDTH * spread, offset)


def _learned_column(x: Floats, weights: Floats) -> tuple[float, float, float]:
    """Center, spread and offset of a column; the offset is infinite for the column as it is."""
    center, spread = _moments(x, weights)
    best = (center, spread, np.inf)
    if x.min() < 0.0 or not np.any(x > 0.0) or spread == 0.0:
        return best
    n, unit = float(len(x)), float(np.median(x[x > 0.0]))
    least = -np.log(spread) + max(LEAST_GAIN, LEAST_TOTAL_GAIN / n)
    for offset in OFFSETS:
        if offset == 0.0 and x.min() <= 0.0:
            continue
        g = np.log(x + offset * unit)
        center, spread = _moments(g, weights)
        # the mean log density of x, up to a constant, if g is normal
        fit = -np.log(spread) - float(np.average(g, weights=weights)) if spread > 0.0 else -np.inf
        if fit > least:
            best, least = (center, spread, offset * unit), fit
    return best


def _moments(x: Floats, weights: Floats) -> tuple[float, float]:
    """Mean and standard deviation."""
    mean = float(np.average(x, weights=weights))
    return mean, float(np.sqrt(np.average((x - mean) ** 2, weights=weights)))
