"""Do events trigger others, or is there another reason why they come together?"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from hplus import Box, Interval, SelfExciting
from hplus.rates.excitation.branching_band import MIN_EVIDENCE
from hplus.rates.excitation.catalogue import NO_BEARINGS, in_order
from hplus.rates.excitation.excitation_fit import ObservedEvents
from hplus.rates.excitation.learned_excitation import Knots, first_fit
from hplus.rates.excitation.region_masks import mask_of
from hplus.rates.excitation.rivals import _always_busy
from hplus.rates.excitation.trigger import log_spaced
from hplus.rates.excitation.visible import visible_rings


def at_a_changing_level(rng, spells):
    """700 independent times up to 1000: in a tenth of the time, cut into spells, 6.7 are as many
    as one elsewhere."""
    times, part = rng.uniform(0.0, 1000.0, 6000), 1000.0 / spells
    first = part * np.arange(spells) + rng.uniform(0.0, 0.9 * part, spells)
    since = times - first[(times / part).astype(int)]
    busy = (since >= 0.0) & (since < 0.1 * part)
    return times[rng.random(6000) < np.where(busy, 1.0, 1.0 / 6.7)][:700, None]


def hawkes(rng, branching=0.5, until=350.0):
    """About 700 times, half of which are triggered after a tenth of a day."""
    found = [rng.uniform(0.0, until, 350)]
    while len(found[-1]):
        later = np.repeat(found[-1], rng.poisson(branching, len(found[-1])))
        later = later + rng.exponential(0.1, len(later))
        found.append(later[later < until])
    return np.concatenate(found)[:, None]


@pytest.mark.parametrize("spells", [1, 5])
def test_independent_events_at_a_level_that_jumps_trigger_nothing(rng, spells):
    model = SelfExciting(Interval(0.0, 1000.0)).fit(at_a_changing_level(rng, spells))
    assert model.branching_ratio_ < 0.1
    assert model.branching_interval_[0] == 0.0
    assert model.evidence_ < MIN_EVIDENCE


def test_independent_events_at_sharp_spots_may_trigger_nothing(rng):
    spots = rng.uniform(0.05, 0.95, (15, 2))
    places = spots[rng.integers(15, size=450)] + rng.normal(0.0, 0.004, (450, 2))
    window = Box([0.0, 0.0], [1.0, 1.0]) * Interval(0.0, 100.0)
    X = np.column_stack([places, rng.uniform(0.0, 100.0, 450)])
    model = SelfExciting(window, background="tree", longest_lag=5.0).fit(X)
    assert model.branching_interval_[0] == 0.0
    assert model.rival_ == "places that are always busy"
    assert model.evidence_ < MIN_EVIDENCE


def test_events_that_trigger_others_are_told_from_a_level_that_changes(rng):
    model = SelfExciting(Interval(0.0, 350.0)).fit(hawkes(rng))
    low, high = model.branching_interval_
    assert model.evidence_ > MIN_EVIDENCE
    assert 0.0 < low < 0.5 < high
    assert model.rival_ == "a background that changes in time"


def test_places_are_busy_where_all_other_events_are_at_any_time(rng):
    square, times = Box([0.0, 0.0], [1.0, 1.0]), rng.uniform(0.0, 50.0, 40)
    events = in_order(times, rng.random((40, 2)), np.zeros(40), np.zeros(40, dtype=int))
    observed = ObservedEvents(events, events, 0.0, 50.0, square, 1)
    fit = first_fit(observed, Knots(log_spaced(0.1, 10.0, 2.0), log_spaced(0.05, 0.5, 6.0)))
    far, apart = fit.trigger.distances, cdist(events.places, events.places)
    place = np.interp(apart, far, np.arange(len(far)))
    hats = np.maximum(1.0 - np.abs(place[..., None] - np.arange(len(far) - 1)), 0.0)
    rows, integrals = _always_busy(observed, square, fit.trigger, 0)
    assert_allclose(rows, hats.sum(axis=1) - hats[0, 0], atol=1e-9)
    each = visible_rings(far, events.places, np.ones(40), mask_of(square), NO_BEARINGS)
    assert_allclose(integrals, 50.0 * each.sum(axis=0))


def test_in_a_narrow_window_independent_events_trigger_nothing_and_all_are_expected(rng):
    """What is triggered farther away than the window is wide would lie outside."""
    sides = np.array([100.0, 0.5, 100.0])
    region = Box([0.0, 0.0], sides[:2], unit="km") * Interval(0.0, sides[2], unit="day")
    model = SelfExciting(region, background="tree").fit(sides * rng.random((200, 3)))
    assert model.branching_ratio_ < 0.2
    whole = model.expected_count(region)
    assert whole == pytest.approx(200.0, rel=0.05)
    rates = model.predict(sides * rng.random((20_000, 3)))
    assert rates.mean() * sides.prod() == pytest.approx(whole, rel=0.03)
