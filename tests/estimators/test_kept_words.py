"""Intensity keeps what its documentation says: given priors, exposures, refits, odd regions."""

import re
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from hplus import (
    Box,
    Cycle,
    Density,
    Gaussian,
    Intensity,
    Interval,
    Linear,
    SeparableIntensity,
    Statistic,
)
from hplus.rates.binned import BinnedStatistic
from hplus.rates.levels import Level

pytestmark = pytest.mark.usefixtures("few_parts")

RNG = np.random.RandomState(0)
LINE = RNG.beta(2, 4, size=(300, 1))
PLANE = RNG.beta(2, 4, size=(300, 2))
UNIT, SQUARE = Interval(0, 1), Box((0, 0), (1, 1))


def step(X):
    """Watched from 0.3 on."""
    return (X[:, 0] >= 0.3) * 1.0


def test_events_at_the_edge_of_the_exposed_area_are_kept():
    for seed in range(3):
        X = 0.3 + 0.7 * np.random.RandomState(seed).random_sample((200, 1))
        X[0] = 0.3 + 1e-9
        model = Intensity(UNIT).fit(X, exposure=step)
        assert model.expected_count(Interval(0.3, 1)) == pytest.approx(200, rel=0.05)
        assert model.predict([[0.6]])[0] == pytest.approx(200 / 0.7, rel=0.4)


def test_events_some_cells_from_any_exposure_are_refused():
    X = np.vstack([0.3 + 0.7 * RNG.random_sample((50, 1)), [[0.2998]]])
    with pytest.raises(ValueError, match="0 around 1 of 51 events"):
        Intensity(UNIT).fit(X, exposure=step)


def test_a_given_mixture_is_used_as_it_is():
    first = Intensity(UNIT).fit(LINE)
    again = Intensity(UNIT, first.mixture_).fit(LINE)
    assert len(first.mixture_) > 4
    assert again.mixture_ == first.mixture_
    np.testing.assert_allclose(again.predict(LINE), first.predict(LINE), rtol=0.02)


def test_a_given_mixture_of_a_kernel_that_is_not_stationary_stays_on_its_small_grid():
    first = Intensity(UNIT, Gaussian(0.2) + Linear(), 1.0).fit(LINE)
    again = Intensity(UNIT, first.mixture_).fit(LINE)
    assert first.rate_.function.grid.size <= 1025
    np.testing.assert_allclose(again.predict(LINE), first.predict(LINE), rtol=1e-3)


def test_what_covariates_explain_is_not_learned_as_a_field(coarsely):
    X = RNG.random_sample((2000, 2))

    def wave(P):
        return np.sin(30.0 * P[:, 0])

    X = X[RNG.random_sample(2000) < np.exp(2.0 * (wave(X) - 1.0))]
    model = Intensity(SQUARE, covariates=wave)
    with coarsely():
        plain, given = Intensity(SQUARE).learn_mixture(X), model.learn_mixture(X)
        assert max(given)[1] == model.fit(X).kernel_
    assert given != plain


def test_seeds_change_draws_on_a_line():
    a, b, c = (Intensity(UNIT, random_state=s).fit(LINE).rate_.draws for s in (1, 2, 1))
    assert np.array_equal(a, c)
    assert not np.array_equal(a, b)


def test_a_kernel_that_is_not_stationary_sees_fine_structure():
    X = np.vstack([0.5 + 0.004 * RNG.standard_normal((300, 1)), RNG.random_sample((300, 1))])
    with_trend = Intensity(UNIT, 4.0 * Gaussian(0.01) + 1e-6 * Linear(), 1.0).fit(X)
    without = Intensity(UNIT, 4.0 * Gaussian(0.01), 1.0).fit(X)
    assert with_trend.peak()[1] == pytest.approx(without.peak()[1], rel=0.1)


@pytest.mark.parametrize("side", [1.0, 0.99, 0.3])
def test_its_cells_are_about_square_and_keep_events_and_exposure(side):
    window = Box((0, 0), (1, side))
    events = BinnedStatistic.of(Statistic.of(window, PLANE * [1.0, side]), 0)
    fine = Level.of(events, np.full(events.grid.shape, 2.0))
    small = fine.on_about(2500)
    assert 0.8 < small.grid.spacing[0] / small.grid.spacing[1] < 1.25
    assert 2000 < small.grid.size <= 2500
    assert small.counts.sum() == pytest.approx(300.0)
    np.testing.assert_allclose(small.exposure, 2.0 * small.grid.integrals(window))


def test_crowded_events_are_seen_in_a_wide_window():
    X = np.random.RandomState(1).lognormal(-0.5, 0.9, size=(500, 1))
    shares = [
        Density(Interval(0, high)).fit(X).probability(Interval(2, high)) for high in (20, 600, 3600)
    ]
    np.testing.assert_allclose(shares, np.mean(X > 2.0), atol=0.015)


@pytest.mark.usefixtures("thoroughly")
def test_events_too_crowded_for_any_grid_are_said_to_be():
    hours = RNG.randint(24, size=(2000, 1)).astype(float)
    with pytest.warns(ConvergenceWarning, match="spread them evenly over the step"):
        Intensity(Interval(0, 24), model="exp").fit(hours)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Intensity(Interval(0, 24), model="exp").fit(hours + RNG.random_sample(hours.shape))


def test_a_second_fit_leaves_nothing_of_the_first():
    model = Intensity(UNIT, covariates=lambda P: P[:, 0]).fit(LINE)
    assert "coefficients_" in vars(model)
    model.set_params(covariates=None, model="square").fit(LINE)
    assert not {"coefficients_", "mixture_", "quadrature_error_"} & set(vars(model))


@pytest.mark.parametrize("estimator", [Intensity(UNIT), SeparableIntensity(UNIT * UNIT)])
@pytest.mark.parametrize(
    "ask",
    ["predict", "predict_interval", "gradient", "expected_count", "count_interval", "score",
     "log_likelihood", "sample", "peak"],
)  # fmt: skip
def test_nothing_is_answered_before_a_fit(estimator, ask):
    if not hasattr(estimator, ask):
        return
    asked = {"sample": (), "peak": (), "expected_count": (UNIT,), "count_interval": (UNIT,)}
    with pytest.raises(NotFittedError):
        getattr(estimator, ask)(*asked.get(ask, ([[0.5]],)))


@cache
def over_hours():
    return Intensity(Interval(0, 24, unit="hour")).fit(24.0 * LINE)


@cache
def over_a_day():
    return Intensity(Cycle(24)).fit(24.0 * LINE)


def pair():
    return Statistic.of(UNIT, LINE), Statistic.of(UNIT, LINE[:9])


REFUSED = {
    "no priors": (lambda: Intensity(UNIT, ()).fit(LINE), 'kernel must be "auto" or a kernel'),
    "priors of a line in the plane": (
        lambda: Intensity(SQUARE, over_hours().mixture_).fit(PLANE),
        "mixture_ of a fit with 2 axes, got one with 1",
    ),
    "priors of another model": (
        lambda: Intensity(UNIT, over_hours().mixture_, model="square").fit(LINE),
        "got model='square'",
    ),
    "priors and a penalty": (
        lambda: Intensity(UNIT, over_hours().mixture_, 0.5).fit(LINE),
        "penalty=0.5",
    ),
    "no covariates": (
        lambda: Intensity(UNIT, covariates={}).fit(LINE),
        "at least one covariate, got {}",
    ),
    "one kernel for two": (
        lambda: SeparableIntensity(UNIT * UNIT, kernels="auto").fit(PLANE),
        "kernels must be a pair",
    ),
    "statistics of different events": (
        lambda: SeparableIntensity(UNIT * UNIT).fit(pair()),
        "a pair of Statistics of the same events",
    ),
    "a pair of arrays": (
        lambda: SeparableIntensity(UNIT * UNIT).fit((LINE, LINE)),
        "a pair of Statistics",
    ),
    "weights of other rows": (
        lambda: over_hours().score([[1.0], [2.0], [3.0]], sample_weight=[1, 2]),
        "sample_weight must have shape (3,)",
    ),
    "a number for a region": (lambda: over_hours().expected_count(3), "write Interval(low, high)"),
    "bounds for a region": (
        lambda: over_hours().expected_count((2, 20)),
        "write Interval(low, high)",
    ),
    "another unit": (
        lambda: over_hours().expected_count(Interval(0, 10, unit="min")),
        "convert them first",
    ),
    "round the end of a cycle": (
        lambda: over_a_day().expected_count(Interval(22, 26)),
        "before and after its end",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant_is_refused_in_one_sentence(name):
    call, words = REFUSED[name]
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        call()


def test_a_refused_pair_leaves_the_estimator_as_it_was():
    model = SeparableIntensity(UNIT * UNIT).fit(PLANE)
    with pytest.raises(ValueError, match="a pair"):
        model.fit(pair())
    assert model.predict(PLANE).shape == (300,)
