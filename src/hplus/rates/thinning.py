"""A random part of very many events, which says as much about what does not depend on all."""

from __future__ import annotations

import numpy as np

from hplus.rates.cell_counts import drawn_counts
from hplus.rates.statistic import Statistic

THINNING_SALT = 2**40
"""Other draws for the same seed, of folds and of what is held out, have nothing in common."""


def thinned_to(statistic: Statistic, most: int, seed: int) -> Statistic:
    """About `most` of the events, drawn at random, if there are more than twice as many."""
    parts = statistic.events // most
    if parts <= 1:
        return statistic
    shares = np.full(len(statistic.codes), 1.0 / parts)
    drawn = drawn_counts(statistic.codes, statistic.counts, np.uint64(seed ^ THINNING_SALT), shares)
    return statistic.part(drawn)
