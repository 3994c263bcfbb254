"""A self-exciting rate after the time until which events are known."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from hplus import Interval, SelfExciting

UNTIL = 400.0
QUIET = np.zeros((0, 1))


@pytest.fixture(scope="module")
def bursts():
    """One event a day, each of which triggers 0.5 others directly: two a day in the long run."""
    rng = np.random.default_rng(0)
    generation = rng.uniform(-20.0, UNTIL, 420)
    every = [generation]
    while len(generation):
        parents = np.repeat(generation, rng.poisson(0.5, len(generation)))
        generation = parents + rng.exponential(0.5, len(parents))
        every.append(generation)
    times = np.sort(np.concatenate(every))
    return times[(times >= 0.0) & (times < UNTIL)][:, None]


@pytest.fixture(scope="module")
def model(bursts):
    found = SelfExciting(Interval(0.0, UNTIL)).fit(bursts)
    # a level that changes fast tells what updates it
    found.rate_ = replace(found.rate_, drift=found.rate_.drift.replace(variance=1e-3))
    return found


def test_a_time_of_which_nothing_is_known_is_not_a_quiet_one(model):
    rates = model.predict([[UNTIL + 50.0], [UNTIL + 800.0], [1e6]])
    own = model.background_.at(np.array([UNTIL]), np.zeros((1, 0)), 0)[0]
    np.testing.assert_allclose(rates, own)
    near, far = model.expected_count([Interval(s, s + 10.0) for s in (450.0, 1200.0)])
    assert near == pytest.approx(far)
    known = copy(model).update(QUIET, until=UNTIL + 800.0)
    assert known.predict([[UNTIL + 800.0]])[0] < 0.5 * rates[1]


def test_a_later_forecast_counts_what_events_in_between_trigger(model):
    now, soon, far = (
        model.forecast(10.0, start=s, n_paths=500, random_state=0)
        for s in (UNTIL, UNTIL + 80.0, UNTIL + 800.0)
    )
    long_run = 10.0 * model.predict([[1e6]])[0] / (1.0 - model.branching_ratio_)
    for found in (now, soon, far):
        assert found.expected_count[0] == pytest.approx(long_run, rel=0.2)
    low, high = soon.period.low, soon.period.high
    assert np.all((soon.simulated.events.times >= low) & (soon.simulated.events.times <= high))
    assert soon.counts[0].sum() == len(soon.simulated.paths)
    assert far.counts.std() > now.counts.std()


def test_a_history_is_all_that_happened_until_its_end_or_a_given_start(model, bursts):
    later = [[500.0], [600.0]]
    history = np.concatenate([bursts, later])
    at = model.predict([*later, [2000.0]], history=history)
    known = copy(model).update(later, until=600.0)
    np.testing.assert_allclose(at, known.predict([*later, [2000.0]]))
    said = {"n_paths": 50, "random_state": 0}
    np.testing.assert_array_equal(
        model.forecast(5.0, history=history, **said).counts, known.forecast(5.0, **said).counts
    )
    quiet = copy(model).update(QUIET, until=800.0)
    np.testing.assert_array_equal(
        model.forecast(5.0, start=800.0, history=bursts, **said).counts,
        quiet.forecast(5.0, **said).counts,
    )


def test_the_log_likelihood_of_a_quiet_period_is_less_its_expected_count(model):
    period = Interval(UNTIL, UNTIL + 10.0)
    known = copy(model).update(QUIET, until=period.high)
    found = model.log_likelihood(QUIET, period=period)
    assert found == pytest.approx(-known.expected_count(period))
    short = Interval(UNTIL, UNTIL + 1.0)  # in which the level is not updated
    assert model.log_likelihood(QUIET, period=short) == pytest.approx(-model.expected_count(short))


def test_a_history_long_after_the_window_has_longer_blocks(model, monkeypatch):
    monkeypatch.setattr("hplus.rates.excitation.conditional_rate.MOST_BLOCKS", 50)
    rate = model.predict([[1e6]], history=[[1e6 - 1.0]])[0]
    assert 0.0 < rate < model.predict([[1e6]])[0]
