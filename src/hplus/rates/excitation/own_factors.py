"""How much more or less than expected single events trigger: Gamma factors, updated as they come.

Events of one mark differ in how many others they trigger. Those that are not expected to trigger
next to none have a factor each, Gamma(k, k) at first. After N triggered events where E were
expected it is Gamma(k + N, k + E); N is a sum of probabilities, as parents are not observed.
Sequences differ in how they decay, too: with the time since the event, N and E fade.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hplus._checks import Floats, Ints
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.factor_law import FactorLaw, offspring
from hplus.rates.excitation.mark_effects import MarkEffects
from hplus.rates.excitation.pair_rows import added_by_hats, direction_factor, hats_at, knots_per_log
from hplus.rates.excitation.trigger import Trigger
from hplus.rates.excitation.visible import lag_integral

LEAST_LEFT = 0.05
"""A factor is 1 from the lag on after which fewer events are expected."""

LEAST_SHARE = 1e-6
"""Events that add a smaller share of the rate at another one do not learn from it."""


class VaryingEvents(NamedTuple):
    """Events with a factor of their own, in the order of time, and what they add.

    `masses` (G, L) are what they add by lag in the region. What follows within a lag `blind` (G,)
    does not count; factors are 1 from hat function `ends` (G,) on. From knot to knot of lags, what
    is known of a factor counts `kept` as much.
    """

    times: Floats
    places: Floats
    types: Ints
    weights: Floats
    reach: Floats
    shapes: Floats
    masses: Floats
    blind: Floats
    ends: Ints
    bearings: Floats
    kept: float


class OwnFactors(NamedTuple):
    """Which events have a factor of their own, and how it changed with the time since them.

    `which` (G,) are these events, and `factors` (G, L) are those of hat functions of lags.
    `counts` and `means` (G,) are how many events each triggered, and how many were expected, as far
    as they still count.
    """

    which: Ints
    varying: VaryingEvents
    factors: Floats
    counts: Floats
    means: Floats

    def weigh(self, masses: Floats, first: int = 0) -> Floats:
        """What events from the first on add by lag (n, L), times their factors."""
        some = slice(*np.searchsorted(self.which, [first, first + len(masses)]))
        if some.start < some.stop:
            masses = masses.copy()
            masses[self.which[some] - first] *= self.factors[some]
        return masses


def varying_events(
    trigger: Trigger, effects: MarkEffects, law: FactorLaw, events: Catalogue, masses: Floats
) -> VaryingEvents:
    """These events, all of which vary, which add so much by lag in the region (G, L)."""
    weights, reach = effects.productivity(events.marks), effects.reach(events.marks)
    L = masses.shape[1]
    # one knot beyond the last one at which it is faster
    fast = np.max(np.where(masses > law.fastest, np.arange(2, L + 2), 0), axis=1)
    left = np.cumsum((masses * trigger.lag_integrals)[:, ::-1], axis=1)[:, ::-1]
    return VaryingEvents(
        events.times,
        events.plane,
        events.types,
        weights / reach**trigger.axes if events.in_place else weights,
        reach,
        law.shapes(offspring(trigger, effects, events)),
        np.ascontiguousarray(masses),
        np.append(0.0, trigger.lags)[fast],
        np.maximum((left >= LEAST_LEFT).sum(axis=1), 1),
        events.each_bearing,
        law.fade(trigger.lags),
    )


@njit(cache=True, nogil=True, inline="always")
def added_by_one(varying, g, t, x, kind, trigger, per_log):
    """What an event that varies adds by two hat functions of lags: see `added_by_hats`."""
    lags, distances, table = trigger
    far, dx, dy = 0.0, 0.0, 0.0
    if len(distances):
        dx, dy = x[0] - varying.places[g, 0], x[1] - varying.places[g, 1]
        far = np.sqrt(dx * dx + dy * dy) / varying.reach[g]
        if far >= distances[-1]:
            return 0, 0.0, 0.0
    k, low, high = added_by_hats(
        table[varying.types[g], kind], t - varying.times[g], far, lags, distances, per_log,
        varying.bearings, g, dx, dy,
    )  # fmt: skip
    return k, varying.weights[g] * low, varying.weights[g] * high


@njit(cache=True, nogil=True)
def _update(varying, g, factors, done, known, lag, lags):
    """The factors of the hat functions that have begun to rise before a lag.

    `known` (2, G) are counts and means up to the last knot: at each knot, they fade.
    """
    while done[g] < varying.ends[g] and lag >= lags[done[g] - 1]:
        known[1, g] += _seen(varying, g, done[g] - 1, lags[done[g] - 1], lags)
        known[:, g] *= varying.kept
        factors[g, done[g]] = _expected(varying, g, known)
        done[g] += 1


@njit(cache=True, nogil=True)
def _look_ahead(varying, g, factors, first, known, lag, lags):
    """The factors of hat functions from `first` on, if what follows a lag comes as expected."""
    k, count, mean = varying.shapes[g], known[0, g], known[1, g]
    factor, past = (k + count) / (k + mean), _seen(varying, g, first - 1, lag, lags)
    for d in range(first, varying.ends[g]):
        to_come = _seen(varying, g, d - 1, lags[d - 1], lags) - past
        count, mean = varying.kept * (count + factor * to_come), varying.kept * (mean + to_come)
        factor, past = (k + count) / (k + mean), 0.0
        factors[g, d] = factor


@njit(cache=True, nogil=True)
def _seen(varying, g, knot, lag, lags):
    """How many events are expected from the knot before this one to a lag, of those that count."""
    first = max(varying.blind[g], lags[knot - 1] if knot else 0.0)
    if lag <= first:
        return 0.0
    return lag_integral(varying.masses[g], lags, lag) - lag_integral(varying.masses[g], lags, first)


@njit(cache=True, nogil=True)
def _expected(varying, g, known):
    """The mean of a factor: (k + N) / (k + E)."""
    return (varying.shapes[g] + known[0, g]) / (varying.shapes[g] + known[1, g])


@njit(cache=True, nogil=True, inline="always")
def still_active(varying, lags, t, active, n, following):
    """Earlier events that vary whose factors are not yet 1 again: how many, and the next."""
    while following < len(varying.times) and varying.times[following] < t:
        active[n] = following
        n, following = n + 1, following + 1
    kept = 0
    for a in range(n):
        g = active[a]
        if t - varying.times[g] < lags[varying.ends[g]]:
            active[kept] = g
            kept += 1
    return kept, following


class VaryingPairs(NamedTuple):
    """What events that vary add at later events, by two hat functions of lags each.

    Those of event i are from starts[i] to starts[i + 1]: `which` events that vary, the number of
    the first hat function, what it adds, and what the next one adds.
    """

    starts: Ints
    which: NDArray[np.int32]
    hats: NDArray[np.int16]
    low: NDArray[np.float32]
    high: NDArray[np.float32]


@njit(cache=True, nogil=True)
def varying_pairs(t, x, kinds, rates, varying, trigger):
    """Pairs of events that vary and events t (n,) at which they add a share of the rates (n,)."""
    lags, distances, _ = trigger
    per_log = knots_per_log(lags), knots_per_log(distances)
    active, n, following = np.zeros(len(varying.times), dtype=np.int64), 0, 0
    starts, size = np.zeros(len(t) + 1, dtype=np.int64), 0
    which, hats = np.zeros(1024, dtype=np.int32), np.zeros(1024, dtype=np.int16)
    low, high = np.zeros(1024, dtype=np.float32), np.zeros(1024, dtype=np.float32)
    for i in range(len(t)):
        n, following = still_active(varying, lags, t[i], active, n, following)
        if size + n > len(which):
            more = size + n + len(which) // 2
            which, hats = _longer(which, size, more), _longer(hats, size, more)
            low, high = _longer(low, size, more), _longer(high, size, more)
        for a in range(n):
            k, left, right = added_by_one(
                varying, active[a], t[i], x[i], kinds[i], trigger, per_log
            )
            if left + right > LEAST_SHARE * rates[i]:
                which[size], hats[size], low[size], high[size] = active[a], k, left, right
                size += 1
        starts[i + 1] = size
    return VaryingPairs(starts, which[:size], hats[:size], low[:size], high[:size])


@njit(cache=True, nogil=True)
def _longer(array, size, more):
    """The first numbers of an array in a longer one."""
    found = np.zeros(more, dtype=array.dtype)
    found[:size] = array[:size]
    return found


@njit(cache=True, nogil=True)
def follow_factors(t, rates, pairs, varying, lags, until):
    """Factors (G, L) of events that vary as events t (n,) come, and what is known of them (2, G).

    `rates` (n,) are those without factors. The factor of a hat function is known when it begins to
    rise, at the knot before its own, so that the rate depends on earlier events only. What is known
    in the end is how many events each triggered, and how many were expected. For later hat
    functions it fades, assuming that events come as expected until then.
    """
    G, L = len(varying.times), len(lags) - 1
    factors, known, found = np.ones((G, L)), np.zeros((2, G)), rates.copy()
    done, shares = np.ones(G, dtype=np.int64), np.zeros(G)
    for i in range(len(t)):
        own = range(pairs.starts[i], pairs.starts[i + 1])
        for p in own:
            g, k, low, high = pairs.which[p], pairs.hats[p], pairs.low[p], pairs.high[p]
            _update(varying, g, factors, done, known, t[i] - varying.times[g], lags)
            shares[g] = factors[g, max(k, 0)] * low + factors[g, min(k + 1, L - 1)] * high
            found[i] += shares[g] - low - high
        for p in own:
            g = pairs.which[p]
            if t[i] - varying.times[g] >= varying.blind[g]:
                known[0, g] += shares[g] / found[i]
    for g in range(G):
        lag = until - varying.times[g]
        _update(varying, g, factors, done, known, lag, lags)
        known[1, g] += _seen(varying, g, done[g] - 1, min(lag, lags[done[g]]), lags)
        _look_ahead(varying, g, factors, done[g], known, lag, lags)
    return factors, found, known


@njit(cache=True, nogil=True)
def surplus(t, x, kinds, varying, trigger, factors):
    """What events that vary add to the rate at targets, sorted by time, beyond a factor of 1."""
    lags, G, L = trigger[0], len(varying.times), len(trigger[0]) - 1
    per_log = knots_per_log(lags), knots_per_log(trigger[1])
    active, n, following = np.zeros(G, dtype=np.int64), 0, 0
    found = np.zeros(len(t))
    for i in range(len(t)):
        n, following = still_active(varying, lags, t[i], active, n, following)
        for a in range(n):
            g = active[a]
            k, low, high = added_by_one(varying, g, t[i], x[i], kinds[i], trigger, per_log)
            found[i] += (factors[g, max(k, 0)] - 1.0) * low
            found[i] += (factors[g, min(k + 1, L - 1)] - 1.0) * high
    return found


@njit(cache=True, nogil=True)
def add_surplus_rows(t, x, varying, lags, distances, factors, columns, rows):
    """Add what events that vary add beyond a factor of 1 to the columns of lags and distances.

    `columns` (G,) is where those of each event begin, as in `add_pair_rows`.
    """
    L, D = len(lags) - 1, max(len(distances) - 1, 1)
    per_log = knots_per_log(lags), knots_per_log(distances)
    active, n, following = np.zeros(len(varying.times), dtype=np.int64), 0, 0
    for i in range(len(t)):
        n, following = still_active(varying, lags, t[i], active, n, following)
        for a in range(n):
            g = active[a]
            far, dx, dy = 0.0, 0.0, 0.0
            if len(distances):
                dx, dy = x[i, 0] - varying.places[g, 0], x[i, 1] - varying.places[g, 1]
                far = np.sqrt(dx * dx + dy * dy) / varying.reach[g]
                if far >= distances[-1]:
                    continue
            k, u = hats_at(lags, per_log[0], t[i] - varying.times[g])
            d, v = hats_at(distances, per_log[1], far) if len(distances) else (0, 0.0)
            for r in range(max(d, 0), min(d + 2, D)):
                wd = (v if r > d else 1.0 - v) * direction_factor(varying.bearings, g, r, dx, dy)
                for q in range(max(k, 0), min(k + 2, L)):
                    w = varying.weights[g] * (factors[g, q] - 1.0) * (u if q > k else 1.0 - u)
                    rows[i, columns[g] + q * D + r] += w * wd
