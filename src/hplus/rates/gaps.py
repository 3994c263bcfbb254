"""Gaps between events in rescaled time: are they exponential, and independent of their neighbours?

Gaps are compared within groups of neighbours, relative to the mean of their group. Their
distribution is then free of the number of events and of slow changes of the rate, and known
exactly: k gaps divided by their sum are those of k - 1 uniform points.
"""

from __future__ import annotations

from functools import lru_cache
from typing import final

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, norm

from hplus._checks import Floats, frozen_array
from hplus._values import Value, value

GROUP_GAPS = 32
"""Approximate number of neighbouring gaps that are compared with each other."""

MIN_GAPS = 10
"""Fewer gaps are not tested."""

GAP_LAGS = 4
"""How many neighbours ahead gaps are compared with."""

QUANTILES = 99
"""Most points of a figure of the gaps."""

DARLING_NODES = 256
"""Nodes of the quadrature behind the null distribution of the Anderson-Darling statistic."""


@final
@value
class Gaps(Value):
    """An Anderson-Darling test of gaps: exponential if events are independent of each other.

    `observed` are quantiles of the gaps relative to the mean of their group, `exponential` those
    of the exponential distribution, shape (k,) each. `variation` is the coefficient of variation:
    1 for independent events, more for bursts, less for events that keep apart.
    """

    statistic: float
    p_value: float
    variation: float
    observed: Floats
    exponential: Floats

    def __post_init__(self) -> None:
        for name in ("observed", "exponential"):
            self._set(**{name: frozen_array(name, getattr(self, name))})


@final
@value
class Neighbours(Value):
    """A test of whether gaps depend on those up to 4 gaps earlier, by their ranks in the group.

    `correlations` of shape (4,) are rank correlations, 0 on average if events are independent.
    """

    statistic: float
    p_value: float
    correlations: Floats

    def __post_init__(self) -> None:
        self._set(correlations=frozen_array("correlations", self.correlations))


def grouped_gaps(times: Floats) -> Floats | None:
    """Gaps between sorted times in groups of k neighbours, relative to their mean, (groups, k).

    None if there are fewer than 10, or if all events of a group are at one time.
    """
    gaps = np.diff(times)
    if len(gaps) < MIN_GAPS:
        return None
    groups = max(1, round(len(gaps) / GROUP_GAPS))
    k = len(gaps) // groups
    table = gaps[(len(gaps) - k * groups) // 2 :][: k * groups].reshape(groups, k)
    sums = table.sum(axis=1, keepdims=True)
    return k * table / sums if np.all(sums > 0.0) else None


def gap_test(table: Floats) -> Gaps:
    """Anderson-Darling test of grouped gaps (groups, k)."""
    k = table.shape[1]
    gaps = np.sort(table.ravel())
    n = len(gaps)
    # one of k spacings of the unit interval is longer than w with probability (1 - w)^(k - 1)
    log_longer = (k - 1.0) * np.log1p(-np.minimum(gaps / k, 1.0 - 1e-15))
    log_shorter = np.log(np.maximum(-np.expm1(log_longer), 1e-300))
    ranks = (2.0 * np.arange(1, n + 1) - 1.0) / n
    statistic = float(-n - ranks @ (log_shorter + log_longer[::-1]))
    shares = (np.arange(min(n, QUANTILES)) + 0.5) / min(n, QUANTILES)
    # the variance of k spacings with mean 1 is (k - 1)/(k + 1) on average
    variation = float(np.sqrt(np.mean((gaps - 1.0) ** 2) * (k + 1.0) / (k - 1.0)))
    return Gaps(
        statistic,
        weighted_chi_square_sf(statistic, darling_weights(k)),
        variation,
        np.quantile(-log_longer, shares),
        -np.log1p(-shares),
    )


@lru_cache(maxsize=64)
def darling_weights(k: int) -> Floats:
    """Weights λ_j of A² = Σ λ_j χ²₁, the Anderson-Darling statistic of groups of k spacings.

    Eigenvalues of the covariance of the empirical process, divided by √(s(1-s)t(1-t)). With
    a(s) = 1 - (1-s)^(1/(k-1)), two spacings are longer than a(s) and a(t) with probability
    (1 - a(s) - a(t))₊^(k-1).
    """
    x = (np.arange(DARLING_NODES) + 0.5) / DARLING_NODES
    s = 0.5 * (1.0 - np.cos(np.pi * x))  # denser near the ends, where the weights are large
    steps = 0.5 * np.pi * np.sin(np.pi * x) / DARLING_NODES
    a = -np.expm1(np.log1p(-s) / (k - 1.0))
    both = np.maximum(1.0 - a[:, None] - a, 0.0) ** (k - 1)
    covariance = np.minimum.outer(s, s) - np.outer(s, s)
    covariance += (k - 1.0) * (both - np.outer(1.0 - s, 1.0 - s))
    scale = np.sqrt(steps / (s * (1.0 - s)))
    return np.maximum(np.linalg.eigvalsh(scale[:, None] * covariance * scale), 0.0)


def weighted_chi_square_sf(x: float, weights: Floats) -> float:
    """P(Σ w_j χ²₁ > x) by the saddlepoint approximation of Lugannani and Rice."""
    w = weights[weights > 1e-9 * weights.max()]
    mean = w.sum()
    if abs(x / mean - 1.0) < 1e-3:  # the formula is 0/0 at the mean: nearby it is smooth
        above, below = (weighted_chi_square_sf(mean * q, weights) for q in (1.002, 0.998))
        return float(np.interp(x / mean, [0.998, 1.002], [below, above]))
    if x <= 0.0:
        return 1.0

    def slope(theta: float) -> float:
        return float(np.sum(w / (1.0 - 2.0 * theta * w)) - x)

    end = 0.5 / w.max()
    low = -0.5 * len(w) / x  # there Σ w/(1 - 2θw) < x
    theta = brentq(slope, low, end * (1.0 - 0.5 * w.max() / (x + mean)), xtol=1e-14 * end)
    cumulant = -0.5 * np.sum(np.log1p(-2.0 * theta * w))
    curvature = 2.0 * np.sum((w / (1.0 - 2.0 * theta * w)) ** 2)
    root = np.sign(theta) * np.sqrt(2.0 * max(theta * x - cumulant, 0.0))
    u = theta * np.sqrt(curvature)
    # r* of Barndorff-Nielsen: as accurate, and a probability however far the tail
    return float(norm.sf(root + np.log(u / root) / root))


def neighbour_test(table: Floats) -> Neighbours:
    """Σ_l z_l² over lags l, z_l the standardised products of ranks l gaps apart in a group."""
    groups, k = table.shape
    ranks = table.argsort(axis=1).argsort(axis=1) - 0.5 * (k - 1.0)
    lags = np.arange(1, min(GAP_LAGS, k - 2) + 1)
    square, fourth = np.mean(ranks[0] ** 2), np.mean(ranks[0] ** 4)
    z, correlations = [], []
    for lag in lags:
        total = float(np.sum(ranks[:, lag:] * ranks[:, :-lag]))
        mean, variance = _product_moments(k, int(lag), float(square), float(fourth))
        z.append((total - groups * mean) / np.sqrt(groups * variance))
        correlations.append((total / groups - mean) / ((k - lag) * square))
    statistic = float(np.sum(np.square(z)))
    return Neighbours(statistic, float(chi2.sf(statistic, len(lags))), np.array(correlations))


def _product_moments(k: int, lag: int, square: float, fourth: float) -> tuple[float, float]:
    """Mean and variance of Σ_i r_i r_{i+lag} for a random order of k centred ranks."""
    s2, s4 = k * square, k * fourth
    # sums over distinct indices, from power sums of centred values
    pair = -s2 / (k * (k - 1.0))
    pair_squares = (s2**2 - s4) / (k * (k - 1.0))
    shared = (2.0 * s4 - s2**2) / (k * (k - 1.0) * (k - 2.0))
    four = (3.0 * s2**2 - 6.0 * s4) / (k * (k - 1.0) * (k - 2.0) * (k - 3.0))
    terms = k - lag
    chains = 2.0 * max(k - 2 * lag, 0)
    mean = terms * pair
    second = terms * pair_squares + chains * shared + (terms**2 - terms - chains) * four
    return mean, second - mean**2
