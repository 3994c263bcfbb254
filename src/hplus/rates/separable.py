"""A rate by place and by time, the one independent of the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats, shown
from hplus.rates.bands import LogBand
from hplus.rates.grid_rate import GridRate
from hplus.rates.squares_rate import SquaresRate
from hplus.solvers.result import SolverResult
from hplus.windows import Product, Window


@dataclass(frozen=True)
class SeparableRate:
    """λ(x, t) = place(x) time(t) / events: the rates of all events by place, and by time.

    The rate by time is per unit of exposure, which may differ from time to time.
    """

    window: Product
    place: GridRate | SquaresRate
    time: GridRate | SquaresRate
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

    def integral(self, region: Window | None = None) -> float:
        """∫ of the rate over a product of a region and a time, or over all of the window."""
        if region is None:
            return self.time.integral()
        where, when = self.factors(region)
        return self.place.integral(where) / self.events * self.time.integral(when)

    def count_draws(self, region: Window) -> Floats:
        """Draws of the expected count of a product of a region and a time, shape (k,)."""
        where, when = self.factors(region)
        # how many events there are is uncertain once, not once for each factor
        share = self.place.count_draws(where) / self.place.count_draws(self.window.left)
        return np.multiply.outer(share, self.time.count_draws(when)).ravel()

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

    def factors(self, region: Window) -> tuple[Window, Window]:
        """A region as a place and a time; it must be a product of the two."""
        if region == self.window:
            return self.window.left, self.window.right
        d = self.window.left.dimension
        if not isinstance(region, Product) or region.left.dimension != d:
            raise ValueError(
                "a region must be a product of a place and a time, such as city * Interval(0, 24), "
                f"got {shown(region)}."
            )
        return region.left, region.right
