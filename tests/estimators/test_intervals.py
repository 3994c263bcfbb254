"""HeteroscedasticRegressor and QuantilesRegressor against simulated truth."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
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
from hplus.solvers.psd import GAP
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
    [HeteroscedasticRegressor(Gaussian(1.0)), HeteroscedasticRegressor(), QuantilesRegressor()]
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


def test_intervals_cover_what_they_say_over_twenty_sets():
    covered = []
    for seed in range(20):
        X, y, _, _ = noisy(2000, seed)
        model = HeteroscedasticRegressor(K).fit(X, y)
        new, target, _, _ = noisy(2000, 1000 + seed)
        low, high = model.predict_interval(new, 0.9)
        covered.append(np.mean((low <= target) & (target <= high)))
    assert 0.87 <= min(covered)
    assert max(covered) <= 0.93


def test_the_likelihood_is_that_of_a_normal_law():
    X, y, _, _ = noisy(200)
    model = HeteroscedasticRegressor(K).fit(X, y)
    expected = norm.logpdf(y, model.predict(X), model.predict_std(X)).mean()
    assert model.log_likelihood(X, y) == pytest.approx(expected)
    low, high = model.predict_interval(X, 0.5)
    np.testing.assert_allclose(norm.cdf(high, model.predict(X), model.predict_std(X)), 0.75)
    np.testing.assert_allclose(low + high, 2.0 * model.predict(X))


def test_a_fit_does_not_depend_on_the_unit_of_the_targets():
    X, y, _, _ = noisy(150)
    for model in (HeteroscedasticRegressor(K), QuantilesRegressor(kernel=K)):
        one, other = clone(model).fit(X, y), clone(model).fit(X, 1e4 * y - 7e5)
        scale = np.abs(other.predict(X)).max()
        difference = other.predict(X) - (1e4 * one.predict(X) - 7e5)
        assert np.abs(difference).max() < 1e-3 * scale


@pytest.mark.parametrize("kernel", ["auto", Gaussian(0.3), Linear() + Constant()], ids=repr)
def test_far_from_the_data_everything_is_finite_and_the_noise_positive(kernel):
    X, y, _, _ = noisy(60)
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


def test_quantiles_come_close_to_the_truth():
    X, y, mean, std = noisy(1500)
    model = QuantilesRegressor(LEVELS).fit(X, y)
    truth = mean[:, None] + std[:, None] * norm.ppf(LEVELS)
    assert np.sqrt(np.mean((model.predict(X) - truth) ** 2)) < 0.2
    assert model.solution_.relative_gap <= GAP
    for level, q in zip(LEVELS, model.predict(X).T, strict=True):
        assert np.mean(y <= q) == pytest.approx(level, abs=0.03)


@pytest.mark.parametrize("positive", [False, True])
def test_quantiles_never_cross(positive, rng):
    for seed in range(5):
        X, y, _, _ = noisy(60, seed)
        y = np.exp(y) if positive else y
        model = QuantilesRegressor(LEVELS, positive, Gaussian(0.05)).fit(X, y)
        points = np.concatenate([rng.uniform(-1, 2, 9000), rng.uniform(-1e12, 1e12, 1000)])
        quantiles = model.predict(points[:, None])
        assert np.all(np.diff(quantiles, axis=1) >= 0.0)
        assert not positive or np.all(quantiles >= 0.0)
        assert isinstance(model.lowest_, Function) != positive


def test_an_interval_is_made_of_the_quantiles_at_its_ends():
    X, y, _, _ = noisy(100)
    model = QuantilesRegressor((0.05, 0.5, 0.95), kernel=K).fit(X, y)
    low, high = model.predict_interval(X, 0.9)
    np.testing.assert_array_equal(np.stack([low, high], 1), model.predict(X)[:, [0, 2]])
    with pytest.raises(ValueError, match=r"level 0.8 needs the quantiles 0.1 and 0.9, got levels"):
        model.predict_interval(X, 0.8)


def test_a_better_fit_has_a_higher_score():
    X, y, _, _ = noisy(300)
    good = QuantilesRegressor(kernel=K).fit(X, y)
    flat = QuantilesRegressor(kernel=Constant(1.0)).fit(X, y)
    assert flat.score(X, y) < good.score(X, y) < 0.0


def test_one_level_is_a_quantile_regression():
    X, y, _, _ = noisy(200)
    model = QuantilesRegressor([0.3], kernel=K).fit(X, y)
    assert model.predict(X).shape == (200, 1)
    assert np.mean(y <= model.predict(X)[:, 0]) == pytest.approx(0.3, abs=0.03)


def test_models_come_back_from_a_file(tmp_path):
    X, y, _, _ = noisy(60)
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
        (QuantilesRegressor((0.5, 0.5)), "levels must increase, got"),
        (QuantilesRegressor(()), "levels must be a list of numbers"),
        (QuantilesRegressor((0.5, 1.0)), "levels must be a number between 0 and 1, got 1.0"),
        (QuantilesRegressor(0.5), "levels must be a list of numbers, got 0.5"),
        (QuantilesRegressor(positive=True), "Negative values in y: positive=True needs"),
        (QuantilesRegressor(penalty=0), "penalty must be a positive finite number, got 0"),
        (QuantilesRegressor(cone=Diagonal()), "cone must be Full"),
        (HeteroscedasticRegressor(cone="diagonal"), "cone must be Full"),
        (HeteroscedasticRegressor(penalty=-1.0), "penalty must be a positive finite number"),
        (HeteroscedasticRegressor(landmarks=0), "landmarks must be"),
    ],
    ids=repr,
)
def test_a_bad_parameter_is_refused_in_one_sentence(model, message):
    X, y, _, _ = noisy(20)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y - 10.0)
