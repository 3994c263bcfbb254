"""Events of a cycle in the order in which they happened."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus.evaluation.scores import Rate
from hplus.evaluation.timelines import Timeline, cumulative_shares, time_profile
from hplus.studies.spans import CYCLES, MONDAY, Clock

MAX_UNFOLDED_STEPS = 2**18
"""Most steps of the timeline of all cycles."""

MIN_CYCLE_STEPS, MAX_CYCLE_STEPS = 24, 2016
"""Steps of one cycle: at least 24, and at most one for each five minutes of a week."""


def unfolded(
    clock: Clock | None,
    model: Rate,
    seconds: Floats,
    span: tuple[float, float] | None = None,
    seed: int = 0,
) -> Timeline | None:
    """The timeline of events at these seconds (n,), for `hplus.evaluation.check`.

    None without a cycle: then the window has the times. The cycle's rate is repeated over `span`,
    by default the observation period or, if events lie outside of it, from the first to the last.
    """
    if clock is None or not clock.cycle or len(seconds) == 0:
        return None
    low, high = span or (clock.start, clock.end)
    first_event, last_event = float(seconds.min()), float(seconds.max())
    if not (low <= first_event and last_event <= high):
        low, high = first_event, last_event
    period = CYCLES[clock.cycle]
    first, last = (np.floor((t - MONDAY) / period) for t in (low, high))
    cycles = int(last - first) + 1
    steps = int(np.clip(MAX_UNFOLDED_STEPS // cycles, MIN_CYCLE_STEPS, MAX_CYCLE_STEPS))
    hours = (np.arange(steps) + 0.5) / steps * period / 3600.0
    rates = time_profile(model, hours, np.random.RandomState(seed))
    ends = MONDAY + period * (first + np.arange(cycles * steps + 1) / steps)
    shares = cumulative_shares(np.tile(rates, cycles))
    if not low < high:
        return Timeline(seconds, ends, shares, unit="s", step=clock.spread)
    nodes = np.concatenate([[low], ends[(low < ends) & (ends < high)], [high]])
    inside = np.interp(nodes, ends, shares)
    inside = (inside - inside[0]) / (inside[-1] - inside[0])
    return Timeline(seconds, nodes, inside, unit="s", step=clock.spread)
