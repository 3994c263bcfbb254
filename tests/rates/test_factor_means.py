"""Factors that fade: means over spans of lags, and futures of events that have such factors."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hplus.rates.excitation.background import NO_CYCLES, Background
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.conditional_rate import rate_given
from hplus.rates.excitation.descendants import Stage, past_of, simulate_stages
from hplus.rates.excitation.drift import Drift
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import FactorLaw
from hplus.rates.excitation.factor_means import (
    drawn_means,
    factors_ahead,
    lag_shares_in,
    lasting_shapes,
)
from hplus.rates.excitation.mark_effects import MarkEffects, learn_mark_law
from hplus.rates.excitation.trigger import Trigger, log_spaced

LAGS = log_spaced(0.001, 20.0, 3)
TRIGGER = Trigger(LAGS, np.zeros(0), (1.0 / (LAGS[:-1] + 0.001))[None, None, :, None])
AT, TYPES = np.array([0.0, -3.0]), np.zeros(2, dtype=int)


def law_of(kept, shape=0.5):
    return FactorLaw(1.0, shape, 0.0, np.inf, kept)


def ahead_of(kept):
    """Two events with shape 3, after which 5 came where 2 were expected, within 0.01."""
    means = np.linspace(2.0, 1.0, len(LAGS) - 1) * np.ones((2, 1))
    known = tuple(np.full(2, x) for x in (3.0, 5.0, 2.0))
    return factors_ahead(TRIGGER, law_of(kept), means, known, np.full(2, 0.01))


def shares_in(*spans):
    return np.stack([lag_shares_in(TRIGGER, AT, TYPES, a, b) for a, b in spans])


@pytest.mark.parametrize("kept", [1.0, 0.6, 0.1])
def test_the_mean_over_a_span_is_that_of_its_parts(kept):
    shares = shares_in((1.0, 4.0), (4.0, 9.0), (1.0, 9.0))
    first, last, whole = shares
    # the share of the first part in the whole
    p = ((whole - last) * first).sum(axis=1) / ((first - last) * first).sum(axis=1)
    np.testing.assert_allclose(whole, p[:, None] * first + (1.0 - p)[:, None] * last)
    means, K = ahead_of(kept).over(shares)
    np.testing.assert_allclose(means[2], p * means[0] + (1.0 - p) * means[1])
    together = p**2 * K[:, 0, 0] + 2.0 * p * (1.0 - p) * K[:, 0, 1] + (1.0 - p) ** 2 * K[:, 1, 1]
    np.testing.assert_allclose(K[:, 2, 2], together)
    alike = K[:, 0, 1] / np.sqrt(K[:, 0, 0] * K[:, 1, 1])
    assert np.all(alike < 1.0 - 1e-3) == (kept < 1.0)


def test_what_is_known_counts_less_the_longer_ago_it_was():
    shares = shares_in(*((a, 1.2 * a) for a in (0.01, 0.1, 1.0)))
    near, later = ahead_of(0.5), ahead_of(1.0)
    assert near.deviations[0, 0] == pytest.approx(np.sqrt(8.0) / 5.0)
    assert near.deviations[0, -1] == pytest.approx(
        np.sqrt(3.0 + 5.0 * 0.5**3) / (3.0 + 2.0 * 0.5**3), rel=0.05
    )
    np.testing.assert_allclose(later.deviations, np.sqrt(8.0) / 5.0)
    np.testing.assert_allclose(later.over(shares)[1], 8.0 / 25.0)


def test_factors_of_events_to_come_are_averaged_over_all_lags():
    shapes = [
        lasting_shapes(TRIGGER, law_of(kept, 2.0), np.ones(1), np.zeros(1, dtype=int))[0]
        for kept in (1.0, 0.5, 0.1)
    ]
    assert shapes[0] == pytest.approx(2.0)
    assert shapes[0] < shapes[1] < shapes[2]


@pytest.mark.parametrize("spans", [1, 3, 8])
def test_drawn_means_have_their_means_and_covariances_however_many_spans_there_are(rng, spans):
    ends = np.linspace(0.5, 15.0, spans + 1)
    means, K = ahead_of(0.3).over(shares_in(*pairwise(ends)))
    drawn = np.stack(list(drawn_means(means, K, rng.spawn(spans), 40_000)))
    np.testing.assert_allclose(drawn.mean(axis=1), means, rtol=0.02)
    np.testing.assert_allclose(drawn.var(axis=1), np.einsum("mss->sm", K), rtol=0.05)
    found = np.cov(drawn[:, :, 0]).reshape(spans, spans)
    np.testing.assert_allclose(found, K[0], atol=0.05 * K[0].max())


def test_no_events_and_spans_in_which_nothing_is_expected_have_factors(rng):
    assert next(drawn_means(np.ones((1, 0)), np.ones((0, 1, 1)), [rng], 5)).shape == (5, 0)
    means, K = ahead_of(0.5).over(shares_in((1.0, 2.0), (30.0, 40.0)))
    first, last = drawn_means(means, K, rng.spawn(2), 100)
    assert np.ptp(first) > 0.0
    assert np.all(last == 1.0)


def rate(kept):
    """Almost no background, and events with mark 2 that trigger 20 others each."""
    trigger = TRIGGER.replace(weights=TRIGGER.weights * 20.0 / TRIGGER.integral()[0, 0])
    effects = MarkEffects(np.array([0.0, 2.0]), np.array([-30.0, 0.0]), 0.0, 0.0)
    background = Background((), np.array([0.0, 99.0]), np.full((1, 2), 1e-12), NO_CYCLES)
    marks = learn_mark_law(np.zeros(3))
    rate = ExcitedRate(None, trigger, effects, background, (marks,),
                       np.zeros((0, 1, 0)), Drift(99.0, 1.0, 0.0, 1.0))  # fmt: skip
    return replace(rate, factor_law=law_of(kept))


def parent_alone():
    return Catalogue(np.zeros(1), np.zeros((1, 0)), np.full(1, 2.0), np.zeros(1, dtype=int))


def counts_in(own, history, begin, spans, rng, n=20_000):
    """Counts (s, n) that follow on each path, in spans one after another."""
    past = past_of(rate_given(own, history, begin), begin)
    rngs = rng.spawn(len(spans))
    stages = [Stage(a, b, own, r) for (a, b), r in zip(spans, rngs, strict=True)]
    found = simulate_stages(stages, past, n)
    place = np.searchsorted([b for _, b in spans[:-1]], found.events.times, side="right")
    counts = np.zeros((len(spans), n))
    np.add.at(counts, (place, found.paths), 1.0)
    return counts


@pytest.mark.parametrize("kept", [1.0, 0.2])
def test_counts_that_follow_an_event_vary_less_and_less_alike_if_factors_fade(rng, kept):
    spans = [(0.001, 1.0), (1.0, 20.0)]
    counts = counts_in(rate(kept), parent_alone(), 0.001, spans, rng)
    shares = np.stack([lag_shares_in(TRIGGER, AT[:1], TYPES[:1], a, b) for a, b in spans])
    nothing = (np.full(1, 0.5), np.zeros(1), np.zeros(1))
    means, since = np.ones((1, len(LAGS) - 1)), np.full(1, 0.001)
    _, K = factors_ahead(TRIGGER, law_of(kept), means, nothing, since).over(shares)
    extra = np.cov(counts) - np.diag(counts.mean(axis=1))
    relative = extra / np.outer(counts.mean(axis=1), counts.mean(axis=1))
    np.testing.assert_allclose(relative, K[0], rtol=0.15)


@pytest.mark.parametrize("begin", [0.02, 15.0])
def test_simulated_means_are_those_of_the_rate(rng, begin):
    own = rate(0.2)
    came = np.sort(np.append(0.0, 0.019 * rng.uniform(size=20)))
    marks = np.append(2.0, np.zeros(20))
    history = Catalogue(came, np.zeros((21, 0)), marks, np.zeros(21, dtype=int))
    counts = counts_in(own, history, begin, [(begin, 19.0)], rng, n=100_000)
    expected = rate_given(own, history, begin).integral(begin, 19.0)
    assert counts.mean() == pytest.approx(expected, rel=0.03)
