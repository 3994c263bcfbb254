"""Scores: known answers, and laws of thinning."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from hplus.evaluation import EdgeCorrectedKDE, coverage, gain, mean_squared_error, paired, thin
from hplus.simulate import LAMBDA1
from hplus.windows import Box, Interval


def test_the_gain_of_a_constant_rate_is_zero_in_any_unit(rng):
    for side in (1.0, 250.0):
        window = Box((0, 0), (side, side))
        nodes, weights = window.quadrature(30)
        flat = EdgeCorrectedKDE(window, side / 5).fit(nodes, sample_weight=weights)
        assert gain(flat, window.sample(50, random_state=0)) == pytest.approx(0.0, abs=5e-3)


def test_the_gain_is_the_mean_log_of_the_density_over_the_uniform_one(rng):
    X, Z = 4.0 * rng.beta(2, 5, size=(100, 1)), 4.0 * rng.beta(2, 5, size=(100, 1))
    model = EdgeCorrectedKDE(Interval(0, 4)).fit(X)
    density, uniform = model.predict(Z) / 100.0, 1.0 / 4.0
    assert gain(model, Z) == pytest.approx(np.mean(np.log(density / uniform)))
    assert gain(model, Z) > 0.1


def test_thinning_splits_the_events_in_two(rng):
    X = rng.uniform(size=(500, 2))
    kept, rest = thin(X, 0.7, random_state=0)
    np.testing.assert_array_equal(np.unique(np.vstack([kept, rest]), axis=0), np.unique(X, axis=0))
    assert abs(len(kept) - 350) < 4.0 * np.sqrt(500 * 0.7 * 0.3)


def test_thinning_pays_no_regard_to_the_order_in_the_file():
    """Every row is kept in 7 of 10 seeds or so, the first no more often than the last."""
    X = np.arange(100.0)[:, None]
    often = np.zeros(100)
    for seed in range(400):
        often[thin(X, 0.7, random_state=seed)[0][:, 0].astype(int)] += 1.0
    assert np.abs(often / 400 - 0.7).max() < 4.5 * np.sqrt(0.21 / 400)


def test_thinning_is_repeatable():
    X = np.arange(50.0)[:, None]
    np.testing.assert_array_equal(thin(X, 0.5, random_state=3)[0], thin(X, 0.5, random_state=3)[0])


def test_paired_differences_are_those_of_the_paired_t_test(rng):
    a, b = rng.normal(1.0, 1.0, 30), rng.normal(size=30)
    difference, error = paired(a, b)
    assert difference == pytest.approx(a.mean() - b.mean())
    assert difference / error == pytest.approx(ttest_rel(a, b).statistic)


def test_coverage_counts_both_ends():
    assert coverage([0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 1.5, -0.5]) == 0.5
    assert coverage(0.0, 1.0, [0.5, 0.2, 3.0]) == pytest.approx(2 / 3)


def test_the_mean_squared_error_is_an_average_over_the_window():
    # ∫₀² (3x - x)² dx / 2 = 16/3
    error = mean_squared_error(lambda X: 3.0 * X[:, 0], lambda X: X[:, 0], Interval(0, 2), 5)
    assert error == pytest.approx(16.0 / 3.0)
    twice = LAMBDA1.scaled(2.0)
    nodes, weights = LAMBDA1.window.quadrature(300)
    oracle = weights @ LAMBDA1.rate(nodes) ** 2 / 50.0
    assert mean_squared_error(twice.rate, LAMBDA1.rate, LAMBDA1.window) == pytest.approx(oracle)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: thin([[1.0]], 1.0), "share must be a number between 0 and 1, got 1.0"),
        (lambda: thin([1.0], 0.5), "X must have two dimensions"),
        (lambda: paired([1.0], [2.0]), "a and b must have one score for each of the same splits"),
        (lambda: paired([1.0, 2.0], [2.0]), r"got shapes \(2,\) and \(1,\)"),
        (lambda: paired([1.0, -np.inf], [2.0, 1.0]), "a must contain only finite numbers"),
        (lambda: coverage([0, 0], [1, 1], [1, 1, 1]), r"must have the same shape, got \(2,\)"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
