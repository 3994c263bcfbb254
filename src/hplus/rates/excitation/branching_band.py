"""The band of the branching ratio."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from hplus.rates.bands import LogBand, band_of_few
from hplus.rates.excitation.conditional_rate import masses_of
from hplus.rates.excitation.excitation_fit import ObservedEvents
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import offspring
from hplus.rates.excitation.learned_excitation import LearnedExcitation
from hplus.rates.excitation.visible import visible_lags

MIN_EVIDENCE = 3.0
"""Nats of evidence for a trigger without which the ratio may be 0."""


def branching_band(
    learned: LearnedExcitation, observed: ObservedEvents, level: float
) -> tuple[float, float]:
    """Bounds that allow for other weights, other longest lags and other factors of the events.

    The lower one is 0 if the events may as well all be of the background, and the upper one is no
    larger than if all were triggered.
    """
    rate, (shorter, longer) = learned.rate, learned.lag_spread
    ratio = rate.average_trigger.branching()
    drawn = map(rate.drawn, range(len(rate.draws)))
    draws = np.array([each.average_trigger.branching() for each in drawn])
    low, high = band_of_few(draws / ratio, level)
    of_weights = LogBand(np.log(ratio), -np.log(low * shorter), np.log(high * longer))
    each = offspring(rate.trigger, rate.effects, observed.inside)
    errors = float(ndtri(0.5 + 0.5 * level))
    spread = np.asarray(errors * rate.factor_law.mean_error(each))
    ends = of_weights.times(LogBand(np.zeros(()), spread, spread)).bounds
    least = float(ends[0]) if learned.evidence >= MIN_EVIDENCE else 0.0
    most = min(float(ends[1]), _ratio_of_all(rate, observed, errors))
    return min(least, ratio), max(most, ratio)


def _ratio_of_all(rate: ExcitedRate, observed: ObservedEvents, errors: float) -> float:
    """The branching ratio if all events of each type were triggered, and some errors more.

    Counts n of types and offspring B with nB <= n have a spectral radius of 1 at most; events that
    are triggered after the end, before the start or outside the region are not seen.
    """
    inside, counts = observed.inside, np.bincount(observed.inside.types)
    lags = visible_lags(rate.trigger.lags, inside.times, observed.start, observed.end)
    seen = float(np.sum(lags * masses_of(rate, inside, observed.region)))
    share = seen / float(offspring(rate.trigger, rate.effects, inside).sum())
    return float((1.0 + errors / np.sqrt(counts.min())) / max(share, 1e-12))
