"""CountDispersion: do counts in blocks of time vary more, or less, than independent events would?

Rescaled time is halved again and again. Of the N events of a block, those in its first half are
binomial, whatever the rate does on longer scales, so that each length of block has its own test.
"""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.stats import chi2, norm

from hplus._checks import Floats, frozen_array
from hplus._values import Value, value

MIN_BLOCK_EVENTS = 2.0
"""Average number of events in the shortest blocks."""

MIN_BLOCK_PAIRS = 100.0
"""Pairs of events in the blocks that are halved, below which their counts are not tested."""

MIN_EVEN_BLOCKS = 16
"""Blocks from which counts that are too even are found: few counts are equal by chance."""

NORMAL_SKEWNESS = 1e-3
"""Skewness below which a sum is taken for normal."""


@final
@value
class CountDispersion(Value):
    """Indices of dispersion of counts in blocks of several lengths, with one joint test.

    `events` is the average count of the blocks, from long to short, and `index` Σ(L-R)²/Σ(L+R)
    over neighbouring blocks with counts L and R: 1 on average for independent events, more for
    bursts or a level that drifts, less for regular events. `tails` are their p-values, and
    `p_value` is that of the smallest among as many. Shape (k,) each.
    """

    statistic: float
    p_value: float
    events: Floats
    index: Floats
    tails: Floats

    def __post_init__(self) -> None:
        for name in ("events", "index", "tails"):
            self._set(**{name: frozen_array(name, getattr(self, name))})


def dispersion_test(shares: Floats) -> CountDispersion | None:
    """Counts of rescaled times within [0, 1] in blocks of 1/2, 1/4, ...; None for few events."""
    n, rows = len(shares), []
    blocks = 2
    while n / blocks >= MIN_BLOCK_EVENTS:
        counts = np.bincount(np.minimum((shares * blocks).astype(np.int64), blocks - 1))
        counts = np.append(counts, np.zeros(blocks - len(counts)))
        left, right = counts[::2], counts[1::2]
        both = left + right
        pairs = float(np.sum(both * (both - 1.0)))
        if pairs >= 2.0 * MIN_BLOCK_PAIRS:
            excess = float(np.sum((left - right) ** 2 - both))
            # (L - R)² for N random signs: variance 2N(N-1), third cumulant 8N(N-1)(N-2)
            third = float(np.sum(8.0 * both * (both - 1.0) * (both - 2.0)))
            tail = _tail(excess, 2.0 * pairs, third, blocks >= MIN_EVEN_BLOCKS)
            rows.append((n / blocks, 1.0 + excess / n, tail))
        blocks *= 2
    if not rows:
        return None
    events, index, tails = np.array(rows).T
    smallest = float(tails.min())
    # lengths are uncorrelated: the smallest of k p-values
    joint = float(-np.expm1(len(tails) * np.log1p(-min(smallest, 1.0 - 1e-16))))
    return CountDispersion(float(index[tails.argmin()]), joint, events, index, tails)


def _tail(excess: float, variance: float, third: float, both_sides: bool) -> float:
    """The p-value of a sum with mean 0 and these cumulants, by a gamma distribution."""
    z, skewness = excess / np.sqrt(variance), third / variance**1.5
    if skewness < NORMAL_SKEWNESS:
        above, below = norm.sf(z), norm.cdf(z)
    else:
        degrees = 8.0 / skewness**2
        x = degrees + np.sqrt(2.0 * degrees) * z
        above, below = chi2.sf(x, degrees), chi2.cdf(x, degrees)
    return float(min(1.0, 2.0 * min(above, below)) if both_sides else above)
