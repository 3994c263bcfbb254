"""Counts of parts of a window that vary more than independent events, and how much is learned."""

from __future__ import annotations

import numpy as np
import pytest

from hplus import Box, Interval, Statistic
from hplus.rates.local_dispersion import (
    LocalDispersion,
    learn_local_dispersion,
    shared_axis,
    together,
)

CITY = Box((0, 0), (8, 8), unit="km") * shared_axis(0.0, 64.0, (0.25, 1.0))
LAW = LocalDispersion([0.01, 100.0], [1.0, 256.0], np.log([[0.025, 0.1], [2.5, 10.0]]))
"""An excess of (m/4)^(1/2) T^(1/4): a power of both."""


def city(variance, seed=0, mean=6.0):
    """Events of 8 × 8 cells on 64 days, whose rates vary independently with this variance."""
    rng = np.random.default_rng(seed)
    factor = rng.gamma(1.0 / variance, variance, (8, 8, 64)) if variance else np.ones((8, 8, 64))
    at = np.repeat(np.argwhere(factor > -1.0), rng.poisson(mean * factor).ravel(), axis=0)
    return at + rng.random(at.shape)


def learned(X):
    return law_of(together(Statistic.of(CITY, X)))


def law_of(statistic):
    return learn_local_dispersion(statistic, 64.0, (0.25, 1.0, 4.0))


def test_independent_events_have_no_excess():
    law = learned(city(0.0))
    assert law.excess(np.array([1.0, 10.0, 100.0]), 1.0) == pytest.approx(0.0, abs=0.05)


def test_the_excess_of_cells_that_vary_is_found():
    law = learned(city(0.3))
    assert law.excess(np.array([6.0]), 1.0)[0] == pytest.approx(0.3 * 6.0, rel=0.35)
    # four cells and four days vary by a sixteenth of the variance, and have 16 times the mean
    assert law.excess(np.array([96.0]), 4.0)[0] == pytest.approx(0.3 * 6.0, rel=0.6)


def test_a_total_that_varies_alike_everywhere_is_no_local_excess():
    rng, X = np.random.default_rng(1), city(0.0)
    days = rng.gamma(4.0, 0.25, 64)
    kept = X[rng.random(len(X)) < (days / days.max())[X[:, 2].astype(int)]]
    assert learned(kept).excess(np.array([6.0]), 1.0)[0] < 0.1


def test_parts_of_the_events_in_any_order_give_the_same_law():
    X = city(0.3)
    parts = [together(Statistic.of(CITY, X[i::3])) for i in (2, 0, 1)]
    assert law_of(parts[0] + parts[1] + parts[2]) == learned(X)


def test_blocks_end_with_the_axis_and_are_as_long_as_asked():
    axis = shared_axis(3.0, 500.0, (1.0, 0.25, 7.0))
    assert (axis.low, axis.high) == (500.0 - 2048 * 0.25, 500.0)
    assert shared_axis(0.0, 1e6, (1.0, 7.0)) == Interval(0.0, 1e6)


def test_few_events_tell_nothing():
    assert learned(city(0.0)[:99]) is None


def test_a_second_half_without_events_tells_nothing():
    X = city(0.0)
    assert learned(X[X[:, 2] < 31.0]) is None


@pytest.mark.parametrize("mean", [0.05, 2.0, 40.0])
def test_varied_means_keep_their_mean_and_have_the_variance_of_the_law(mean):
    draws = np.full((2, 40), mean)
    part, everything = LAW.varied(draws, 16.0, np.array([0.2, 1.0]))
    assert part.mean() == pytest.approx(mean)
    excess = 0.8 * (mean / 4.0) ** 0.5
    assert part.var() == pytest.approx(mean * excess, rel=0.05)
    np.testing.assert_array_equal(everything, mean)


def test_every_draw_is_varied_equally_often():
    draws = np.array([[1.0, 2.0, 3.0]])
    found = LAW.varied(draws, 16.0, np.ones(1))
    assert np.unique(found, return_counts=True)[1].tolist() == [342, 342, 342]


def test_longer_times_vary_more():
    means = np.array([2.0])
    assert LAW.excess(means, 64.0) == pytest.approx(LAW.excess(means, 16.0) * 4**0.25)
