"""Laws of self-exciting rates: rows, integrals, modes, certificates, simulations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import poisson

from hplus import Box, Interval, Polygon
from hplus.estimators.futures import futures_of
from hplus.rates.excitation import parents
from hplus.rates.excitation.background import NO_CYCLES, Background
from hplus.rates.excitation.catalogue import NO_BEARINGS, Catalogue, in_order
from hplus.rates.excitation.certified import certified_gap, largest_likelihood
from hplus.rates.excitation.conditional_rate import rate_given
from hplus.rates.excitation.descendants import Stage, simulate, simulate_stages
from hplus.rates.excitation.drift import Drift, follow
from hplus.rates.excitation.excitation_check import check_excitation
from hplus.rates.excitation.excited_rate import ExcitedRate, rows_by_mark, rows_of
from hplus.rates.excitation.factor_law import FactorLaw
from hplus.rates.excitation.lag_rows import add_line_rows
from hplus.rates.excitation.log_weights import (
    LogPrior,
    Parts,
    find_mode,
    first_differences,
    learn_strengths,
    log_likelihood,
    moved,
    second_differences,
    weighted_squares,
)
from hplus.rates.excitation.mark_effects import (
    NO_MARKS,
    MarkEffects,
    learn_mark_law,
    slope_precision,
)
from hplus.rates.excitation.parents import find_parents
from hplus.rates.excitation.past_events import past_of
from hplus.rates.excitation.region_masks import mask_of
from hplus.rates.excitation.rescaled import rescaled_times
from hplus.rates.excitation.trigger import Trigger, log_spaced
from hplus.rates.excitation.trigger_tables import TriggerTable
from hplus.rates.excitation.triggered_sums import triggered_by_each
from hplus.rates.excitation.visible import (
    hat_integrals,
    ring_sizes,
    visible_lags,
    visible_rings,
)

LAGS = log_spaced(0.05, 20.0, 3)
FAR = log_spaced(0.02, 0.5, 4)
EFFECTS = MarkEffects(np.array([0.0, 1.0, 2.0]), np.array([-1.0, 0.1, 0.8]), 0.4, 1.0)


def hat(knots, k, x):
    """Hat function k, constant before the first knot, by definition."""
    values = np.eye(len(knots))[k]
    return np.where(x < 0.0, 0.0, np.interp(x, knots, values, right=0.0))


def catalogue(rng, n, places=True):
    times = np.round(rng.uniform(0.0, 60.0, n), 1)  # with ties
    at = rng.random((n, 2)) if places else np.zeros((n, 0))
    return in_order(times, at, rng.uniform(0.0, 2.5, n), rng.integers(0, 2, n))


def pair_sums(targets, sources, effects, columns):
    """Σ_j κ_j s_j⁻² φ_l ψ_d by pairs, for each type of source."""
    found = np.zeros((len(targets), columns))
    k, s = effects.productivity(sources.marks), effects.reach(sources.marks)
    D = len(FAR) - 1
    for i in range(len(targets)):
        for j in np.flatnonzero(sources.times < targets.times[i]):
            lag = targets.times[i] - sources.times[j]
            phi = np.array([hat(LAGS, a, lag) for a in range(len(LAGS) - 1)])
            if targets.in_place:
                r = np.hypot(*(targets.places[i] - sources.places[j])) / s[j]
                psi = np.array([hat(FAR, a, r) for a in range(D)]) / s[j] ** 2
            else:
                psi = np.ones(1)
            block = (phi[:, None] * psi).ravel() * k[j]
            first = sources.types[j] * len(block)
            found[i, first : first + len(block)] += block
    return found


@pytest.mark.parametrize("places", [False, True])
def test_rows_are_sums_over_earlier_events(places, rng):
    sources, targets = catalogue(rng, 40, places), catalogue(rng, 15, places)
    trigger = Trigger(LAGS, FAR if places else np.zeros(0), np.zeros((2, 2, len(LAGS) - 1, 1)))
    rows = rows_of(targets, sources, trigger, EFFECTS, 2)
    expected = pair_sums(targets, sources, EFFECTS, rows.shape[1])
    np.testing.assert_allclose(rows, expected, rtol=1e-10, atol=1e-12)
    both = rows_of(targets, sources, trigger, EFFECTS, 2, jobs=2)
    np.testing.assert_array_equal(rows, both)


@pytest.mark.parametrize("places", [False, True])
def test_rows_by_mark_add_up_to_what_the_trigger_adds(places, rng):
    sources, targets = catalogue(rng, 40, places), catalogue(rng, 15, places)
    D = len(FAR) - 1 if places else 1
    weights = rng.random((2, 2, len(LAGS) - 1, D))
    trigger = Trigger(LAGS, FAR if places else np.zeros(0), weights)
    rows = rows_of(targets, sources, trigger, EFFECTS, 2) @ weights[:, 1].ravel()
    by_mark = rows_by_mark(targets, sources, (trigger, EFFECTS), EFFECTS.hats(sources.marks), 1)
    np.testing.assert_allclose(by_mark @ np.exp(EFFECTS.logs), rows, rtol=1e-10)


def test_prefix_sums_keep_their_digits_on_a_long_line(rng):
    times = np.sort(rng.uniform(0.0, 1e9, 5_000))
    times[1::2] = times[::2] + 1e-3
    times.sort()
    knots = log_spaced(1e-4, 1e2, 3)
    weights = rng.uniform(1e-3, 1e3, len(times))
    rows = np.zeros((len(times), len(knots) - 1))
    add_line_rows(times, times, weights, knots, rows)
    i = 4_000
    lags = times[i] - times[:i]
    for k in range(len(knots) - 1):
        near = lags < 1e3
        expected = weights[:i][near] @ hat(knots, k, lags[near])
        assert rows[i, k] == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert rows.min() >= 0.0


def test_integrals_of_lags_are_those_of_the_hat_functions():
    times = np.array([-3.0, 0.0, 4.9, 9.99])
    found = visible_lags(LAGS, times, 1.0, 10.0)
    for j, t in enumerate(times):
        for k in range(len(LAGS) - 1):
            inside = [x for x in LAGS if max(1.0 - t, 0.0) < x < 10.0 - t]
            expected = quad(
                lambda x, k=k: float(hat(LAGS, k, x)), max(1.0 - t, 0.0), 10.0 - t, points=inside
            )[0]
            assert found[j, k] == pytest.approx(expected, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(
    "region",
    [
        Box([0.0, 0.0], [1.0, 1.0]),
        Polygon([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]),
        Polygon([(0.0, 0.0), (1.0, 0.0), (0.5, 1.0)]),
    ],
    ids=["box", "square", "triangle"],
)
def test_integrals_of_rings_are_those_inside_the_region(region, rng):
    xy, reach = np.array([[0.5, 0.4], [0.1, 0.05], [0.9, 0.1]]), np.array([0.3, 1.0, 0.5])
    found = visible_rings(FAR, xy, reach, mask_of(region), NO_BEARINGS)
    points = region.sample(200_000, 0)
    for j in range(len(xy)):
        r = np.hypot(*(points - xy[j]).T) / reach[j]
        for d in range(len(FAR) - 1):
            values = hat(FAR, d, r) / reach[j] ** 2
            error = (
                4.0 * region.volume * values.std() / np.sqrt(len(points))
                + 0.01 * ring_sizes(FAR, 2)[d]
            )
            assert found[j, d] == pytest.approx(region.volume * values.mean(), abs=error)
    whole = visible_rings(FAR, xy[:1], np.array([0.3]), mask_of(Box([0, 0], [1, 1])), NO_BEARINGS)[
        0
    ]
    np.testing.assert_allclose(whole, ring_sizes(FAR, 2), rtol=1e-10)


def problem(rng, n=300, B=8):
    rows = rng.random((n, B)) * (rng.random((n, B)) < 0.5) + 1e-3
    return Parts(rows, rng.uniform(10.0, 60.0, B))


def test_the_mode_is_a_stationary_point_of_the_posterior(rng):
    parts = problem(rng)
    prior = LogPrior(np.zeros(8), (second_differences(8),), np.array([3.0]))
    mode = find_mode(parts, prior, np.zeros(8))

    def lost(z):
        return 0.5 * z @ prior.precision @ z - log_likelihood(parts, np.exp(z))

    best = minimize(lost, np.zeros(8), method="BFGS", options={"gtol": 1e-6})
    assert lost(mode.log_weights) == pytest.approx(best.fun, abs=1e-3)
    assert mode.log_posterior == pytest.approx(-lost(mode.log_weights))


def test_the_mode_moves_with_the_mean_of_the_prior(rng):
    """Exactly so where the prior agrees with the events."""
    rows, mean, step = problem(rng).rows, rng.normal(size=8), 0.02
    parts = Parts(rows, rows.T @ (1.0 / (rows @ np.exp(mean))))
    prior, changes = LogPrior(mean, (np.eye(8),), np.array([20.0])), rng.normal(size=(3, 8))
    found = moved(prior, find_mode(parts, prior, mean), changes)
    for change, own in zip(changes, found, strict=True):
        low, high = (prior._replace(mean=mean + way * step * change) for way in (-1.0, 1.0))
        ends = [find_mode(parts, each, mean).log_weights for each in (low, high)]
        assert_allclose((ends[1] - ends[0]) / (2.0 * step), own, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("n", [0, 1, 5000])
def test_weighted_squares_are_those_of_the_scaled_rows(rng, n):
    A, p, a = rng.random((n, 6)), rng.random(n), rng.random(6)
    J = p[:, None] * A * a
    assert_allclose(weighted_squares(A, p, a), J.T @ J, rtol=1e-12)


def test_strengths_follow_how_rough_weights_are(rng):
    smooth, rough = np.zeros(30), np.cumsum(rng.normal(0.0, 0.7, 30))
    found = []
    for z in (smooth, rough):
        counts = rng.poisson(40.0 * np.exp(z))
        rows = np.repeat(np.eye(30), counts, axis=0)
        prior = LogPrior(np.zeros(30), (first_differences(30),), np.array([1.0]))
        (learned,), _ = learn_strengths([Parts(rows, np.full(30, 40.0))], [prior], [np.zeros(30)])
        found.append(float(learned.strengths[0]))
    assert found[0] > 20.0 * found[1]
    assert found[1] == pytest.approx(1.0 / 0.7**2, rel=0.5)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_the_certificate_bounds_what_is_missing(seed):
    rng = np.random.default_rng(seed)
    parts = problem(rng, n=60, B=5)
    best, result = largest_likelihood(parts, np.ones(5))
    anywhere = rng.uniform(0.01, 2.0, 5)
    missing = log_likelihood(parts, best) - log_likelihood(parts, anywhere)
    assert -1e-9 <= missing <= certified_gap(parts, anywhere) + result.gap + 1e-9
    assert 0.0 <= result.gap + 1e-9
    assert result.gap <= 1e-4 * 60
    assert best.min() >= 0.0


def test_the_largest_likelihood_is_that_of_a_general_solver(rng):
    parts = problem(rng, n=80, B=6)
    best, _ = largest_likelihood(parts, np.ones(6))
    found = minimize(
        lambda a: -log_likelihood(parts, a),
        np.ones(6),
        jac=lambda a: parts.integrals - parts.rows.T @ (1.0 / (parts.rows @ a)),
        bounds=[(0.0, None)] * 6,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000},
    )
    assert log_likelihood(parts, best) == pytest.approx(-found.fun, abs=1e-4)


def test_a_trigger_integrates_to_its_integral(rng):
    trigger = Trigger(LAGS, FAR, rng.random((1, 1, len(LAGS) - 1, len(FAR) - 1)))
    by_lag = quad(lambda t: float(trigger.by_lag(t)), 0.0, LAGS[-1], points=LAGS[:-1], limit=200)[0]
    far = quad(
        lambda r: float(2 * np.pi * r * trigger.by_distance(r)),
        0.0,
        FAR[-1],
        points=FAR[:-1],
        limit=200,
    )[0]
    assert by_lag == pytest.approx(trigger.integral()[0, 0], rel=1e-8)
    assert far == pytest.approx(trigger.integral()[0, 0], rel=1e-8)
    assert trigger(LAGS[-1] * 1.01, 0.1) == 0.0
    assert trigger(1.0, FAR[-1] * 1.01) == 0.0
    at = trigger(np.array([0.3, 2.0]), np.array([0.1, 0.04]))
    assert at.shape == (2,)


def test_productivity_goes_on_beyond_the_largest_mark():
    assert EFFECTS.productivity(np.array([3.0]))[0] == pytest.approx(np.exp(0.8 + 0.7))
    hats = EFFECTS.hats(np.array([0.5, 2.0, 3.0]))
    np.testing.assert_allclose(
        hats @ np.exp(EFFECTS.logs), EFFECTS.productivity(np.array([0.5, 2.0, 3.0]))
    )
    scaled, shift = EFFECTS.scaled(np.array([0.0, 1.0, 2.0]))
    assert scaled.productivity(np.array([0.0, 1.0, 2.0])).mean() == pytest.approx(1.0)
    assert shift == pytest.approx(np.log(EFFECTS.productivity(np.array([0.0, 1.0, 2.0])).mean()))


def test_slopes_of_productivity_are_those_of_its_logs():
    marks, step = np.array([0.0, 0.3, 1.0, 1.7, 2.0, 3.1]), 1e-6
    for k in range(3):
        moved = EFFECTS.replace(logs=EFFECTS.logs + step * (np.arange(3) == k))
        rise = np.log(moved.productivity(marks) / EFFECTS.productivity(marks)) / step
        np.testing.assert_allclose(EFFECTS.slopes(marks)[:, k], rise, atol=1e-5)


def test_marks_are_drawn_as_observed_with_an_exponential_tail(rng):
    observed = rng.exponential(2.0, 5_000)
    law = learn_mark_law(observed)
    drawn = law.sample(20_000, rng)
    assert drawn.mean() == pytest.approx(observed.mean(), rel=0.05)
    assert np.quantile(drawn, 0.99) == pytest.approx(2.0 * np.log(100.0), rel=0.1)
    assert observed.max() < law.largest
    assert drawn.max() <= law.largest


@pytest.mark.parametrize("observed", [np.zeros(3), np.arange(40.0), np.linspace(0.0, 1.0, 5_001)])
def test_means_over_marks_are_those_of_marks_drawn(rng, observed):
    law = learn_mark_law(observed)
    found = law.mean(lambda marks: np.exp(0.05 * marks))
    drawn = np.exp(0.05 * law.sample(200_000, rng))
    assert found == pytest.approx(drawn.mean(), rel=5e-3)


def test_slopes_of_productivity_vary_by_one_per_mean_excess():
    knots, logs = np.array([1.0, 3.0, 4.0]), np.array([0.0, 4.0, 5.0])
    assert logs @ slope_precision(knots, 0.5) @ logs == pytest.approx((0.5 * 2.0) ** 2 + 0.5**2)


def test_the_branching_ratio_is_that_of_marks_to_come(rng):
    weights = np.exp(-LAGS[:-1])[None, None, :, None]
    rate = line_rate(weights * 0.3 / Trigger(LAGS, np.zeros(0), weights).integral()[0, 0])
    law = learn_mark_law(rng.exponential(0.5, 2_000))
    effects = MarkEffects(np.array([0.0, 2.0]), np.array([0.0, 3.0]), 0.0, 0.0)
    marked = replace(rate, mark_laws=(law,), effects=effects)
    drawn = effects.productivity(law.sample(400_000, rng))
    assert rate.branching() == pytest.approx(0.3)
    assert marked.branching() == pytest.approx(0.3 * drawn.mean(), rel=0.02)


def line_rate(weights, level=1.0, kinds=1):
    trigger = Trigger(LAGS, np.zeros(0), weights)
    background = Background((), np.array([0.0, 50.0]), np.full((kinds, 2), level), NO_CYCLES)
    laws = tuple(learn_mark_law(np.zeros(3)) for _ in range(kinds))
    columns = np.concatenate([np.full(2, level), weights[:, 0].ravel()])
    return ExcitedRate(
        None,
        trigger,
        NO_MARKS,
        background,
        laws,
        np.log(columns)[None, None],
        Drift(50.0, 5.0, 0.0, 1.0),
    )


def test_rescaled_times_end_at_the_compensator(rng):
    rate = line_rate(rng.random((1, 1, len(LAGS) - 1, 1)) * 0.05)
    history = in_order(rng.uniform(-10.0, 50.0, 200), np.zeros((200, 0)), np.zeros(200),
                       np.zeros(200, dtype=int))  # fmt: skip
    last = history.times[-1]
    found = rescaled_times(rate_given(rate, history, last), 0.0)
    assert np.all(np.diff(found) > 0.0)
    assert found[-1] == pytest.approx(rate_given(rate, history, last).integral(0.0, last), rel=1e-9)
    first = history.since(0.0).times[0]
    before = history.picked(history.times < first)
    assert found[0] == pytest.approx(rate_given(rate, before, first).integral(0.0, first), rel=1e-9)


def test_simulated_counts_have_the_mean_of_a_branching_process(rng):
    weights = np.exp(-LAGS[:-1])[None, None, :, None]
    weights = weights * 0.6 / Trigger(LAGS, np.zeros(0), weights).integral()[0, 0]
    rate = line_rate(weights)
    nothing = Catalogue(np.zeros(0), np.zeros((0, 0)), np.zeros(0), np.zeros(0, dtype=int))
    past = past_of(rate_given(rate, nothing, 0.0), 0.0)
    ends = [0.0, 1.0, 3.0, 1500.0, 4000.0]
    stages = [Stage(a, b, rate, rng) for a, b in pairwise(ends)]
    for found in (simulate(rate, past, 0.0, 4000.0, 30, rng), simulate_stages(stages, past, 30)):
        counts = np.bincount(found.paths, minlength=30)
        assert counts.mean() == pytest.approx(4000.0 / 0.4, rel=0.02)
        assert counts.var() / counts.mean() == pytest.approx(1.0 / 0.4**2, rel=0.8)


def test_stages_divide_what_the_history_triggers(rng):
    weights = np.full((1, 1, len(LAGS) - 1, 1), 0.02)
    rate = line_rate(weights, level=1e-9)
    history = Catalogue(np.array([-1.0]), np.zeros((1, 0)), np.zeros(1), np.zeros(1, dtype=int))
    past = past_of(rate_given(rate, history, 0.0), 0.0)
    ends = [0.0, 0.1, 0.2, 1.0, 3.0]
    parts = simulate_stages([Stage(a, b, rate, rng) for a, b in pairwise(ends)], past, 40_000)
    together = simulate(rate, past, 0.0, 3.0, 40_000, rng)
    counts = [np.histogram(found.events.times, ends)[0] for found in (parts, together)]
    assert np.abs(counts[0] - counts[1]).max() < 4.0 * np.sqrt(2.0 * counts[1].max())


def test_what_the_history_still_triggers_follows_the_rest_of_the_trigger(rng):
    weights = np.full((1, 1, len(LAGS) - 1, 1), 0.02)
    rate = line_rate(weights, level=1e-9)
    history = Catalogue(np.array([-1.0]), np.zeros((1, 0)), np.zeros(1), np.zeros(1, dtype=int))
    found = simulate(rate, past_of(rate_given(rate, history, 0.0), 0.0), 0.0, 0.5, 20_000, rng)
    rest = (hat_integrals(LAGS, np.array([1.5])) - hat_integrals(LAGS, np.array([1.0])))[0]
    direct = float(rest @ weights[0, 0, :, 0])
    assert len(found.paths) / 20_000 == pytest.approx(direct, rel=0.1)
    assert found.events.times.min() >= 0.0
    assert found.events.times.max() <= 0.5


def test_drawn_distances_follow_the_trigger(rng):
    weights = rng.random((1, 1, len(LAGS) - 1, len(FAR) - 1))
    trigger = Trigger(LAGS, FAR, weights)
    table = TriggerTable.of(trigger, 0, 0)
    lags = table.draw_lags(np.zeros(40_000), np.full(40_000, np.inf), rng)
    far = table.draw_distances(lags, rng)[0]
    total = trigger.integral()[0, 0]
    short = lags < LAGS[6]
    expected = float(hat_integrals(LAGS, LAGS[6:7])[0] @ weights[0, 0] @ ring_sizes(FAR, 2)) / total
    assert short.mean() == pytest.approx(expected, abs=0.01)
    near = quad(lambda r: float(2 * np.pi * r * trigger.by_distance(r)), 0.0, 0.2)[0] / total
    assert np.mean(far < 0.2) == pytest.approx(near, abs=0.01)


def test_probabilities_of_parents_and_background_add_up_to_one(rng):
    rate = line_rate(np.full((1, 1, len(LAGS) - 1, 1), 0.05), level=0.1)
    history = in_order(rng.uniform(-5.0, 50.0, 40), np.zeros((40, 0)), np.zeros(40),
                       np.zeros(40, dtype=int))  # fmt: skip
    found = find_parents(rate_given(rate, history, 50.0), 0.0)
    total = found.background.copy()
    np.add.at(total, found.children - found.events[0], found.probabilities)
    np.testing.assert_allclose(total, 1.0, atol=0.01 * 40)
    assert np.all(total <= 1.0 + 1e-9)
    assert np.all(found.parents < found.children)
    assert np.all(history.times[found.parents] < history.times[found.children])
    assert np.all((found.likeliest == -1) | (found.likeliest < found.events))


def test_each_event_triggered_as_many_as_it_is_probably_the_parent_of(rng, monkeypatch):
    weights = 0.05 * rng.random((2, 2, len(LAGS) - 1, 1))
    law = FactorLaw(0.05, 0.5, 0.5, np.inf)
    rate = replace(line_rate(weights, kinds=2), effects=EFFECTS, factor_law=law)
    known = rate_given(rate, catalogue(rng, 80, places=False), 60.0)
    assert np.ptp(known.factors.factors) > 0.1
    monkeypatch.setattr(parents, "LEAST_PROBABILITY", 0.0)
    found, sums = find_parents(known, 20.0), triggered_by_each(known, 20.0)
    assert_allclose(sums, np.bincount(found.parents, found.probabilities, minlength=80))
    assert sums.sum() == pytest.approx(np.sum(1.0 - found.background))


def test_the_background_integrates_to_its_count_and_is_sampled_from(rng):
    background = Background((), np.array([0.0, 10.0]), np.array([[0.0, 2.0]]), NO_CYCLES)
    assert background.integral(0.0, 10.0, 0) == pytest.approx(10.0)
    assert background.integral(10.0, 15.0, 0) == pytest.approx(10.0)
    times, _ = background.sample(0.0, 10.0, 20_000, 0, rng)
    assert times.mean() == pytest.approx(20.0 / 3.0, rel=0.02)
    window = Interval(0.0, 10.0)
    assert window.contains(times[:, None]).all()


def blocks_of(count, ratio, blocks):
    """What was triggered to the background at each event, the same in each of some blocks."""
    return [np.full(count, ratio) for _ in range(blocks)]


def test_the_level_follows_counts_and_keeps_what_it_expects():
    drift, hundred, none = Drift(10.0, 2.0, 0.05, 1.0), np.full(40, 100.0), np.zeros(40)
    twice = follow(drift, blocks_of(200, 0.0, 40), hundred, none)
    assert twice.factors[0] == 1.0
    assert twice.factors[-1] == pytest.approx(2.0, rel=0.01)
    slower = follow(drift.replace(dispersion=50.0), blocks_of(200, 0.0, 40), hundred, none)
    assert 1.0 < slower.factors[5] < twice.factors[5]
    same = follow(drift, blocks_of(100, 0.0, 40), hundred, none)
    np.testing.assert_allclose(same.factors, 1.0)
    assert twice.at(np.array([0.0, 10.0, 11.9, 12.1]))[:3].tolist() == [1.0, 1.0, 1.0]
    assert sum(high - low for low, high, _ in twice.spans(0.0, 95.0)) == pytest.approx(95.0)


def test_the_level_is_that_of_the_background_and_not_of_what_was_triggered():
    drift, own, triggered = Drift(0.0, 1.0, 0.05, 1.0), np.full(60, 100.0), np.full(60, 300.0)
    twice = follow(drift, blocks_of(500, 3.0, 60), own, triggered)
    assert twice.factors[-1] == pytest.approx(2.0, rel=0.01)
    burst = follow(drift, blocks_of(1000, 9.0, 60), own, 3.0 * triggered)
    np.testing.assert_allclose(burst.factors, 1.0)


def test_bursts_do_not_lower_the_level(rng):
    weights = np.exp(-LAGS[:-1])[None, None, :, None]
    rate = line_rate(weights * 0.6 / Trigger(LAGS, np.zeros(0), weights).integral()[0, 0])
    nothing = in_order(np.zeros(0), np.zeros((0, 0)), np.zeros(0), np.zeros(0, dtype=int))
    many = simulate(rate, past_of(rate_given(rate, nothing, 0.0), 0.0), 0.0, 500.0, 60, rng)
    rate = replace(rate, drift=Drift(0.0, 5.0, 1e-3, 1.0))
    paths = [many.events.picked(np.flatnonzero(many.paths == path)) for path in range(60)]
    known = [rate_given(rate, in_order(e.times, e.places, e.marks, e.types), 500.0) for e in paths]
    expected = sum(each.integral(0.0, 500.0) for each in known)
    assert expected == pytest.approx(len(many.paths), rel=0.02)


def test_what_came_since_replaces_what_was_known_of_the_level_when_it_was_learned():
    drift, hundred, none = Drift(0.0, 1.0, 0.01, 1.0), np.full(60, 100.0), np.zeros(60)
    same, twice = blocks_of(100, 0.0, 60), blocks_of(200, 0.0, 1)
    known = follow(drift, same, hundred, none)
    unknown = follow(drift, same, hundred, none, first=1.0)
    assert known.memory == pytest.approx(unknown.memory, abs=1e-4)
    assert unknown.memory < 1e-4
    assert unknown.variance == pytest.approx(known.variance, rel=1e-4)
    # after a block of 100 events, the logarithm is off by 0.1 at most, whatever it was before
    once = follow(drift, same[:1], hundred[:1], none[:1], first=1.0)
    assert once.memory == pytest.approx(1.0 / (1.0 + 1.01 * 100.0))
    assert once.variance + once.memory**2 < 0.1**2
    fast = follow(drift, twice, hundred[:1], none[:1], first=1.0)
    slow = follow(drift, twice, hundred[:1], none[:1])
    assert fast.factors[-1] > slow.factors[-1]


def test_a_forecast_long_after_the_window_forgets_how_uncertain_the_level_was_at_its_end(rng):
    weights = np.full((1, 1, len(LAGS) - 1, 1), 1e-6)
    rate = replace(line_rate(weights, level=4.0), drift=Drift(0.0, 5.0, 1e-4, 1.0))
    logs = np.log(np.append(rate.background.levels.ravel(), weights.ravel()))
    draws = np.tile(logs, (50, 1, 1))
    draws[:, 0, : rate.background.levels.size] += rng.normal(0.0, 0.5, (50, 1))
    rate = replace(rate, draws=draws)
    times = np.sort(rng.uniform(0.0, 1000.0, 4000))
    history = in_order(times, np.zeros((4000, 0)), np.zeros(4000), np.zeros(4000, dtype=int))
    spreads = []
    for start in (0.0, 1000.0):
        known = rate_given(rate, history.until(start), start)
        counts = futures_of(known, np.array([start, start + 100.0]), [None], 1000, rng).counts
        spreads.append(counts.std() / counts.mean())
    assert spreads[0] > 0.3
    assert spreads[1] < 0.15


def test_the_count_is_poisson_around_what_the_rate_may_expect(rng):
    weights = np.full((1, 1, len(LAGS) - 1, 1), 1e-9)
    rate = replace(line_rate(weights, level=4.0), drift=Drift(0.0, 5.0, 0.0, 1.0))
    logs = np.log(np.append(rate.background.levels.ravel(), weights.ravel()))
    vague = np.tile(logs, (50, 1, 1))
    vague[:, 0, :2] += rng.normal(0.0, 0.3, (50, 1))
    times = np.linspace(0.1, 49.9, 150)  # of 200 expected
    events = in_order(times, np.zeros((150, 0)), np.zeros(150), np.zeros(150, dtype=int))
    exact, uncertain = (
        check_excitation(rate_given(replace(rate, draws=draws), events, 50.0), 0.0, 50.0)
        for draws in (logs[None, None], vague)
    )
    assert exact.total.p_value == pytest.approx(2.0 * poisson.cdf(150, 200.0), rel=1e-4)
    assert exact.total.statistic == pytest.approx(-50.0 / np.sqrt(200.0), rel=1e-4)
    assert "count" in exact.faults
    assert uncertain.total.p_value > 0.1
    assert abs(uncertain.total.statistic) < 2.0


@pytest.mark.parametrize("with_factors", [False, True])
def test_a_rate_whose_level_and_factors_change_integrates_to_its_own_compensator(rng, with_factors):
    # with a weight of 0.1 an event triggers two others, so that all are great
    rate = replace(
        line_rate(np.full((1, 1, len(LAGS) - 1, 1), 0.1 if with_factors else 0.01)),
        drift=Drift(0.0, 5.0, 0.1, 1.0),
        factor_law=FactorLaw(1.0 if with_factors else np.inf, 1.0, 1.0, np.inf, kept=0.5),
    )
    history = in_order(rng.uniform(0.0, 50.0, 300), np.zeros((300, 0)), np.zeros(300),
                       np.zeros(300, dtype=int))  # fmt: skip
    known = rate_given(rate, history, 50.0)
    whole = known.integral(0.0, 50.0)
    parts = known.integrals([(None, a, a + 12.5) for a in (0.0, 12.5, 25.0, 37.5)])
    assert whole == pytest.approx(parts.sum(), rel=1e-9)
    grid = np.linspace(0.0, 50.0, 100_001)
    middle = 0.5 * (grid[1:] + grid[:-1])
    n = len(middle)
    targets = Catalogue(middle, np.zeros((n, 0)), np.zeros(n), np.zeros(n, dtype=int))
    assert whole == pytest.approx(known.at(targets).sum() * 50.0 / n, rel=1e-3)
    assert rescaled_times(known, 0.0)[-1] == pytest.approx(
        known.integral(0.0, history.times[-1]), rel=1e-9
    )
    assert np.ptp(known.levels.factors) > 0.2
    assert (len(known.factors.which) > 0) == with_factors
    assert not with_factors or np.ptp(known.factors.factors) > 0.2


def rate_of_one_parent(kept):
    """Only events of mark 2 trigger others, with factors of shape 4; there is no background."""
    return replace(
        line_rate(np.full((1, 1, len(LAGS) - 1, 1), 0.5), level=1e-12),
        factor_law=FactorLaw(1.0, 4.0, 0.0, np.inf, kept),
        effects=EFFECTS.replace(logs=[-30.0, -20.0, 0.0]),
    )


def parent_and_others(times):
    """A parent at time 0, and events of mark 0."""
    n = len(times) + 1
    marks = np.append(2.0, np.zeros(n - 1))
    return Catalogue(np.append(0.0, times), np.zeros((n, 0)), marks, np.zeros(n, dtype=int))


@pytest.mark.parametrize("kept", [1.0, 0.4])
def test_an_event_that_triggers_more_than_expected_is_followed_by_more(rng, kept):
    """A single parent and no background: the factor is that of Gamma and Poisson, exactly."""
    rate = rate_of_one_parent(kept)
    history = parent_and_others(np.sort(rng.uniform(0.0, 5.0, 12)))
    known = rate_given(rate, history, 5.0)
    assert known.factors.which.tolist() == [0]
    # at each knot what is known fades, and a hat function begins to rise with the factor of then
    knots = np.append(LAGS[:-2][LAGS[:-2] < 5.0], 5.0)
    came = np.diff(np.searchsorted(history.times[1:], knots), prepend=0)
    expected = np.diff(hat_integrals(LAGS, knots).sum(axis=1) * 0.5, prepend=0.0)
    count, mean, fade = 0.0, 0.0, kept ** np.log10(LAGS[-1] / LAGS[-2])
    for i, own in enumerate(known.factors.factors[0, 1 : len(knots)]):
        count, mean = fade * (count + came[i]), fade * (mean + expected[i])
        assert own == pytest.approx((4.0 + count) / (4.0 + mean))
    count, mean = count + came[-1], mean + expected[-1]
    assert known.factors.counts[0] == pytest.approx(count)
    assert known.factors.means[0] == pytest.approx(mean)
    assert (kept == 1.0) == (abs(count - 12.0) < 1e-9)
    # later hat functions have the factor that is expected of the time to come
    ahead = np.append(5.0, LAGS[LAGS > 5.0])
    to_come = np.diff(hat_integrals(LAGS, ahead).sum(axis=1) * 0.5)
    for own, more in zip(known.factors.factors[0, len(knots) :], to_come, strict=False):
        factor = (4.0 + count) / (4.0 + mean)
        count, mean = fade * (count + factor * more), fade * (mean + more)
        assert own == pytest.approx((4.0 + count) / (4.0 + mean))
    if kept == 1.0:
        # until the longest lag, all that was expected counts
        later = hat_integrals(LAGS, np.array([15.0]))[0].sum() * 0.5
        assert rate_given(rate, history, 15.0).factors.means[0] == pytest.approx(later)


@pytest.mark.parametrize("kept", [1.0, 0.1])
def test_forecasts_and_expected_counts_are_the_same_however_factors_fade(kept):
    rate, history = rate_of_one_parent(kept), parent_and_others(np.full(6, 0.02))
    # hat functions that rise already keep their factor, so the first counts differ a little
    known, edges = rate_given(rate, history, 0.03), [0.3, 2.0, 6.0, 14.0]
    found = simulate(rate, past_of(known, 0.03), 0.03, 14.0, 20_000, np.random.default_rng(1))
    counts = np.histogram(found.events.times, edges)[0] / 20_000
    expected = known.integrals([(None, a, b) for a, b in pairwise(edges)])
    np.testing.assert_allclose(counts, expected, rtol=0.06)


@pytest.mark.parametrize("kept", [1.0, 0.1])
def test_where_stages_end_changes_nothing(kept):
    """Also with ends in the middle between knots of lags, and at knots."""
    rate, history = rate_of_one_parent(kept), parent_and_others(np.full(40, 0.02))
    known = rate_given(rate, history, 0.03)
    past, found = past_of(known, 0.03), []
    for seed, inner in enumerate([[], [0.3, 4.5, 5.0], LAGS[(LAGS > 0.1) & (LAGS < 12.0)]]):
        ends = [0.03, *inner, 12.0]
        stages = [Stage(a, b, rate, np.random.default_rng([seed, i])) for i, (a, b) in
                  enumerate(pairwise(ends))]  # fmt: skip
        drawn = simulate_stages(stages, past, 20_000)
        late = drawn.paths[drawn.events.times > 4.0]
        found.append(np.bincount(late, minlength=20_000))
    for counts in found[1:]:
        error = np.sqrt((counts.var() + found[0].var()) / 20_000)
        assert abs(counts.mean() - found[0].mean()) < 4.0 * error
        assert counts.var() == pytest.approx(found[0].var(), rel=0.1)


def test_what_an_event_triggered_tells_of_its_factor_times_its_productivity():
    """If more was expected, what came says that the factor is smaller."""
    rate, history = rate_of_one_parent(1.0), parent_and_others(np.full(40, 0.02))
    known = rate_given(rate, history, 5.0)
    twice = replace(rate, effects=rate.effects.replace(logs=[-30.0, -20.0, np.log(2.0)]))
    found = [
        simulate(drawn, past_of(known, 5.0).under(drawn, rate), 5.0, 10.0, 10_000,
                 np.random.default_rng(1)).paths.size
        for drawn in (rate, twice)
    ]  # fmt: skip
    more = 2.0 * (4.0 + known.factors.means[0]) / (4.0 + 2.0 * known.factors.means[0])
    assert found[1] / found[0] == pytest.approx(more, rel=0.03)


@pytest.mark.parametrize("kept", [1.0, 0.1])
def test_what_a_path_brings_is_known_in_the_rest_of_it(kept):
    rate, history, knot = rate_of_one_parent(kept), parent_and_others([]), 4
    ends = LAGS[knot : knot + 4]
    known = rate_given(rate, history, ends[0])
    stages = [Stage(a, b, rate, np.random.default_rng(i)) for i, (a, b) in
              enumerate(pairwise(ends))]  # fmt: skip
    found = simulate_stages(stages, past_of(known, ends[0]), 40_000)
    stage = np.searchsorted(ends, found.events.times) - 1
    first, second, third = (
        np.bincount(found.paths[stage == s], minlength=40_000) for s in range(3)
    )
    means = np.diff(hat_integrals(LAGS, ends).sum(axis=1)) * 0.5
    fade = kept ** np.log10(LAGS[-1] / LAGS[-2])
    # at each knot what is known fades, and then a factor is drawn
    count, mean = known.factors.counts[0], known.factors.means[0]
    count, mean = fade * (count + first), fade * (mean + means[0])
    count, mean = fade * (count + second), fade * (mean + means[1])
    surprise = third - means[2] * (4.0 + count) / (4.0 + mean)
    for told in (np.ones(40_000), first - first.mean(), second - second.mean()):
        product = surprise * told
        assert abs(product.mean()) < 4.0 * product.std() / 200.0
