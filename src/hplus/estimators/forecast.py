"""Forecast: how often events happen in time, and how often they will."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import (
    Floats,
    Seed,
    as_floats,
    check_count,
    check_finite,
    check_fraction,
    check_nonnegative,
    check_number,
    check_positive,
    check_random_state,
    shown,
)
from hplus._progress import whole_or_not
from hplus.estimators.base import Estimator, check_fitted, check_weights
from hplus.rates.by_region import as_regions, one_or_all, rate_unit
from hplus.rates.forecasts.block_edges import Exposure, as_exposure
from hplus.rates.forecasts.forecast_learning import CycleAsked, ObservedTimes, learn_forecast
from hplus.rates.forecasts.forecast_rate import ForecastRate
from hplus.rates.mixed_poisson import mixed_poisson_quantile
from hplus.windows import Interval, Window, check_window

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86_400.0, "week": 604_800.0}
SECONDS["year"] = 365.25 * SECONDS["day"]
"""Units of time, in seconds."""

SPELLINGS = {"sec": "s", "second": "s", "minute": "min", "hr": "h", "hour": "h", "d": "day",
             "w": "week", "y": "year", "yr": "year"}  # fmt: skip
"""Other names of these units; plurals are known too."""

Regions = Interval | Sequence[Interval]
"""One interval of time, or several."""

NAMED_CYCLES = ("day", "week", "year")


class Forecast(Estimator):
    """How many events to expect at any time, also after the observation period.

    The log rate is a long-run level plus a smooth, a slow and a fast field that return to it, times
    the factors of cycles that predict later cycles. Scales and deviations of the fields are
    weighted by how well they forecast each block of time from those before it. The slow field
    changes at any time, or only between weeks or other cycles, whichever is more probable. The
    level may have jumped once, and may jump again.

    >>> import numpy as np
    >>> from hplus import Forecast, Interval
    >>> times = np.random.RandomState(0).uniform(0, 100, size=500)
    >>> model = Forecast(Interval(0, 100, unit="day"), horizon=7, cycles=()).fit(times)
    >>> low, high = model.count_interval(Interval(100, 107))
    >>> bool(15 < low < model.expected_count(Interval(100, 107)) < high < 60)
    True

    Parameters
    ----------
    window : Interval
        The observation period. Its unit must be a unit of time if cycles have names.
    horizon : float
        How long after the end of the window forecasts reach, in its unit.
    cycles : sequence of "day", "week", "year" or numbers
        Cycles that may multiply the rate: names, or periods in the unit of the window. One is kept
        only if it predicts later cycles better than the rate without it.
    origin : float
        A time at which all cycles begin, in the unit of the window: a Monday at midnight, if the
        phases of a week are to begin on Mondays.
    random_state : int, RandomState or None
        Seed of what is random; None is 0, so that fits are repeatable.

    Attributes
    ----------
    cycles_ : tuple of CycleGain
        For each cycle, in the order given: whether it was kept, its gain on later blocks in nats
        per event with a standard error, and the reason in words.
    dispersion_ : Dispersion
        How much more the count of the horizon varies than a Poisson count, with what it is for.
    reach_ : Interval
        From the start of the window to the end of the horizon.
    total_ : float
        The weight of all events.
    """

    def __init__(
        self,
        window: Interval,
        horizon: float,
        cycles: Sequence[str | float] = NAMED_CYCLES,
        *,
        origin: float = 0.0,
        random_state: Seed = None,
    ) -> None:
        self.window = window
        self.horizon = horizon
        self.cycles = cycles
        self.origin = origin
        self.random_state = random_state

    def fit(
        self,
        times: ArrayLike,
        y: None = None,
        *,
        exposure: Exposure | ArrayLike = 1.0,
        sample_weight: ArrayLike | None = None,
        changes: ArrayLike = (),
    ) -> Self:
        """Learn the rate of events at times (n,) or (n, 1).

        `exposure` is how often each time was observed: a number, a function of times (n, 1) that
        is 0 in gaps, or an array over the window, ends included. Rates are per unit of it, and so
        are forecasts. `changes` are times at which the level is likely to have jumped, such as
        that of a new law; it may jump at any other time too, and at none. With fewer than
        16 blocks of time, as of counts by month in one year, no jump is looked for.
        """
        with whole_or_not(self):
            periods = self._check_parameters()
            at = self._times("times", times, self.window)
            weights = check_weights("sample_weight", sample_weight, len(at))
            if not len(at):
                raise ValueError(
                    "times must hold at least one event, got 0: without any there is no rate to "
                    "learn."
                )
            seed = 0 if self.random_state is None else self.random_state
            drawn = int(check_random_state(seed).randint(2**31 - 1))
            low, high = self.window.low, self.window.high
            known = self._times("changes", changes, self.window)
            given = as_exposure(exposure, low, high)
            observed = ObservedTimes(at, weights, low, high, given, known)
            horizon = float(self.horizon)
            self.rate_, self.cycles_ = learn_forecast(
                observed, horizon, periods, float(self.origin), drawn
            )
            self.total_, self.n_features_in_ = float(weights.sum()), 1
            self.reach_ = Interval(low, high + horizon, unit=self.window.unit)
            self.dispersion_ = self.rate_.dispersion(self.window.unit)
        return self

    def predict(self, times: ArrayLike) -> Floats:
        """The mean rate at each time (n,), per unit of `unit_`."""
        return self._rate.function(self._times("times", times, self._reach))

    def predict_interval(self, times: ArrayLike, level: float = 0.9) -> tuple[Floats, Floats]:
        """Bounds (low, high) that contain the rate at each time with probability `level`."""
        at = self._times("times", times, self._reach)
        return self._rate.interval(at, check_fraction("level", level))

    def expected_count(self, regions: Regions, *, exposure: float = 1.0) -> float | Floats:
        """The mean count of an interval of time, or each of several, for an exposure."""
        E = check_positive("exposure", exposure)
        return one_or_all(regions, E * self._rate.integrals(self._regions(regions)))

    def count_draws(self, regions: Regions, *, exposure: float = 1.0) -> Floats:
        """Equally likely mean counts of each interval of time, shape (r, k).

        Column k is the same future for all intervals, so that sums of rows are mean counts of the
        intervals together. Counts are Poisson around them.
        """
        E = check_positive("exposure", exposure)
        return E * self._rate.count_draws(self._regions(regions))

    def count_interval(
        self,
        regions: Regions,
        level: float = 0.9,
        *,
        exposure: float = 1.0,
    ) -> tuple[float | Floats, float | Floats]:
        """Bounds (low, high) that contain the count of an interval with probability `level`."""
        tail = 0.5 * (1.0 - check_fraction("level", level))
        means = self.count_draws(regions, exposure=exposure)
        low, high = (mixed_poisson_quantile(means, p) for p in (tail, 1.0 - tail))
        return one_or_all(regions, low), one_or_all(regions, high)

    def log_likelihood(
        self, times: ArrayLike, exposure: float = 1.0, *, region: Interval | None = None
    ) -> float:
        """Σ log(E λ(t_i)) - E∫λ of the events in a region, by default all that is in reach."""
        part, E = self._reach if region is None else region, check_positive("exposure", exposure)
        at = self._times("times", times, part)
        with np.errstate(divide="ignore"):
            logs = np.log(E * self._rate.function(at))
        return float(logs.sum() - E * self._rate.integrals(self._regions(part))[0])

    def score(
        self, times: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """The mean of log(λ/∫λ) over events in reach: higher is better."""
        at = self._times("times", times, self._reach)
        with np.errstate(divide="ignore"):
            logs = np.log(self._rate.function(at))
        total = self._rate.integrals([self.reach_])[0]
        weights = check_weights("sample_weight", sample_weight, len(at))
        return float(np.average(logs, weights=weights) - np.log(total))

    def sample(self, n_paths: int = 1, random_state: Seed = None) -> list[Floats]:
        """Times of events to come, (n_i, 1) each: each a possible future, for an exposure of 1."""
        rng = check_random_state(random_state)
        return self._rate.sample(check_count("n_paths", n_paths), rng)

    @property
    def unit_(self) -> str:
        """The unit of the rate, such as "1/day"; "" if the window has none."""
        return rate_unit(self.window)

    @property
    def _rate(self) -> ForecastRate:
        check_fitted(self, "rate_")
        return self.rate_

    @property
    def _reach(self) -> Interval:
        check_fitted(self, "rate_")
        return self.reach_

    def _regions(self, regions: Regions) -> list[Window]:
        reach = self._reach
        listed = as_regions(reach, regions)
        slack = 1e-9 * reach.volume
        for region in listed:
            low, high = region.bounds()
            if not isinstance(region, Interval) or not (
                reach.low - slack <= low[0] and high[0] <= reach.high + slack
            ):
                raise ValueError(
                    f"regions must be intervals between {reach.low:g} and {reach.high:g}, the end "
                    f"of the horizon, got {shown(region)}: use a longer horizon."
                )
        return listed

    def _check_parameters(self) -> list[CycleAsked]:
        if not isinstance(self.window, Interval):
            raise TypeError(
                'window must be an Interval of time such as Interval(0, 365, unit="day"), got '
                f"{shown(self.window)}."
            )
        check_window("window", self.window)
        check_nonnegative("horizon", self.horizon)
        check_number("origin", self.origin)
        return as_cycles(self.cycles, self.window.unit)

    @staticmethod
    def _times(name: str, times: ArrayLike, reach: Interval) -> Floats:
        at = check_finite(name, as_floats(name, times))
        at = at[:, 0] if at.ndim == 2 and at.shape[1] == 1 else at
        if at.ndim != 1:
            raise ValueError(f"{name} must have shape (n,) or (n, 1), got {at.shape}.")
        reach.require(name, at[:, None])
        return at


def as_cycles(cycles: Sequence[str | float], unit: str) -> list[CycleAsked]:
    """Cycles by name or length, with their lengths in this unit of time."""
    if isinstance(cycles, str) or not isinstance(cycles, Iterable):
        raise TypeError(
            f'cycles must be a sequence such as ("day", "week") or (24.0,), got {shown(cycles)}.'
        )
    return [_asked(cycle, unit) for cycle in cycles]


def _asked(cycle: str | float, unit: str) -> CycleAsked:
    if not isinstance(cycle, str):
        length = check_positive("every cycle", cycle)
        return CycleAsked(f"{length:g} {unit}".strip(), length)
    name = unit.lower() if unit.lower() in SECONDS else unit.lower().removesuffix("s")
    seconds = SECONDS.get(SPELLINGS.get(name, name))
    if cycle not in NAMED_CYCLES or seconds is None:
        rule = (
            f"names among {', '.join(NAMED_CYCLES)}, or periods in the unit of the window"
            if cycle not in NAMED_CYCLES
            else f"numbers unless the unit of the window is one of {', '.join(SECONDS)}"
        )
        raise ValueError(
            f"cycles must be {rule}, got {cycle!r} and a window with unit {unit!r}: use cycles=() "
            "for none."
        )
    return CycleAsked(cycle, SECONDS[cycle] / seconds)
