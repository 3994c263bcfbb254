"""How much single events differ in how many they trigger, learned from how events came."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.optimize import minimize_scalar

from hplus._checks import Floats, Ints
from hplus.rates.excitation.conditional_rate import masses_of
from hplus.rates.excitation.excitation_fit import ObservedEvents
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import NO_FACTORS, FactorLaw, offspring
from hplus.rates.excitation.own_factors import (
    VaryingEvents,
    follow_factors,
    varying_events,
    varying_pairs,
)
from hplus.rates.excitation.visible import visible_lags

LEAST_OFFSPRING = 0.05
"""Events that trigger fewer, in expectation, have no factor of their own."""

MOST_LEARNED, MOST_LEARNED_IN_PLACE, MAX_NEAR_PAIRS = 2e6, 2e7, 1e9
"""Pairs of events and events with a factor that are near in time, at most: while the law is
learned, the same in place and time, where most of them are far apart, and in the end."""

MOST_PAIRS = 5e7
"""Pairs that are kept in memory, at most: other events trigger as expected."""

SHAPES, SHAPE_STEPS, SHAPE_TOLERANCE = (0.02, 50.0), 8, 0.2
"""Shapes that are tried: the range, how many, and how exact the logarithm is."""

FIRST_SHAPE = 20.0
"""If factors that vary so little are no gain, others are not tried."""

GROWTH = 0.5
"""The shape grows with the square root of the offspring: large sequences vary less."""

FASTEST_EVENTS, FASTEST_SHARES = 10, (0.3, 0.1, 0.03)
"""Events in a row whose rate is the largest that is known to be recorded, and shares of it that are
tried as the rate above which not all events are."""

KEPT = (0.5, 0.2, 0.1, 0.05)
"""How much what is known of a factor counts when ten times as much time has passed: values that are
tried one after another, as long as events become likelier."""

MIN_FACTOR_GAIN, MIN_FADING_GAIN = 3.0, 10.0
"""Nats that factors must gain, and that what is known of them must gain by fading: as parents are
not observed, it gains a few nats even if factors never change."""


def learn_factor_law(
    observed: ObservedEvents, rate: ExcitedRate, rates: Floats, known: FactorLaw = NO_FACTORS
) -> FactorLaw:
    """The law under which each event is predicted best from those before it; none if it is no gain.

    `rates` (n,) are those at the events without factors, from which the rates with the factors as
    they were known before each event follow. Their background should be learned from other events.
    Of a law that is `known` for other weights, the shape alone is learned anew.
    """
    each = offspring(rate.trigger, rate.effects, observed.events)
    near = _events_near(observed.events.times, float(rate.trigger.lags[-1]))
    most = MOST_LEARNED if observed.region is None else MOST_LEARNED_IN_PLACE
    some = _some_of(each, most / near)
    if not len(some):
        return NO_FACTORS
    gain, pairs = _gain_with(observed, rate, rates, some)
    if known == NO_FACTORS:
        law = FactorLaw(LEAST_OFFSPRING, 1.0, GROWTH, np.inf)
        law = _best_rigid_law(law, gain, fastest_rate(observed.events.times))
        law = _best_fading_law(law, gain, rate.trigger.lags)
    else:
        law = _best_shape(known, gain)
    most = min(MAX_NEAR_PAIRS / near, MOST_PAIRS / max(pairs / len(some), 1e-9))
    law = law if law == NO_FACTORS else law.replace(least=_least_of(each, most))
    return law if (each >= law.least).any() else NO_FACTORS


def _events_near(times: Floats, longest: float) -> float:
    """How many events there are within the longest lag before another one, roughly."""
    return len(times) * min(longest / max(float(np.ptp(times)), 1e-300), 1.0)


def _some_of(offspring: Floats, most: float) -> Ints:
    """So many events: half of them those that trigger most, half of them some of the others."""
    order = np.argsort(-offspring, kind="stable")
    order = order[: np.count_nonzero(offspring >= LEAST_OFFSPRING)]
    if len(order) > most:
        half = int(0.5 * most)
        others = np.sort(order[half:])
        order = np.append(order[:half], others[:: -(-len(others) // max(half, 1))])
    return np.sort(order)


def _least_of(offspring: Floats, most: float) -> float:
    """What events trigger at least so that so many of them have a factor, at most."""
    if most >= len(offspring):
        return LEAST_OFFSPRING
    return max(LEAST_OFFSPRING, float(np.nextafter(np.sort(offspring)[-int(most) - 1], np.inf)))


def _gain_with(
    observed: ObservedEvents, rate: ExcitedRate, rates: Floats, which: Ints
) -> tuple[Callable[[FactorLaw], float], int]:
    """What laws gain, in nats, if these events have a factor, and how many pairs they are in."""
    events, trigger, effects = observed.events, rate.trigger, rate.effects
    masses = masses_of(rate, events, observed.region)[which]
    inside = events.times >= observed.start
    lags = visible_lags(trigger.lags, events.times[which], observed.start, observed.end)

    def varying_of(law: FactorLaw) -> VaryingEvents:
        return varying_events(trigger, effects, law, events.picked(which), masses)

    # whatever their shape, events that vary add the same at later ones
    varying = varying_of(FactorLaw(LEAST_OFFSPRING, 1.0, GROWTH, np.inf))
    pairs = varying_pairs(events.times, events.plane, events.types, rates, varying, trigger.arrays)

    @cache
    def gain(law: FactorLaw) -> float:
        factors, found, _ = follow_factors(
            events.times, rates, pairs, varying_of(law), trigger.lags, observed.end
        )
        logs = np.log(found[inside] / rates[inside]).sum()
        return float(logs - np.vdot(factors - 1.0, masses * lags))

    return gain, len(pairs.low)


def _best_rigid_law(
    law: FactorLaw, gain: Callable[[FactorLaw], float], fastest: float
) -> FactorLaw:
    """The law of largest gain if all that is known is kept: its shape, the fastest rate."""
    if gain(law.replace(shape=FIRST_SHAPE)) <= 0.0:
        return NO_FACTORS
    law = _best_shape(law, gain)
    if gain(law) < MIN_FACTOR_GAIN:
        return NO_FACTORS
    return max([law, *(law.replace(fastest=fastest * s) for s in FASTEST_SHARES)], key=gain)


def _best_fading_law(law: FactorLaw, gain: Callable[[FactorLaw], float], lags: Floats) -> FactorLaw:
    """The law of largest gain among those that keep less, if that gains enough."""
    fading = law
    for kept in KEPT if law != NO_FACTORS else ():
        faster = fading.replace(kept=kept)
        # with the shape that gives what came last as much weight as before
        faster = faster.replace(shape=fading.shape * faster.fade(lags) / fading.fade(lags))
        if gain(faster) <= gain(fading):
            break
        fading = _best_shape(faster, gain)
    return fading if gain(fading) >= gain(law) + MIN_FADING_GAIN else law


def _best_shape(law: FactorLaw, gain: Callable[[FactorLaw], float]) -> FactorLaw:
    """The law with the shape of largest gain."""
    best = minimize_scalar(
        lambda z: -gain(law.replace(shape=float(np.exp(z)))),
        bounds=np.log(SHAPES),
        method="bounded",
        options={"xatol": SHAPE_TOLERANCE, "maxiter": SHAPE_STEPS},
    )
    return law.replace(shape=float(np.exp(best.x)))


def fastest_rate(times: Floats) -> float:
    """The largest rate at which several events in a row came."""
    spans = times[FASTEST_EVENTS:] - times[:-FASTEST_EVENTS]
    return float(FASTEST_EVENTS / max(np.min(spans, initial=np.inf), 1e-300))
