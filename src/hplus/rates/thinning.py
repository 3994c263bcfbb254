"""A random part of very many events, which says as much about what does not depend on all."""

from __future__ import annotations

import numpy as np

from hplus.rates.statistic import Statistic

MAX_PARTS, CELLS_AT_ONCE = 16, 2**20
"""Into how many parts events are split at once, and those of how many cells."""


def thinned_to(statistic: Statistic, most: int, seed: int) -> Statistic:
    """About `most` of the events, drawn at random, if there are more than twice as many."""
    draw = 0
    while (parts := statistic.events // most) > 1:
        draw += 1
        counts = np.empty_like(statistic.counts)
        for start in range(0, len(counts), CELLS_AT_ONCE):
            cells = slice(start, start + CELLS_AT_ONCE)
            # another seed than that of folds, and than that of an earlier draw
            folds = statistic.folds((seed + draw) ^ 2**40, min(parts, MAX_PARTS), cells)
            counts[cells] = folds[0]
        statistic = statistic.part(counts)
    return statistic
