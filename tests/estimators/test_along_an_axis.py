"""SelfExciting along one axis, such as a road: places (n, 1) times time."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Box, Interval, SelfExciting, load, save

ROAD, UNTIL = Interval(0.0, 80.0, unit="km"), 600.0
WINDOW = ROAD * Interval(0.0, UNTIL, unit="day")
NEAR, BRANCHING = 0.3, 0.5


def on_a_road(rng, until=UNTIL):
    """Events (n, 2) and marks: half of them triggered, at distances and lags with means .3 and 1;
    events with a larger mark reach farther."""
    n = rng.poisson(1.0 * until)
    X = np.column_stack([80.0 * rng.beta(1.5, 3.0, n), rng.uniform(0.0, until, n)])
    found, marks = [X], [rng.exponential(0.5, n)]
    while len(X):
        counts = rng.poisson(BRANCHING, len(X))
        reach = np.repeat(np.exp(0.5 * marks[-1]), counts)
        X = np.repeat(X, counts, axis=0)
        side = rng.choice([-1.0, 1.0], len(X)) * rng.exponential(NEAR, len(X)) * reach
        X = X + np.column_stack([side, rng.exponential(1.0, len(X))])
        X = X[np.all((X >= 0.0) & (X <= [80.0, until]), axis=1)]
        found.append(X)
        marks.append(rng.exponential(0.5, len(X)))
    return np.concatenate(found), np.concatenate(marks)


@pytest.fixture(scope="module")
def events():
    return on_a_road(np.random.default_rng(3))


@pytest.fixture(scope="module")
def road(events):
    X, marks = events
    return SelfExciting(WINDOW).fit(X, marks=marks)


def test_what_was_simulated_is_found(road):
    assert road.branching_ratio_ == pytest.approx(BRANCHING, abs=0.12)
    lags, far = np.linspace(0.05, 3.0, 20), np.linspace(0.0, 3.0, 4001)
    # integrals over both sides of the axis are those of all distances
    values = road.trigger_(lags[:, None], far[None, :])
    both = 2.0 * np.trapezoid(values, far, axis=1)
    beyond = road.trigger_.by_lag(lags)
    assert np.all(both <= beyond * 1.001)
    assert both.sum() / beyond.sum() > 0.7
    within = np.cumsum(road.trigger_.by_distance(far))
    assert 0.1 < far[np.searchsorted(within, 0.5 * within[-1])] < 0.5
    assert road.solution_.gap <= 1e-4 * road.total_


def test_the_rate_integrates_to_what_is_expected(road, events):
    X = events[0]
    whole = road.expected_count(WINDOW)
    assert whole == pytest.approx(len(X), rel=0.02)
    parts = [Interval(a, a + 20.0) * WINDOW.right for a in (0.0, 20.0, 40.0, 60.0)]
    assert np.sum(road.expected_count(parts)) == pytest.approx(whole, rel=1e-6)
    # along the road at one moment, and what is expected in a short time around it
    x, at = np.linspace(0.0, 80.0, 160_001), 300.003
    rates = road.predict(np.column_stack([x, np.full(len(x), at)]))
    assert np.all(rates > 0.0)
    short = road.expected_count(ROAD * Interval(at - 1e-6, at + 1e-6)) / 2e-6
    assert np.trapezoid(rates, x) == pytest.approx(short, rel=2e-3)


def test_fresh_events_are_predicted_better_than_by_their_places_alone(road):
    X, marks = on_a_road(np.random.default_rng(4))
    # none of the events that were fitted are history of these
    history = (X, marks)
    rates = road.predict(X, history=history)
    level = len(X) / UNTIL
    places = road.background_.density(X[:, :1], 0) * level
    gain = np.mean(np.log(rates / places)) - (
        road.expected_count(WINDOW, history=history) / len(X) - 1.0
    )
    assert gain > 0.5


def test_every_question_has_an_answer(road, tmp_path):
    found = road.parents()
    some = found.probabilities.sum() + found.background.sum()
    assert 0.9 * road.total_ < some <= road.total_ * (1.0 + 1e-9)
    assert np.all(found.parents < found.children)
    halves = [Interval(0.0, 40.0), Interval(40.0, 80.0)]
    futures = road.forecast(20.0, [*halves, ROAD], n_paths=200, random_state=0)
    np.testing.assert_array_equal(futures.counts[:2].sum(axis=0), futures.counts[2])
    assert futures.simulated.events.places.shape[1] == 1
    simulated = road.sample(20, random_state=0)
    assert np.mean([len(X) for X in simulated]) == pytest.approx(road.total_, rel=0.25)
    check = road.check()
    assert check.places.expected.shape == (16,)
    assert check.places.expected.sum() == pytest.approx(check.expected, rel=1e-6)
    save(road, tmp_path / "road.hplus")
    at = [[10.0, 500.0], [70.0, 20.0]]
    np.testing.assert_array_equal(load(tmp_path / "road.hplus").predict(at), road.predict(at))


def test_simulated_offspring_lie_on_both_sides_as_far_as_the_trigger_says(road):
    start = road.observed_until_ + 500.0
    futures = road.forecast(
        3.0, n_paths=3000, start=start, history=([[40.0, start - 1e-6]], [2.0]), random_state=1
    )
    x = futures.simulated.events.places[:, 0] - 40.0
    near = np.abs(x) < 3.0
    left, right = np.sum(near & (x < 0.0)), np.sum(near & (x > 0.0))
    assert abs(left - right) < 4.0 * np.sqrt(left + right)
    cells = [Interval(40.0, 40.0 + far) * Interval(start, start + 3.0) for far in (0.3, 1.0, 3.0)]
    known = ([[40.0, start - 1e-6]], [2.0])
    direct = np.asarray(road.expected_count(cells, history=known))
    counts = np.array([np.mean(x[(x > 0.0) & (x < far)].size) for far in (0.3, 1.0, 3.0)]) / 3000
    # descendants of descendants come on top
    assert np.all(counts > 0.8 * direct)
    assert np.all(counts < 2.5 * direct)


def test_places_of_another_kind_are_refused_in_a_sentence(road):
    with pytest.raises(TypeError, match="places such as Interval"):
        road.forecast(1.0, Box([0, 0], [1, 1]))
    with pytest.raises(TypeError, match="along a road"):
        SelfExciting(Box([0, 0, 0], [1, 1, 1]) * Interval(0, 1)).fit([[0.1, 0.1, 0.1, 0.5]])
