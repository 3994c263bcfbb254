"""SeparableIntensity: where and when events happen, the one independent of the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from hplus._checks import Floats, shown
from hplus._progress import whole_or_not
from hplus.estimators.rate_estimator import FittedRate
from hplus.estimators.intensity import Intensity
from hplus.rates.grid_rate import FARTHEST, GridRate
from hplus.rates.statistic import Statistic
from hplus.storage import storable
from hplus.windows import Product, Window


@storable
@dataclass(frozen=True)
class SeparableRate:
    """λ(x, t) = place(x) time(t) / events: the rates of all events by place, and by time.

    The rate by time is per unit of exposure, which may differ from time to time.
    """

    window: Product
    place: GridRate
    time: GridRate
    events: float

    def function(self, X: Floats) -> Floats:
        """The rate at each point, shape (n,)."""
        x, t = self.split(X)
        return self.place.function(x) * self.time.function(t) / self.events

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that hold the rate at each point with probability `level`, (n,) each."""
        x, t = self.split(X)
        a, b = self.place.log_band(x, level), self.time.log_band(t, level)
        center = a.center + b.center - np.log(self.events)
        low = center - np.minimum(np.hypot(a.below, b.below), FARTHEST)
        high = center + np.minimum(np.hypot(a.above, b.above), FARTHEST)
        return np.exp(low), np.exp(high)

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
    def on_grid(self) -> SeparableRate:
        """What can be sampled and has a highest point: itself."""
        return self

    def sample(self, n: int, rng: Any) -> Floats:
        """n independent points with density λ/∫λ, shape (n, d)."""
        parts = (self.place.on_grid.sample(n, rng), self.time.on_grid.sample(n, rng))
        return np.hstack(parts)

    def peak(self) -> tuple[Floats, float]:
        """The point with the highest rate, and the rate there."""
        (x, top), (t, high) = self.place.on_grid.peak(), self.time.on_grid.peak()
        return np.concatenate([x, t]), top * high / self.events

    def split(self, X: Floats) -> tuple[Floats, Floats]:
        """Points as places and times."""
        d = self.window.left.dimension
        return X[:, :d], X[:, d:]

    def factors(self, region: Window) -> tuple[Window, Window]:
        """A region as a place and a time, refused unless it is a product of the two."""
        if region == self.window:
            return self.window.left, self.window.right
        d = self.window.left.dimension
        if not isinstance(region, Product) or region.left.dimension != d:
            raise ValueError(
                "a region must be a product of a place and a time, such as city * Interval(0, 24), "
                f"got {shown(region)}."
            )
        return region.left, region.right


@storable
class SeparableIntensity(FittedRate):
    """How often events happen, by place and by time, where the one says nothing of the other.

    λ(x, t) = p(x) q(t): two fits of `Intensity`, one of the places and one of the times, which see
    far finer structure than one fit of both together could; whether place and time are independent
    is for `hplus.evaluation.check` to say.

    >>> import numpy as np
    >>> from hplus import Cycle, Interval, SeparableIntensity
    >>> X = np.random.RandomState(0).beta(2, 4, size=(500, 2)) * [1.0, 24.0]
    >>> model = SeparableIntensity(Interval(0, 1, unit="km") * Cycle(24, unit="h")).fit(X)
    >>> round(model.expected_count(Interval(0, 1) * Cycle(24)))
    500

    Parameters
    ----------
    window : Product
        A window of places times one of times.
    kernels : pair of "auto" or the `mixture_` of another fit
        What is known about the smoothness of both, as for `Intensity`.
    random_state : int, RandomState or None
        As of `Intensity`.

    Attributes
    ----------
    place_, time_ : Intensity
        The two fits, each of all events.
    solution_ : SolverResult
        That of the two with the wider gap.
    """

    def __init__(
        self, window: Any, *, kernels: Any = ("auto", "auto"), random_state: Any = None
    ) -> None:
        self.window = window
        self.kernels = kernels
        self.random_state = random_state

    def fit(self, X: Any, y: None = None, *, exposure: Any = 1.0) -> Self:
        """Learn both rates from events X (n, d), or from a pair of their `Statistic`s.

        `exposure` says how long or how often the window was watched: a number, or a function of
        the times (n, 1).
        """
        with whole_or_not(self):
            self._check_parameters()
            places, times = self._statistics(X)
            wheres, whens = self.kernels
            seed, parts = self.random_state, (self.window.left, self.window.right)
            self.place_ = Intensity(parts[0], wheres, random_state=seed).fit(places)
            when = Intensity(parts[1], whens, random_state=seed)
            self.time_ = when.fit(times, exposure=exposure)
            self.total_, self.n_features_in_ = places.total, self.window.dimension
            rates: Any = (self.place_.rate_, self.time_.rate_)
            self.rate_ = SeparableRate(self.window, rates[0], rates[1], places.total)
            both = (self.place_.solution_, self.time_.solution_)
            self.solution_ = max(both, key=lambda solution: solution.relative_gap)
        return self

    def _check_parameters(self) -> None:
        if not isinstance(self.window, Product):
            raise TypeError(
                f"window must be a product such as Box(...) * Cycle(24), got {shown(self.window)}."
            )
        if not isinstance(self.kernels, tuple | list) or len(self.kernels) != 2:
            raise TypeError(
                f'kernels must be a pair, of places and of times, such as ("auto", "auto"), got '
                f"{shown(self.kernels)}."
            )

    def _statistics(self, X: Any) -> tuple[Statistic, Statistic]:
        if isinstance(X, tuple):
            if [type(part) for part in X] != [Statistic] * 2 or X[0].events != X[1].events:
                raise ValueError(
                    "X must be events or a pair of Statistics of the same events, by place and by "
                    f"time, got {shown(X)}."
                )
            return X
        X = self.window.require("X", X)
        d, seed = self.window.left.dimension, 0 if self.random_state is None else self.random_state
        left = Statistic.of(self.window.left, X[:, :d], random_state=seed)
        return left, Statistic.of(self.window.right, X[:, d:], random_state=seed)
