"""Bursts at a right rate do not speak against its shape; a wrong shape is found among bursts."""

import numpy as np
import pytest
from scipy.stats import chi2, kstwo, poisson

from hplus.evaluation import Timeline, check, residuals
from hplus.evaluation.cell_variation import (
    MAX_CYCLES,
    SHARE_BLOCKS,
    neighbour_index,
    time_blocks,
)
from hplus.evaluation.residuals import CountTable, Tiling
from hplus.windows import Box, Cycle, Interval, Window

DAY = 86_400.0


class Flat:
    """The rate 1 everywhere."""

    def __init__(self, window):
        self.window = window

    def predict(self, X):
        return np.ones(len(X))

    def expected_count(self, regions):
        if isinstance(regions, Window):
            return regions.volume
        return np.array([region.volume for region in regions])


def bursts(seed, days, per_day, keep=lambda when, where: 1.0, size=5.0):
    """Days (n,) and places (n, 2) of bursts of half an hour, each kept with a probability."""
    rng = np.random.default_rng(seed)
    start = rng.uniform(0.0, days, rng.poisson(per_day * days))
    where = rng.uniform(0.0, 10.0, (len(start), 2))
    kept = rng.random(len(start)) < keep(start, where)
    burst = np.repeat(np.flatnonzero(kept), 1 + rng.poisson(size - 1.0, kept.sum()))
    t = start[burst] + rng.exponential(30 / 1440, len(burst)) * (size > 1.0)
    places = (where[burst] + rng.normal(0.0, 0.1, (len(burst), 2))) % 10.0
    return t[t < days], places[t < days]


def hours(seed, days=60, **options):
    """A check of a constant rate over the hours of a day."""
    t, _ = bursts(seed, days, **options)
    return check(Flat(Cycle(24, unit="h")), 24.0 * (t % 1.0)[:, None], timeline=history(t, days))


def history(t, days):
    return Timeline(DAY * t, np.array([0.0, DAY * days]), np.array([0.0, 1.0]), unit="s")


def line(seed, days=60, **options):
    t, _ = bursts(seed, days, **options)
    return check(Flat(Interval(0, days, unit="day")), t[:, None])


def solid(seed, days=60, **options):
    t, places = bursts(seed, days, **options)
    window = Box((0, 0), (10, 10), unit="km") * Interval(0, days, unit="day")
    return check(Flat(window), np.column_stack([places, t]))


def folded(seed, days=60, **options):
    t, places = bursts(seed, days, **options)
    window = Box((0, 0), (10, 10), unit="km") * Cycle(24, unit="h")
    X = np.column_stack([places, 24.0 * (t % 1.0)])
    return check(Flat(window), X, timeline=history(t, days))


HALVES = {
    hours: lambda when, where: np.where(when % 1.0 < 0.5, 1.0, 0.5),
    line: lambda when, where: np.where(when < 30.0, 1.0, 0.5),
    solid: lambda when, where: np.where(where[:, 0] < 5.0, 1.0, 0.5),
    folded: lambda when, where: np.where(where[:, 0] < 5.0, 1.0, 0.5),
}
"""Where half of the bursts are missing."""

every_history = pytest.mark.parametrize("checked", HALVES)


@pytest.fixture(autouse=True)
def _few_nodes(monkeypatch):
    monkeypatch.setattr(residuals, "LATTICE_POINTS", 2**13)


@every_history
def test_a_right_rate_of_events_in_bursts_fits(checked):
    found = [checked(seed, per_day=1.0) for seed in range(9)]
    assert all("bursts" in [p.name for p in f.patterns] for f in found)
    assert sum(bool(f.misfits) for f in found) <= 1
    said = str(next(f for f in found if not f.misfits))
    assert said.startswith("The rate fits, but events are not independent (")
    assert "The checks of the rate allow for this: counts of quadrats vary " in said
    # five or six events of a burst come together
    assert 3.0 < np.mean([f.quadrats.variation for f in found]) < 8.0
    assert np.median([f.relative_error for f in found]) < 0.15


@every_history
def test_a_rate_twice_too_high_in_one_half_is_found_among_bursts(checked):
    found = [checked(seed, per_day=15.0, keep=HALVES[checked]) for seed in range(3)]
    assert all(f.clustered for f in found)
    assert all(f.misfits for f in found)
    # counts are 4/3 and 2/3 of those expected, where quadrats are not across the middle
    assert 0.2 < np.mean([f.relative_error for f in found]) < 0.4


@every_history
def test_independent_events_are_counted_one_by_one(checked):
    for seed in range(3):
        found = checked(seed, per_day=5.0, size=1.0)
        tables = found.quadrats, found.calibration, found.thinned.quadrats
        assert not found.clustered
        assert {table.variation for table in tables} == {1.0}
        assert "allow for this" not in str(found)


def test_a_wrong_rate_of_independent_events_does_not_pass_for_bursts():
    for seed in range(3):
        found = hours(seed, per_day=8.0, size=1.0, keep=HALVES[hours])
        assert found.misfits
        assert found.quadrats.variation < 1.3


def test_rescaled_times_of_a_varying_count_are_as_many_as_are_independent():
    found = hours(0, per_day=1.0).rescaling
    assert found.size == round(len(found.times) / found.variation) < len(found.times)
    assert found.p_value == kstwo.sf(found.statistic, found.size)


def test_a_calibration_has_limits_as_wide_as_counts_vary():
    found = hours(0, per_day=1.0).calibration
    units = poisson.interval(0.9, found.expected / found.variation)
    np.testing.assert_allclose([found.low, found.high], found.variation * np.array(units))


def test_counts_in_units_of_their_variation_are_tested_as_counts(rng):
    expected, phi = rng.uniform(40.0, 60.0, 30), 4.0
    observed = phi * rng.poisson(expected / phi)
    found = CountTable(observed, expected, variation=phi)
    want = np.sum((observed - expected) ** 2 / expected) / phi
    assert found.statistic == pytest.approx(want)
    assert found.p_value == pytest.approx(chi2.sf(want, 29))
    assert np.sum(found.residuals**2) == pytest.approx(want)
    assert found.relative_error**2 * expected.sum() == pytest.approx(max(0.0, phi * (want - 29)))


# blocks


def test_neighbouring_blocks_tell_the_variance_over_the_mean(rng):
    means = rng.uniform(0.5, 5.0, (200, 1))  # whatever the rate says of a cell
    for phi in (1, 4):
        counts = phi * rng.poisson(means / phi, (200, 60)).astype(float)
        assert neighbour_index(counts) == pytest.approx(phi, rel=0.05)


def test_blocks_are_whole_cycles_or_equal_shares():
    week, t = Cycle(168, unit="h"), np.array([0.0, 6.9, 7.0, 13.9, 29.9])
    found = time_blocks(week, history(t, 30))
    assert (found.blocks.tolist(), found.number, found.axes) == ([0, 0, 1, 1, 4], 4, 1)
    assert time_blocks(week, history(t, 20)).number == SHARE_BLOCKS
    many = time_blocks(Cycle(24, unit="h"), history(t, 3 * MAX_CYCLES))
    assert (many.number, many.blocks.max()) == (MAX_CYCLES, 9)
    place = Box((0, 0), (1, 1)) * Interval(0, 30, unit="day")
    shared = time_blocks(place, history(t, 30))
    assert (shared.number, shared.axes, shared.blocks[-1]) == (SHARE_BLOCKS, 2, 63)


def test_bursts_of_many_days_at_one_hour_are_seen_in_longer_blocks(rng):
    days = (np.repeat(rng.uniform(0.0, 250.0, 300), 6) + rng.uniform(0.0, 6.0, 1800)) % 256
    hour = np.repeat(rng.uniform(0.0, 24.0, 300), 6)[:, None]
    found = time_blocks(Cycle(24, unit="h"), history(days, 256))
    assert found.variation(Tiling(Cycle(24, unit="h"), (4,)), hour) > 2.0


def test_a_level_that_changes_does_not_make_shares_vary(rng):
    days = 256.0 * rng.random(8000) ** 3
    found = time_blocks(Cycle(24, unit="h"), history(days, 256))
    hour = rng.uniform(0.0, 24.0, (8000, 1))
    assert found.variation(Tiling(Cycle(24, unit="h"), (4,)), hour) < 2.0
