"""The ratio of two rates: symmetric, never negative, and inside its band as often as promised."""

from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from hplus import Gaussian, Intensity, Interval, Polygon, StreamingIntensity
from hplus.estimators.prior_parameters import RATE_MODELS
from hplus.simulate import poisson

pytestmark = pytest.mark.usefixtures("few_nodes", "few_parts")

LINE = Interval(0, 10, unit="h")
WINDOWS = {"line": LINE, "triangle": Polygon([[0, 0], [3, 0], [0, 3]])}
CASES = [
    (name, model)
    for name in WINDOWS
    for model in RATE_MODELS
    if model in ("exp", "tree") or name == "line"
]
each = pytest.mark.parametrize(("name", "model"), CASES)


@cache
def pair(name, model):
    """Rates of two patterns, the first observed four times as long as the second."""
    window = WINDOWS[name]
    prior = () if model in ("auto", "tree") else (Gaussian(1.0), 1.0)
    a, b = (Intensity(window, *prior, model=model) for _ in range(2))
    a.fit(window.sample(80, random_state=1), exposure=4.0)
    return a, b.fit(window.sample(40, random_state=2), exposure=1.0)


@each
def test_the_ratio_is_that_of_the_rates_and_inside_a_band_that_widens_with_its_level(name, model):
    a, b = pair(name, model)
    X, ratio = WINDOWS[name].sample(50, random_state=3), a / b
    np.testing.assert_allclose(ratio.predict(X), a.predict(X) / b.predict(X), rtol=1e-12)
    (low, high), (lower, higher) = (ratio.predict_interval(X, level) for level in (0.5, 0.95))
    assert np.all((lower > 0.0) & (lower < low) & (low < high) & (high < higher))
    assert np.isfinite(higher).all()
    np.testing.assert_array_equal(ratio.differs(X, 0.5), (low > 1.0) | (high < 1.0))


@each
def test_bounds_stay_positive_and_finite_where_next_to_nothing_is_known(name, model):
    a, b = pair(name, model)
    X = WINDOWS[name].sample(50, random_state=3)
    low, high = (a / b).predict_interval(X, 1.0 - 1e-12)
    assert np.all((low > 0.0) & (low < high) & (high < np.inf))


@each
def test_the_ratio_the_other_way_round_is_its_inverse_and_so_are_its_bounds(name, model):
    a, b = pair(name, model)
    X, parts = WINDOWS[name].sample(50, random_state=3), [WINDOWS[name]]
    np.testing.assert_allclose((a / b).predict(X) * (b / a).predict(X), 1.0, rtol=1e-12)
    np.testing.assert_allclose((a / b).count_ratio(parts) * (b / a).count_ratio(parts), 1.0)
    for bounds in (
        lambda ratio: ratio.predict_interval(X),
        lambda ratio: ratio.count_ratio_interval(parts),
    ):
        (low, high), (other_low, other_high) = bounds(a / b), bounds(b / a)
        np.testing.assert_allclose(low * other_high, 1.0, rtol=1e-10)
        np.testing.assert_allclose(high * other_low, 1.0, rtol=1e-10)


@each
def test_a_rate_over_itself_is_one_and_does_not_differ(name, model):
    a, _ = pair(name, model)
    X = WINDOWS[name].sample(50, random_state=3)
    np.testing.assert_array_equal((a / a).predict(X), 1.0)
    assert (a / a).count_ratio(WINDOWS[name]) == 1.0
    assert not (a / a).differs(X, 0.5).any()


@each
def test_the_ratio_of_all_events_is_that_of_their_numbers_per_exposure(name, model):
    a, b = pair(name, model)
    assert (a / b).count_ratio(WINDOWS[name]) == pytest.approx((80 / 4.0) / 40, rel=1e-6)
    low, high = (a / b).count_ratio_interval(WINDOWS[name], 0.9)
    # the log of a count of n has a deviation of 1/√n
    width = 2.0 * 1.645 * np.sqrt(1.0 / 80 + 1.0 / 40)
    assert low < 0.5 < high
    assert np.log(high / low) == pytest.approx(width, rel=0.5)


def test_bands_of_two_rates_on_grids_are_those_of_a_difference_of_normal_log_rates():
    a, b = pair("line", "exp")
    X = np.linspace(0, 10, 30)[:, None]
    (a_low, a_high), (b_low, b_high) = (np.log(m.predict_interval(X, 0.8)) for m in (a, b))
    middle = 0.5 * (a_low + a_high - b_low - b_high)
    reach = 0.5 * np.sqrt((a_high - a_low) ** 2 + (b_high - b_low) ** 2)
    low, high = np.log((a / b).predict_interval(X, 0.8))
    np.testing.assert_allclose(low, middle - reach, atol=1e-10)
    np.testing.assert_allclose(high, middle + reach, atol=1e-10)


def test_bands_contain_the_true_ratio_about_as_often_as_they_should():
    """Rates 30 + 20 sin x and 25, so that their ratio goes from 0.4 to 2."""
    X, part = np.linspace(0.5, 9.5, 19)[:, None], Interval(0, 3)
    truth = (30.0 + 20.0 * np.sin(X[:, 0])) / 25.0
    # ∫₀³ (30 + 20 sin x) dx over ∫₀³ 25 dx
    whole = (90.0 + 20.0 * (1.0 - np.cos(3.0))) / 75.0
    at_points, in_part = [], []
    for seed in range(5):
        a = poisson(lambda Z: 30.0 + 20.0 * np.sin(Z[:, 0]), LINE, random_state=seed)
        b = poisson(lambda Z: np.full(len(Z), 25.0), LINE, random_state=100 + seed)
        ratio = Intensity(LINE).fit(a) / Intensity(LINE).fit(b)
        low, high = ratio.predict_interval(X, 0.9)
        at_points.append(np.mean((low < truth) & (truth < high)))
        low, high = ratio.count_ratio_interval(part, 0.9)
        in_part.append(low < whole < high)
    assert 0.8 <= np.mean(at_points) <= 1.0
    assert sum(in_part) >= 4


def test_where_the_true_ratio_is_far_from_one_it_is_seen_to_differ():
    a = poisson(lambda X: np.where(X[:, 0] < 5.0, 80.0, 20.0), LINE, random_state=0)
    b = poisson(lambda X: np.full(len(X), 20.0), LINE, random_state=1)
    ratio = Intensity(LINE).fit(a) / Intensity(LINE).fit(b)
    left, right = ratio.differs([[2.5], [7.5]])
    assert left
    assert not right
    low, _ = ratio.count_ratio_interval([Interval(0, 5), Interval(5, 10)])
    assert low[0] > 2.5 > 1.5 > low[1]


def test_regions_outside_the_window_have_no_ratio():
    a, b = pair("line", "exp")
    ratio, away = a / b, [Interval(20, 30), LINE]
    assert np.isnan(ratio.count_ratio(away)).tolist() == [True, False]
    for end in ratio.count_ratio_interval(away):
        assert np.isnan(end).tolist() == [True, False]
    assert [end.shape for end in ratio.count_ratio_interval([])] == [(0,), (0,)]


def test_only_fitted_rates_of_one_window_are_divided():
    a, b = pair("line", "exp")
    with pytest.raises(NotFittedError, match="call fit first"):
        a / Intensity(LINE)
    with pytest.raises(NotFittedError, match="call fit first"):
        Intensity(LINE) / a
    with pytest.raises(ValueError, match="rates must have the same window to be divided, got Int"):
        a / pair("triangle", "exp")[0]
    for other in (2.0, StreamingIntensity(LINE)):
        with pytest.raises(TypeError, match="unsupported operand"):
            a / other
    with pytest.raises(ValueError, match="level must be a number between 0 and 1, got 1"):
        (a / b).differs([[1.0]], level=1)
    assert repr(a / b) == "RateRatio(window=Interval(0.0, high=10.0, unit='h'))"
