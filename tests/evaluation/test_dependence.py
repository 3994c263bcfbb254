"""Do events depend on each other? Right p-values for independent events; bursts are named."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from hplus.evaluation import check
from hplus.evaluation.dispersion import dispersion_test
from hplus.evaluation.lags import excess, round_lags
from hplus.evaluation.near_repeats import DISTANCES, close_pairs, knox_tables, near_repeats
from hplus.evaluation.time_order import order_unfollowed, time_order
from hplus.evaluation.timelines import Timeline, heap_step, slow_part, time_step
from hplus.rates.gaps import (
    _product_moments,
    darling_weights,
    gap_test,
    grouped_gaps,
    neighbour_test,
    weighted_chi_square_sf,
)
from hplus.windows import Interval


def line(times, span=1000.0, unit="h"):
    """Events of a constant rate."""
    return Timeline(times, np.array([0.0, span]), np.array([0.0, 1.0]), unit)


def bursts(rng, n=400, span=1000.0):
    """Pairs: each event is followed by another, a tenth of the average gap later."""
    first = rng.random(n // 2) * span
    return np.sort(np.append(first, first + rng.exponential(0.1 * span / n, n // 2)) % span)


def regular(rng, n=400, span=1000.0):
    """Gaps of a gamma distribution with a coefficient of variation of a half."""
    return np.cumsum(rng.gamma(4.0, 0.25 * span / n, int(0.9 * n)))


class Constant:
    """A rate of 1 an hour on [0, 1000]."""

    window = Interval(0, 1000, unit="h")

    def predict(self, X):
        return np.ones(len(X))

    def expected_count(self, regions):
        if isinstance(regions, Interval):
            return regions.volume
        return np.array([region.volume for region in regions])


# gaps


def test_p_values_of_independent_events_are_uniform(rng):
    found = {"gaps": [], "neighbours": [], "dispersion": []}
    for n in [40, 150, 600] * 60:
        times = np.sort(rng.random(n)) ** 1.2  # a trend that no group of gaps sees
        table = grouped_gaps(times)
        found["gaps"].append(gap_test(table).p_value)
        found["neighbours"].append(neighbour_test(table).p_value)
        found["dispersion"].append(dispersion_test(rng.random(n)).p_value)
    for name, p_values in found.items():
        assert kstest(p_values, "uniform").pvalue > 1e-3, name


def test_the_null_of_long_groups_is_that_of_exponentials_with_an_unknown_mean():
    """Stephens (1974): 5 % and 1 % points of A², and its mean from the trace."""
    weights = darling_weights(4000)
    assert weighted_chi_square_sf(1.321, weights) == pytest.approx(0.05, rel=0.05)
    assert weighted_chi_square_sf(1.959, weights) == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize("x", [0.2, 3.0, 5.0, 5.001, 9.0, 60.0])
def test_equal_weights_are_a_chi_square(x):
    found = weighted_chi_square_sf(2.0 * x, np.full(5, 2.0))
    assert found == pytest.approx(chi2.sf(x, 5), rel=0.01)


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_moments_of_products_of_ranks_are_those_of_all_orders(lag):
    ranks = np.arange(6) - 2.5
    orders = np.array(list(permutations(ranks)))
    totals = np.sum(orders[:, lag:] * orders[:, :-lag], axis=1)
    found = _product_moments(6, lag, float(np.mean(ranks**2)), float(np.mean(ranks**4)))
    np.testing.assert_allclose(found, [totals.mean(), totals.var()])


def test_neighbours_alike_and_unlike_have_signs(rng):
    level = np.repeat(rng.lognormal(sigma=1.0, size=100), 4)
    alike = neighbour_test(grouped_gaps(np.cumsum(level * rng.exponential(size=400))))
    unlike = neighbour_test(grouped_gaps(bursts(rng)))
    assert alike.correlations[0] > 0.1 > -0.1 > unlike.correlations[0]
    assert max(alike.p_value, unlike.p_value) < 1e-3


def test_few_gaps_and_ties_are_not_tested():
    assert grouped_gaps(np.arange(10.0)) is None
    assert grouped_gaps(np.append(np.zeros(40), np.arange(1.0, 30.0))) is None
    assert grouped_gaps(np.arange(70.0)).shape == (2, 34)


# counts


def test_indices_of_dispersion_are_those_of_neighbouring_blocks(rng):
    shares = rng.random(300) ** 2
    found = dispersion_test(shares)
    np.testing.assert_allclose(found.events, 300.0 / 2.0 ** np.arange(1, 8))
    counts = np.histogram(shares, np.linspace(0.0, 1.0, 9))[0]
    index = np.sum((counts[::2] - counts[1::2]) ** 2) / 300.0
    assert found.index[2] == pytest.approx(index)
    signs = np.array(list(product([-1, 1], repeat=5))).sum(axis=1) ** 2
    cumulants = signs.mean(), signs.var(), np.mean((signs - signs.mean()) ** 3)
    assert cumulants == pytest.approx((5.0, 2.0 * 5 * 4, 8.0 * 5 * 4 * 3))


def test_bursts_vary_more_and_regular_events_less(rng):
    more = dispersion_test(bursts(rng, 2000) / 1000.0)
    less = dispersion_test(regular(rng) / 1000.0)
    assert more.statistic > 1.2 > 0.8 > less.statistic
    assert max(more.p_value, less.p_value) < 1e-3


# lags


def test_others_within_a_lag_are_counted_and_compared_with_the_rate(rng):
    times = np.sort(bursts(rng))
    found = excess(line(times), 1.0)
    lags = times[None, :] - times[:, None]
    observed = np.sum((lags > 0.0) & (lags <= found.lag))
    expected = 399.0 / 1000.0 * np.sum(np.minimum(times + found.lag, 1000.0) - times)
    assert found.ratio == pytest.approx(observed / expected)
    assert found.ratio > 2.0
    assert excess(line(regular(rng)), -1.0).ratio < 0.3


def test_lags_are_round_in_every_unit():
    np.testing.assert_allclose(round_lags(0.4, 30.0, "h"), [0.5, 1.0, 2.0, 6.0, 12.0, 24.0])
    np.testing.assert_allclose(round_lags(0.4, 30.0, "m"), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0])


# rounded times


def test_rounded_times_are_spread_and_ties_are_not_bursts(rng):
    seconds = np.sort(rng.random(3000)) * 86_400.0 * 30
    hours, quarters = (np.round(seconds / step) * step for step in (3600.0, 900.0))
    some = rng.random(3000) < 0.4
    assert heap_step(seconds) == 0.0
    assert heap_step(np.where(some, hours, np.round(seconds / 60.0) * 60.0)) == 3600.0
    assert heap_step(np.where(some, quarters, seconds)) == 900.0
    assert time_step(np.round(seconds / 60.0) * 60.0, "s") == pytest.approx(60.0)
    rounded = line(np.where(some, hours, seconds), 86_400.0 * 30, "s")
    assert time_order(rounded).gaps.p_value < 1e-6
    spread = rounded.spread(np.random.RandomState(0))
    assert np.abs(spread.times - rounded.times).max() <= 1800.0
    assert time_order(spread).gaps.p_value > 1e-3


# near repeats


def test_tables_of_pairs_are_those_of_a_double_loop(rng):
    X, times, lags = rng.random((60, 2)), rng.random((2, 60)), np.array([0.1, 0.3])
    pairs, far = close_pairs(X, 0.5)
    within = np.searchsorted(0.5 * np.array(DISTANCES)[:-1], far)
    found = knox_tables(times, pairs, within, lags)
    i, j = np.triu_indices(60, 1)
    for r, a, b in np.ndindex(found.shape):
        near = np.linalg.norm(X[i] - X[j], axis=1) <= 0.5 * DISTANCES[a]
        assert found[r, a, b] == np.sum(near & (np.abs(times[r, i] - times[r, j]) <= lags[b]))


def test_near_repeats_are_found_and_slow_moves_are_not(rng):
    seed = np.random.RandomState
    X, times = rng.random((500, 2)), np.sort(rng.random(500)) * 1000.0
    again = rng.integers(500, size=100)
    near = np.vstack([X, X[again] + 0.002 * rng.normal(size=(100, 2))])
    soon = np.append(times, np.minimum(times[again] + rng.exponential(2.0, 100), 1000.0))
    found = near_repeats(near, line(soon, unit="day"), "km", seed(0))
    assert found.p_value <= 0.002
    assert found.ratio > 3.0
    assert near_repeats(X, line(times, unit="day"), "km", seed(0)).p_value > 0.005
    moved = X + 0.5 * times[:, None] / 1000.0  # the same area within a month, another in a year
    assert near_repeats(moved, line(times, unit="day"), "km", seed(0)).p_value > 0.005


# the whole


@pytest.mark.parametrize(
    ("draw", "name", "words"),
    [
        (bursts, "bursts", "Events come in bursts: within"),
        (regular, "events keep apart", "Events keep apart: within"),
        (lambda rng: 1000.0 * np.sqrt(rng.random(800)), "uneven counts", "those of"),
        (lambda rng: 1000.0 * rng.random(400), None, ""),
    ],
    ids=["bursts", "regular", "slow", "independent"],
)
def test_what_is_wrong_has_one_sentence(draw, name, words, rng):
    found = check(Constant(), draw(rng)[:, None])
    assert [pattern.name for pattern in found.patterns] == [name] * (name is not None)
    for pattern in found.patterns:
        assert words in pattern.sentence
        assert f"\n{pattern.sentence}\n{pattern.meaning}\n" in str(found)
        side = "too wide" if name == "events keep apart" else "too narrow"
        assert side in pattern.meaning
    if name == "bursts":
        assert str(found).startswith("The rate fits, but events are not independent (")


def test_faults_are_holms(rng):
    found = check(Constant(), bursts(rng)[:, None])
    p_values = sorted(found.p_values.values())
    rejected = 0
    while rejected < len(p_values) and p_values[rejected] * (len(p_values) - rejected) < 0.05:
        rejected += 1
    assert {found.p_values[name] for name in found.faults} == set(p_values[:rejected])
    assert 0 < rejected < len(p_values)


def timeline_of(rate, times, span=1000.0):
    """Events of a rate that is known at 10,001 times."""
    shares = np.append(0.0, np.cumsum(0.5 * (rate[1:] + rate[:-1])))
    return Timeline(times, np.linspace(0.0, span, len(rate)), shares / shares[-1], "")


def peaks(centers, width, span=1000.0):
    t = np.linspace(0.0, span, 10_001)
    return sum(np.exp(-0.5 * ((t - c) / width) ** 2) for c in centers)


def test_a_rate_that_follows_every_burst_does_not_hide_them(rng):
    centers = np.sort(rng.random(40)) * 990.0 + 5.0
    times = np.sort(np.repeat(centers, 5) + 0.8 * rng.normal(size=200))
    followed = timeline_of(peaks(centers, 0.8) + 1e-3, times)
    assert time_order(followed).gaps.p_value > 1e-3
    unfollowed = order_unfollowed(followed)
    assert unfollowed.gaps.p_value < 1e-9
    assert unfollowed.gaps.variation > 1.3


def test_peaks_of_many_independent_events_are_no_bursts(rng):
    centers, rate = np.array([200.0, 500.0, 800.0]), peaks([200.0, 500.0, 800.0], 20.0)
    found = 0
    for _ in range(50):
        times = np.sort(centers[rng.integers(3, size=300)] + 20.0 * rng.normal(size=300))
        found += order_unfollowed(timeline_of(rate, times)).gaps.p_value < 0.005
    assert found <= 4


def test_the_slow_part_of_a_rate_has_as_many_events_and_smaller_peaks(rng):
    times = np.sort(rng.random(160) * 1000.0)
    line = timeline_of(peaks([200.0, 201.0], 5.0) + 0.01, times)
    slow = slow_part(line, 8)
    assert (slow.shares[0], slow.shares[-1]) == (0.0, 1.0)
    assert np.all(np.diff(slow.shares) > 0.0)
    highest = [np.max(np.diff(each.shares) / np.diff(each.nodes)) for each in (slow, line)]
    assert 0.5 * highest[1] < highest[0] < highest[1]
    np.testing.assert_allclose(slow.share(line.nodes), line.shares, atol=8 / 160)
