"""How many false alarms a watch raises for those that theory allows, by simulation."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats, Seed, check_random_state
from hplus.alerts.overlapping_blocks import OverlappingBlocks
from hplus.alerts.watch import WEEK, Watch

TYPICAL_CORRECTION = 0.45
"""Where the simulation begins: evidence overshoots its threshold, and blocks overlap."""

SIMULATED_ALARMS = 400
"""Alarms that the simulation is long enough for."""

MOST_EVENTS_AN_ALARM = 3000.0
"""Rarer alarms than one in so many events are simulated at this rate: the ratio is the same."""

EVENTS_A_TICK, LEAST_TICK, LONGEST_TICK = 3.0, 1.0, 600.0
"""About how many events of the whole window a tick has, and how many seconds at least and most."""


def tick_of(weekly: float) -> float:
    """Seconds from one look at the counts to the next, for so many events a week."""
    ideal = EVENTS_A_TICK * WEEK / max(weekly, 1e-9)
    return float(np.clip(ideal, LEAST_TICK, LONGEST_TICK))


def correction(
    blocks: OverlappingBlocks,
    weekly: Floats,
    alarms_per_week: float,
    *,
    random_state: Seed = None,
    alarms: int = SIMULATED_ALARMS,
    tick: float | None = None,
) -> float:
    """The `correction` of a watch, so that it raises as many false alarms as were asked for.

    `weekly` is the number of events expected in each cell in a week; events are drawn from it.
    `tick` are the seconds from one look at the counts to the next: by default those of `tick_of`,
    but not so few that most ticks hold no event.
    """
    total = float(weekly.sum())
    if total <= 0.0:
        return TYPICAL_CORRECTION
    asked = max(alarms_per_week, total / MOST_EVENTS_AN_ALARM)
    watch = Watch(blocks, weekly, asked, correction=TYPICAL_CORRECTION)
    rng = check_random_state(random_state)
    tick = tick or WEEK / total * float(np.clip(total * tick_of(total) / WEEK, 1.0, EVENTS_A_TICK))
    means, ends = weekly * (tick / WEEK), np.cumsum(weekly.ravel()) / total
    ticks = int(alarms / asked * WEEK / tick)
    per_tick = rng.poisson(total * tick / WEEK, ticks).astype(np.int64)
    cells = np.searchsorted(ends, rng.random_sample(int(per_tick.sum())), side="right")
    watch.run(tick, per_tick, np.minimum(cells, weekly.size - 1), means)
    return TYPICAL_CORRECTION * max(watch.found, 1) / alarms
