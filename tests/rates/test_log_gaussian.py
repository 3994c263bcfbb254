"""How a prior is learned for a rate, and the rate on a grid that comes of it."""

import numpy as np
import pytest

from hplus import Box, Gaussian, Interval, Linear, Polygon, Statistic
from hplus.grids import TensorGrid
from hplus.rates.binned import BinnedStatistic
from hplus.rates.judging import PRODUCT_ODDS, STRETCH_ODDS, by_evidence, by_thinning
from hplus.rates.levels import MAX_FOLD_DRAWS, Level, descend, fold_draws, redrawn
from hplus.rates.log_gaussian import _prolonged, begin, learn_rate
from hplus.rates.modes import newton
from hplus.rates.prior import Field, KernelPrior, LogRates, SumOfFields
from hplus.rates.search import SMOOTHNESS, finalists, moves, search, two_fields, weighted
from hplus.rates.selection import LearnPrior, _scores

pytestmark = pytest.mark.usefixtures("few_nodes")

LINE = Interval(0, 1)


def level_of(window, X, weights=None, exposure=1.0):
    """The finest level of events with one exposure everywhere."""
    statistic = BinnedStatistic.of(Statistic.of(window, X, weights), 0)
    return Level.of(statistic, np.full(statistic.grid.shape, exposure))


def small_level(rng, prior, total=2000.0, nodes=65):
    """Counts of a Poisson process whose log rate is drawn from a prior, on few nodes."""
    grid = TensorGrid((0,), (1,), (nodes,))
    hats = grid.integrals(LINE)
    z = prior.covariance(grid).draw(1, np.random.RandomState(3))[0]
    W = hats * np.exp(z)
    W *= total / W.sum()
    return Level(LINE, grid, rng.poisson(W / 5.0, (5, nodes)).astype(float), hats)


def line_prior(scale, deviation=1.0):
    return SumOfFields((Field(1.5, (scale,), deviation),))


# Moves and searches


@pytest.mark.parametrize("d", [1, 2, 3])
def test_every_move_stays_in_its_range_however_often_it_is_repeated(d):
    for move in moves(d, 0.01):
        for way in (1, -1):
            prior = two_fields(0.04, d)
            for _ in range(40):
                prior = move(prior, way)
            assert move(prior, way) == prior
            coarse, fine = prior.fields
            assert 0.01 <= fine.scales[0] <= 0.32
            assert 0.1 <= fine.deviation <= 3.0
            assert 0.25 <= coarse.deviation <= 4.0
            assert fine.smoothness in SMOOTHNESS
            assert all(0.05 < scale / fine.scales[0] < 20.0 for scale in fine.scales)
            assert all(2.0 * a <= b for a, b in zip(fine.scales, coarse.scales, strict=True))


def test_moves_there_and_back_again_end_where_they_began():
    start = two_fields(0.04, 2)
    for move in moves(2, 0.001):
        there = move(start, 1)
        assert there != start
        for found, first in zip(move(there, -1).fields, start.fields, strict=True):
            np.testing.assert_allclose(found.deviation, first.deviation)
            assert found.replace(deviation=first.deviation) == first


def test_a_prior_has_a_coarse_and_a_fine_field_in_the_units_of_the_window():
    stretched = two_fields(0.1, 2).stretched(np.array([1.0, 2.0]))
    coarse, fine = stretched.stretched(np.array([10.0, 100.0])).fields
    np.testing.assert_allclose(fine.scales, (1.0, 20.0))
    np.testing.assert_allclose(coarse.scales, (4.0, 80.0))
    assert (coarse.deviation, fine.deviation) == (2.0, 1.0)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_search_tries_no_more_priors_than_it_may_and_none_twice(d):
    tried = []

    def judge(prior, z):
        tried.append(prior)
        return float(len(tried)), LogRates(prior, z)  # always better: nothing else ends it

    found = search(judge, np.ones(d), None, 0.01, 12)
    assert len(found) == len(tried) <= 12
    assert len(set(tried)) == len(tried)


def test_a_search_finds_the_scale_and_deviation_that_score_best():
    goal = Field(2.0, (0.02,), 2.0)

    def judge(prior, z):
        fine = prior.fields[1]
        off = abs(np.log(fine.scales[0] / goal.scales[0])) + abs(fine.smoothness - goal.smoothness)
        return -off - abs(np.log(fine.deviation / goal.deviation)), LogRates(prior, z)

    tried = search(judge, np.ones(1), None, 0.005, 40)
    winner = max(tried, key=lambda trial: trial[0])[1].prior.fields[1]
    np.testing.assert_allclose(winner.scales, goal.scales)
    np.testing.assert_allclose(winner.deviation, 2.0)
    assert winner.smoothness == 2.0


@pytest.mark.parametrize("judged", [lambda level: by_thinning(level, 5), by_evidence])
def test_a_product_over_axes_must_be_better_by_its_odds(judged, rng):
    """On a line a product and a function of the distance are the same field."""
    level = small_level(rng, line_prior(0.1))
    judge, start = judged(level), level.start().astype(np.float32)
    plain, product = (
        judge(SumOfFields((Field(1.5, (0.1,), 1.0, form),)), start)[0] for form in (False, True)
    )
    np.testing.assert_allclose(plain - product, PRODUCT_ODDS, atol=1e-2)


@pytest.mark.parametrize("judged", [lambda level: by_thinning(level, 5), by_evidence])
def test_scales_that_differ_between_axes_must_be_better_by_their_odds(judged, rng):
    """A field that hardly varies predicts the same with any scales; sides do not matter."""
    window = Box((0, 0), (1, 4))
    level = level_of(window, rng.uniform((0, 0), (1, 4), (100, 2))).on_about(100)
    judge, start = judged(level), level.start().astype(np.float32)
    even, longer, shorter = (
        judge(SumOfFields((Field(1.5, (0.2, scale), 1e-3),)), start)[0] for scale in (0.2, 0.8, 0.1)
    )
    np.testing.assert_allclose(even - longer, 2.0 * STRETCH_ODDS, atol=1e-2)
    np.testing.assert_allclose(even - shorter, STRETCH_ODDS, atol=1e-2)


def test_weights_sum_to_one_fall_with_the_score_and_follow_its_exponential():
    trials = [LogRates(line_prior(scale), None) for scale in (0.1, 0.2, 0.3, 0.4, 0.5)]
    kept = weighted(trials, np.array([[-3.0, 0.0, -1.0, -50.0, -2.0]]), 4)
    weights = [w for w, _ in kept]
    assert [found for _, found in kept] == [trials[i] for i in (1, 2, 4, 0)]
    assert len(kept) == 4  # the last is next to nothing
    np.testing.assert_allclose(sum(weights), 1.0)
    assert weights == sorted(weights, reverse=True)
    np.testing.assert_allclose(weights[1] / weights[0], np.exp(-1.0))


def test_the_weights_of_priors_are_means_over_draws_of_folds():
    trials = [LogRates(line_prior(scale), None) for scale in (0.1, 0.2)]
    kept = weighted(trials, np.log([[0.9, 0.1], [0.3, 0.7]]), 4)
    np.testing.assert_allclose([w for w, _ in kept], [0.6, 0.4])
    assert [found for _, found in kept] == trials


@pytest.mark.usefixtures("thoroughly")
def test_priors_of_few_events_are_judged_under_several_draws_of_folds(rng):
    """On a finer grid, scores are moved by what another draw changes on the coarser one."""
    statistic = Statistic.of(LINE, rng.beta(2, 6, (300, 1)))
    finest = Level.of(BinnedStatistic.of(statistic, 5), np.ones(()))
    finer, level = descend(finest)[-2:]
    others = redrawn(statistic, 5, level)
    assert len(others) == MAX_FOLD_DRAWS - 1
    start = level.start().astype(np.float32)
    priors = [line_prior(0.03, 2.0), line_prior(0.02, 2.0), line_prior(0.002, 6.0)]
    best = [by_thinning(level, 5)(prior, start) for prior in priors]
    scores = _scores(best, None, others, "thinning")
    moved = _scores(best, finer, others, "thinning")
    np.testing.assert_allclose(moved[1:] - moved[0], scores[1:] - scores[0])
    for other, row in zip(others, scores[1:], strict=True):
        np.testing.assert_allclose(other.counts, level.counts)
        expected = [by_thinning(other, 5)(prior, start)[0] for prior in priors]
        np.testing.assert_allclose(row[:2], expected[:2], atol=0.25)
        assert row[2] == scores[0, 2]  # too far behind for luck to matter
    assert np.abs(scores[1:] - scores[0]).max() > 0.5


@pytest.mark.parametrize(("events", "draws"), [(60, 4), (500, 4), (700, 3), (1999, 2), (2000, 1)])
def test_the_fewer_events_the_more_draws_of_folds(events, draws):
    assert fold_draws(events) == draws


def test_finalists_hold_the_best_of_each_kind():
    kinds = [(0.5, False), (0.5, False), (1.0, True), (2.0, False), (1.0, False)]
    trials = [
        (-float(i), LogRates(SumOfFields((Field(nu, (0.1,), 1.0, product),)), None))
        for i, (nu, product) in enumerate(kinds)
    ]
    far = (-1e3, LogRates(line_prior(0.1), None))
    chosen = finalists([*trials, far])
    assert {found.prior.kind for _, found in chosen} == set(kinds)
    assert far not in chosen


@pytest.mark.parametrize("judged", [lambda level: by_thinning(level, 5), by_evidence])
def test_the_true_prior_scores_better_than_a_wrong_one(judged, rng):
    true = line_prior(0.1, 1.5)
    level = small_level(rng, true)
    judge, start = judged(level), level.start().astype(np.float32)
    score, _ = judge(true, start)
    assert score > judge(line_prior(2.0, 1.5), start)[0] + 2.0
    assert score > judge(line_prior(0.005, 5.0), start)[0] + 2.0


def test_folds_without_events_are_not_held_out(rng):
    level = small_level(rng, line_prior(0.1))
    folds = level.folds.copy()
    folds[:3] = 0.0
    sparse = Level(LINE, level.grid, folds, level.exposure)
    assert sparse.filled().tolist() == [False] * 3 + [True] * 2
    score = by_thinning(sparse, 1)(line_prior(0.1), level.start().astype(np.float32))[0]
    assert np.isfinite(score)
    assert score != 0.0


# Rates


TRIANGLE = Polygon([[0, 0], [2, 0], [0, 2]])
AUTO = LearnPrior("auto")


def given(kernel):
    return ((1.0, KernelPrior(kernel, 1.0)),)


CASES = [
    (LINE, AUTO),
    (LINE, LearnPrior("thinning")),
    (LINE, given(Gaussian(0.2))),
    (LINE, LearnPrior("evidence", Gaussian(0.2))),
    (LINE, given(Linear())),
    (TRIANGLE, given(Gaussian(0.3))),
    (Box((0, 0, 0), (1, 1, 1)), given(Gaussian(0.2))),
]


@pytest.mark.parametrize(("window", "wanted"), CASES, ids=lambda c: repr(c)[:40])
def test_the_total_is_the_weights_over_the_exposure(window, wanted, rng):
    X, weights = window.sample(60, random_state=0), rng.integers(1, 5, 60) / 2.0
    rate = learn_rate(level_of(window, X, weights, 2.5), wanted, 0)
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
        level = Level(LINE, grid, folds, grid.integrals(LINE))
        coarse = level.coarser()
        prior = KernelPrior(Gaussian(0.1), 1.0)
        fits = [_values(part, prior) for part in (level, coarse)]
        errors.append(np.sum(level.exposure * np.abs(fits[0] - grid.prolong(fits[1]))) / 400.0)
    assert errors[1] < 0.5 * errors[0] < 0.01


def _values(level, prior):
    """The rate under one prior on one grid."""
    K = prior.covariance(level.grid)
    return np.exp(newton(K, *level.arrays(), level.start(), tolerance=1e-8).z[0])


@pytest.mark.parametrize("n", [25, 400])
@pytest.mark.parametrize("wanted", [AUTO, given(Gaussian(0.2))], ids=["auto", "given"])
def test_draws_of_the_total_spread_like_one_over_the_root_of_n(n, wanted, rng):
    rate = learn_rate(level_of(LINE, rng.beta(2, 3, (n, 1))), wanted, 0)
    totals = rate.count_draws([LINE])
    np.testing.assert_allclose(totals.std() / totals.mean(), 1.0 / np.sqrt(n), rtol=0.35)
    np.testing.assert_allclose(totals.mean(), n, rtol=4.0 / np.sqrt(n * len(totals)) + 0.02)


def test_a_wider_interval_holds_a_narrower_one_and_both_are_positive(rng):
    rate = learn_rate(level_of(LINE, rng.random((50, 1))), AUTO, 0)
    X = np.linspace(0, 1, 20)[:, None]
    (low, high), (lower, higher) = rate.interval(X, 0.5), rate.interval(X, 0.95)
    assert np.all((lower > 0.0) & (lower < low) & (low < high) & (high < higher))


def test_the_same_seed_gives_the_same_rate(rng):
    level = level_of(LINE, rng.random((80, 1)))
    a, b = (learn_rate(level, LearnPrior("thinning"), 7) for _ in range(2))
    np.testing.assert_array_equal(a.function.values, b.function.values)
    np.testing.assert_array_equal(a.draws, b.draws)


HARD = [
    ("one event held out leaves none", np.full((1, 1), 0.3), np.ones(1), "thinning"),
    ("heavy event", np.full((1, 1), 0.3), np.full(1, 5e3), "auto"),
    ("equal events", np.full((300, 1), 0.7), np.ones(300), "auto"),
    (
        "uneven weights",
        np.linspace(0, 1, 50)[:, None],
        2.0 ** np.arange(-10, 10, 0.4).round(),
        "auto",
    ),
    ("light events", np.linspace(0, 1, 3)[:, None], np.full(3, 2.0**-20), "evidence"),
]


@pytest.mark.parametrize(("what", "X", "weights", "criterion"), HARD, ids=[h[0] for h in HARD])
def test_hard_events_give_finite_rates_without_a_warning(what, X, weights, criterion):
    rate = learn_rate(level_of(LINE, X, weights), LearnPrior(criterion), 0)
    np.testing.assert_allclose(rate.function.integral(), weights.sum(), rtol=1e-9)
    assert np.isfinite(rate.count_draws([LINE])).all()
    assert np.isfinite(rate.interval(X, 0.9)).all()


def test_priors_behind_the_leader_are_corrected_by_what_a_finer_grid_gave_it(rng):
    grid = TensorGrid((0.0,), (1.0,), (257,))
    fine = Level(LINE, grid, rng.poisson(2.0, (1, 257)) * 1.0, np.ones(257))
    prior = SumOfFields((Field(2.5, scales=(0.03,), deviation=1.0),))
    coarse = fine.coarser()
    K = prior.covariance(coarse.grid)
    mode = newton(K, *coarse.arrays(), coarse.start(), tolerance=1e-9)
    alike = [(weight, LogRates(prior, mode.z, mode.a)) for weight in (0.6, 0.4)]
    (_, leader), (_, other) = _prolonged(alike, fine)
    assert np.abs(leader.z - fine.grid.prolong(mode.z[0])).max() > 1e-3
    np.testing.assert_allclose(other.z, leader.z, rtol=1e-12)


# Rates without a fold


def without(level, fold):
    """The level of the events outside one fold."""
    folds = level.folds.copy()
    folds[fold] = 0.0
    return Level(level.window, level.grid, folds, level.exposure)


@pytest.mark.parametrize("window", [LINE, Box((0, 0), (2, 1))], ids=["line", "box"])
@pytest.mark.usefixtures("thoroughly")
def test_a_rate_without_a_fold_is_the_rate_of_the_other_events_under_the_same_priors(window, rng):
    X = rng.beta(2, 4, (300, window.dimension)) * window.bounds()[1]
    level = level_of(window, X, exposure=2.0)
    prior = SumOfFields((Field(1.5, (0.3,) * window.dimension, 1.0),))
    fit = begin(level, ((1.0, prior),), 0).finer()
    held_out = fit.held_out()
    assert [fold for fold, _ in held_out] == list(range(len(level.folds)))
    for fold, rate in held_out[:2]:
        alone = begin(without(level, fold), ((1.0, prior),), 0).finer()
        expected = alone.values()
        np.testing.assert_allclose(rate.values, expected, rtol=0.04)
        np.testing.assert_allclose(rate.integral(), alone.level.total / 2.0)
        # and unlike the rate of all events
        assert (
            np.abs(rate.values / fit.values() / (1.0 - 1.0 / len(level.folds)) - 1.0).max() > 0.05
        )


@pytest.mark.parametrize("wanted", [AUTO, LearnPrior("thinning")], ids=["auto", "thinning"])
def test_averaged_rates_without_a_fold_predict_it_like_a_fit_of_the_others(wanted, rng):
    level = level_of(LINE, rng.beta(2, 6, (400, 1)))
    fit = begin(level, wanted, 0).refined()
    counts = fit.level.folds
    for fold, rate in fit.held_out()[:3]:
        alone = learn_rate(without(level, fold), wanted, 0).function
        n = counts[fold].sum()
        log_rate, expected = (
            np.sum(counts[fold] * np.log(f(fit.level.grid.nodes()) / f.integral())) / n
            for f in (rate, alone)
        )
        np.testing.assert_allclose(log_rate, expected, atol=0.02)


def test_folds_without_events_are_passed_over_and_one_alone_is_never_held_out(rng):
    level = level_of(LINE, rng.random((60, 1)))
    some, one = level.folds.copy(), level.folds.copy()
    some[[0, 3]], one[1:] = 0.0, 0.0
    some, one = (Level(LINE, level.grid, folds, level.exposure) for folds in (some, one))
    assert [fold for fold, _ in begin(some, AUTO, 0).held_out()] == [1, 2, 4]
    assert begin(one, AUTO, 0).held_out() == []


def test_a_fit_that_stops_on_a_coarse_grid_is_certified_and_whole_there(rng):
    fit = begin(level_of(LINE, rng.beta(2, 6, (400, 1))), given(Gaussian(0.1)), 0)
    assert not fit.settled
    rate = fit.rate()
    assert rate.function.grid == fit.levels[-1].grid
    np.testing.assert_allclose(rate.function.integral(), 400.0, rtol=1e-10)
    assert rate.result.relative_gap < 1e-6
    finer = fit.refined()
    assert finer.settled
    assert finer.place < fit.place
