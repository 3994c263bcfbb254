"""Trees: what their intervals promise of new events holds, and how their concentrations are chosen.

Randomised coverage counts an end value of an interval in part, so that a perfect one has its level.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, pdtr
from tree_windows import law

from hplus import Box, Intensity, Interval, Statistic
from hplus.rates.trees.concentrations import Clustering, learn_clustering
from hplus.rates.trees.evidence import Families, joined, left_out_gain, mean_gain
from hplus.rates.trees.growing import learn_tree_rate, regrown
from hplus.rates.trees.level_evidence import LevelEvidence
from hplus.rates.trees.planting import uniform_base
from hplus.rates.trees.tree_rate import TreeRate

WINDOW = Box((0, 0), (1, 1))
SIDE = 64


def every_scale(rng):
    """Relative rates on 64 x 64 cells with structure of every size."""
    rates = np.ones((1, 1))
    while len(rates) < SIDE:
        rates = np.kron(rates, np.ones((2, 2)))
        rates = rates * np.exp(0.6 * rng.normal(size=rates.shape))
    return rates / rates.mean()


def drawn(rates, n, rng):
    """About n events."""
    N = rng.poisson(n * rates / rates.size)
    cells = np.column_stack(np.nonzero(N)).repeat(N[N > 0], axis=0)
    return (cells + rng.random(cells.shape)) / SIDE


def cells_of(n):
    at = np.indices((n, n)).reshape(2, -1).T
    return [Box(corner / n, (corner + 1) / n) for corner in at]


@pytest.fixture(scope="module", params=[1500, 12_000])
def halves(request):
    """Trees learned from a pattern, the true expected counts of 64 x 64 cells, new events."""
    rng = np.random.default_rng(request.param)
    rates = every_scale(rng)
    model = Intensity(WINDOW, model="tree", random_state=0)
    model.fit(drawn(rates, request.param, rng))
    return model, request.param * rates / rates.size, drawn(rates, request.param, rng)


@pytest.mark.parametrize("n", [7, 13, 27])
def test_intervals_contain_new_counts_as_often_as_they_say(halves, n):
    model, _, Z = halves
    counts = np.histogram2d(*Z.T, bins=n, range=[[0, 1], [0, 1]])[0].ravel()
    means = model.rate_.count_draws(cells_of(n))
    below = np.where(counts > 0, pdtr(counts - 1.0, means.T), 0.0).mean(axis=0)
    upto = pdtr(counts, means.T).mean(axis=0)
    inside = np.clip(upto, 0.05, 0.95) - np.clip(below, 0.05, 0.95)
    coverage = float(np.mean(inside / (upto - below)))
    assert coverage == pytest.approx(0.9, abs=max(0.05, 3.0 * math.sqrt(0.09) / n))


def test_bands_contain_the_rate(halves):
    model, expected, _ = halves
    centers = (np.indices(expected.shape).reshape(2, -1).T + 0.5) / SIDE
    low, high = model.predict_interval(centers)
    rates = expected.ravel() * expected.size
    inside = (low <= rates) & (rates <= high)
    assert 0.85 <= inside.mean()
    # narrow enough to tell places apart
    assert np.mean(high < rates.max()) > 0.5


def test_samples_of_a_fit_recover_it(halves):
    model, _, _ = halves
    again = Intensity(WINDOW, model="tree", random_state=1).fit(model.sample(random_state=2)[0])
    centers = (np.indices((SIDE, SIDE)).reshape(2, -1).T + 0.5) / SIDE
    low, high = again.predict_interval(centers)
    rates = model.predict(centers)
    assert np.mean((low <= rates) & (rates <= high)) >= 0.85
    assert np.corrcoef(np.log(rates), np.log(again.predict(centers)))[0, 1] > 0.6


def log_evidence(A, shares, counts):
    rising = np.sum(gammaln(A * shares + counts) - gammaln(A * shares))
    return rising - gammaln(A + counts.sum()) + gammaln(A)


@pytest.mark.parametrize("A", [0.3, 4.0, 90.0])
def test_leaving_events_out_is_a_ratio_of_evidences(A):
    shares, counts = np.array([0.5, 0.3, 0.2]), np.array([7.0, 1.0, 3.0])
    expected = 0.0
    for j, one in enumerate(np.eye(3)):
        gain = log_evidence(A, shares, counts) - log_evidence(A, shares, counts - one)
        expected += counts[j] * (gain - math.log(shares[j]))
    families = Families(np.array([0, 3]), np.array([11.0]), np.zeros(1), shares, counts)
    # the factor of a family multiplies the concentration
    assert left_out_gain(A / 3.0, np.array([3.0]), families) == pytest.approx(expected)


@pytest.mark.parametrize("log_A", [-6.0, 0.5, 20.0])
@pytest.mark.parametrize("weight", [1.0, 0.7])
def test_the_gain_of_a_concentration_is_a_ratio_of_evidences(log_A, weight, rng):
    """For counts that are few, many or no whole numbers, and a product that would overflow."""
    A, size = float(np.exp(log_A)), 60
    shares = rng.dirichlet(np.ones(3), size)
    counts = weight * rng.choice([1.0, 2.0, 5.0, 40.0], (size, 3))
    factors, starts = rng.uniform(0.5, 2.0, size), 3 * np.arange(size + 1)
    families = Families(starts, counts.sum(axis=1), np.zeros(size), shares.ravel(), counts.ravel())
    expected = sum(map(log_evidence, A * factors, shares, counts)) - np.sum(counts * np.log(shares))
    assert mean_gain(A, factors, families) == pytest.approx(expected, rel=1e-6, abs=1e-3)


def uneven_families(rng, size=400):
    """Cells half of which share events evenly, the others hardly at all, as at a coast."""
    counts = np.concatenate(
        [rng.multinomial(40, rng.dirichlet([A / 4] * 4), size // 2) for A in (400.0, 0.2)]
    ).astype(float)
    held = counts > 0
    starts = np.append(0, np.cumsum(held.sum(axis=1)))
    parents, shares = np.full(size, 40.0), np.full(int(held.sum()), 0.25)
    return Families(starts, parents, np.zeros(size), shares, counts[held])


def test_with_many_events_concentrations_are_those_that_predict():
    families = uneven_families(np.random.default_rng(0))
    few, many = (LevelEvidence(((1, families),), 1, many).best() for many in (False, True))
    ones = np.ones(len(families.parents))
    assert few.gain == many.gain
    assert mean_gain(few.concentration, ones, families) == pytest.approx(few.gain)
    predicted = [left_out_gain(best.concentration, ones, families) for best in (few, many)]
    assert predicted[1] > predicted[0] + 1.0
    low, high = LevelEvidence(((1, families),), 1, True).bounds(many)
    assert low <= many.concentration <= high


def test_the_rate_of_one_tree_follows_from_counts_roughness_and_concentrations():
    X = np.random.default_rng(5).random(300) ** 3
    statistic = Statistic.of(Interval(0, 1), X[:, None]).coarsened(4)
    A = np.array([np.inf, 3.0, np.inf, 2.0, 5.0, 1.5])
    clustering = Clustering(A, np.zeros(6), 1.3, -0.2)
    trees = TreeRate(statistic, clustering, None, np.array(1.0), 1, 7)
    offset = int(trees.forest.ground.offsets[0, 0])
    counts = np.zeros(32)
    counts[statistic.codes.astype(int) + offset] = statistic.counts
    inside = np.zeros(32)
    inside[offset : offset + 16] = 1.0
    for cell in range(16):
        rate, rough = 300.0, 0.0
        for level in range(1, 6):
            held, room = (
                x.reshape(2**level, -1).sum(axis=1).reshape(-1, 2)[(cell + offset) >> (6 - level)]
                for x in (counts, inside)
            )
            mine, f = (cell + offset) >> (5 - level) & 1, room / room.sum()
            concentration, below = law(clustering, level - 1, rough, f, held)
            if held.sum() and concentration < np.inf:
                share = held[mine] + concentration * f[mine]
                rate *= share / ((held.sum() + concentration) * f[mine])
            rough = below[mine]
        assert trees.function(np.array([[(cell + 0.5) / 16]]))[0] == pytest.approx(rate)


def rough_and_smooth(seed, persistent):
    """Events of a cascade whose cells are rough at all sizes, or in one half only."""
    rng, shares = np.random.default_rng(seed), np.ones((1, 1))
    for level in range(8):
        A = np.full(shares.shape, 4.0)
        if persistent and level > 0:
            A[: len(A) // 2], A[len(A) // 2 :] = 1.0, 400.0
        parts = rng.gamma(np.repeat(A[..., None], 4, axis=-1) / 4.0)
        parts = parts.reshape(*A.shape, 2, 2) * shares[..., None, None]
        parts *= (shares / np.maximum(parts.sum(axis=(2, 3)), 1e-300))[..., None, None]
        shares = parts.transpose(0, 2, 1, 3).reshape(2 * len(A), -1)
    cells = rng.choice(shares.size, 3000, p=shares.ravel() / shares.sum())
    return (np.column_stack(np.unravel_index(cells, shares.shape)) + rng.random((3000, 2))) / 256


@pytest.mark.parametrize("persistent", [True, False])
def test_roughness_is_persistent_where_the_events_say_so(persistent):
    statistic = Statistic.of(WINDOW, rough_and_smooth(3, persistent)).coarsened(8)
    found = learn_clustering(statistic, uniform_base(statistic.lattice), False, 0)
    assert (found.persistence > 0.3) == persistent
    assert abs(found.crowding) < 0.5


@pytest.mark.parametrize("gain", [mean_gain, left_out_gain])
def test_the_gain_of_joined_families_is_the_sum_of_their_gains(gain):
    parts = [
        Families(np.array([0, 2, 3]), np.array([3.0, 2.0]), np.zeros(2), shares, counts)
        for shares, counts in (
            (np.array([0.3, 0.5, 0.2]), np.array([2.0, 1.0, 2.0])),
            (np.array([0.1, 0.6, 0.4]), np.array([1.0, 2.0, 2.0])),
        )
    ]
    whole = joined(parts)
    apart = sum(gain(2.0, np.array([1.0, 3.0]), part) for part in parts)
    assert gain(2.0, np.array([1.0, 3.0, 1.0, 3.0]), whole) == pytest.approx(apart)
    assert whole.starts.tolist() == [0, 2, 3, 5, 6]


def test_other_events_grow_trees_of_the_same_concentrations():
    X = rough_and_smooth(3, True)
    rate = learn_tree_rate(Statistic.of(WINDOW, X).coarsened(8), None, np.ones(()), 0, False)
    again, half = (regrown(rate, Statistic.of(WINDOW, some)) for some in (X, X[::2]))
    assert_allclose(again.function(X[:50]), rate.function(X[:50]))
    assert half.clustering is rate.clustering
    assert half.integral() == pytest.approx(len(X[::2]), rel=0.01)
