"""Shares of parts of a window that change, are found, and add up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

from hplus import Box, Intensity, Interval, Polygon, Statistic
from hplus.rates.local_dispersion import learn_local_dispersion, shared_axis, together
from hplus.rates.recent_shares import (
    NEW_FACTOR_SHAPE,
    RecentShares,
    _balanced,
    _log_chance,
    learn_recent_shares,
    run_chances,
)

PLACE = Box((0, 0), (8, 8), unit="km")
DAYS = 64.0
CITY = PLACE * shared_axis(0.0, DAYS, (0.25, 1.0))
CORNER, EAST = Box((7, 0), (8, 1)), Polygon([(4, 0), (8, 0), (8, 8), (4, 8)])


def independent(rng, n=4000):
    return np.column_stack([rng.uniform(0, 8, (n, 2)), rng.uniform(0, DAYS, n)])


def with_a_new_spot(rng):
    """Twelve events a day in the corner, which had one, in the last eight days."""
    n = rng.poisson(12 * 8)
    spot = np.column_stack([rng.uniform(7, 8, n), rng.uniform(0, 1, n), rng.uniform(56, 64, n)])
    return np.vstack([independent(rng), spot])


def learned(X):
    events = together(Statistic.of(CITY, X))
    law = learn_local_dispersion(events, DAYS, (0.25, 1.0, 4.0))
    return learn_recent_shares(events, DAYS, law, 0)


@pytest.fixture(scope="module")
def place():
    X = with_a_new_spot(np.random.default_rng(0))
    return Intensity(PLACE, model="tree", random_state=0).fit(X[:, :2]).rate_


def test_shares_that_stay_have_not_changed():
    assert all(learned(independent(np.random.default_rng(seed))) is None for seed in range(5))


def test_weeks_that_vary_alike_everywhere_change_no_share():
    rng = np.random.default_rng(1)
    X, days = independent(rng, 8000), rng.gamma(4.0, 0.25, 64)
    assert learned(X[rng.random(len(X)) < (days / days.max())[X[:, 2].astype(int)]]) is None


def test_cells_that_vary_all_the_time_have_not_changed():
    rng = np.random.default_rng(2)
    X, factor = independent(rng), rng.gamma(2.0, 0.5, (8, 8, 64))
    at = X.astype(int)
    copies = rng.poisson(factor[at[:, 0], at[:, 1], at[:, 2]])
    found = learned(np.repeat(X, copies, axis=0))
    assert found is None or np.mean(found.shares > 0.0) < 0.2


@pytest.mark.parametrize("seed", range(3))
def test_a_new_spot_is_found_with_its_present_share(seed, place):
    found = learned(with_a_new_spot(np.random.default_rng(seed)))
    present = found.ratios([CORNER], PLACE, place)[0] * place.integrals([CORNER])[0]
    # 13 of 74.5 events a day
    share = present / place.integrals([PLACE])[0]
    low, high = np.quantile(share, [0.01, 0.99])
    assert low < 13 / 74.5 < high < 1.9 * low
    # 62.5 events a day became 74.5 after 56 days
    assert found.since == pytest.approx(56.0, abs=2.0)
    assert found.growth == pytest.approx(74.5 / 62.5, rel=0.08)
    np.testing.assert_array_equal(found.exposure(np.array([[0.0], [63.0]])), [1.0, found.growth])


def test_parts_add_up_to_all_that_there_is(place):
    found = learned(with_a_new_spot(np.random.default_rng(0)))
    cells = [Box((x, y), (x + 2, y + 2)) for x in (0, 2, 4, 6) for y in (0, 2, 4, 6)]
    present = found.ratios(cells, PLACE, place) * place.integrals(cells)[:, None]
    np.testing.assert_allclose(present.sum(axis=0), place.integrals([PLACE])[0], rtol=1e-6)
    np.testing.assert_allclose(found.ratios([PLACE], PLACE, place), 1.0, rtol=1e-6)


def test_a_polygon_has_what_the_same_box_has(place):
    found = learned(with_a_new_spot(np.random.default_rng(0)))
    polygon, box = found.ratios([EAST, Box((4, 0), (8, 8))], PLACE, place)
    np.testing.assert_allclose(polygon, box, rtol=0.02)
    assert np.all(box > 1.0)


def test_the_rate_at_points_is_that_of_small_regions(place):
    found = learned(with_a_new_spot(np.random.default_rng(0)))
    X = np.array([[7.5, 0.5], [1.3, 6.2]])
    small = [Box(tuple(x - 0.01), tuple(x + 0.01)) for x in X]
    regions = found.ratios(small, PLACE, place).mean(axis=1)
    np.testing.assert_allclose(found.at(X, PLACE, place), regions, rtol=1e-6)
    assert regions[0] > 3.0 > 1.0 > regions[1]


def test_what_a_part_gains_all_others_lose_in_proportion():
    factors, rest = _balanced(np.array([[0.5, 0.0, 2.0]]), np.array([0.25]))
    np.testing.assert_allclose(factors, [[2.0, 0.0, 0.99 / 0.25]])
    np.testing.assert_allclose(rest, [0.5 / 0.75, 1.0, 0.01 / 0.75])


def test_chances_of_counts_one_by_one_are_those_of_all_together(rng):
    # Π of predictive chances = ∫ of the likelihood over the gamma distribution
    n, m = rng.poisson(5.0, 20).astype(float), rng.uniform(1.0, 9.0, 20)
    a, b = (
        NEW_FACTOR_SHAPE + np.append(0.0, np.cumsum(n)),
        NEW_FACTOR_SHAPE + np.append(0.0, np.cumsum(m)),
    )
    alone = sum(_log_chance(n[i], m[i], a[i], b[i]) for i in range(20))
    closed = gammaln(a[-1]) - gammaln(a[0]) + a[0] * np.log(b[0]) - a[-1] * np.log(b[-1])
    assert alone == pytest.approx(closed)


def test_when_a_factor_changed_is_known(rng):
    means = np.full((3, 40), 10.0)
    counts = rng.poisson(means * np.where(np.arange(40) >= 30, [[1.0], [4.0], [1.0]], 1.0))
    runs = run_chances(counts.astype(float), means)
    np.testing.assert_allclose(runs.chances.sum(axis=1), 1.0)
    assert runs.chances[1, 30] > 0.9
    assert runs.shapes[1, 30] / runs.rates[1, 30] == pytest.approx(4.0, rel=0.15)
    assert runs.chances[[0, 2], 0].min() > 0.9
    assert runs.gain > 50.0
    assert run_chances(means, means) is None


def test_shares_that_may_change_again_return_to_those_of_the_whole_period():
    found = RecentShares(np.zeros((1, 1)), np.ones((1, 1)), np.full((1, 100), 0.3), hazard=0.01)
    ratios = np.full((2, 100), 3.0)
    np.testing.assert_array_equal(found.after(0.0, ratios), ratios)
    assert np.mean(found.after(100.0, ratios) == 3.0) == pytest.approx(np.exp(-1.0), abs=0.01)
    np.testing.assert_array_equal(found.after(1e4, ratios), 1.0)


def test_parts_must_have_bounds_and_factors():
    with pytest.raises(ValueError, match="a row for each part"):
        RecentShares(np.zeros((2, 1)), np.ones((2, 1)), np.ones((3, 4)))


def test_parts_of_a_line_are_intervals():
    rng = np.random.default_rng(3)
    road = Interval(0, 8, unit="km")
    spot = np.column_stack([rng.uniform(7, 8, 300), rng.uniform(56, 64, 300)])
    events = together(Statistic.of(road * CITY.right, np.vstack([independent(rng)[:, 1:], spot])))
    law = learn_local_dispersion(events, DAYS, (0.25, 1.0, 4.0))
    found = learn_recent_shares(events, DAYS, law, 0)
    assert found.lows.shape[1] == 1
    assert found.shares[found.lows[:, 0] >= 7.0].sum(axis=0).mean() > 0.3
