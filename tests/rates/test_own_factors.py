"""Similar events that trigger more or fewer: are their factors found, and how wide are they?"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hplus.rates.excitation import factor_learning
from hplus.rates.excitation.background import NO_CYCLES, Background
from hplus.rates.excitation.catalogue import in_order
from hplus.rates.excitation.conditional_rate import rate_given
from hplus.rates.excitation.drift import Drift
from hplus.rates.excitation.excitation_fit import ObservedEvents
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import NO_FACTORS, FactorLaw
from hplus.rates.excitation.factor_learning import fastest_rate, learn_factor_law
from hplus.rates.excitation.mark_effects import MarkEffects, learn_mark_law
from hplus.rates.excitation.trigger import Trigger, log_spaced

LAGS = log_spaced(0.05, 20.0, 3)
DAYS, PARENTS, OFFSPRING = 3000.0, 60, 20.0


def rate():
    """A tenth of an event a day, and events with mark 2 that trigger 20 others each."""
    weights = np.exp(-LAGS[:-1])[None, None, :, None]
    weights *= OFFSPRING / Trigger(LAGS, np.zeros(0), weights).integral()[0, 0]
    effects = MarkEffects(np.array([0.0, 2.0]), np.array([-30.0, 0.0]), 0.0, 0.0)
    background = Background((), np.array([0.0, DAYS]), np.full((1, 2), 0.1), NO_CYCLES)
    law = learn_mark_law(np.zeros(3))
    return ExcitedRate(None, Trigger(LAGS, np.zeros(0), weights), effects, background, (law,),
                       np.zeros((0, 1, 0)), Drift(DAYS, 1.0, 0.0, 1.0))  # fmt: skip


def events(rng, shape, changes=()):
    """Background events, and parents with factors of this shape; inf is no variation.

    Factors are drawn anew at the lags of `changes`.
    """
    parents = rng.uniform(0.0, DAYS, PARENTS)
    lags = np.linspace(0.0, LAGS[-1], 4001)
    cumulative = np.cumsum(rate().trigger(lags))
    cumulative /= cumulative[-1]
    ends = [0.0, *np.interp(changes, lags, cumulative), 1.0]
    children = np.zeros(0)
    for low, high in pairwise(ends):
        factors = rng.gamma(shape, 1.0 / shape, PARENTS) if np.isfinite(shape) else 1.0
        own = np.repeat(parents, rng.poisson(OFFSPRING * (high - low) * factors, PARENTS))
        at = np.interp(rng.uniform(low, high, len(own)), cumulative, lags)
        children = np.append(children, own + at)
    t = np.concatenate([parents, children[children < DAYS], rng.uniform(0.0, DAYS, 240)])
    marks = np.where(np.arange(len(t)) < PARENTS, 2.0, 0.0)
    return in_order(t, np.zeros((len(t), 0)), marks, np.zeros(len(t), dtype=int))


def learned(found):
    observed = ObservedEvents(found, found, 0.0, DAYS, None, 1)
    return learn_factor_law(observed, rate(), rate().without_factors(found, found))


def test_factors_are_found_where_events_alike_differ(rng):
    found = events(rng, 0.5)
    law = learned(found)
    # the shape is that of an event that triggers one; of these it is √20 times as large
    assert 0.25 < law.shape * np.sqrt(OFFSPRING) < 1.0
    known, without = (
        rate_given(replace(rate(), factor_law=some), found, DAYS) for some in (law, NO_FACTORS)
    )
    scores = [np.log(k.at(found)).sum() - k.integral(0.0, DAYS) for k in (known, without)]
    assert scores[0] > scores[1] + 100.0


def test_factors_that_change_with_the_time_since_the_event_are_found_to_fade():
    rng = np.random.default_rng(4)
    law = learned(events(rng, 0.5, changes=(0.3, 1.5)))
    assert law.kept < 0.5
    assert learned(events(rng, 0.5)).kept == 1.0
    later = events(rng, 0.5, changes=(0.3, 1.5))
    known, rigid = (
        rate_given(replace(rate(), factor_law=some), later, DAYS)
        for some in (law, law.replace(kept=1.0))
    )
    scores = [np.log(k.at(later)).sum() - k.integral(0.0, DAYS) for k in (known, rigid)]
    assert scores[0] > scores[1] + 10.0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_there_are_no_factors_where_events_alike_do_not_differ(seed):
    law = learned(events(np.random.default_rng(seed), np.inf))
    assert law == NO_FACTORS or law.shape * np.sqrt(OFFSPRING) > 10.0


def test_what_follows_faster_than_is_recorded_does_not_count(rng):
    found = events(rng, 0.5)
    slow = replace(rate(), factor_law=FactorLaw(1.0, 1.0, 0.0, 5.0))
    all_of_them = replace(rate(), factor_law=FactorLaw(1.0, 1.0, 0.0, np.inf))
    some, every = (rate_given(r, found, DAYS).factors for r in (slow, all_of_them))
    assert np.all(some.means < 0.9 * every.means)
    assert some.counts.sum() < 0.9 * every.counts.sum()
    # until the knot after the last one at which more than five a day are expected
    varying = some.varying
    fast = np.flatnonzero(varying.masses[0] > 5.0)[-1]
    np.testing.assert_allclose(varying.blind, LAGS[fast + 1])
    np.testing.assert_array_equal(every.varying.blind, 0.0)
    assert fastest_rate(np.arange(30.0)) == pytest.approx(1.0)
    assert fastest_rate(np.arange(3.0)) == 0.0


def test_a_law_learned_from_some_events_holds_for_as_many_as_memory_allows(rng, monkeypatch):
    found = events(rng, 0.5)
    law = learned(found)
    near = len(found) * LAGS[-1] / np.ptp(found.times)
    monkeypatch.setattr(factor_learning, "MOST_LEARNED", 0.5 * PARENTS * near)
    some = learned(found)
    assert 0.3 < some.shape / law.shape < 3.0
    assert some.vary(rate().trigger, rate().effects, found).sum() == PARENTS
    # where all trigger equally many and memory does not hold them, none has a factor
    monkeypatch.setattr(factor_learning, "MOST_PAIRS", 1.0)
    assert learned(found) == NO_FACTORS


def test_a_law_is_learned_from_those_that_trigger_most_and_some_of_the_others():
    offspring = np.array([0.1, 5.0, 0.2, 0.01, 4.0, 0.3, 0.4, 0.5])
    assert factor_learning._some_of(offspring, 8.0).tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert factor_learning._some_of(offspring, 4.0).tolist() == [0, 1, 4, 6]
    assert np.sum(offspring >= factor_learning._least_of(offspring, 2.0)) == 2
    assert factor_learning._least_of(offspring, 8.0) == factor_learning.LEAST_OFFSPRING
