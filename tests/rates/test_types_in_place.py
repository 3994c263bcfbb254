"""Laws of self-exciting rates of two types with marks in the plane, whatever their numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hplus import Box
from hplus.rates.excitation import parents
from hplus.rates.excitation.alternation import with_productivity
from hplus.rates.excitation.background import NO_CYCLES, Background
from hplus.rates.excitation.catalogue import Catalogue, in_order
from hplus.rates.excitation.conditional_rate import rate_given, under_draws
from hplus.rates.excitation.descendants import simulate
from hplus.rates.excitation.drift import Drift
from hplus.rates.excitation.excitation_fit import (
    ObservedEvents,
    parts_of,
    weighed,
    with_weights,
)
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.expected_cells import expected_cells
from hplus.rates.excitation.factor_law import NO_FACTORS, FactorLaw
from hplus.rates.excitation.learned_excitation import Knots, first_fit
from hplus.rates.excitation.learned_places import rates_at_events
from hplus.rates.excitation.mark_effects import MarkEffects, learn_mark_law
from hplus.rates.excitation.parents import find_parents
from hplus.rates.excitation.past_events import past_of
from hplus.rates.excitation.trigger import Trigger, log_spaced

SQUARE, UNTIL = Box([0.0, 0.0], [1.0, 1.0]), 50.0
LAGS, FAR = log_spaced(0.05, 10.0, 2), log_spaced(0.02, 0.5, 3)
EFFECTS = MarkEffects(np.array([0.0, 1.0, 2.0]), np.array([-1.0, 0.1, 0.8]), 0.4, 1.0)
SOME_VARY = FactorLaw(0.2, 0.5, 0.5, np.inf)
BRANCHING = np.array([[0.2, 0.5], [0.05, 0.1]])


@dataclass(frozen=True)
class Slope:
    """A rate on the square that rises from 1 - slope at the left to 1 + slope at the right."""

    slope: float

    @property
    def on_grid(self):
        return self

    def function(self, at):
        return 1.0 + self.slope * (2.0 * at[:, 0] - 1.0)

    def integral(self):
        return 1.0

    def integrals(self, boxes):
        ends = np.array([box.bounds() for box in boxes])
        x = ends[..., 0] + self.slope * (ends[..., 0] ** 2 - ends[..., 0])
        return np.diff(x)[:, 0] * np.diff(ends[..., 1])[:, 0]

    def sample(self, n, state):
        u, s = state.random_sample((n, 2)), self.slope
        x = (s - 1.0 + np.sqrt((1.0 - s) ** 2 + 4.0 * s * u[:, 0])) / (2.0 * s)
        return np.column_stack([x, u[:, 1]])


def catalogue(rng, n=80):
    """Events of two types, of which the second has larger marks."""
    types = rng.integers(0, 2, n)
    marks = rng.uniform(0.0, 1.5, n) + types
    return in_order(np.sort(rng.uniform(-5.0, UNTIL, n)), rng.random((n, 2)), marks, types)


def rate(rng, events, law=NO_FACTORS):
    """Each type triggers others of each type, as often as BRANCHING has it with a mark of 1."""
    weights = rng.random((2, 2, len(LAGS) - 1, len(FAR) - 1))
    weights /= LAGS[:-1, None] * FAR[:-1] ** 2
    weights *= (BRANCHING / Trigger(LAGS, FAR, weights).integral())[..., None, None]
    levels = np.array([[0.6, 0.3], [0.2, 0.5]])
    background = Background((Slope(0.9), Slope(-0.7)), np.array([0.0, UNTIL]), levels, NO_CYCLES)
    laws = tuple(learn_mark_law(events.marks[events.types == kind]) for kind in range(2))
    known = ExcitedRate(SQUARE, Trigger(LAGS, FAR, weights), EFFECTS, background, laws,
                        np.zeros((0, 2, 0)), Drift(UNTIL, 1.0, 0.0, 1.0), law)  # fmt: skip
    return replace(known, draws=log_weights(known)[None])


def log_weights(rate):
    """Of each type: the levels, then what the events of each type trigger of it."""
    each = zip(rate.background.levels, np.moveaxis(rate.trigger.weights, 1, 0), strict=True)
    return np.log([np.append(levels, trigger.ravel()) for levels, trigger in each])


@pytest.fixture
def events(rng):
    return catalogue(rng)


@pytest.fixture(params=[NO_FACTORS, SOME_VARY], ids=["alike", "with factors"])
def known(request, rng, events):
    return rate_given(rate(rng, events, request.param), events, UNTIL)


def triggered(known, start, end):
    """How many events of all types are triggered between two times."""
    return known.integral(start, end) - known.background(start, end).sum()


def test_the_parts_of_a_fit_are_those_of_its_rate(known, events):
    observed = ObservedEvents(events, events.since(0.0), 0.0, UNTIL, SQUARE, 2)
    rate, inside = known.rate, observed.inside
    densities = np.ones(len(inside))
    for kind, place in enumerate(rate.background.places):
        own = inside.types == kind
        densities[own] = place.function(inside.places[own])
    learned = {"trigger": rate.trigger, "effects": EFFECTS, "background": rate.background}
    fit = replace(first_fit(observed, Knots(LAGS, FAR)), **learned, densities=densities)
    fit = replace(fit, factors=known.factors)
    parts, weights = [parts_of(observed, fit, k) for k in range(2)], np.exp(log_weights(rate))
    for kind, own in enumerate(parts):
        at = inside.picked(inside.types == kind)
        assert_allclose(own.rows @ weights[kind], known.at(at), rtol=1e-9)
    sums = np.sum([p.integrals[2:] @ w[2:] for p, w in zip(parts, weights, strict=True)])
    assert sums == pytest.approx(triggered(known, 0.0, UNTIL), rel=1e-9)


def test_a_draw_that_is_the_mode_has_its_trigger_and_levels(rng, events):
    mode = rate(rng, events)
    drawn = mode.drawn(0)
    assert_allclose(drawn.trigger.weights, mode.trigger.weights)
    assert_allclose(drawn.background.levels, mode.background.levels)
    assert_allclose(drawn.trigger.integral(), BRANCHING)


def test_draws_that_trigger_twice_as_much_expect_twice_as_many(known):
    twice = log_weights(known.rate)
    twice[:, 2:] += np.log(2.0)
    learned = replace(known.rate, draws=np.stack([log_weights(known.rate), twice]))
    same, more = under_draws(replace(known, rate=learned), UNTIL)
    for start, end in ((0.0, UNTIL), (UNTIL, UNTIL + 5.0)):
        assert triggered(same, start, end) == pytest.approx(triggered(known, start, end))
        assert triggered(more, start, end) == pytest.approx(2.0 * triggered(known, start, end))


def test_counts_of_cells_are_integrals_of_the_rate_over_them(known):
    start, end, side = UNTIL, UNTIL + 0.5, (np.arange(40) + 0.5) / 40
    times, x, y = np.meshgrid(start + 0.5 * side[::4], side, side, indexing="ij")
    at, none = np.column_stack([x.ravel(), y.ravel()]), np.zeros(x.size)
    each = [Catalogue(times.ravel(), at, none, np.full(x.size, kind)) for kind in range(2)]
    rates = np.sum([known.at(targets) for targets in each], axis=0)
    sums = np.histogram2d(*at.T, bins=2, range=[[0, 1]] * 2, weights=rates)[0]
    exact = sums * (end - start) / x.size
    cells = [Box([x, y], [x + 0.5, y + 0.5]) for x in (0.0, 0.5) for y in (0.0, 0.5)]
    found = known.integrals([(cell, start, end) for cell in cells])
    assert_allclose(found.reshape(2, 2), exact, rtol=0.02)
    assert_allclose(expected_cells(known, start, end, (2, 2)), exact, rtol=0.02)


def test_an_event_has_one_parent_or_none(known, monkeypatch):
    monkeypatch.setattr(parents, "LEAST_PROBABILITY", 0.0)
    found = find_parents(known, 0.0)
    total = found.background.copy()
    np.add.at(total, found.children - found.events[0], found.probabilities)
    assert_allclose(total, 1.0, rtol=1e-9)
    assert 0.05 < 1.0 - found.background.mean() < 0.95


def test_what_a_large_mark_triggers_nearby_is_simulated_as_far_away_as_expected(rng, events):
    """Only the large one triggers others, at up to 0.7: the reach of mark 2 is e^0.4."""
    alone = replace(rate(rng, events), effects=EFFECTS.replace(logs=[-60.0, -30.0, 5.0]))
    alone = alone.at_level(1e-9)
    one = Catalogue(np.zeros(1), np.full((1, 2), 0.5), np.full(1, 2.0), np.zeros(1, dtype=int))
    alone = replace(alone, mark_laws=(learn_mark_law(np.zeros(3)),) * 2)
    known = rate_given(alone, one, 0.0)
    found = simulate(alone, past_of(known, 0.0), 0.0, 10.0, 200, rng).events.places
    far = np.abs(found - 0.5).max(axis=1)
    for half in (0.05, 0.1, 0.2, 0.5):
        nearby = Box([0.5 - half] * 2, [0.5 + half] * 2)
        expected = known.integrals([(nearby, 0.0, 10.0)])[0]
        assert np.sum(far < half) / 200 == pytest.approx(expected, rel=0.03)


def test_an_average_event_of_each_type_triggers_what_its_events_do_together(rng, events):
    some = rate(rng, events)
    each = some.effects.productivity(events.marks)[:, None] * BRANCHING[events.types]
    counts = np.bincount(events.types)
    sums = [each[events.types == kind].sum(axis=0) for kind in range(2)]
    assert_allclose(counts[:, None] * some.average_trigger.integral(), sums)


def test_productivity_relative_to_another_event_is_the_same_rate(events):
    observed = ObservedEvents(events, events.since(0.0), 0.0, UNTIL, SQUARE, 2)
    fit = with_weights(observed, first_fit(observed, Knots(LAGS, FAR)), learn=False)
    first = with_productivity(observed, fit, learn=False)
    is_level = np.arange(len(first.modes[0].log_weights)) < len(fit.background.knots)
    lower = np.where(is_level, 0.0, -1.0)
    modes = tuple(m._replace(log_weights=m.log_weights + lower) for m in first.modes)
    effects = first.effects.replace(logs=first.effects.logs + 1.0)
    higher = weighed(replace(first, modes=modes, effects=effects))
    rates = [rates_at_events(observed, f)[1] for f in (first, higher)]
    assert_allclose(*rates)
    again = with_productivity(observed, higher, learn=False)
    assert again.effects.productivity(observed.inside.marks).mean() == pytest.approx(1.0)
    assert_allclose(rates_at_events(observed, again)[1], rates[0], rtol=0.02)
