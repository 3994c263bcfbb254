"""How many events each event triggered: sums of probabilities; compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from hplus._checks import Floats
from hplus.rates.excitation.conditional_rate import ConditionalRate
from hplus.rates.excitation.own_factors import added_by_one, still_active, varying_events
from hplus.rates.excitation.pair_rows import knots_per_log


@njit(cache=True, nogil=True)
def _shares_added(t, x, kinds, rates, events, trigger, factors):
    """The shares of the rates (n,) at targets, sorted by time, that each event adds, summed, (m,).

    `events` are those of `VaryingEvents`, with factors (m, L).
    """
    lags, m, L = trigger[0], len(events.times), len(trigger[0]) - 1
    per_log = knots_per_log(lags), knots_per_log(trigger[1])
    active, n, following = np.zeros(m, dtype=np.int64), 0, 0
    found = np.zeros(m)
    for i in range(len(t)):
        n, following = still_active(events, lags, t[i], active, n, following)
        for a in range(n):
            j = active[a]
            k, low, high = added_by_one(events, j, t[i], x[i], kinds[i], trigger, per_log)
            both = factors[j, max(k, 0)] * low + factors[j, min(k + 1, L - 1)] * high
            found[j] += both / rates[i]
    return found


def triggered_by_each(known: ConditionalRate, start: float) -> Floats:
    """How many events since the start each source probably triggered, (m,).

    The sum of the probabilities that it is their parent, however small these are.
    """
    rate, sources, targets = known.rate, known.sources, known.sources.since(start)
    events = varying_events(rate.trigger, rate.effects, rate.factor_law, sources, known.masses)
    last = np.full(len(sources), known.masses.shape[1])  # no event is passed over
    factors = np.ones(known.masses.shape)
    factors[known.factors.which] = known.factors.factors
    found: Floats = _shares_added(
        targets.times, targets.plane, targets.types, known.at(targets),
        events._replace(ends=last), rate.trigger.arrays, factors,
    )  # fmt: skip
    return found
