"""Whether the map changes with the hour: a habit that lasts is found, bursts are not one."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Box, Interval, SeparableIntensity
from hplus.studies.event_facts import map_words
from hplus.studies.frames import Frame
from hplus.studies.map_ratios import region_maps
from hplus.studies.map_trials import map_scores
from hplus.studies.periods import Period
from hplus.studies.spans import Clock
from hplus.studies.split_events import SplitEvents
from hplus.studies.splits import split_of
from hplus.studies.time_counts import MeanCounts

MONDAY, WEEKS = 1_767_571_200.0, 30
CLOCK = Clock("when", MONDAY, MONDAY + 604_800.0 * WEEKS, cycle="week")
FRAME = Frame(("x", "y"), Box((0, 0), (8, 8), unit="km"), clock=CLOCK)


def judged(x, hours):
    seconds = MONDAY + 3600.0 * np.clip(hours, 0.0, 168.0 * WEEKS - 1.0)
    events = SplitEvents(FRAME, split_of(FRAME, 0.2), 0)
    events.add(np.column_stack([np.clip(x, 0.0, 8.0), CLOCK.axis(seconds)]), seconds)
    blocks = events.split.error_blocks(CLOCK, events.held_sample.seconds)
    return map_scores(FRAME, events, None, blocks, 0)


def independent(n, seed=0):
    rng = np.random.default_rng(seed)
    return 8.0 * rng.beta(2, 2, (n, 2)), 168.0 * WEEKS * rng.random(n), rng


def nightlife(n=3000):
    x, hours, rng = independent(n)
    moved = (hours % 24.0 < 8.0) & (rng.random(n) < 0.4)
    x[moved] = 3.0 + 2.0 * rng.random((int(moved.sum()), 2))
    return x, hours


def test_a_map_that_changes_every_day_is_found_and_predicts_later_events():
    found = judged(*nightlife())
    assert found.judged.kept
    assert found.judged.by == "day"
    assert found.judged.judged_gain > 3.0 * found.judged.judged_error
    assert found.judged.gain > 0.01
    assert found.gains.mean() == pytest.approx(found.judged.gain)
    assert map_words(found.judged).startswith("the map changes with the time of day: +0.")


def test_bursts_are_evident_but_no_habit_of_the_hour():
    x, hours, rng = independent(400)
    x, hours = np.repeat(x, 8, axis=0), np.repeat(hours, 8)
    found = judged(x + 0.1 * rng.normal(size=x.shape), hours + rng.random(len(hours)))
    assert found.judged.evidence > 100.0
    assert not found.judged.kept
    assert found.by_time is None
    assert not found.gains.any()
    assert "that predicts later events" in map_words(found.judged)


def test_independent_places_and_times_give_no_evidence():
    found = judged(*independent(3000)[:2])
    assert not found.judged.kept
    assert map_words(found.judged) == "no evidence that the map changes with the time of week"


def test_shares_of_regions_are_those_of_the_time_of_day():
    x, hours = nightlife()
    model = SeparableIntensity(FRAME.window, model="tree", random_state=0, dependence="auto")
    model.fit(np.column_stack([x, hours % 168.0]))
    centre = Box((3, 3), (5, 5))
    maps = region_maps(model.rate_, CLOCK, [centre])
    share = model.rate_.shares([centre])
    all_week = MeanCounts(*share)
    hour = 3600.0
    night = Period("", 1.0, MONDAY + 24 * hour, MONDAY + 32 * hour)
    expected = model.expected_count(centre * Interval(24, 32)) / model.time_.expected_count(
        Interval(24, 32)
    )
    assert maps.during(night, all_week).means[0] == pytest.approx(expected, rel=1e-6)
    assert expected > 1.3 * share[0][0]
    week = Period("", 1.0, MONDAY + 5 * hour, MONDAY + 173 * hour)
    assert maps.during(week, all_week).means[0] == pytest.approx(share[0][0], rel=1e-6)
    assert region_maps(model.rate_, None, [centre]) is None
