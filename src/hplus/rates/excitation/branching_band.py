"""The band of the branching ratio."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from hplus.rates.bands import LogBand, band_of_few
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import offspring


def branching_band(
    rate: ExcitedRate, events: Catalogue, lag_spread: tuple[float, float], level: float
) -> tuple[float, float]:
    """Bounds that allow for other weights, other longest lags and other factors of the events.

    `lag_spread` is how much lower or higher the ratio is under other longest lags.
    """
    ratio = rate.trigger.branching()
    draws = np.array([rate.drawn(k).trigger.branching() for k in range(len(rate.draws))])
    low, high = band_of_few(draws / ratio, level)
    of_weights = LogBand(np.log(ratio), -np.log(low * lag_spread[0]), np.log(high * lag_spread[1]))
    each = offspring(rate.trigger, rate.effects, events)
    spread = np.asarray(ndtri(0.5 + 0.5 * level) * rate.factor_law.mean_error(each))
    ends = of_weights.times(LogBand(np.zeros(()), spread, spread)).bounds
    return float(ends[0]), float(ends[1])
