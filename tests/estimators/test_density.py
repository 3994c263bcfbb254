"""Density: it integrates to one, in a window and on whole space."""

import re

import numpy as np
import pytest
from scipy.stats import norm

from hplus import Box, Density, Gaussian, Interval, load, save
from hplus.estimators.prior_parameters import RATE_MODELS

RNG = np.random.RandomState(0)
TWO = np.where(RNG.random_sample(80) < 0.5, -1.0, 1.0)[:, None] + 0.3 * RNG.standard_normal((80, 1))


def truth(x):
    return 0.5 * norm.pdf(x, -1, 0.3) + 0.5 * norm.pdf(x, 1, 0.3)


@pytest.fixture(scope="module", params=RATE_MODELS)
def model(request):
    return Density(model=request.param).fit(TWO)


def test_the_density_integrates_to_one_on_whole_space(model):
    # cells of trees are small where events are
    x = np.concatenate(
        [np.arange(-30, -3, 0.01), np.linspace(-3, 3, 60001), np.arange(3, 30, 0.01)]
    )
    assert np.trapezoid(model.predict(x[:, None]), x) == pytest.approx(1.0, abs=2e-3)
    assert model.probability(Interval(-1e3, 1e3)) == pytest.approx(1.0, abs=1e-6)


def test_probabilities_are_integrals(model):
    x = np.linspace(-0.7, 1.3, 20001)
    area = np.trapezoid(model.predict(x[:, None]), x)
    assert model.probability(Interval(-0.7, 1.3)) == pytest.approx(area, rel=1e-3)
    parts = model.probability([Interval(-9, 0), Interval(0, 9)])
    assert parts.sum() == pytest.approx(model.probability(Interval(-9, 9)), rel=1e-6)


def test_the_density_is_finite_and_not_negative_anywhere(model):
    f = model.predict(np.array([-1e12, -1e3, 0.0, 1e3, 1e12])[:, None])
    assert np.all(np.isfinite(f) & (f >= 0.0))


def test_both_modes_are_found_and_the_valley_between_them(model):
    left, valley, right = model.predict([[-1.0], [0.0], [1.0]])
    assert min(left, right) > 3.0 * valley
    point, value = model.peak()
    assert abs(abs(point[0]) - 1.0) < 0.3
    assert value >= 0.999 * max(left, right)


def test_gradients_are_slopes(model):
    if model.model == "tree":
        with pytest.raises(ValueError, match="gradient needs a rate without trees"):
            model.gradient([[0.0]])
        return
    x = np.array([[-1.3], [-0.4], [0.3], [2.0]])
    slope = (model.predict(x + 1e-6) - model.predict(x - 1e-6)) / 2e-6
    assert np.allclose(model.gradient(x)[:, 0], slope, rtol=1e-2, atol=1e-3)


def test_samples_follow_the_density(model):
    draws = model.sample(4000, random_state=0)
    share = np.mean((draws > -1.0) & (draws < 0.5))
    assert share == pytest.approx(model.probability(Interval(-1.0, 0.5)), abs=0.03)


def test_intervals_contain_the_density(model):
    low, high = model.predict_interval(TWO, 0.9)
    assert np.all((low >= 0.0) & (low <= high))


def test_a_saved_density_predicts_the_same(model, tmp_path):
    save(model, tmp_path / "density.hplus")
    assert np.array_equal(load(tmp_path / "density.hplus").predict(TWO), model.predict(TWO))


def expected_log_density(seed):
    """∫ p log q for the truth p and the density q learned from eighty values of it."""
    rng, s = np.random.default_rng(seed), np.linspace(-4.0, 4.0, 2001)
    x = rng.choice([-1.0, 1.0], 80) + 0.3 * rng.normal(size=80)
    return np.trapezoid(truth(s) * np.log(Density().fit(x[:, None]).predict(s[:, None])), s)


@pytest.mark.usefixtures("thoroughly")
def test_eighty_values_tell_nearly_as_much_as_the_form_of_the_truth():
    """Two normal densities fitted by maximum likelihood lose 5/2n = 0.03 on average."""
    losses = -0.9069 - np.array([expected_log_density(seed) for seed in range(8)])
    assert 0.02 < losses.mean() < 0.045


ALIKE = (10, 12, 21, 32, 33, 39, 42, 43, 67, 68, 71, 90)
"""The first draws of papers/sos on which non-negative weights do as well as in [marteau2020]."""


@pytest.mark.usefixtures("thoroughly")
def test_an_exponential_family_does_as_well_as_in_print_on_draws_like_the_one_in_print():
    assert np.mean([expected_log_density(seed) for seed in ALIKE]) > -0.94


def test_without_a_window_the_default_is_smooth(model):
    if model.model == "auto":
        assert model.intensity_.weights_ == {"exp": 1.0}


@pytest.mark.parametrize("kind", ["auto", "tree"])
def test_a_window_bounds_the_density(kind):
    X = np.abs(TWO)
    model = Density(Interval(0, 3), model=kind).fit(X)
    parts = model.probability([Interval(0, 0.9), Interval(0.9, 3)])
    assert parts.sum() == pytest.approx(1.0, rel=1e-9)
    assert 0.25 < parts[0] < 0.55
    assert model.sample(50, random_state=0).shape == (50, 1)
    assert model.probability(Interval(0, 3)) == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(ValueError, match="outside"):
        model.predict([[-0.1]])


def test_weights_are_repetitions():
    twice = Density().fit(np.vstack([TWO, TWO]))
    weighted = Density().fit(TWO, sample_weight=np.full(80, 2.0))
    assert np.allclose(twice.predict(TWO), weighted.predict(TWO), rtol=1e-6)


BAD = {
    "one value": (lambda: Density().fit(np.ones((5, 1))), "must vary in every column"),
    "kernel without a window": (lambda: Density(kernel=Gaussian(1.0)).fit(TWO), "give a window"),
    "region of other axes": (
        lambda: Density().fit(TWO).probability(Box((0, 0), (1, 1))),
        "regions must be intervals such as Interval(50, inf) without a window",
    ),
    "not a table": (lambda: Density().fit(TWO[:, 0]), "X must have two dimensions"),
    "nan": (lambda: Density().fit([[np.nan], [1.0]]), "finite"),
    "four columns": (lambda: Density().fit(RNG.random_sample((9, 4))), "1, 2 or 3 axes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence(name):
    call, words = BAD[name]
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        call()


SKEWED = np.random.default_rng(0).lognormal(3.0, 1.0, (150, 1))


@pytest.fixture(scope="module")
def losses():
    return Density(random_state=0).fit(SKEWED)


def test_skewed_values_have_no_mass_below_zero_and_others_are_learned_as_they_are(losses):
    assert np.isfinite(losses.offset_).all()
    assert losses.probability(Interval(-np.inf, 0.0)) == 0.0
    assert losses.probability(Interval(0.0, np.inf)) == pytest.approx(1.0, abs=1e-9)
    assert np.array_equal(losses.predict([[-1.0], [-1e9]]), [0.0, 0.0])
    x = np.linspace(0.0, 400.0, 40_001)
    area = np.trapezoid(losses.predict(x[:, None]), x)
    assert losses.probability(Interval(0.0, 400.0)) == pytest.approx(area, abs=2e-3)
    assert losses.sample(50, random_state=0).min() >= 0.0
    assert not np.isfinite(Density().fit(TWO).offset_).any()
    assert not np.isfinite(Density().fit(np.abs(TWO) + 50.0).offset_).any()


def test_the_log_scale_predicts_new_skewed_values_better_than_the_plain_scale(losses):
    new = np.random.default_rng(1).lognormal(3.0, 1.0, (2000, 1))
    plain = Density(random_state=0).fit(np.vstack([SKEWED, [[-1e-9]]]))  # a value below 0
    assert not np.isfinite(plain.offset_).any()
    assert losses.score(new) > plain.score(new) + 0.02


def test_gradients_on_the_log_scale_are_slopes(losses):
    x = np.array([[3.0], [20.0], [90.0]])
    slope = (losses.predict(x + 1e-5) - losses.predict(x - 1e-5)) / 2e-5
    assert np.allclose(losses.gradient(x)[:, 0], slope, rtol=1e-2, atol=1e-6)


def test_zeros_are_allowed_on_the_log_scale():
    x = np.concatenate([np.zeros(10), SKEWED[:120, 0]])[:, None]
    model = Density(random_state=0).fit(x)
    assert 0.0 < model.offset_[0] < np.inf
    assert model.probability(Interval(0.0, np.inf)) == pytest.approx(1.0, abs=1e-9)
    assert np.isfinite(model.predict([[0.0]])).all()


@pytest.mark.parametrize("window", [None, Interval(0.0, 600.0)])
def test_quantiles_invert_the_distribution_function(window, losses):
    inside = SKEWED[SKEWED[:, 0] < 600.0]
    model = losses if window is None else Density(window, random_state=0).fit(inside)
    p = np.array([0.001, 0.1, 0.5, 0.9, 0.999])
    x = model.quantile(p)
    assert np.all(np.diff(x) > 0.0)
    np.testing.assert_allclose(model.cdf(x), p, atol=1e-6)
    assert model.cdf(x[2]) == pytest.approx(model.probability(Interval(-np.inf, x[2])), abs=1e-12)
    assert model.cdf(-5.0) == 0.0
    assert model.cdf(np.inf) == pytest.approx(1.0)
    assert model.probability(Interval(1e4, np.inf)) == pytest.approx(0.0, abs=0.02)


def test_ends_without_limit_are_for_regions_of_densities_alone(losses):
    with pytest.raises(ValueError, match="window must have finite ends, got Interval"):
        Density(Interval(0.0, np.inf)).fit(SKEWED)
    with pytest.raises(ValueError, match="probability must be above 0 and below 1, got"):
        losses.quantile(1.0)
    with pytest.raises(ValueError, match="x must hold numbers, got NaN"):
        losses.cdf([1.0, np.nan])
    with pytest.raises(ValueError, match="cdf and quantile need values of one column, got 2"):
        Density(Box((0, 0), (1, 1)), Gaussian(0.5), 1.0).fit(np.eye(2)).cdf(0.5)
