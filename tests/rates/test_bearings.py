"""Events that trigger others along the lines on which earlier ones lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hplus import Box, Interval, SelfExciting, load, save
from hplus.rates.excitation import bearing_learning, bearings
from hplus.rates.excitation.bearing_learning import with_bearings
from hplus.rates.excitation.bearings import bearings_of, compass_of, directions_of
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.excitation_fit import (
    LastRows,
    ObservedEvents,
    parts_of,
    with_weights,
)
from hplus.rates.excitation.excited_rate import integrals_of, rings_of, rows_of
from hplus.rates.excitation.learned_excitation import Knots, first_fit
from hplus.rates.excitation.log_weights import log_likelihood
from hplus.rates.excitation.mark_effects import NO_MARKS, MarkEffects
from hplus.rates.excitation.trigger import Trigger, log_spaced
from hplus.rates.excitation.trigger_tables import TriggerTable

FAR = log_spaced(0.05, 3.0, 4.0)
LAGS = log_spaced(0.1, 10.0, 2.0)
SQUARE = Box([0.0, 0.0], [10.0, 10.0])


def on_a_line(rng, n=300, angle=0.5):
    """Events near a line through the middle of the square, at this angle to its first axis."""
    along, off = rng.uniform(-4.0, 4.0, n), rng.normal(0.0, 0.05, n)
    cos, sin = np.cos(angle), np.sin(angle)
    places = 5.0 + np.column_stack([along * cos - off * sin, along * sin + off * cos])
    return Catalogue(np.arange(float(n)), places, np.zeros(n), np.zeros(n, dtype=np.int64))


def heading(bearings):
    return 0.5 * np.arctan2(bearings[..., 1], bearings[..., 0])


def factor(bearings, angle):
    """h of directions, (..., angles)."""
    doubled = np.cos(2.0 * angle), np.sin(2.0 * angle)
    along = bearings[..., :1] * doubled[0] + bearings[..., 1:2] * doubled[1]
    return np.exp(along) * bearings[..., 2:]


def test_directions_are_those_of_the_line_on_which_earlier_events_lie(rng):
    events = on_a_line(rng)
    found = bearings_of(directions_of(events, NO_MARKS, FAR), 1.0)
    late, wide = found[200:, 5:], np.hypot(found[200:, 5:, 0], found[200:, 5:, 1])
    assert np.all(np.abs(heading(late) - 0.5) < 0.2)
    assert wide.min() > 1.0
    # of events that have none before them nothing is known, and of few, little
    np.testing.assert_array_equal(found[0, :, :2], 0.0)
    assert np.hypot(found[2, :, 0], found[2, :, 1]).max() < 1.0


def gained(observed, fit):
    """By how much directions of strength 1 raise the log-likelihood."""
    directions = directions_of(observed.events, fit.effects, FAR)
    turned = replace(observed.events, bearings=bearings_of(directions, 1.0))
    both = [observed, replace(observed, events=turned, last_rows=LastRows())]
    weights = np.exp(fit.modes[0].log_weights)
    plain, found = (log_likelihood(parts_of(some, fit, 0), weights) for some in both)
    return found - plain


def test_a_part_of_the_events_tells_as_much_of_directions_as_all(rng, monkeypatch):
    events = on_a_line(rng)
    observed = ObservedEvents(events, events, 0.0, 300.0, SQUARE, 1)
    uniform = replace(first_fit(observed, Knots(LAGS, FAR)), densities=np.full(300, 0.01))
    fit = with_weights(observed, uniform, learn=False)
    gain = gained(observed, fit)
    assert gain > 10.0
    monkeypatch.setattr(bearing_learning, "STRENGTHS", (1.0,))
    for most in (300, 75):
        monkeypatch.setattr(bearing_learning, "MOST_EVENTS", most)
        for share, strength in ((0.6, 1.0), (1.7, 0.0)):
            monkeypatch.setattr(bearing_learning, "MIN_TURNING_GAIN", share * gain)
            assert with_bearings(observed, fit)[1].direction_strength == strength


@pytest.mark.parametrize("most", [10_000, 50])
def test_later_events_do_not_tell_of_earlier_ones(rng, monkeypatch, most):
    monkeypatch.setattr(bearings, "MOST_NEIGHBOURS", most)
    events = on_a_line(rng)
    whole = directions_of(events, NO_MARKS, FAR)
    np.testing.assert_allclose(whole[:100], directions_of(events.until(99.0), NO_MARKS, FAR))


def test_the_mean_over_directions_is_one(rng):
    bearings = bearings_of(rng.uniform(-0.7, 0.7, (6, 4, 2)), 1.5)
    angles = 2.0 * np.pi * np.arange(720) / 720
    np.testing.assert_allclose(factor(bearings, angles).mean(axis=-1), 1.0, rtol=1e-9)
    np.testing.assert_array_equal(bearings_of(rng.uniform(-1, 1, (3, 2, 2)), 0.0)[..., 2], 1.0)


def test_rows_are_those_without_directions_times_the_factor(rng):
    events = on_a_line(rng, 40)
    effects = MarkEffects(np.zeros(1), np.zeros(1), 0.3, 0.0)
    events = replace(events, times=rng.uniform(0.0, 5.0, 40), marks=rng.normal(size=40))
    events = events.picked(np.argsort(events.times))
    trigger = Trigger(LAGS, FAR, np.zeros((1, 1, len(LAGS) - 1, len(FAR) - 1)))
    # one source, so that rows have one factor for each hat function of distances
    source = events.picked(slice(0, 1))
    bearings = bearings_of(rng.uniform(-0.6, 0.6, (1, len(FAR) - 1, 2)), 1.0)
    plain = rows_of(events, source, trigger, effects, 1)
    turned = rows_of(events, replace(source, bearings=bearings), trigger, effects, 1)
    dx, dy = (events.places - source.places).T
    ratio = factor(bearings[0], np.arctan2(dy, dx)).T
    expected = plain.reshape(40, -1, len(FAR) - 1) * ratio[:, None, :]
    np.testing.assert_allclose(turned.reshape(expected.shape)[1:], expected[1:], rtol=1e-9)
    assert np.any(plain > 0.0)


def test_integrals_inside_a_window_are_those_of_the_factor(rng):
    places = np.array([[0.4, 5.0], [0.5, 9.6], [5.0, 5.0]])
    bearings = bearings_of(rng.uniform(-0.6, 0.6, (3, len(FAR) - 1, 2)), 1.5)
    events = Catalogue(np.zeros(3), places, np.zeros(3), np.zeros(3, dtype=np.int64), bearings)
    trigger = Trigger(LAGS, FAR, np.zeros((1, 1, len(LAGS) - 1, len(FAR) - 1)))
    found = rings_of(events, trigger, NO_MARKS, SQUARE)
    # in the middle nothing is cut off, and as many events are triggered as without directions
    np.testing.assert_allclose(found[2], trigger.distance_integrals, rtol=1e-9)
    side = (np.arange(1500) + 0.5) / 150.0
    at = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    for j in range(2):
        dx, dy = (at - places[j]).T
        far = np.hypot(dx, dy)
        for d in (5, 6):
            place = np.interp(far, FAR, np.arange(len(FAR)))
            hat = np.maximum(1.0 - np.abs(place - d), 0.0)
            exact = np.sum(hat * factor(bearings[j, d], np.arctan2(dy, dx))) / 150.0**2
            assert found[j, d] == pytest.approx(exact, rel=0.06)
    both = integrals_of(events, trigger, NO_MARKS, 1, 0.0, 5.0, SQUARE)
    assert np.all(both > 0.0)


def test_simulated_directions_follow_the_bearings(rng):
    directions = np.zeros((1, len(FAR) - 1, 2))
    directions[..., 0], directions[..., 1] = 0.6 * np.cos(1.4), 0.6 * np.sin(1.4)
    events = Catalogue(np.zeros(1), np.full((1, 2), 5.0), np.zeros(1), np.zeros(1, dtype=np.int64),
                       bearings_of(directions, 1.0))  # fmt: skip
    weights = rng.random((1, 1, len(LAGS) - 1, len(FAR) - 1))
    table = TriggerTable.of(Trigger(LAGS, FAR, weights), 0, 0, compass_of(events))
    far, hats = table.draw_distances(rng.uniform(0.1, 9.0, 20_000), rng)
    assert np.all((FAR[hats] <= far * 1.7) | (hats == 0))
    x, y = table.draw_directions(np.full((20_000, 2), 5.0), hats, rng).T
    np.testing.assert_allclose(x**2 + y**2, 1.0)
    # the mean of doubled angles is the resultant that the law was made from
    assert np.mean(x**2 - y**2) == pytest.approx(0.6 * np.cos(1.4), abs=0.04)
    assert np.mean(2.0 * x * y) == pytest.approx(0.6 * np.sin(1.4), abs=0.04)
    assert abs(np.mean(x)) < 0.03


def on_faults(rng, until=400.0, along=0.9):
    """Events (n, 3) on three faults in the square, which trigger others along them."""
    ends = np.array([[1.0, 2.0, 8.0, 4.0], [2.0, 9.0, 5.0, 4.0], [6.0, 9.0, 9.0, 8.0]])
    n = rng.poisson(1.0 * until)
    fault, u = rng.integers(3, size=n), rng.random((n, 1))
    angle = np.arctan2(ends[fault, 3] - ends[fault, 1], ends[fault, 2] - ends[fault, 0])
    places = ends[fault, :2] * (1 - u) + ends[fault, 2:] * u + rng.normal(0.0, 0.05, (n, 2))
    X, found = np.column_stack([places, rng.uniform(0.0, until, n)]), []
    while len(X):
        found.append(X)
        counts = rng.poisson(0.6, len(X))
        X, angle = np.repeat(X, counts, axis=0), np.repeat(angle, counts)
        turn = np.where(rng.random(len(X)) < along, angle + np.pi * rng.integers(2, size=len(X)),
                        rng.uniform(0.0, 2.0 * np.pi, len(X)))  # fmt: skip
        far = rng.exponential(0.4, len(X))
        X = X + np.column_stack(
            [far * np.cos(turn), far * np.sin(turn), rng.exponential(1.0, len(X))]
        )
        inside = np.all((X >= 0.0) & (X <= [10.0, 10.0, until]), axis=1)
        X, angle = X[inside], angle[inside]
    return np.concatenate(found)


WINDOW = SQUARE * Interval(0.0, 400.0)


@pytest.fixture(scope="module")
def faults():
    return SelfExciting(WINDOW, background="tree").fit(on_faults(np.random.default_rng(0)))


def isotropic(model):
    """The same rate without directions."""
    return replace(model.rate_, direction_strength=0.0)


def test_lines_are_found_and_predict_fresh_events(faults):
    assert faults.direction_strength_ > 0.0
    assert faults.solution_.gap <= 1e-4 * faults.total_
    fresh = on_faults(np.random.default_rng(1))
    with_lines = faults.log_likelihood(fresh, period=Interval(50.0, 400.0))
    without = SelfExciting(WINDOW)
    vars(without).update(vars(faults))
    without.rate_ = isotropic(faults)
    less = without.log_likelihood(fresh, period=Interval(50.0, 400.0))
    assert (with_lines - less) / np.sum(fresh[:, 2] > 50.0) > 0.05


def test_counts_by_place_are_those_of_the_whole(faults):
    whole = faults.expected_count(WINDOW)
    halves = [Box([0, 0], [10, 5]) * WINDOW.right, Box([0, 5], [10, 10]) * WINDOW.right]
    assert np.sum(faults.expected_count(halves)) == pytest.approx(whole, rel=5e-3)
    check = faults.check()
    assert check.places.expected.sum() == pytest.approx(check.expected, rel=5e-3)
    found = faults.parents()
    some = found.probabilities.sum() + found.background.sum()
    assert 0.9 * faults.total_ < some <= faults.total_ * (1.0 + 1e-9)


def test_the_rate_integrates_over_places_to_the_rate_in_time(faults):
    side, at = (np.arange(500) + 0.5) / 50.0, 399.9
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    rates = faults.predict(np.column_stack([grid, np.full(len(grid), at)]))
    assert np.all(rates > 0.0)
    short = faults.expected_count(SQUARE * Interval(at - 1e-6, at + 1e-6)) / 2e-6
    assert rates.sum() / 50.0**2 == pytest.approx(short, rel=0.02)


def test_directions_are_kept_in_a_file(faults, tmp_path):
    save(faults, tmp_path / "faults.hplus")
    other, at = load(tmp_path / "faults.hplus"), [[4.5, 3.0, 399.0], [3.0, 7.0, 200.0]]
    np.testing.assert_array_equal(other.predict(at), faults.predict(at))
    assert other.rate_.direction_strength == faults.direction_strength_


def test_forecasts_follow_the_lines(faults):
    start = faults.observed_until_ + 100.0
    X = np.vstack([on_faults(np.random.default_rng(0)), [[4.5, 3.0, start - 1e-6]]])
    futures = faults.forecast(3.0, n_paths=2000, start=start, history=X, random_state=0)
    dx, dy = (futures.simulated.events.places - [4.5, 3.0]).T
    near = (np.hypot(dx, dy) > 0.2) & (np.hypot(dx, dy) < 1.0)
    off = np.abs(np.angle(np.exp(2j * (np.arctan2(dy, dx) - np.arctan2(2.0, 7.0))))) / 2.0
    assert np.mean(off[near] < np.pi / 4.0) > 0.7  # half without directions


def test_forecasts_after_a_quiet_time_and_samples_follow_the_lines(faults):
    later = faults.forecast(
        100.0, n_paths=5, start=faults.observed_until_ + 300.0, random_state=0
    ).simulated
    for found in (later, faults.simulate_window(3, random_state=0)):
        # directions of pairs of events close to each other on the same path, and to the next fault
        times, places = found.events.times, found.events.places
        order = np.lexsort((times, found.paths))
        step = np.diff(places[order], axis=0)
        soon = (np.diff(times[order]) < 0.3) & (np.diff(found.paths[order]) == 0)
        far = np.hypot(*step.T)
        near = soon & (far > 0.1) & (far < 0.8)
        middle = places[order][1:][near]
        headings = faults.rate_.with_bearings(faults.history_)
        cos, sin = (
            compass_of(headings).bearings[compass_of(headings).tree.query(middle)[1], 10, :2].T
        )
        off = np.cos(2.0 * np.arctan2(step[near, 1], step[near, 0]) - np.arctan2(sin, cos))
        assert near.sum() > 100
        assert off.mean() > 0.3  # 0 without directions


def test_there_are_no_lines_where_events_trigger_alike_in_all_directions(rng):
    n = 500
    X = np.column_stack([rng.uniform(0.0, 10.0, (n, 2)), rng.uniform(0.0, 400.0, n)])
    near = X[:250] + np.column_stack([rng.normal(0.0, 0.2, (250, 2)), rng.exponential(1.0, 250)])
    near = near[np.all((near >= 0.0) & (near <= [10.0, 10.0, 400.0]), axis=1)]
    model = SelfExciting(WINDOW, background="tree").fit(np.vstack([X, near]))
    assert model.direction_strength_ == 0.0
