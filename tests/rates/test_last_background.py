"""Which background a self-exciting rate has in the end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.spatial import cKDTree

from hplus import Box
from hplus.rates.excitation.catalogue import in_order
from hplus.rates.excitation.excitation_fit import ObservedEvents, with_weights
from hplus.rates.excitation.last_background import with_better_place
from hplus.rates.excitation.learned_excitation import Knots, first_fit
from hplus.rates.excitation.learned_places import LearnedPlace, with_places
from hplus.rates.excitation.trigger import log_spaced

RADIUS, HIGH = 0.02, 50.0


@dataclass(frozen=True)
class AroundEvents:
    """High within a radius of the events that were learned from, and 1 elsewhere."""

    places: np.ndarray

    def function(self, x):
        near = cKDTree(self.places).query(x)[0] <= RADIUS
        return np.where(near, HIGH, 1.0)

    def integral(self):
        grid = (np.stack(np.meshgrid(*[np.arange(200)] * 2), axis=-1).reshape(-1, 2) + 0.5) / 200
        return float(self.function(grid).mean())


@dataclass(frozen=True)
class Uniform:
    """1 everywhere."""

    def function(self, x):
        return np.ones(len(x))

    def integral(self):
        return 1.0


def around(places, weights):
    def again(places, weights):
        return AroundEvents(places[weights > 0.5])

    return LearnedPlace(again(places, weights), again)


def uniform(places, weights):
    return LearnedPlace(Uniform(), lambda places, weights: Uniform())


def fitted(rng, places, until=50.0):
    times = np.sort(rng.uniform(0.0, until, len(places)))
    events = in_order(times, places, np.zeros(len(places)), np.zeros(len(places), dtype=int))
    observed = ObservedEvents(events, events, 0.0, 50.0, Box([0, 0], [1, 1]), 1)
    knots = Knots(log_spaced(0.01, 10.0, 2.0), log_spaced(0.01, 0.5, 2.0))
    fit = with_places(observed, first_fit(observed, knots), uniform, np.ones(len(places)))
    return observed, with_weights(observed, fit, learn=False)


@pytest.mark.parametrize("order", [1, -1])
def test_the_background_is_the_one_that_predicts_the_other_half_of_the_time(rng, order):
    learners = [around, uniform][::order]
    # the events that were learned from are always around themselves
    anywhere = with_better_place(*fitted(rng, rng.random((200, 2))), learners)
    assert anywhere.background.places == (Uniform(),)
    sites = rng.choice(rng.random((10, 2)), 200)
    at_sites = with_better_place(*fitted(rng, sites), learners)
    assert isinstance(at_sites.background.places[0], AroundEvents)


@pytest.mark.parametrize("times", ["few", "early"])
def test_a_background_that_no_other_half_predicts_is_the_first(rng, times):
    observed, fit = fitted(rng, rng.random((40, 2)))
    if times == "early":
        observed, fit = fitted(rng, rng.random((200, 2)), until=20.0)
    kept = with_better_place(observed, fit, [uniform, around])
    assert kept.background.places == (Uniform(),)


def test_the_last_background_is_learned_from_the_shares_of_the_one_before_it(rng):
    observed, fit = fitted(rng, rng.random((100, 2)))
    some = (np.arange(100) < 30).astype(float)
    last = with_better_place(observed, replace(fit, shares=some), [around])
    assert_array_equal(last.background.places[0].places, observed.inside.places[:30])
    assert_array_equal(last.densities, fit.densities)
