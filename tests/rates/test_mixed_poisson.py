"""Quantiles of counts with an uncertain mean: the oracle is scipy's Poisson law."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import poisson

from hplus.rates.mixed_poisson import LARGE_MEAN, mixed_poisson_quantile

means = st.lists(st.floats(0.0, 3e4) | st.floats(0.0, 5.0), min_size=1, max_size=12)


@given(means, st.floats(1e-9, 1.0 - 1e-9))
@example([0.0], 0.5)
@example([1e-320, 3.0], 0.05)
@example([0.4, 4e4], 0.5)
@example([5.0, 4.0 * LARGE_MEAN], 0.9)
def test_a_quantile_is_the_smallest_count_that_is_likely_enough(means, p):
    k = mixed_poisson_quantile(np.array(means), p)
    below, here = (poisson.cdf(count, means).mean() for count in (k - 1.0, k))
    assert k >= 0.0
    assert here >= p * (1.0 - 1e-11)
    assert k == 0.0 or below < p * (1.0 + 1e-11)


@pytest.mark.parametrize("p", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("mean", [0.0, 0.3, 12.0, 4000.0, 3.0 * LARGE_MEAN, 1e15])
def test_quantiles_of_a_mixture_of_one_are_those_of_the_poisson_law(p, mean):
    found = mixed_poisson_quantile(np.full(3, mean), p)
    assert found == pytest.approx(max(poisson.ppf(p, mean), 0.0), rel=1e-10 if mean > 1e9 else 0.0)


def test_rows_are_independent_and_the_order_of_means_does_not_matter(rng):
    means = np.exp(rng.normal(0.0, 4.0, (3, 40, 16)))
    found = mixed_poisson_quantile(means, 0.9)
    assert found.shape == (3, 40)
    np.testing.assert_array_equal(found[1, 7], mixed_poisson_quantile(means[1, 7, ::-1], 0.9))
    assert mixed_poisson_quantile(np.empty((0, 4)), 0.9).shape == (0,)
