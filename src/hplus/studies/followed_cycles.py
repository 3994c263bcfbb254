"""Whether times follow the day or week: without that cycle in a model, they look like bursts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.estimators.forecast import as_cycles
from hplus.rates.forecasts.block_edges import as_exposure
from hplus.rates.forecasts.cycle_factor import CycleGain
from hplus.rates.forecasts.forecast_learning import ObservedTimes, learn_cycles
from hplus.studies.spans import CYCLES
from hplus.windows import Interval

MIN_FOLLOWED_GAIN = 0.02
"""Nats per event that a cycle must gain to be told of: one by chance gains much less."""


class FollowedCycle(NamedTuple):
    """The day or the week, what it gains on later events in nats per event, and the error."""

    name: str
    gain: float
    error: float


def followed_cycle(gains: Sequence[CycleGain]) -> FollowedCycle | None:
    """The longest of the cycles that were kept, which contains the others; None if none matters."""
    named = (found for found in gains if found.kept and found.name in CYCLES)
    kept = [found for found in named if found.gain >= MIN_FOLLOWED_GAIN]
    if not kept:
        return None
    longest = max(kept, key=lambda found: found.period)
    error = float(np.hypot.reduce([found.error for found in kept]))
    return FollowedCycle(longest.name, sum(found.gain for found in kept), error)


def cycle_of_times(times: Floats, period: Interval, origin: float) -> FollowedCycle | None:
    """The cycle that times (n,) of a period follow; cycles begin at `origin`.

    All events count alike: a trigger that was learned without the cycle has absorbed it.
    """
    exposure = as_exposure(1.0, period.low, period.high)
    observed = ObservedTimes(
        times, np.ones(len(times)), period.low, period.high, exposure, np.zeros(0)
    )
    return followed_cycle(
        learn_cycles(observed, as_cycles(tuple(CYCLES), period.unit), origin, 0)[1]
    )
