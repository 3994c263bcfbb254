"""How sure a self-exciting rate is of its branching ratio, of its marks and of what comes later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hplus import Box, Interval, SelfExciting
from hplus.rates.excitation.background import NO_CYCLES, Background
from hplus.rates.excitation.branching_band import branching_band
from hplus.rates.excitation.catalogue import in_order
from hplus.rates.excitation.conditional_rate import masses_of
from hplus.rates.excitation.drift import BLOCKS, Drift
from hplus.rates.excitation.excitation_fit import ObservedEvents
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import NO_FACTORS, FactorLaw
from hplus.rates.excitation.learned_excitation import LearnedExcitation
from hplus.rates.excitation.mark_effects import MarkEffects, learn_mark_law
from hplus.rates.excitation.posterior_draws import mark_draws
from hplus.rates.excitation.trigger import Trigger, log_spaced
from hplus.rates.excitation.visible import visible_lags

LAGS = log_spaced(0.05, 20.0, 3)
EFFECTS = MarkEffects(np.array([0.0, 2.0]), np.array([0.0, 1.5]), 0.0, 0.0)


def rate(rng, law=NO_FACTORS):
    """Marked events of which one triggers half an event, with draws of its weights."""
    weights = np.exp(-LAGS[:-1])[None, None, :, None]
    weights *= 0.5 / Trigger(LAGS, np.zeros(0), weights).integral()[0, 0]
    logs = np.append(0.0, np.log(weights.ravel()))
    draws = logs + 0.1 * rng.standard_normal((40, 1, 1))
    background = Background((), np.array([0.0]), np.ones((1, 1)), NO_CYCLES)
    return ExcitedRate(None, Trigger(LAGS, np.zeros(0), weights), EFFECTS, background,
                       (learn_mark_law(np.zeros(3)),), draws, Drift(1.0, 1.0, 0.0, 1.0),
                       factor_law=law)  # fmt: skip


def marked(rng, n=400):
    t = np.sort(rng.uniform(0.0, 300.0, n))
    return in_order(t, np.zeros((n, 0)), rng.uniform(0.0, 2.0, n), np.zeros(n, dtype=int))


def band(rate, events, lag_spread=(1.0, 1.0), evidence=10.0):
    observed = ObservedEvents(events, events, 0.0, 300.0, None, 1)
    return branching_band(
        LearnedExcitation(rate, lag_spread, evidence, "", None, 0.0, []), observed, 0.9
    )


def test_other_longest_lags_and_factors_of_events_widen_the_band(rng):
    plain, events = rate(rng), marked(rng)
    low, high = band(plain, events)
    # draws vary by a tenth: 1.64 standard deviations on both sides
    assert low == pytest.approx(0.5 * np.exp(-0.164), rel=0.1)
    assert high == pytest.approx(0.5 * np.exp(0.164), rel=0.1)
    shorter, longer = band(plain, events, (0.5, 1.5))
    assert shorter == pytest.approx(0.5 * low)
    assert longer == pytest.approx(1.5 * high)
    varied = replace(plain, factor_law=FactorLaw(0.0, 0.1, 0.0, np.inf))
    wide = np.log(band(varied, events))
    assert np.diff(wide) > 2.0 * np.log(high / low)


def test_the_band_reaches_from_no_event_triggered_to_all_of_them_at_most(rng):
    plain, events = rate(rng), marked(rng)
    assert band(plain, events, evidence=1.0)[0] == 0.0
    # 400 events, and 1.64 errors more; few offspring come after the end
    assert band(plain, events, (1.0, 50.0))[1] == pytest.approx(1.0 + 1.64 / 20.0, rel=0.05)


@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("evidence", [1.0, 10.0])
@pytest.mark.parametrize("triggered", [1.0, 4.0])
def test_the_band_holds_the_ratio_wherever_draws_and_bounds_lie(rng, shift, evidence, triggered):
    """Four times as many: more than there are events."""
    plain = rate(rng)
    more = plain.trigger.replace(weights=triggered * plain.trigger.weights)
    some = replace(plain, trigger=more, draws=plain.draws + np.log(triggered) + shift)
    low, high = band(some, marked(rng), evidence=evidence)
    assert low <= some.average_trigger.branching() <= high


def test_the_error_of_a_mean_factor_is_that_of_factors_drawn(rng):
    law = FactorLaw(0.25, 0.8, 0.5, np.inf)
    each = rng.exponential(1.0, 500)
    shapes = np.where(each >= 0.25, law.shapes(each), np.inf)
    factors = rng.gamma(np.minimum(shapes, 1e12), 1.0 / np.minimum(shapes, 1e12), (4000, 500))
    means = factors @ each / each.sum()
    assert law.mean_error(each) == pytest.approx(np.std(np.log(means)), rel=0.1)
    assert NO_FACTORS.mean_error(each) == 0.0


@pytest.mark.parametrize("shape", [np.inf, 0.5])
def test_draws_of_productivity_vary_as_its_estimates_do(rng, shape):
    law = NO_FACTORS if np.isinf(shape) else FactorLaw(0.0, shape, 0.0, np.inf)
    events, known = marked(rng), rate(rng, law)
    observed = ObservedEvents(events, events, 0.0, 300.0, None, 1)
    draws = np.concatenate([
        mark_draws(observed, known, np.zeros((2, 2)), np.random.default_rng(k)) for k in range(8)
    ])  # fmt: skip
    # estimates of the slope from counts of offspring that are drawn: one Newton step each
    lags = visible_lags(LAGS, events.times, 0.0, 300.0)
    means = np.sum(lags * masses_of(known, events, None), axis=1)
    k = shape * np.ones(len(events)) if np.isfinite(shape) else np.full(len(events), 1e9)
    counts = rng.poisson(means * rng.gamma(k, 1.0 / k, (2000, len(events))))
    slopes, variances = EFFECTS.slopes(events.marks), means + means**2 / k
    information = slopes.T @ (slopes * (means**2 / variances)[:, None])
    steps = np.linalg.solve(information, slopes.T @ ((counts - means) * means / variances).T)
    assert np.std(draws[:, 1] - draws[:, 0]) == pytest.approx(np.std(steps[1] - steps[0]), rel=0.15)


def test_the_level_drifts_as_the_background_did():
    rng, t = np.random.default_rng(0), np.linspace(0.0, 1000.0, 4001)
    models = []
    for depth in (0.0, 1.5):
        rates = np.exp(depth * np.sin(2.0 * np.pi * t / 500.0))
        chance = np.cumsum(rates) / np.sum(rates)
        X = np.interp(rng.random(1500), chance, t)[:, None]
        models.append(SelfExciting(Interval(0.0, 1001.0), longest_lag=5.0).fit(X))
    steady, changing = (model.rate_.drift for model in models)
    assert changing.variance > 10.0 * steady.variance > 0.0
    assert steady.dispersion < 1.6


def test_of_changes_in_a_time_longer_than_that_learned_from_nothing_is_known():
    drift = Drift(100.0, 50.0 / BLOCKS, 0.02, 1.0)
    growth = [drift.growth(ahead) for ahead in (-1.0, 0.0, 25.0, 50.0, 51.0, 1e9)]
    np.testing.assert_allclose(growth, 0.02 * np.array([0.0, 0.0, 25.0, 50.0, 50.0, 50.0]))


@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_how_reach_grows_with_marks_is_found_in_any_unit_of_marks(unit):
    rng, n = np.random.default_rng(0), 250
    marks = rng.uniform(0.0, 3.0, n)
    X = np.column_stack([rng.uniform(0.0, 10.0, (n, 2)), rng.uniform(0.0, 300.0, n)])
    which = np.repeat(np.arange(n), 3)
    far = 0.03 * np.exp(1.2 * marks[which])[:, None] * rng.normal(size=(3 * n, 2))
    children = X[which] + np.column_stack([far, rng.exponential(0.2, 3 * n)])
    inside = np.all((children >= 0.0) & (children <= [10.0, 10.0, 300.0]), axis=1)
    X, marks = np.vstack([X, children[inside]]), np.append(marks, np.zeros(inside.sum()))
    window = Box([0, 0], [10, 10]) * Interval(0.0, 300.0)
    model = SelfExciting(window, background="tree", longest_lag=5.0).fit(X, marks=unit * marks)
    assert model.effects_.growth * unit == pytest.approx(1.2, abs=0.3)
