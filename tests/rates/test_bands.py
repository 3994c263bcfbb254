"""Laws of every fitted rate: one function, its integrals, bands on both scales, draws of counts."""

import numpy as np
import pytest

from hplus import Intensity, Interval, SeparableIntensity
from hplus.rates.bands import LogBand, band_of_few
from hplus.rates.separable import SeparableRate
from hplus.rates.stacked_rate import StackedRate

UNIT = Interval(0, 1)
SQUARE = UNIT * UNIT
X = np.random.RandomState(0).beta(2, 3, size=(150, 2))


def tree(X):
    return Intensity(UNIT, model="tree").fit(X).rate_


def stack(X):
    """A smooth rate and a rate by trees, of equal weight."""
    smooth = Intensity(UNIT, model="exp").fit(X).rate_
    return StackedRate(smooth, ((0.5, smooth), (0.5, tree(X))))


RATES = {
    "grid": lambda: (UNIT, Intensity(UNIT, model="exp").fit(X[:, :1]).rate_),
    "square": lambda: (UNIT, Intensity(UNIT, model="square").fit(X[:, :1]).rate_),
    "sos": lambda: (UNIT, Intensity(UNIT, model="sos").fit(X[:60, :1]).rate_),
    "tree": lambda: (UNIT, tree(X[:, :1])),
    "stack": lambda: (UNIT, stack(X[:, :1])),
    "separable of trees": lambda: (
        SQUARE,
        SeparableRate(SQUARE, tree(X[:, :1]), stack(X[:, 1:]), 150),
    ),
    "separable": lambda: (SQUARE, SeparableIntensity(SQUARE).fit(X).rate_),
}


@pytest.fixture(scope="module", params=RATES)
def fitted(request):
    """A window and a rate on it."""
    return RATES[request.param]()


def test_the_rate_lies_in_its_interval_at_nearly_every_point(fitted):
    window, rate = fitted
    Z = window.sample(200, random_state=1)
    low, high = rate.interval(Z, 0.95)
    assert np.all((low >= 0.0) & (low < high))
    assert np.mean((low <= rate.function(Z)) & (rate.function(Z) <= high)) > 0.95


def test_the_band_on_the_log_scale_is_the_interval(fitted):
    window, rate = fitted
    Z = window.sample(50, random_state=2)
    low, high = rate.interval(Z, 0.8)
    seen = low > 1e-30 * high
    for bound, expected in zip(rate.log_band(Z, 0.8).bounds, (low, high), strict=True):
        np.testing.assert_allclose(bound[seen], expected[seen], rtol=1e-9)


def test_draws_of_a_count_are_spread_around_the_integral(fitted):
    window, rate = fitted
    (draws,) = rate.count_draws([window])
    assert draws.ndim == 1
    assert np.all(draws >= 0.0)
    assert np.median(draws) == pytest.approx(rate.integral(), rel=0.2)
    assert rate.integrals([window]) == pytest.approx([rate.integral()])


def test_samples_lie_in_the_window_and_the_peak_is_as_high_as_the_rate_there(fitted):
    window, rate = fitted
    assert window.contains(rate.on_grid.sample(30, np.random.RandomState(0))).all()
    point, top = rate.on_grid.peak()
    assert rate.function(point[None])[0] == pytest.approx(top, rel=1e-2)
    assert rate.result.relative_gap < 1e-6


def test_a_rate_times_its_inverse_is_centered_at_one():
    band = LogBand(np.array([0.5, 2.0]), np.array([1.0, 0.1]), np.array([2.0, 0.3]))
    np.testing.assert_allclose(band.inverse().bounds[0], 1.0 / band.bounds[1])
    product = band.times(band.inverse())
    np.testing.assert_array_equal(product.center, 0.0)
    np.testing.assert_allclose(product.below, np.hypot(band.below, band.above))
    np.testing.assert_allclose(product.above, product.below)


def test_a_band_of_few_draws_is_no_narrower_than_a_lognormal_one(rng):
    held = 0
    for _ in range(400):
        estimate = np.exp(0.1 * rng.standard_normal())
        draws = estimate * np.exp(0.1 * rng.standard_normal(50))
        low, high = band_of_few(draws / estimate, 0.9)
        assert 0.0 < low <= 1.0 <= high < np.inf
        held += estimate * low <= 1.0 <= estimate * high
    assert 0.88 <= held / 400 <= 0.96
    low, high = band_of_few(np.append(np.zeros(10), np.ones(40)), 0.9)
    assert low == 0.0 < 1.0 < high < np.inf
