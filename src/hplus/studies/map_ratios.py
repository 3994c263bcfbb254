"""Shares of regions in a period over those of all times, where the map changes with time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from hplus.rates.map_by_time import MapByTime
from hplus.rates.separable import SeparableRate, pairs_of_draws
from hplus.studies.periods import Period
from hplus.studies.spans import Clock, phases
from hplus.studies.time_counts import MeanCounts
from hplus.windows import Interval, Window

WHOLE_CYCLES = 1e-9
"""A period whose ratios differ from 1 by less is one of whole cycles."""


class RegionMaps(NamedTuple):
    """How the shares of some regions change with time, from their masses in cells of the map."""

    rate: SeparableRate
    by_time: MapByTime
    clock: Clock
    cells: csr_array

    def during(self, period: Period, shares: MeanCounts) -> MeanCounts:
        """Shares of all times as they are in a period."""
        parts = phases(self.clock, period.start, period.seconds)
        masses = [
            times * self.by_time.in_bins(Interval(a, b), self.rate.time) for a, b, times in parts
        ]
        bins = np.sum(masses, axis=0)[None]
        at, ratios = [0] * len(shares.means), self.by_time.ratios[None]
        means = self.by_time.ratios_over(self.cells, bins, at, ratios)[:, 0]
        if np.max(np.abs(means - 1.0), initial=0.0) < WHOLE_CYCLES:
            return shares
        draws = self.by_time.ratios_over(self.cells, bins, at, self.by_time.draws)
        i, j = pairs_of_draws(shares.draws.shape[1], draws.shape[1])
        return MeanCounts(shares.means * means, shares.draws[:, i] * draws[:, j])


def region_maps(rate: object, clock: Clock | None, windows: Sequence[Window]) -> RegionMaps | None:
    """How the shares of regions change with the time of a cycle; None if they do not."""
    if not isinstance(rate, SeparableRate) or rate.by_time is None or clock is None:
        return None
    return RegionMaps(rate, rate.by_time, clock, rate.by_time.in_cells(windows, rate.place))
