"""A rate by place and by time, independent of each other unless the map changes with time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats, Ints, shown
from hplus.rates.bands import LogBand
from hplus.rates.drawing import band_of_values
from hplus.rates.fitted import FittedRate
from hplus.rates.map_by_time import MapByTime
from hplus.solvers.result import SolverResult
from hplus.windows import Product, Window

PEAK_CANDIDATES = 2048
"""Places and times, drawn at random, among which the highest rate is looked for."""

MIN_PAIRS = 256
"""Pairs of draws of the two factors of a count, at least."""


@dataclass(frozen=True)
class SeparableRate:
    """λ(x, t) = place(x) time(t) r(x, t) / events: the rates of all events by place, and by time.

    The rate by time is per unit of exposure, which may differ from time to time. The ratio r is 1,
    or `by_time` says how the map changes with time.
    """

    window: Product
    place: FittedRate
    time: FittedRate
    events: float
    by_time: MapByTime | None = None

    def function(self, X: Floats) -> Floats:
        """The rate at each point, shape (n,)."""
        x, t = self.split(X)
        rate = self.place.function(x) * self.time.function(t) / self.events
        return rate if self.by_time is None else rate * self.by_time.at(X)

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that contain the rate at each point with probability `level`, (n,) each."""
        return self.log_band(X, level).bounds

    def log_band(self, X: Floats, level: float) -> LogBand:
        """The same on the log scale: a center, and the distances of the bounds from it."""
        x, t = self.split(X)
        band = self.place.log_band(x, level).times(self.time.log_band(t, level))
        if self.by_time is not None:
            band = band.times(band_of_values(self.by_time.draws_at(X), level))
        return band._replace(center=band.center - np.log(self.events))

    def integral(self) -> float:
        """∫ of the rate over the window."""
        return self.time.integral()

    def integrals(self, regions: Sequence[Window]) -> Floats:
        """∫ of the rate over each of several products of a place and a time, shape (r,)."""
        where, when = self.factors(regions)
        counts = self.place.integrals(where) / self.events * self.time.integrals(when)
        if self.by_time is None:
            return counts
        return counts * self._ratios(self.by_time, where, when, self.by_time.ratios[None])[:, 0]

    def count_draws(self, regions: Sequence[Window]) -> Floats:
        """Draws of the expected count of each of several products, shape (r, k)."""
        where, when = self.factors(regions)
        share, time = self.shares(where)[1], self.time.count_draws(when)
        i, j = pairs_of_draws(share.shape[1], time.shape[1])
        if self.by_time is None:
            return share[:, i] * time[:, j]
        ratios = self._ratios(self.by_time, where, when, self.by_time.draws)
        return share[:, i] * time[:, j] * ratios[:, pairs_of_draws(len(i), ratios.shape[1])[1]]

    def shares(self, places: Sequence[Window]) -> tuple[Floats, Floats]:
        """The share of all events in each of several places, (r,), and draws of it, (r, k)."""
        # how many events there are is uncertain once, not once for each factor
        draws = self.place.count_draws(places) / self.place.count_draws([self.window.left])
        return self.place.integrals(places) / self.events, draws

    def _ratios(
        self, by_time: MapByTime, where: Sequence[Window], when: Sequence[Window], tables: Floats
    ) -> Floats:
        """Counts of places in times over those if they were independent, (r, k), by k tables."""
        places, times = (dict.fromkeys(asked) for asked in (where, when))
        row, column = ({each: i for i, each in enumerate(asked)} for asked in (places, times))
        cells = by_time.in_cells(list(places), self.place)[[row[each] for each in where]]
        bins = np.array([by_time.in_bins(each, self.time) for each in times])
        return by_time.ratios_over(cells, bins, [column[each] for each in when], tables)

    @property
    def result(self) -> SolverResult:
        """The solution of the two with the wider gap."""
        both = (self.place.result, self.time.result)
        return max(both, key=lambda result: result.relative_gap)

    @property
    def on_grid(self) -> SeparableRate:
        """The function that is sampled and has the highest point: the rate itself."""
        return self

    def sample(self, n: int, random_state: np.random.RandomState) -> Floats:
        """n independent points with density λ/∫λ, shape (n, d)."""
        times = self.time.on_grid.sample(n, random_state)
        return np.hstack([self.places_at(times[:, 0], random_state), times])

    def places_at(self, times: Floats, random_state: np.random.RandomState) -> Floats:
        """A place of an event at each of some times (n,), shape (n, d)."""
        X = self.place.on_grid.sample(len(times), random_state)
        if self.by_time is None:
            return X
        bins, missing = self.by_time.bins(times), np.arange(len(times))
        highest = self.by_time.highest
        while len(missing):
            ratios = self.by_time.ratios[self.by_time.cells(X[missing]), bins[missing]]
            refused = random_state.random_sample(len(missing)) * highest[bins[missing]] > ratios
            missing = missing[refused]
            X[missing] = self.place.on_grid.sample(len(missing), random_state)
        return X

    def peak(self) -> tuple[Floats, float]:
        """The point with the highest rate that is found, and the rate there."""
        (x, top), (t, high) = self.place.on_grid.peak(), self.time.on_grid.peak()
        if self.by_time is None:
            return np.concatenate([x, t]), top * high / self.events
        rng = np.random.RandomState(0)
        places, times = (
            np.vstack([at, factor.on_grid.sample(PEAK_CANDIDATES, rng)])
            for at, factor in ((x, self.place), (t, self.time))
        )
        ratios = self.by_time.ratios[self.by_time.cells(places)][:, self.by_time.bins(times[:, 0])]
        rates = np.outer(self.place.function(places), self.time.function(times)) * ratios
        i, j = np.unravel_index(int(np.argmax(rates)), rates.shape)
        return np.concatenate([places[i], times[j]]), float(rates[i, j]) / self.events

    def split(self, X: Floats) -> tuple[Floats, Floats]:
        """Points as places and times."""
        d = self.window.left.dimension
        return X[:, :d], X[:, d:]

    def factors(self, regions: Sequence[Window]) -> tuple[list[Window], list[Window]]:
        """Regions as places and times; each must be a product of the two."""
        pairs = [self._place_and_time(region) for region in regions]
        return [where for where, _ in pairs], [when for _, when in pairs]

    def _place_and_time(self, region: Window) -> tuple[Window, Window]:
        if region == self.window:
            return self.window.left, self.window.right
        d = self.window.left.dimension
        if not isinstance(region, Product) or region.left.dimension != d:
            raise ValueError(
                "a region must be a product of a place and a time, such as city * Interval(0, 24), "
                f"got {shown(region)}."
            )
        return region.left, region.right


def pairs_of_draws(left: int, right: int) -> tuple[Ints, Ints]:
    """Pairs of draws of two independent numbers, each used equally often: indices of both."""
    count = max(left, right, MIN_PAIRS)
    i, j = (np.arange(count) * n // count for n in (left, right))
    return i, np.random.default_rng(0).permutation(j)
