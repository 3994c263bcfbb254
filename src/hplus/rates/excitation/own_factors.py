"""How much more or less than expected single events trigger: Gamma factors, updated as they come.

Events of one mark differ in how many others they trigger. Those that trigger many, in expectation,
have a factor each, Gamma(k, k) at first. After N triggered events where E were expected it is
Gamma(k + N, k + E); N is a sum of probabilities, as parents are not observed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hplus._checks import Bools, Floats, Ints
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.mark_effects import MarkEffects
from hplus.rates.excitation.pair_rows import added_by_hats
from hplus.rates.excitation.trigger import Trigger
from hplus.rates.excitation.visible import lag_integral

LEAST_OFFSPRING = 1.0
"""Events that trigger so many, in expectation, have a factor of their own."""


class OwnFactors(NamedTuple):
    """Which events have a factor of their own, and how it changed with the time since them.

    `great` (G,) are these events, and `factors` (G, L) are those of hat functions of lags.
    `counts` and `means` (G,) are how many events each triggered, and how many were expected.
    """

    great: Ints
    factors: Floats
    counts: Floats
    means: Floats

    def weigh(self, masses: Floats) -> Floats:
        """What events add by lag (n, L), times their factors."""
        if len(self.great):
            masses = masses.copy()
            masses[self.great] *= self.factors
        return masses


class GreatEvents(NamedTuple):
    """Events with a factor of their own, in the order of time, and what they add."""

    times: Floats
    places: Floats
    types: Ints
    weights: Floats
    reach: Floats
    masses: Floats


def is_great(trigger: Trigger, effects: MarkEffects, events: Catalogue) -> Bools:
    """Which events have a factor of their own, (n,)."""
    offspring = trigger.integral().sum(axis=1)[events.types]
    return effects.productivity(events.marks) * offspring >= LEAST_OFFSPRING


def great_events(
    trigger: Trigger, effects: MarkEffects, events: Catalogue, masses: Floats
) -> GreatEvents:
    """These events, all of them great, with what they add by lag (G, L)."""
    weights, reach = effects.productivity(events.marks), effects.reach(events.marks)
    return GreatEvents(
        events.times, events.places, events.types, weights / reach ** (2 * events.in_place), reach,
        masses,
    )  # fmt: skip


@njit(cache=True, nogil=True, inline="always")
def _added(great, g, t, x, kind, trigger):
    """What a great event adds by two hat functions of lags: see `added_by_hats`."""
    lags, distances, table = trigger
    far = 0.0
    if len(distances):
        dx, dy = x[0] - great.places[g, 0], x[1] - great.places[g, 1]
        far = np.sqrt(dx * dx + dy * dy) / great.reach[g]
        if far >= distances[-1]:
            return 0, 0.0, 0.0
    k, low, high = added_by_hats(
        table[great.types[g], kind], t - great.times[g], far, lags, distances
    )
    return k, great.weights[g] * low, great.weights[g] * high


@njit(cache=True, nogil=True)
def _update(great, g, factors, done, counts, lag, lags, shape):
    """The factors of the hat functions that have begun to rise before a lag."""
    while done[g] < len(lags) - 1 and lag >= lags[done[g] - 1]:
        mean = lag_integral(great.masses[g], lags, lags[done[g] - 1])
        factors[g, done[g]] = (shape + counts[g]) / (shape + mean)
        done[g] += 1


@njit(cache=True, nogil=True)
def follow_great(t, x, kinds, rates, great, trigger, shape, until):
    """Factors (G, L) of great events as events t (n,) come, and what they triggered (G,).

    `rates` (n,) are those without factors. The factor of a hat function is known when it begins to
    rise, at the knot before its own, so that the rate depends on earlier events only.
    """
    lags, G, L = trigger[0], len(great.times), len(trigger[0]) - 1
    factors, counts, first = np.ones((G, L)), np.zeros(G), 0
    done, shares = np.ones(G, dtype=np.int64), np.zeros(G)
    for i in range(len(t)):
        while first < G and t[i] - great.times[first] >= lags[-1]:
            first += 1
        rate, last = rates[i], first
        for g in range(first, G):
            if great.times[g] >= t[i]:
                break
            last = g + 1
            _update(great, g, factors, done, counts, t[i] - great.times[g], lags, shape)
            k, low, high = _added(great, g, t[i], x[i], kinds[i], trigger)
            shares[g] = factors[g, max(k, 0)] * low + factors[g, min(k + 1, L - 1)] * high
            rate += shares[g] - low - high
        for g in range(first, last):
            counts[g] += shares[g] / rate
    for g in range(G):
        lag = until - great.times[g]
        _update(great, g, factors, done, counts, lag, lags, shape)
        mean = lag_integral(great.masses[g], lags, max(lag, 0.0))
        factors[g, done[g] :] = (shape + counts[g]) / (shape + mean)
    return factors, counts


@njit(cache=True, nogil=True)
def surplus(t, x, kinds, great, trigger, factors):
    """What great events add to the rate at each target, sorted by time, beyond a factor of 1."""
    lags, G, L = trigger[0], len(great.times), len(trigger[0]) - 1
    found, first = np.zeros(len(t)), 0
    for i in range(len(t)):
        while first < G and t[i] - great.times[first] >= lags[-1]:
            first += 1
        for g in range(first, G):
            if great.times[g] >= t[i]:
                break
            k, low, high = _added(great, g, t[i], x[i], kinds[i], trigger)
            found[i] += (factors[g, max(k, 0)] - 1.0) * low
            found[i] += (factors[g, min(k + 1, L - 1)] - 1.0) * high
    return found
