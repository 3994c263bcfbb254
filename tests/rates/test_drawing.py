"""Equally likely values of a rate: what they tell of it without one of its events."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma

from hplus import Gaussian, Intensity, Interval
from hplus.rates.drawing import rates_without

LINE = Interval(0.0, 1.0)


class GammaRate:
    """A rate that is a gamma variable of this shape and mean 1 at every point."""

    def __init__(self, shape):
        self.shape = shape

    def rate_draws(self, X, k):
        p = (np.arange(k) + 0.5) / k
        return np.tile(gamma.ppf(p, self.shape, scale=1.0 / self.shape), (len(X), 1))


@pytest.mark.parametrize("shape", [5.0, 50.0])
def test_without_an_event_a_gamma_variable_has_one_less(shape):
    found = rates_without(GammaRate(shape), np.zeros((3, 1)))
    np.testing.assert_allclose(found, (shape - 1.0) / shape, rtol=0.01)


def test_values_that_underflow_leave_a_finite_rate():
    assert np.all(rates_without(GammaRate(1e-3), np.zeros((2, 1))) > 0.0)


@pytest.mark.usefixtures("thoroughly")
@pytest.mark.parametrize(
    ("model", "most"),
    [(Intensity(LINE, kernel=Gaussian(0.1), penalty=0.1), 0.05),
     (Intensity(LINE, model="tree", random_state=0), 0.15)],
    ids=["exp", "tree"],
)  # fmt: skip
def test_the_rate_without_an_event_is_that_of_a_fit_to_the_others(model, most):
    rng = np.random.default_rng(1)
    X = np.append(rng.beta(2.0, 4.0, 60), rng.uniform(0.80, 0.82, 20))[:, None]
    some = np.arange(0, 80, 10)
    rate = model.fit(X).rate_
    near = np.log(rates_without(rate, X[some]))
    inside = np.log(rate.function(X[some]))
    without = [np.log(model.fit(np.delete(X, i, axis=0)).predict(X[i : i + 1])[0]) for i in some]
    assert np.mean(inside - without) > most
    assert abs(np.mean(near - without)) < most
