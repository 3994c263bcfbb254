"""Rates with cycles: integrals and samples are those of the rate itself, at every length."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from hplus import Forecast, Interval, SelfExciting
from hplus.rates.excitation.background import Background
from hplus.rates.forecasts.cycle_factor import CYCLE_DRAWS, Cycles

WEEKS, HOUR, ORIGIN = 16, 1.0 / 24.0, 0.4
BINS = {1.0: 48, 7.0: 168, 365.25: 73}
PERIODS = [(), (7.0,), (365.25,), (1.0, 7.0), (1.0, 7.0, 365.25)]
SPANS = [(0.0, 7.0 * WEEKS), (3.1, 3.17), (-5.0, 9.3), (60.0, 60.0)]
KNOTS, LEVELS = np.array([0.0, 40.0, 112.0]), np.array([[2.0, 5.0, 1.0], [1.0, 0.0, 3.0]])


def cycles_of(periods):
    """Rough factors: neighbouring bins have nothing to do with each other."""
    rng, cycles = np.random.default_rng(5), Cycles((), (), ORIGIN)
    for period in periods:
        factor = rng.gamma(0.5, size=(CYCLE_DRAWS, BINS[period])) + 0.1 * rng.random(BINS[period])
        cycles = cycles.with_cycle(period, factor / factor.mean(axis=1, keepdims=True))
    return cycles


def integrated(function, start, end, knots, origin):
    """∫ of a function of times, by quadrature between knots and all bends of the cycles above."""
    parts = origin + np.arange(-2000, 40_000) / 192.0
    years = origin + 365.25 * (np.arange(-73, 73) + 0.5) / 73
    edges = np.unique(np.clip(np.concatenate([parts, years, knots, [start, end]]), start, end))
    x, w = np.polynomial.legendre.leggauss(4)
    half, middle = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (half * w).ravel() @ function((middle + half * x).ravel())


@pytest.mark.parametrize("periods", PERIODS)
@pytest.mark.parametrize(("start", "end"), SPANS)
def test_the_background_integrates_to_what_its_rate_does(periods, start, end):
    background = Background((), KNOTS, LEVELS, cycles_of(periods))
    hats = integrated(background.hats, start, end, KNOTS, ORIGIN)
    np.testing.assert_allclose(background.hat_integrals(start, end), hats, rtol=1e-9, atol=1e-12)
    times = np.sort(np.random.default_rng(0).uniform(start, end, 30))
    for kind, levels in enumerate(LEVELS):
        exact = [
            hats @ levels,
            integrated(background.hats, start, times[11], KNOTS, ORIGIN) @ levels,
        ]
        assert background.integral(start, end, kind) == pytest.approx(exact[0], rel=1e-9)
        found = background.cumulative(np.append(times, end), start, kind)
        np.testing.assert_allclose(found[[-1, 11]], exact, rtol=1e-9, atol=1e-12)


def test_one_hour_is_integrated_as_by_scipy():
    background = Background((), KNOTS, LEVELS, cycles_of((7.0,)))
    for start in np.arange(50.0, 52.0, HOUR) + ORIGIN:
        exact, _ = quad(
            lambda t: background.at(np.array([t]), np.zeros((1, 0)), 0)[0],
            start, start + HOUR, points=[start + 0.5 * HOUR],
        )  # fmt: skip
        assert background.integral(start, start + HOUR, 0) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("periods", PERIODS)
def test_the_background_is_sampled_hour_by_hour_as_its_rate_says(periods, rng):
    background, n = Background((), KNOTS, LEVELS, cycles_of(periods)), 40_000
    times, _ = background.sample(36.0, 43.0, n, 0, rng)
    hours = np.arange(36.0, 43.0 + 0.5 * HOUR, HOUR)
    means = n * np.diff(background.cumulative(hours, 36.0, 0)) / background.integral(36.0, 43.0, 0)
    counts, _ = np.histogram(times, hours)
    assert ((counts - means) ** 2 / means).sum() < 168.0 + 4.0 * np.sqrt(2.0 * 168.0)
    # within an hour too
    parts = np.linspace(38.0, 38.0 + HOUR, 9)
    inside = times[(times > parts[0]) & (times < parts[-1])]
    law = background.cumulative(parts, parts[0], 0)
    below = np.mean(inside[:, None] < parts, axis=0)
    np.testing.assert_allclose(below, law / law[-1], atol=2.0 / np.sqrt(len(inside)))


def rush(rng, weeks, half=1.5, hour=99.75, size=60.0):
    """Independent events: few at any time, and many around one hour of every week."""
    t = [rng.uniform(0.0, 7.0 * weeks, rng.poisson(21.0 * weeks))]
    for week in range(weeks):
        t.append(7.0 * week + HOUR * (hour + half * rng.triangular(-1, 0, 1, rng.poisson(size))))
    return np.sort(np.concatenate(t))


@pytest.fixture(scope="module")
def forecast():
    """A forecast with the cycles of the week and of the day and a half."""
    times = rush(np.random.default_rng(2), WEEKS)
    more = np.random.default_rng(3).uniform(0.0, 7.0 * WEEKS, 2000)
    more = more[more % 1.5 < 0.4]
    days = Interval(0.0, 7.0 * WEEKS, unit="day")
    model = Forecast(days, 28.0, (1.5, "week")).fit(np.concatenate([times, more]))
    assert all(cycle.kept for cycle in model.cycles_)
    return model


def test_counts_to_come_are_the_integrals_of_the_rate(forecast):
    edges, rate = forecast.rate_.edges, forecast.rate_
    for low, high in [(116.1, 116.2), (99.0, 101.0), (0.0, 112.0), (112.0, 140.0)]:
        part = Interval(low, high)
        exact = integrated(forecast.predict, low, high, edges, 0.0)
        assert forecast.expected_count(part) == pytest.approx(exact, rel=1e-6)
        draws = integrated(rate.rate_draws, low, high, edges, 0.0)
        np.testing.assert_allclose(forecast.count_draws(part)[0], draws, rtol=1e-6)


def test_futures_have_their_rush_when_the_forecast_says(forecast):
    times = np.concatenate(forecast.sample(200, random_state=0))[:, 0]
    hours = [Interval(112.0 + HOUR * k, 112.0 + HOUR * (k + 1)) for k in range(24 * 28)]
    expected = forecast.expected_count(hours)
    found, _ = np.histogram(times, np.append([h.low for h in hours], 140.0))
    peak = np.argsort(expected)[-4:]
    shares = found[peak].sum() / found.sum(), expected[peak].sum() / expected.sum()
    assert shares[0] == pytest.approx(shares[1], rel=0.1)
    assert np.corrcoef(found, expected)[0, 1] > 0.99


def test_means_of_blocks_are_the_integrals_of_cycles_and_exposure():
    times = rush(np.random.default_rng(2), WEEKS)
    days = Interval(0.0, 7.0 * WEEKS, unit="day")
    rate = Forecast(days, 7.0, ("week",)).fit(times, exposure=3.0).rate_
    assert len(rate.cycles.periods) == 1
    ends = rate.edges[: rate.observed + 1]
    fine = np.linspace(ends[0], ends[-1], 600_001)
    below = np.cumsum(np.append(0.0, rate.cycles.at(0.5 * (fine[1:] + fine[:-1])))) * fine[1]
    exact = 3.0 * rate.base * np.diff(np.interp(ends, fine, below))
    np.testing.assert_allclose(rate.means, exact, rtol=1e-4)


@pytest.mark.parametrize("hour", [99.75, 101.5])
def test_a_weekly_rush_of_independent_events_triggers_nothing(hour):
    times = rush(np.random.default_rng(0), WEEKS, hour=hour)
    days = Interval(0.0, 7.0 * WEEKS, unit="day")
    model = SelfExciting(days, cycles=("week",)).fit(times[:, None])
    assert model.branching_ratio_ < 0.05
    assert model.expected_count(days) == pytest.approx(len(times), rel=0.02)


@pytest.mark.parametrize("level", [0.0, 0.3])
def test_a_cycle_of_the_year_is_told_from_a_sharp_one_of_the_day(level, rng):
    """Each bin of the year begins at another hour, as years are no whole number of days."""
    t = rng.uniform(0.0, 5.0 * 365.25, 60_000)
    noon = np.where(np.abs(t % 1.0 - 0.5) < 0.1, 1.0, 0.1)
    t = t[rng.random(len(t)) < noon * (1.0 + level * np.cos(2.0 * np.pi * t / 365.25)) / 1.3]
    model = Forecast(Interval(0.0, 5.0 * 365.25, unit="day"), 28.0, ("day", "year")).fit(t)
    assert [cycle.kept for cycle in model.cycles_] == [True, level > 0.0]
    if level:
        phase = (np.arange(73) + 0.5) / 73
        found = model.rate_.cycles.factors[1].mean(axis=0)
        np.testing.assert_allclose(found, 1.0 + level * np.cos(2.0 * np.pi * phase), atol=0.1)
