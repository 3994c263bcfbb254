"""Laws of the weights of several rates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from hplus import Intensity, Interval
from hplus.rates.stacking import MIN_GAIN_NATS, stacking_weights


def different(seed, m=3, n=400):
    """Densities of m models, the first of them poor, at n places, and how many events are there."""
    rng = np.random.default_rng(seed)
    densities = rng.gamma(2.0, 1.0, (m, n))
    densities[0] *= 0.2
    return densities, rng.integers(1, 4, n).astype(float)


def log_likelihood(weights, densities, counts):
    return float(counts @ np.log(weights @ densities))


def best_on_the_simplex(densities, counts):
    m = len(densities)
    found = minimize(
        lambda w: -log_likelihood(w, densities, counts) / counts.sum(),
        np.full(m, 1.0 / m),
        method="SLSQP",
        bounds=[(1e-9, 1.0)] * m,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
        options={"ftol": 1e-12},
    )
    return found.x


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_no_mixture_predicts_better(seed, m):
    densities, counts = different(seed, m)
    weights, best = stacking_weights(densities, counts), best_on_the_simplex(densities, counts)
    assert np.all(weights >= 0.0)
    assert weights.sum() == pytest.approx(1.0)
    lost = log_likelihood(best, densities, counts) - log_likelihood(weights, densities, counts)
    assert lost < 2e-3 * counts.sum()
    np.testing.assert_allclose(weights, best, atol=0.04)


def test_the_right_model_gets_the_weight_of_its_share(rng):
    x = np.where(
        rng.random(20_000) < 0.3, rng.normal(2.0, 1.0, 20_000), rng.normal(-2.0, 1, 20_000)
    )
    densities = np.exp(-0.5 * (x - np.array([[-2.0], [2.0]])) ** 2)
    weights = stacking_weights(densities, np.ones(len(x)))
    np.testing.assert_allclose(weights, [0.7, 0.3], atol=0.02)


def test_a_gain_of_one_standard_error_is_not_one_of_two(rng):
    n = 400
    gains = rng.normal(size=n)
    gains += 1.5 / np.sqrt(n) * gains.std() - gains.mean()  # one and a half standard errors
    densities = np.exp(0.2 * np.stack([np.zeros(n), gains]))
    assert stacking_weights(densities, np.ones(n))[1] > 0.5
    assert stacking_weights(densities, np.ones(n), 2.0)[1] == 0.0


def test_a_model_that_adds_little_to_a_better_one_gets_no_weight():
    n = 200
    better = np.full(n, 2.0)
    lucky = 0.98 * better
    lucky[:3] *= 3.0  # with a quarter of the weight it would gain 0.2 nats
    weights = stacking_weights(np.stack([np.ones(n), better, lucky]), np.ones(n))
    np.testing.assert_array_equal(weights, [0.0, 1.0, 0.0])


def test_the_first_model_keeps_all_weight_unless_others_are_clearly_better(rng):
    n, truth = 100, np.ones(300)
    chance = [stacking_weights(_noisy(truth[:n], rng), np.ones(n))[0] for _ in range(100)]
    assert np.mean(np.array(chance) == 1.0) > 0.95
    better = np.exp(MIN_GAIN_NATS / n * 1.02)
    for factor, first in ((better, 0.0), (1.0 / better, 1.0), (better**0.9, 1.0)):
        densities = np.stack([truth[:n], factor * truth[:n]])
        assert stacking_weights(densities, np.ones(n))[0] == pytest.approx(first, abs=1e-3)


def _noisy(first, rng):
    """A model, and two that differ from it at random and predict no better."""
    noise = rng.normal(0.0, 0.2, (2, len(first)))
    return np.stack([first, *(first * np.exp(noise - 0.02))])


def test_order_of_events_and_units_do_not_matter(rng):
    densities, counts = different(3)
    order, weights = rng.permutation(len(counts)), stacking_weights(densities, counts)
    np.testing.assert_allclose(stacking_weights(densities[:, order], counts[order]), weights)
    np.testing.assert_allclose(stacking_weights(1e5 * densities, counts), weights)
    twice = np.repeat(densities, 2, axis=1), np.repeat(0.5 * counts, 2)
    np.testing.assert_allclose(stacking_weights(*twice), weights)


def test_a_copy_of_the_first_model_gets_nothing():
    densities, counts = different(4, 2)
    copied = np.stack([*densities, densities[0] * (1.0 + 1e-9)])
    np.testing.assert_allclose(
        stacking_weights(copied, counts), [*stacking_weights(densities, counts), 0.0]
    )
    np.testing.assert_array_equal(stacking_weights(densities[[0, 0, 0]], counts), [1.0, 0.0, 0.0])


@pytest.mark.usefixtures("thoroughly")
def test_addresses_that_come_back_do_not_favour_the_cells_of_trees():
    rng, window, n = np.random.RandomState(0), Interval(0, 100), 1000
    addresses, shares = 100 * rng.beta(2, 3, (300, 1)), rng.dirichlet(np.ones(300))
    X, later = (addresses[rng.choice(300, n, p=shares)] for _ in range(2))
    both, trees = (Intensity(window, model=model).fit(X) for model in ("auto", "tree"))
    assert both.positions_.spacing[0] > 0.0
    moved = both.positions_.spread(window, later, rng)
    gain = float(np.mean(np.log(both.predict(moved) / trees.predict(moved))))
    assert both.weights_["exp"] > 0.5
    assert gain > 0.2
