"""Factors that fade: means over spans of lags, and futures of events that have such factors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hplus.rates.excitation.background import NO_CYCLES, Background
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.conditional_rate import rate_given
from hplus.rates.excitation.descendants import Stage, past_of, simulate_stages
from hplus.rates.excitation.drift import Drift
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import FactorLaw
from hplus.rates.excitation.factor_means import FadingFactors, lasting_shapes, mean_factors
from hplus.rates.excitation.mark_effects import MarkEffects, learn_mark_law
from hplus.rates.excitation.trigger import Trigger, log_spaced

LAGS = log_spaced(0.001, 20.0, 3)
TRIGGER = Trigger(LAGS, np.zeros(0), (1.0 / (LAGS[:-1] + 0.001))[None, None, :, None])
AT = np.array([0.0, -3.0])
TYPES = np.zeros(2, dtype=int)


@pytest.mark.parametrize("kept", [1.0, 0.6, 0.1])
def test_the_mean_over_a_span_varies_as_those_over_its_parts_together(kept):
    fading = FadingFactors(TRIGGER, kept)
    first, last, whole = (
        fading.shares(AT, TYPES, a, b) for a, b in [(1.0, 4.0), (4.0, 9.0), (1.0, 9.0)]
    )
    # the share of the first part in the whole
    p = ((whole - last) * first).sum(axis=1) / ((first - last) * first).sum(axis=1)
    np.testing.assert_allclose(whole, p[:, None] * first + (1.0 - p)[:, None] * last)
    a, b = fading.spread(first), fading.spread(last)
    both = fading.correlations(first, last) * np.sqrt(a * b)
    together = p**2 * a + 2.0 * p * (1.0 - p) * both + (1.0 - p) ** 2 * b
    np.testing.assert_allclose(fading.spread(whole), together)
    assert np.all(fading.spread(whole) < 1.0 - 1e-6) == (kept < 1.0)
    law = FactorLaw(1.0, 2.0, 0.0, np.inf, kept)
    shapes = lasting_shapes(TRIGGER, law, np.ones(1), np.zeros(1, dtype=int))
    forever = fading.shares(np.zeros(1), np.zeros(1, dtype=int), 0.0, LAGS[-1])
    np.testing.assert_allclose(shapes, 2.0 / fading.spread(forever))


def test_what_is_known_counts_less_the_longer_ago_it_was():
    fading, since = FadingFactors(TRIGGER, 0.5), np.array([0.01, 0.01])
    left = [fading.left(fading.shares(AT, TYPES, a, 1.2 * a), since) for a in (0.01, 0.1, 1.0)]
    assert np.all(np.diff(left, axis=0)[:, 0] < 0.0)
    assert left[2][0] == pytest.approx(0.25, rel=0.1)
    np.testing.assert_allclose(
        FadingFactors(TRIGGER, 1.0).left(fading.shares(AT, TYPES, 0, 9), since), 1
    )


def test_mean_factors_have_their_mean_and_variance():
    ranks = (np.arange(20_000)[:, None] + 0.5) / 20_000
    found = mean_factors(ranks, np.array([3.0]), np.array([2.0]), np.array([0.4]))
    assert found.mean() == pytest.approx(1.5, rel=1e-3)
    assert found.var() == pytest.approx(0.4 * 3.0 / 4.0, rel=1e-2)


def rate(kept):
    """Almost no background, and events with mark 2 that trigger 20 others each."""
    trigger = TRIGGER.replace(weights=TRIGGER.weights * 20.0 / TRIGGER.integral()[0, 0])
    effects = MarkEffects(np.array([0.0, 2.0]), np.array([-30.0, 0.0]), 0.0, 0.0)
    background = Background((), np.array([0.0, 99.0]), np.full((1, 2), 1e-12), NO_CYCLES)
    law = FactorLaw(1.0, 0.5, 0.0, np.inf, kept)
    marks = learn_mark_law(np.zeros(3))
    rate = ExcitedRate(None, trigger, effects, background, (marks,),
                       np.zeros((0, 1, 0)), Drift(99.0, 1.0, 0.0, 1.0))  # fmt: skip
    return replace(rate, factor_law=law)


@pytest.mark.parametrize("kept", [1.0, 0.2])
def test_counts_that_follow_an_event_vary_less_and_less_alike_if_factors_fade(rng, kept):
    own, begin = rate(kept), 0.001
    parent = Catalogue(np.zeros(1), np.zeros((1, 0)), np.full(1, 2.0), np.zeros(1, dtype=int))
    past = past_of(rate_given(own, parent, begin), begin)
    spans = [(begin, 1.0), (1.0, 20.0)]
    stages = [Stage(a, b, own, r) for (a, b), r in zip(spans, rng.spawn(2), strict=True)]
    found = simulate_stages(stages, past, 20_000)
    late = (found.events.times >= 1.0).astype(int)
    counts = np.zeros((2, 20_000))
    np.add.at(counts, (late, found.paths), 1.0)
    fading = FadingFactors(own.trigger, kept)
    shares = [fading.shares(np.zeros(1), np.zeros(1, dtype=int), a, b) for a, b in spans]
    means, extra = counts.mean(axis=1), counts.var(axis=1) - counts.mean(axis=1)
    spread = np.concatenate([fading.spread(each) for each in shares])
    np.testing.assert_allclose(extra / means**2, spread / 0.5, rtol=0.1)
    alike = np.cov(counts)[0, 1] / np.sqrt(extra.prod())
    assert alike == pytest.approx(fading.correlations(*shares)[0], abs=0.05)
