"""Times that follow the day or week are told apart from events that trigger others."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Forecast, Interval
from hplus.rates.forecasts.cycle_factor import CycleGain
from hplus.studies.followed_cycles import cycle_of_times, followed_cycle

PERIOD = Interval(0.0, 84.0, unit="day")


def by_hour(rng, rate, top, n):
    """About n times of a period, with a rate that depends on the time."""
    t = rng.uniform(0.0, 84.0, n)
    return np.sort(t[rng.uniform(0.0, top, n) < rate(t)])


def test_the_longest_cycle_that_times_follow_is_named(rng):
    daily = by_hour(rng, lambda t: 1.0 + 0.9 * np.sin(2.0 * np.pi * t), 1.9, 1500)
    weekly = by_hour(
        rng, lambda t: (t % 7.0 < 5.0) * ((t % 1.0 > 0.4) & (t % 1.0 < 0.7)), 1.0, 4000
    )
    assert cycle_of_times(daily, PERIOD, 0.0).name == "day"
    found = cycle_of_times(weekly, PERIOD, 0.0)
    assert found.name == "week"
    assert found.gain > 1.0 > 5.0 * found.error
    # the origin is only where cycles begin
    assert cycle_of_times(weekly, PERIOD, 3.3).name == "week"


def test_a_forecast_keeps_the_same_cycle(rng):
    t = by_hour(rng, lambda t: t % 7.0 < 5.0, 1.0, 1500)
    forecast = Forecast(PERIOD, 7.0, ("day", "week")).fit(t)
    assert followed_cycle(forecast.cycles_) == cycle_of_times(t, PERIOD, 0.0)


@pytest.mark.parametrize(("ratio", "lag"), [(0.5, 0.02), (0.5, 0.3), (0.8, 0.1), (0.8, 1.0)])
def test_events_that_trigger_others_follow_no_cycle(ratio, lag):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        t = rng.uniform(0.0, 84.0, round(700 * (1.0 - ratio)))
        parts = [t]
        while len(t):
            t = np.repeat(t, rng.poisson(ratio, len(t)))
            t = t + rng.exponential(lag, len(t))
            parts.append(t)
        times = np.concatenate(parts)
        assert cycle_of_times(np.sort(times[times < 84.0]), PERIOD, 0.0) is None


def test_a_year_and_cycles_by_chance_are_not_told():
    def gain(name, period, gain):
        return CycleGain(name, period, kept=True, gain=gain, error=0.001, reason="")

    assert followed_cycle([gain("year", 365.25, 1.0)]) is None
    assert followed_cycle([gain("day", 1.0, 0.015), gain("week", 7.0, 0.015)]) is None
    assert followed_cycle([gain("day", 1.0, 0.5), gain("year", 365.25, 1.0)]).name == "day"
    assert followed_cycle([gain("day", 1.0, 0.5), gain("week", 7.0, 0.001)]).name == "day"
