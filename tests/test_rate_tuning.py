"""How a prior is learned for a rate, and the rate on a grid that comes of it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import poisson

from hplus import Box, Gaussian, Interval, Linear, Polygon, Statistic
from hplus.grids import TensorGrid
from hplus.solvers.fields import Field, Given, Texture
from hplus.solvers.grid_rate import mixed_poisson_quantile
from hplus.solvers.lattice import newton
from hplus.solvers.pyramid import Level
from hplus.tuning.rates import Component, _prolonged, learn_rate
from hplus.tuning.textures import (
    PRODUCT_ODDS,
    SMOOTHNESS,
    Guess,
    Tried,
    _knobs,
    by_evidence,
    by_thinning,
    finalists,
    search,
    weighted,
)

pytestmark = pytest.mark.usefixtures("few_nodes")

LINE = Interval(0, 1)


def level_of(window, X, weights=None, exposure=1.0):
    """The finest level of events that were watched with one exposure."""
    statistic = Statistic.of(window, X, weights)
    grid = statistic.grid
    return Level(grid, statistic.counts, exposure * grid.integrals(window))


def small_level(rng, texture, total=2000.0, nodes=65):
    """Counts of a Poisson process whose log rate is drawn from a prior, on few nodes."""
    grid = TensorGrid((0,), (1,), (nodes,))
    measure = grid.integrals(LINE)
    z = texture.prior(grid).draw(1, np.random.RandomState(3))[0]
    W = measure * np.exp(z)
    W *= total / W.sum()
    return Level(grid, rng.poisson(W / 5.0, (5, nodes)).astype(float), measure)


def line_texture(scale, deviation=1.0):
    return Texture((Field(1.5, (scale,), deviation),))


# Knobs and searches


@pytest.mark.parametrize("d", [1, 2, 3])
def test_every_knob_stays_in_its_range_however_often_it_is_turned(d):
    for knob in _knobs(d, 0.01):
        for way in (1, -1):
            guess = Guess(0.04, ratios=(1.0,) * d)
            for _ in range(40):
                guess = knob(guess, way)
            assert knob(guess, way) == guess
            assert 0.01 <= guess.fine <= 0.32
            assert 0.1 <= guess.fine_deviation <= 3.0
            assert 0.25 <= guess.coarse_deviation <= 4.0
            assert guess.smoothness in SMOOTHNESS
            assert all(0.05 < ratio < 20.0 for ratio in guess.ratios)


def test_knobs_turned_up_and_down_again_come_back():
    start = Guess(0.04, ratios=(1.0, 1.0))
    for knob in _knobs(2, 0.001):
        there = knob(start, 1)
        assert there != start
        back = knob(there, -1)
        np.testing.assert_allclose(back.fine_deviation, start.fine_deviation)
        assert replace(back, fine_deviation=start.fine_deviation) == start


def test_a_texture_has_a_coarse_and_a_fine_field_in_the_units_of_the_window():
    coarse, fine = Guess(0.1, ratios=(1.0, 2.0)).texture(np.array([10.0, 100.0])).fields
    np.testing.assert_allclose(fine.scales, (1.0, 20.0))
    np.testing.assert_allclose(coarse.scales, (4.0, 80.0))
    assert (coarse.deviation, fine.deviation) == (2.0, 1.0)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_search_tries_no_more_priors_than_it_may_and_none_twice(d):
    tried = []

    def judge(prior, z):
        tried.append(prior)
        return Tried(float(len(tried)), prior, z)  # always better: nothing else ends it

    found = search(judge, np.ones(d), None, 0.01, 12)
    assert len(found) == len(tried) <= 12
    assert len(set(tried)) == len(tried)


def test_a_search_finds_the_scale_and_deviation_that_score_best():
    best = Guess(0.02, fine_deviation=2.0, smoothness=2.0, ratios=(1.0,)).texture(np.ones(1))

    def judge(prior, z):
        fine, goal = prior.fields[1], best.fields[1]
        off = abs(np.log(fine.scales[0] / goal.scales[0])) + abs(fine.smoothness - goal.smoothness)
        return Tried(-off - abs(np.log(fine.deviation / goal.deviation)), prior, z)

    winner = max(search(judge, np.ones(1), None, 0.005, 40), key=lambda t: t.score).prior.fields[1]
    np.testing.assert_allclose(winner.scales, best.fields[1].scales)
    np.testing.assert_allclose(winner.deviation, 2.0)
    assert winner.smoothness == 2.0


@pytest.mark.parametrize("judged", [lambda level: by_thinning(level, 5), by_evidence])
def test_a_product_over_axes_must_be_better_by_its_odds(judged, rng):
    """On a line a product and a function of the distance are the same field."""
    level = small_level(rng, line_texture(0.1))
    judge, start = judged(level), level.start().astype(np.float32)
    plain, product = (
        judge(Texture((Field(1.5, (0.1,), 1.0, shape),)), start).score for shape in (False, True)
    )
    np.testing.assert_allclose(plain - product, PRODUCT_ODDS, atol=1e-2)


def test_weights_sum_to_one_fall_with_the_score_and_follow_its_exponential():
    trials = [Tried(score, line_texture(0.1), None) for score in (-3.0, 0.0, -1.0, -50.0, -2.0)]
    kept = weighted(trials, 4)
    weights = [w for w, _ in kept]
    assert len(kept) == 4  # the last is next to nothing
    np.testing.assert_allclose(sum(weights), 1.0)
    assert weights == sorted(weights, reverse=True)
    np.testing.assert_allclose(weights[1] / weights[0], np.exp(-1.0))


def test_finalists_hold_the_best_of_each_kind():
    kinds = [(0.5, False), (0.5, False), (1.0, True), (2.0, False), (1.0, False)]
    trials = [
        Tried(-float(i), Texture((Field(nu, (0.1,), 1.0, product),)), None)
        for i, (nu, product) in enumerate(kinds)
    ]
    far = Tried(-1e3, line_texture(0.1), None)
    chosen = finalists([*trials, far])
    assert {t.prior.kind for t in chosen} == set(kinds)
    assert far not in chosen


@pytest.mark.parametrize("judged", [lambda level: by_thinning(level, 5), by_evidence])
def test_the_true_prior_scores_better_than_a_wrong_one(judged, rng):
    true = line_texture(0.1, 1.5)
    level = small_level(rng, true)
    judge, start = judged(level), level.start().astype(np.float32)
    score = judge(true, start).score
    assert score > judge(line_texture(2.0, 1.5), start).score + 2.0
    assert score > judge(line_texture(0.005, 5.0), start).score + 2.0


def test_folds_without_events_are_not_held_out(rng):
    level = small_level(rng, line_texture(0.1))
    folds = level.folds.copy()
    folds[:3] = 0.0
    sparse = Level(level.grid, folds, level.measure)
    assert sparse.filled().tolist() == [False] * 3 + [True] * 2
    score = by_thinning(sparse, 1)(line_texture(0.1), level.start().astype(np.float32)).score
    assert np.isfinite(score)
    assert score != 0.0


# Rates


TRIANGLE = Polygon([[0, 0], [2, 0], [0, 2]])
CASES = [
    (LINE, None, "auto"),
    (LINE, None, "thinning"),
    (LINE, Given(Gaussian(0.2), 1.0), "auto"),
    (LINE, Given(Gaussian(0.2), float("nan")), "evidence"),
    (LINE, Given(Linear(), 1.0), "auto"),
    (TRIANGLE, Given(Gaussian(0.3), 1.0), "auto"),
    (Box((0, 0, 0), (1, 1, 1)), Given(Gaussian(0.2), 1.0), "auto"),
]


@pytest.mark.parametrize(("window", "prior", "criterion"), CASES, ids=lambda c: repr(c)[:30])
def test_the_total_is_the_weights_over_the_exposure(window, prior, criterion, rng):
    X, weights = window.sample(60, random_state=0), rng.uniform(0.5, 2.0, 60)
    rate = learn_rate(window, level_of(window, X, weights, 2.5), prior, criterion, 0)
    np.testing.assert_allclose(rate.function.integral(), weights.sum() / 2.5, rtol=1e-10)
    np.testing.assert_allclose(sum(weight for weight, _ in rate.mixture), 1.0)
    assert rate.result.relative_gap < 1e-6
    assert np.all(rate.spread > 0.0)


def test_the_rate_moves_less_and_less_when_the_grid_is_refined(rng):
    X = rng.beta(2, 5, (400, 1))
    errors = []
    for finest in (513, 2049):
        grid = TensorGrid((0,), (1,), (finest,))
        folds = np.zeros((5, finest))
        folds[0] = grid.bin(X, np.ones(400))
        level = Level(grid, folds, grid.integrals(LINE))
        coarse = level.coarser()
        prior = Given(Gaussian(0.1), 1.0)
        fits = [_values(part, prior) for part in (level, coarse)]
        errors.append(np.sum(level.measure * np.abs(fits[0] - grid.prolong(fits[1]))) / 400.0)
    assert errors[1] < 0.5 * errors[0] < 0.01


def _values(level, prior):
    """The rate under one prior on one grid."""
    matrix = prior.prior(level.grid)
    return np.exp(newton(matrix, level.counts, level.nu, level.start(), tolerance=1e-8).z[0])


@pytest.mark.parametrize("n", [25, 400])
@pytest.mark.parametrize("prior", [None, Given(Gaussian(0.2), 1.0)], ids=["auto", "given"])
def test_draws_of_the_total_spread_like_one_over_the_root_of_n(n, prior, rng):
    rate = learn_rate(LINE, level_of(LINE, rng.beta(2, 3, (n, 1))), prior, "auto", 0)
    totals = rate.count_draws(LINE)
    np.testing.assert_allclose(totals.std() / totals.mean(), 1.0 / np.sqrt(n), rtol=0.35)
    np.testing.assert_allclose(totals.mean(), n, rtol=4.0 / np.sqrt(n * len(totals)) + 0.02)


def test_a_wider_interval_holds_a_narrower_one_and_both_are_positive(rng):
    rate = learn_rate(LINE, level_of(LINE, rng.random((50, 1))), None, "auto", 0)
    X = np.linspace(0, 1, 20)[:, None]
    (low, high), (lower, higher) = rate.interval(X, 0.5), rate.interval(X, 0.95)
    assert np.all((lower > 0.0) & (lower < low) & (low < high) & (high < higher))


def test_the_same_seed_gives_the_same_rate(rng):
    level = level_of(LINE, rng.random((80, 1)))
    a, b = (learn_rate(LINE, level, None, "thinning", 7) for _ in range(2))
    np.testing.assert_array_equal(a.function.values, b.function.values)
    np.testing.assert_array_equal(a.draws, b.draws)


@pytest.mark.parametrize("p", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("mean", [0.0, 0.3, 12.0, 4000.0])
def test_quantiles_of_a_mixture_of_one_are_those_of_the_poisson_law(p, mean):
    assert mixed_poisson_quantile(np.full(3, mean), p) == max(poisson.ppf(p, mean), 0.0)


HARD = [
    ("one event held out leaves none", np.full((1, 1), 0.3), np.ones(1), "thinning"),
    ("heavy event", np.full((1, 1), 0.3), np.full(1, 5e3), "auto"),
    ("equal events", np.full((300, 1), 0.7), np.ones(300), "auto"),
    ("uneven weights", np.linspace(0, 1, 50)[:, None], np.geomspace(1e-2, 1e2, 50), "auto"),
    ("light events", np.linspace(0, 1, 3)[:, None], np.full(3, 1e-6), "evidence"),
]


@pytest.mark.parametrize(("what", "X", "weights", "criterion"), HARD, ids=[h[0] for h in HARD])
def test_hard_events_give_finite_rates_without_a_warning(what, X, weights, criterion):
    rate = learn_rate(LINE, level_of(LINE, X, weights), None, criterion, 0)
    np.testing.assert_allclose(rate.function.integral(), weights.sum(), rtol=1e-9)
    assert np.isfinite(rate.count_draws(LINE)).all()
    assert np.isfinite(rate.interval(X, 0.9)).all()


def test_priors_behind_the_leader_are_corrected_by_what_a_finer_grid_gave_it(rng):
    fine = Level(TensorGrid((0.0,), (1.0,), (257,)), rng.poisson(2.0, (1, 257)) * 1.0, np.ones(257))
    prior = Texture((Field(2.5, scales=(0.03,), deviation=1.0),))
    coarse = fine.coarser()
    mode = newton(
        prior.prior(coarse.grid), coarse.counts, coarse.nu, coarse.start(), tolerance=1e-9
    )
    alike = [Component(weight, prior, mode.z, mode.a) for weight in (0.6, 0.4)]
    leader, other = _prolonged(alike, fine)
    assert np.abs(leader.z - fine.grid.prolong(mode.z[0])).max() > 1e-3
    np.testing.assert_allclose(other.z, leader.z, rtol=1e-12)
