"""Counts that vary from trial to trial: how much is known of that, factors, local variation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma, nbinom

from hplus import Interval, Statistic
from hplus.rates.trial_variation import VARIANCES, TrialVariation, learn_trial_variation

RNG = np.random.default_rng(0)


def certain(variance, trials=1e9):
    return TrialVariation(trials, np.array([variance]), np.ones(1))


def test_the_posterior_is_that_of_negative_binomial_counts():
    counts = RNG.poisson(30.0 * RNG.gamma(4.0, 0.25, 40))
    found = learn_trial_variation(counts[counts > 0], 40.0, None)
    m = counts.mean()
    logs = np.array([nbinom.logpmf(counts, 1 / v, 1 / (1 + v * m)).sum() for v in VARIANCES])
    weights = np.exp(logs - logs.max()) * np.sqrt(VARIANCES)  # a uniform deviation
    np.testing.assert_allclose(found.probabilities, weights / weights.sum(), atol=1e-9)
    assert 0.15 < found.variance < 0.4


def test_trials_without_events_count():
    counts = np.full(20, 10)
    all_, some = (learn_trial_variation(counts, many, None) for many in (20.0, 40.0))
    assert all_.variance < 0.02 < 0.5 < some.variance


@pytest.mark.parametrize("many", [1.0, 5.0, 0.5])
@pytest.mark.parametrize("variance", [0.02, 0.5, 3.0])
def test_the_level_of_several_trials_is_a_mean_of_independent_ones(variance, many):
    found = np.sort(certain(variance).factors(many))
    many = max(many, 1.0)  # a part of a trial has the level of all of it
    law = gamma(many / variance, scale=variance / many)
    assert found.mean() == pytest.approx(1.0)
    assert found.var() == pytest.approx(variance / many, rel=0.1)
    np.testing.assert_allclose(
        found[[25, 256, 486]], law.ppf([0.05, 0.5, 0.95]), rtol=0.1, atol=0.02
    )


def test_the_level_of_few_trials_is_not_known_well():
    few, many = (certain(0.5, trials).factors(1000.0).var() for trials in (5.0, 500.0))
    assert few == pytest.approx(0.1 + 0.5e-3, rel=0.15)
    assert many < 0.1 * few


def test_independent_trials_vary_hardly_more_than_by_chance():
    found = [
        learn_trial_variation(RNG.poisson(40.0, 60), 60.0, None).variance * 40.0 for _ in range(20)
    ]
    assert np.mean(found) < 0.2  # beyond the variance of a Poisson count, in its units


@pytest.mark.parametrize(("spread", "least", "most"), [(0.0, 0.0, 0.15), (40.0, 0.5, 5.0)])
def test_a_latency_that_varies_is_local_variation(spread, least, most):
    trials = RNG.random(60)
    window = Interval(0, 500, unit="ms") * Interval(0, 1, unit="trial")
    delays, counts = spread * RNG.normal(size=60), RNG.poisson(40.0, 60)
    t = 150.0 + np.repeat(delays, counts) + 50.0 * RNG.normal(size=counts.sum())
    X = np.column_stack([np.clip(t, 0.0, 500.0), np.repeat(trials, counts)])
    found = learn_trial_variation(counts, 60.0, Statistic.of(window, X))
    assert least <= float(found.local.excess(np.array([5.0]), 1.0)[0]) <= most


def test_few_trials_tell_nothing():
    assert learn_trial_variation(np.array([3, 5, 4]), 4.0, None) is None
