"""Times of events rescaled by the conditional rate: gaps are exponential if the rate is right."""

from __future__ import annotations

import numpy as np
from numba import njit

from hplus._checks import Floats
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.excited_rate import ExcitedRate, offspring_of


@njit(cache=True, nogil=True)
def _cumulative(masses, knots, lag):
    """∫ Σ_l masses_l φ_l from 0 to a lag."""
    total = masses[0] * min(lag, knots[0])
    for lo in range(len(knots) - 1):
        if lag <= knots[lo]:
            break
        width = knots[lo + 1] - knots[lo]
        u = min((lag - knots[lo]) / width, 1.0)
        total += masses[lo] * width * u * (1.0 - 0.5 * u)
        if lo + 2 < len(knots):
            total += masses[lo + 1] * 0.5 * width * u * u
    return total


@njit(cache=True, nogil=True)
def _triggered(t, start, first, masses, knots):
    """∫ of what earlier events add between each event since the start and the one before, (n,)."""
    found = np.zeros(len(t) - first)
    for j in range(len(t)):
        before = _cumulative(masses[j], knots, max(start - t[j], 0.0))
        for i in range(max(j + 1, first), len(t)):
            lag = t[i] - t[j]
            now = _cumulative(masses[j], knots, lag)
            found[i - first] += now - before
            before = now
            if lag > knots[-1]:
                break
    return found


def rescaled_times(rate: ExcitedRate, history: Catalogue, start: float) -> Floats:
    """∫λ of all types over the region from the start to each event since then, (n,)."""
    inside = history.since(start)
    first = len(history) - len(inside)
    _, rings = offspring_of(history, rate.trigger, rate.effects, start, start, rate.region)
    weights = rate.trigger.weights.sum(axis=1)[history.types]
    masses = np.einsum("mld,md->ml", weights, rings)
    masses *= rate.effects.productivity(history.marks)[:, None]
    own = sum(rate.background.cumulative(inside.times, start, kind) for kind in range(rate.types))
    return own + np.cumsum(_triggered(history.times, start, first, masses, rate.trigger.lags))
