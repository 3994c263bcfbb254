"""Times of events rescaled by the conditional rate: gaps are exponential if the rate is right."""

from __future__ import annotations

import numpy as np
from numba import njit

from hplus._checks import Floats
from hplus.rates.excitation.conditional_rate import ConditionalRate
from hplus.rates.excitation.visible import lag_integral


@njit(cache=True, nogil=True)
def _triggered(t, times, start, masses, knots):
    """∫ of what events t (m,) add between each of `times` (n,) and the one before, (n,)."""
    found = np.zeros(len(times))
    first = 0
    for j in range(len(t)):
        while first < len(times) and times[first] <= t[j]:
            first += 1
        before = lag_integral(masses[j], knots, max(start - t[j], 0.0))
        for i in range(first, len(times)):
            lag = times[i] - t[j]
            now = lag_integral(masses[j], knots, lag)
            found[i] += now - before
            before = now
            if lag > knots[-1]:
                break
    return found


def rescaled_times(known: ConditionalRate, start: float) -> Floats:
    """∫λ of all types over the region from the start to each event since then, (n,)."""
    rate, sources, levels = known.rate, known.sources, known.levels
    events = sources.times[sources.times >= start]
    inner = levels.edges[(levels.edges > start) & (levels.edges < np.max(events, initial=start))]
    times = np.union1d(events, inner)
    own = sum(rate.background.cumulative(times, start, kind) for kind in range(rate.types))
    triggered = _triggered(sources.times, times, start, known.masses, rate.trigger.lags)
    # the level is that before each time: it changes at the edges
    parts = np.diff(own, prepend=0.0) * levels.before(times) + triggered
    return np.cumsum(parts)[np.searchsorted(times, events)]
