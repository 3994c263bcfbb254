"""Events of a cycle in the order in which they happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hplus._checks import Floats
from hplus.evaluation.timelines import Timeline, cumulative_shares, time_profile
from hplus.studies.spans import CYCLES, MONDAY

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy

MAX_UNFOLDED_STEPS = 2**18
"""Most steps of the timeline of all cycles."""

MIN_CYCLE_STEPS, MAX_CYCLE_STEPS = 24, 2016
"""Steps of one cycle: at least 24, and at most one for each five minutes of a week."""


def unfolded(study: EventStudy, seconds: Floats) -> Timeline | None:
    """The timeline of events at these seconds (n,), for `hplus.evaluation.check`.

    None without a cycle: then the window has the times. The cycle's rate is repeated, from the
    start of the observation period to its end or, if events lie outside of it, the last event.
    """
    clock = study.frame.clock
    if clock is None or not clock.cycle:
        return None
    period = CYCLES[clock.cycle]
    low, high = float(seconds.min()), float(seconds.max())
    if clock.start <= low and high < clock.end:
        low, high = clock.start, clock.end
    first, last = (np.floor((t - MONDAY) / period) for t in (low, high))
    cycles = int(last - first) + 1
    steps = int(np.clip(MAX_UNFOLDED_STEPS // cycles, MIN_CYCLE_STEPS, MAX_CYCLE_STEPS))
    hours = (np.arange(steps) + 0.5) / steps * period / 3600.0
    rates = time_profile(study.model_, hours, np.random.RandomState(study.random_state))
    nodes = MONDAY + period * (first + np.arange(cycles * steps + 1) / steps)
    shares = cumulative_shares(np.tile(rates, cycles))
    return Timeline(seconds, nodes, shares, unit="s", step=clock.spread)
