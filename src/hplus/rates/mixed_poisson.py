"""Quantiles of counts whose mean is uncertain."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy.special import pdtr

from hplus._checks import Floats

LARGE_MEAN = 2.0**20
"""With larger means, quantiles are found by halving: adding up single counts takes longer."""

SD_BELOW, SD_ABOVE, COUNTS_ABOVE = 7.5, 8.0, 30.0
"""A Poisson count of mean m is at most 7.5√m below it and 8√m + 30 above, but for 1e-13."""

ROUNDING = 1e-12
"""Chances that differ by this fraction are equal up to rounding and what lies further away."""

STIRLING_COUNT = 30.0
"""The least count whose factorial is computed by Stirling's series, to 1e-14."""

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})


def mixed_poisson_quantile(means: Floats, p: float) -> Floats:
    """The smallest counts k with P(N <= k) >= p for N Poisson with one of the means (..., s)."""
    rows = np.sort(means.reshape(-1, means.shape[-1]), axis=1)
    found, large = np.empty(len(rows)), rows[:, -1] > LARGE_MEAN
    found[large] = _by_halving(rows[large], p)
    found[~large] = _by_adding(rows[~large], p)
    return found.reshape(means.shape[:-1])


def _by_halving(means: Floats, p: float) -> Floats:
    """The quantile of each row, between bounds that are halved."""
    most = means[:, -1]
    low, high = np.full(most.shape, -1.0), np.ceil(most + 12.0 * np.sqrt(most) + 30.0)
    while np.any(high - low > np.maximum(np.spacing(high), 1.0)):
        middle = np.maximum(np.floor((low + high) / 2.0), 0.0)
        enough = np.mean(pdtr(middle[:, None], means), axis=1) >= p
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return high


@compiled
def _by_adding(means: Floats, p: float) -> Floats:
    """The quantile of each row of sorted means: P(N = k) is added until it is enough.

    Means so low that their counts are below the quantile are counted, not added.
    """
    size = means.shape[1]
    found, chances, enough = np.empty(len(means)), np.empty(size), p * size * (1.0 - ROUNDING)
    for row in range(len(means)):
        m = means[row]
        least = _begin(m[min(max(math.ceil(p * size) - 1, 0), size - 1)])
        first = 0
        while _end(m[first]) <= least:
            first += 1
        k, last, total = _begin(m[first]), first, float(first)
        while total < enough and first < size:
            while last < size and _begin(m[last]) <= k:
                chances[last] = _chance(k, m[last])
                last += 1
            while first < last and _end(m[first]) < k:
                first += 1
            k += 1.0
            total += _sum_and_advance(chances[first:last], m[first:last], 1.0 / k)
        found[row] = k - 1.0
    return found


@compiled
def _sum_and_advance(chances: Floats, means: Floats, share: float) -> float:
    """Σ P(N = k), which become P(N = k + 1) = P(N = k) m/(k + 1)."""
    total = 0.0
    for i in range(len(chances)):
        total += chances[i]
        chances[i] *= means[i] * share
    return total


@compiled
def _begin(mean: float) -> float:
    return max(math.floor(mean - SD_BELOW * math.sqrt(mean)), 0.0)


@compiled
def _end(mean: float) -> float:
    return math.ceil(mean + SD_ABOVE * math.sqrt(mean) + COUNTS_ABOVE)


@compiled
def _chance(count: float, mean: float) -> float:
    """P(N = count) for N Poisson with this mean."""
    if count == 0.0:
        return math.exp(-mean)
    if count < STIRLING_COUNT:
        return math.exp(count * math.log(mean) - mean - math.lgamma(count + 1.0))
    # without the difference of large numbers: log k! by Stirling's series
    x = (mean - count) / count
    series = (1.0 - (1.0 - 2.0 / (7.0 * count**2)) / (30.0 * count**2)) / (12.0 * count)
    log_root = 0.5 * math.log(2.0 * math.pi * count)
    return math.exp(count * (math.log1p(x) - x) - log_root - series)
