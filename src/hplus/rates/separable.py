"""A rate by place and by time, the one independent of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats, Ints, shown
from hplus.rates.bands import LogBand
from hplus.rates.fitted import FittedRate
from hplus.solvers.result import SolverResult
from hplus.windows import Product, Window

MIN_PAIRS = 256
"""Pairs of draws of the two factors of a count, at least."""


@dataclass(frozen=True)
class SeparableRate:
    """λ(x, t) = place(x) time(t) / events: the rates of all events by place, and by time.

    The rate by time is per unit of exposure, which may differ from time to time.
    """

    window: Product
    place: FittedRate
    time: FittedRate
    events: float

    def function(self, X: Floats) -> Floats:
        """The rate at each point, shape (n,)."""
        x, t = self.split(X)
        return self.place.function(x) * self.time.function(t) / self.events

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that contain the rate at each point with probability `level`, (n,) each."""
        return self.log_band(X, level).bounds

    def log_band(self, X: Floats, level: float) -> LogBand:
        """The same on the log scale: a center, and the distances of the bounds from it."""
        x, t = self.split(X)
        band = self.place.log_band(x, level).times(self.time.log_band(t, level))
        return band._replace(center=band.center - np.log(self.events))

    def integral(self) -> float:
        """∫ of the rate over the window."""
        return self.time.integral()

    def integrals(self, regions: Sequence[Window]) -> Floats:
        """∫ of the rate over each of several products of a place and a time, shape (r,)."""
        where, when = self.factors(regions)
        return self.place.integrals(where) / self.events * self.time.integrals(when)

    def count_draws(self, regions: Sequence[Window]) -> Floats:
        """Draws of the expected count of each of several products, shape (r, k)."""
        where, when = self.factors(regions)
        share, time = self.shares(where)[1], self.time.count_draws(when)
        i, j = pairs_of_draws(share.shape[1], time.shape[1])
        return share[:, i] * time[:, j]

    def shares(self, places: Sequence[Window]) -> tuple[Floats, Floats]:
        """The share of all events in each of several places, (r,), and draws of it, (r, k)."""
        # how many events there are is uncertain once, not once for each factor
        draws = self.place.count_draws(places) / self.place.count_draws([self.window.left])
        return self.place.integrals(places) / self.events, draws

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
        factors = (self.place.on_grid, self.time.on_grid)
        return np.hstack([factor.sample(n, random_state) for factor in factors])

    def peak(self) -> tuple[Floats, float]:
        """The point with the highest rate, and the rate there."""
        (x, top), (t, high) = self.place.on_grid.peak(), self.time.on_grid.peak()
        return np.concatenate([x, t]), top * high / self.events

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
