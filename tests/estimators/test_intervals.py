"""HeteroscedasticRegressor and QuantilesRegressor against simulated truth."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from hplus import (
    Constant,
    Diagonal,
    Full,
    Gaussian,
    HeteroscedasticRegressor,
    Linear,
    QuantilesRegressor,
    load,
    save,
)
from hplus.solvers.result import SolverResult, Status
from hplus.solvers.sos import psd
from hplus.solvers.sos.psd import GAP
from hplus.space import Function

K = Gaussian(0.2) + Constant(1.0)
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


def noisy(n, seed=0):
    """Targets with a mean and a noise level that vary, and both of them."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, n)
    mean = 2.0 * (np.exp(-30.0 * (x - 0.25) ** 2) + np.sin(np.pi * x**2))
    std = np.exp(0.5 * np.sin(2.0 * np.pi * x))
    return x[:, None], mean + std * rng.normal(size=n), mean, std


@parametrize_with_checks(
    [
        HeteroscedasticRegressor(cone="full"),
        QuantilesRegressor(cone="full"),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# The mean and its noise


def test_mean_and_noise_level_come_close_to_the_truth():
    X, y, mean, std = noisy(2000)
    model = HeteroscedasticRegressor().fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - mean) ** 2)) < 0.12
    assert np.sqrt(np.mean((model.predict_std(X) / std - 1.0) ** 2)) < 0.12
    assert model.solution_.relative_gap <= GAP


def test_intervals_cover_what_they_say_over_ten_sets():
    covered = []
    for seed in range(10):
        X, y, _, _ = noisy(2000, seed)
        model = HeteroscedasticRegressor(K, cone="full").fit(X, y)
        new, target, _, _ = noisy(2000, 1000 + seed)
        low, high = model.predict_interval(new, 0.9)
        covered.append(np.mean((low <= target) & (target <= high)))
    assert 0.87 <= min(covered)
    assert max(covered) <= 0.93


def test_the_likelihood_is_that_of_a_normal_law():
    X, y, _, _ = noisy(200)
    model = HeteroscedasticRegressor(K).fit(X, y)
    expected = norm.logpdf(y, model.predict(X), model.predict_std(X)).sum()
    assert model.log_likelihood(X, y) == pytest.approx(expected)
    low, high = model.predict_interval(X, 0.5)
    np.testing.assert_allclose(norm.cdf(high, model.predict(X), model.predict_std(X)), 0.75)
    np.testing.assert_allclose(low + high, 2.0 * model.predict(X))


def test_a_fit_does_not_depend_on_the_unit_of_the_targets():
    X, y, _, _ = noisy(60)
    for model in (HeteroscedasticRegressor(K), QuantilesRegressor(kernel=K, cone="full")):
        one, other = clone(model).fit(X, y), clone(model).fit(X, 1e4 * y - 7e5)
        scale = np.abs(other.predict(X)).max()
        difference = other.predict(X) - (1e4 * one.predict(X) - 7e5)
        assert np.abs(difference).max() < 1e-3 * scale


@pytest.mark.parametrize("kernel", ["auto", Gaussian(0.3), Linear() + Constant()], ids=repr)
def test_far_from_the_data_everything_is_finite_and_the_noise_positive(kernel):
    X, y, _, _ = noisy(15)
    model = HeteroscedasticRegressor(kernel).fit(X, y)
    far = np.array([[-1e12], [1e12], [1e6], [-3.0]])
    assert np.isfinite(model.predict(far)).all()
    assert np.all(model.predict_std(far) > 0.0)
    assert np.isfinite(QuantilesRegressor(kernel=kernel).fit(X, y).predict(far)).all()


def test_targets_that_are_all_the_same_are_predicted():
    X = np.linspace(0, 1, 20)[:, None]
    model = HeteroscedasticRegressor(Gaussian(0.3)).fit(X, np.full(20, 5.0))
    np.testing.assert_allclose(model.predict(X), 5.0)
    np.testing.assert_allclose(QuantilesRegressor(kernel=K).fit(X, np.full(20, 5.0)).predict(X), 5)


# Quantiles


@pytest.mark.usefixtures("thoroughly")
def test_quantiles_come_close_to_the_truth():
    X, y, mean, std = noisy(800)
    model = QuantilesRegressor(LEVELS, cone="full").fit(X, y)
    truth = mean[:, None] + std[:, None] * norm.ppf(LEVELS)
    assert np.sqrt(np.mean((model.predict(X) - truth) ** 2)) < 0.2
    assert model.solution_.relative_gap <= GAP
    for level, q in zip(LEVELS, model.predict(X).T, strict=True):
        assert np.mean(y <= q) == pytest.approx(level, abs=0.03)


@pytest.mark.parametrize("positive", [False, True])
def test_quantiles_never_cross(positive, rng):
    for seed in range(3):
        X, y, _, _ = noisy(60, seed)
        y = np.exp(y) if positive else y
        model = QuantilesRegressor(LEVELS, positive, Gaussian(0.05), cone="full").fit(X, y)
        points = np.concatenate([rng.uniform(-1, 2, 9000), rng.uniform(-1e12, 1e12, 1000)])
        quantiles = model.predict(points[:, None])
        assert np.all(np.diff(quantiles, axis=1) >= 0.0)
        assert not positive or np.all(quantiles >= 0.0)
        assert isinstance(model.lowest_, Function) != positive


def test_an_interval_is_made_of_the_quantiles_at_its_ends():
    X, y, _, _ = noisy(40)
    model = QuantilesRegressor((0.05, 0.5, 0.95), kernel=K).fit(X, y)
    low, high = model.predict_interval(X, 0.9)
    np.testing.assert_array_equal(np.stack([low, high], 1), model.predict(X)[:, [0, 2]])
    with pytest.raises(ValueError, match=r"level 0.8 needs the quantiles 0.1 and 0.9, got levels"):
        model.predict_interval(X, 0.8)
    np.testing.assert_array_equal(model.predict_interval(X), (low, high))


def test_an_interval_goes_from_the_lowest_quantile_to_the_highest_unless_a_level_is_named():
    X, y, _, _ = noisy(40)
    model = QuantilesRegressor((0.1, 0.8), kernel=K, cone="full").fit(X, y)
    np.testing.assert_array_equal(np.stack(model.predict_interval(X), 1), model.predict(X))
    single = QuantilesRegressor((0.5,), kernel=K, cone="full").fit(X, y)
    with pytest.raises(ValueError, match=r"two quantiles .*, got \(0.5,\): fit with two"):
        single.predict_interval(X)


@pytest.mark.parametrize("level", [0.1, 7.0, 1e6])
def test_constant_targets_are_their_own_quantiles(level):
    X = np.linspace(0, 1, 20)[:, None]
    for positive in (False, True):
        model = QuantilesRegressor(positive=positive, kernel=Gaussian(0.3), cone="full")
        quantiles = model.fit(X, np.full(20, level)).predict(X)
        np.testing.assert_allclose(quantiles, level, rtol=0.05)


def test_positive_quantiles_of_targets_far_above_zero_are_near_them(rng):
    X = rng.uniform(0, 1, (60, 1))
    y = 1000.0 + rng.normal(size=60)
    model = QuantilesRegressor(positive=True, kernel=K, cone=Full(1e-6, 1e-6)).fit(X, y)
    assert np.abs(model.predict(X) - 1000.0).max() < 10.0


def test_levels_are_those_of_the_fit():
    X, y, _, _ = noisy(50)
    model = QuantilesRegressor((0.05, 0.5, 0.95), kernel=K, cone="full").fit(X, y)
    low, _ = model.predict_interval(X, 0.9)
    model.set_params(levels=(0.1, 0.5, 0.9))
    np.testing.assert_array_equal(model.predict_interval(X, 0.9)[0], low)


def test_the_score_is_minus_the_mean_quantile_loss():
    X, y, _, _ = noisy(50)
    model = QuantilesRegressor((0.2, 0.7), kernel=K, cone="full").fit(X, y)
    weights = np.arange(50.0)
    r = y[:, None] - model.predict(X)
    loss = np.maximum(np.array([0.2, 0.7]) * r, np.array([-0.8, -0.3]) * r)
    assert model.score(X, y) == pytest.approx(-loss.mean())
    expected = -np.average(loss.mean(axis=1), weights=weights)
    assert model.score(X, y, weights) == pytest.approx(expected)


def test_penalties_are_learned_by_what_they_do_on_held_out_rows():
    X, y, _, _ = noisy(120)
    for model in (HeteroscedasticRegressor(K), QuantilesRegressor((0.1, 0.9), kernel=K)):
        model.fit(X, y)
        assert isinstance(model.cone_, Full)
        assert model.cone_.trace == pytest.approx(0.1 * model.cone_.frobenius)
        strong = clone(model).set_params(cone=Full(1.0, 10.0)).fit(X, y)
        new, target, _, _ = noisy(1000, 7)
        assert model.score(new, target) > strong.score(new, target)


@pytest.mark.parametrize(
    "model", [HeteroscedasticRegressor(K, cone="full"), QuantilesRegressor(kernel=K, cone="full")]
)
def test_a_loose_certificate_is_a_warning_at_the_line_that_called_fit(model, monkeypatch):
    X, y, _, _ = noisy(20)
    loose = SolverResult(Status.STALLED, 3, 1.0, 1e-3, 1.0)
    monkeypatch.setattr(psd.SolverResult, "judged", lambda *_: loose)
    with pytest.warns(ConvergenceWarning, match=r"only to a relative gap of 1.0e-03") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__


def test_a_precision_beyond_floating_point_is_one_sentence():
    X, y, _, _ = noisy(20)
    model = HeteroscedasticRegressor(Linear() + Constant(), cone="full").fit(X, y)
    for method in (model.predict, model.predict_std):
        with pytest.raises(OverflowError, match="HeteroscedasticRegressor predicts values beyond"):
            method([[1e160]])


def test_a_better_fit_has_a_higher_score():
    X, y, _, _ = noisy(100)
    good = QuantilesRegressor(kernel=K, cone="full").fit(X, y)
    flat = QuantilesRegressor(kernel=Constant(1.0), cone="full").fit(X, y)
    assert flat.score(X, y) < good.score(X, y) < 0.0


def test_one_level_is_a_quantile_regression():
    X, y, _, _ = noisy(200)
    model = QuantilesRegressor([0.3], kernel=K).fit(X, y)
    assert model.predict(X).shape == (200, 1)
    assert np.mean(y <= model.predict(X)[:, 0]) == pytest.approx(0.3, abs=0.03)


def test_models_come_back_from_a_file(tmp_path):
    X, y, _, _ = noisy(25)
    for model in (
        HeteroscedasticRegressor(K, cone=Full(0.1)),
        QuantilesRegressor(kernel=K, landmarks=10),
    ):
        save(model.fit(X, y), tmp_path / "m.hplus")
        again = load(tmp_path / "m.hplus")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (QuantilesRegressor((0.5, 0.5)), "levels must be strictly increasing, got"),
        (QuantilesRegressor(()), "levels must be a non-empty list of numbers"),
        (QuantilesRegressor((0.5, 1.0)), "levels must be a number between 0 and 1, got 1.0"),
        (QuantilesRegressor(0.5), "levels must be a non-empty list of numbers, got 0.5"),
        (QuantilesRegressor(positive=True), "Negative values in y: targets must be"),
        (QuantilesRegressor(penalty=0), "penalty must be a positive finite number, got 0"),
        (QuantilesRegressor(cone=Diagonal()), "cone must be 'auto', 'full' or Full"),
        (QuantilesRegressor(cone="ful"), "one of 'auto', 'full', .* got 'ful'"),
        (QuantilesRegressor(positive="no"), "positive must be True or False, got 'no'"),
        (QuantilesRegressor(positive=True, penalty=1.0), "penalty must be None with positive=True"),
        (HeteroscedasticRegressor(cone="diagonal"), "cone must be 'auto', 'full' or Full"),
        (HeteroscedasticRegressor(penalty=-1.0), "penalty must be a positive finite number"),
        (HeteroscedasticRegressor(landmarks=0), "landmarks must be"),
    ],
    ids=repr,
)
def test_a_bad_parameter_is_refused_in_one_sentence(model, message):
    X, y, _, _ = noisy(20)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y - 10.0)
