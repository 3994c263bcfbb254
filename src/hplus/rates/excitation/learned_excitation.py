"""A self-exciting rate from events: knots, the alternation, the certificate, posterior draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from hplus._checks import Floats
from hplus.rates.excitation.alternation import LearnCycles, learn_excitation
from hplus.rates.excitation.background import NO_CYCLES, Background
from hplus.rates.excitation.bearing_learning import with_bearings
from hplus.rates.excitation.certified import largest_likelihood
from hplus.rates.excitation.conditional_rate import followed, masses_of, rate_given
from hplus.rates.excitation.drift import BLOCKS, Drift
from hplus.rates.excitation.excitation_fit import (
    ExcitationFit,
    ObservedEvents,
    parts_of,
    with_weights,
)
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import NO_FACTORS, FactorLaw
from hplus.rates.excitation.factor_learning import learn_factor_law
from hplus.rates.excitation.last_background import with_better_place
from hplus.rates.excitation.learned_places import LearnPlace, rates_at_events
from hplus.rates.excitation.log_weights import log_likelihood
from hplus.rates.excitation.mark_effects import (
    NO_MARKS,
    first_effects,
    learn_mark_law,
    slope_precision,
)
from hplus.rates.excitation.posterior_draws import mark_draws, weight_draws
from hplus.rates.excitation.rivals import best_rival
from hplus.rates.excitation.trigger import Trigger, log_spaced
from hplus.solvers.result import SolverResult

LAGS_PER_DECADE, LAGS_PER_DECADE_IN_PLACE, DISTANCES_PER_DECADE = 8.0, 4.0, 6.0
"""Knots of the trigger."""

LONGEST_LAG_SHARE, LONGEST_LAG_GAPS = 1.0 / 3.0, 1000.0
"""The longest lag: this share of the time observed and, on a line, so many mean gaps, at most."""

LONGEST_DISTANCE_SHARE = 0.25
"""The longest distance: this share of the longer side and, in the plane, the width at most."""

SMALL_QUANTILE = 0.01
"""The first knots are this quantile of gaps, or of distances to the nearest event."""

MOST_DECADES_OF_LAGS, MOST_DECADES_OF_DISTANCES = 7.0, 3.0

EVENTS_PER_LEVEL, MOST_LEVELS = 100, 11
"""Events for each level of the background in time, at least, and how many levels at most."""

FACTOR_ROUNDS, MOST_REPEATED = 4, 200_000
"""Rounds of factors of events and weights, and events up to which there is more than one."""


class Knots(NamedTuple):
    """Knots of lags and of distances; no distances on a line."""

    lags: Floats
    distances: Floats


class LearnedExcitation(NamedTuple):
    """A rate, its certificate, what smoothing costs per event, and log posteriors by round.

    `lag_spread` is how much lower or higher the branching ratio is under other longest lags, and
    `evidence` that for a trigger, in nats, beside the best rate without one: its `rival`, in words.
    """

    rate: ExcitedRate
    lag_spread: tuple[float, float]
    evidence: float
    rival: str
    result: SolverResult
    smoothing_cost: float
    trace: list[float]


def wanted_knots(
    observed: ObservedEvents, longest_lag: float | None, longest_distance: float | None
) -> Knots:
    """Knots from the smallest gaps and distances to the longest."""
    times, span = observed.inside.times, observed.end - observed.start
    in_place = observed.region is not None
    longest = LONGEST_LAG_SHARE * span
    if not in_place:
        longest = min(longest, LONGEST_LAG_GAPS * span / len(times))
    longest = longest if longest_lag is None else float(longest_lag)
    gaps = np.diff(times)
    first = _first(gaps, longest, MOST_DECADES_OF_LAGS)
    lags = log_spaced(first, longest, LAGS_PER_DECADE_IN_PLACE if in_place else LAGS_PER_DECADE)
    if observed.region is None:
        return Knots(lags, np.zeros(0))
    low, high = observed.region.bounds()
    longer = float(np.max(high - low))
    # what is triggered farther away lies outside a narrow region, where nobody sees it
    width = float(observed.region.volume) / longer if len(low) > 1 else longer
    farthest = min(LONGEST_DISTANCE_SHARE * longer, width)
    farthest = farthest if longest_distance is None else float(longest_distance)
    places = observed.inside.places
    nearest = cKDTree(places).query(places, k=2)[0][:, 1] if len(places) > 1 else np.zeros(0)
    first = _first(nearest, farthest, MOST_DECADES_OF_DISTANCES)
    return Knots(lags, log_spaced(first, farthest, DISTANCES_PER_DECADE))


def _first(sizes: Floats, longest: float, most_decades: float) -> float:
    """The first knot: a small quantile of positive sizes, so many decades below the longest."""
    some = sizes[(sizes > 0.0) & np.isfinite(sizes)]
    first = float(np.quantile(some, SMALL_QUANTILE)) if len(some) else 0.0
    return float(np.clip(first, longest * 10.0**-most_decades, 0.1 * longest))


def learn_excited_rate(
    observed: ObservedEvents,
    knots: Knots,
    learn_place: LearnPlace,
    last_places: Sequence[LearnPlace],
    learn_cycles: LearnCycles,
    seed: int,
) -> LearnedExcitation:
    """The rate under the smoothed fit, and the certificate of the problem without smoothing.

    `learn_place` learns the background in each round, and in the end the best of `last_places`, if
    there are any.
    """
    fit = first_fit(observed, knots)
    in_place = observed.region is not None
    each = learn_place if in_place else None
    fit, trace = learn_excitation(observed, fit, each, learn_cycles)
    observed, fit = with_bearings(observed, fit)
    if in_place and last_places:
        fit = with_better_place(observed, fit, last_places)
    fit, law = _with_factors(observed, fit)
    result, cost = _certified(observed, fit)
    rng = np.random.default_rng(seed)
    rate = replace(_rate_of(observed, fit), draws=weight_draws(observed, fit, rng), factor_law=law)
    rate = replace(
        rate,
        drift=_learned_drift(observed, fit, rate),
        mark_draws=mark_draws(observed, rate, fit.mark_precision, rng),
    )
    rival = best_rival(observed, fit)
    evidence = fit.log_evidence - rival.evidence
    return LearnedExcitation(rate, fit.lag_spread, evidence, rival.words, result, cost, trace)


def _with_factors(observed: ObservedEvents, fit: ExcitationFit) -> tuple[ExcitationFit, FactorLaw]:
    """The fit given factors of events that trigger more or fewer than expected, and their law.

    Weights that were learned without factors trigger too many: both are learned in turn.
    """
    before = observed.events.picked(observed.events.times < observed.start)
    law = NO_FACTORS
    for _ in range(FACTOR_ROUNDS if len(observed.events) <= MOST_REPEATED else 1):
        rate = _rate_of(observed, fit)
        here = rates_at_events(observed, replace(fit, factors=None))[1]
        rates = np.append(rate.without_factors(before, before), here)
        law = learn_factor_law(observed, rate, rates, law)
        if law == NO_FACTORS:
            break
        masses = masses_of(rate, observed.events, observed.region)
        own = followed(replace(rate, factor_law=law), observed.events, masses, observed.end, rates)
        fit = with_weights(observed, replace(fit, factors=own), learn=False)
    return fit, law


def _rate_of(observed: ObservedEvents, fit: ExcitationFit) -> ExcitedRate:
    """The rate of a fit, whose level does not drift yet, and which has no draws."""
    laws = tuple(
        learn_mark_law(observed.inside.marks[observed.inside.types == kind])
        for kind in range(observed.types)
    )
    return ExcitedRate(
        observed.region,
        fit.trigger,
        fit.effects,
        fit.background,
        laws,
        np.zeros((0, observed.types, 0)),
        Drift(observed.end, (observed.end - observed.start) / BLOCKS, 0.0, 1.0),
        direction_strength=fit.direction_strength,
    )


def first_fit(observed: ObservedEvents, knots: Knots) -> ExcitationFit:
    """Where the alternation begins: nothing is known yet but the knots."""
    per_type = len(observed.inside) // observed.types
    levels = int(np.clip(per_type // EVENTS_PER_LEVEL, 1, MOST_LEVELS))
    times = np.linspace(observed.start, observed.end, levels)
    shape = (observed.types, observed.types, len(knots.lags) - 1, max(len(knots.distances) - 1, 1))
    marks, axes = observed.events.marks, max(observed.events.places.shape[1], 1)
    effects = first_effects(marks) if np.ptp(marks) > 0.0 else NO_MARKS
    return ExcitationFit(
        Trigger(knots.lags, knots.distances, np.zeros(shape), axes),
        effects,
        Background((), times, np.zeros((observed.types, levels)), NO_CYCLES),
        np.ones(len(observed.inside)),
        np.ones(len(observed.inside)),
        slope_precision(effects.knots, learn_mark_law(observed.inside.marks).excess),
    )


def _learned_drift(observed: ObservedEvents, fit: ExcitationFit, rate: ExcitedRate) -> Drift:
    """A random walk with the steps that the trend of the background had."""
    drift, knots = rate.drift, fit.background.knots
    if len(knots) < 2:
        return drift
    # strengths[0] is the precision of a step from knot to knot
    steps = np.mean([1.0 / prior.strengths[0] for prior in fit.priors])
    edges = np.linspace(observed.start, observed.end, BLOCKS + 1)
    counts = np.histogram(observed.inside.times, edges)[0]
    parts = [(None, a, b) for a, b in pairwise(edges)]
    means = rate_given(rate, observed.events, observed.end).integrals(parts)
    dispersion = max(float(np.mean((counts - means) ** 2 / np.maximum(means, 1e-9))), 1.0)
    return drift.replace(variance=float(steps / (knots[1] - knots[0])), dispersion=dispersion)


def _certified(observed: ObservedEvents, fit: ExcitationFit) -> tuple[SolverResult, float]:
    """The certificate of the unsmoothed problem, and how much smoothing costs per event."""
    results, lost = [], 0.0
    for kind in range(observed.types):
        parts, weights = parts_of(observed, fit, kind), np.exp(fit.modes[kind].log_weights)
        best, result = largest_likelihood(parts, weights)
        results.append(result)
        lost += log_likelihood(parts, best) - log_likelihood(parts, weights)
    return SolverResult.total(results), lost / len(observed.inside)
