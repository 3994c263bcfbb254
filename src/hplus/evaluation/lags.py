"""Lags: how many other events follow within a time of an event, and how many a rate expects."""

from __future__ import annotations

from typing import final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.evaluation.timelines import Timeline, ordered
from hplus.rates.gaps import GROUP_GAPS
from hplus.wording import SECONDS_IN

TIME_LAGS = (
    1.0, 2.0, 5.0, 10.0, 30.0,
    *(60.0 * m for m in (1, 2, 5, 10, 30)),
    *(3600.0 * h for h in (1, 2, 6, 12)),
    *(86_400.0 * d for d in (1, 2, 7, 14, 30, 90, 180)),
)  # fmt: skip
"""Round lengths of time, in seconds."""

SHORTEST_LAG = 1e-3
"""The shortest lag, in average gaps."""

MIN_LAG_PAIRS = 5.0
"""Pairs, observed and expected together, below which a lag says nothing."""


@final
@value
class LagExcess(Value):
    """Within `lag` of an event there are `ratio` times as many others as the rate expects."""

    lag: float
    ratio: float


def round_lags(low: float, high: float, unit: str) -> Floats:
    """Round lengths between two, in this unit: 1, 2, 5, 10, ..., or minutes, hours and days."""
    seconds = SECONDS_IN.get(unit)
    lengths = np.outer(10.0 ** np.arange(-15, 16), [1.0, 2.0, 5.0]).ravel()
    if seconds is not None:
        years = lengths[lengths >= 1.0] * SECONDS_IN["year"]
        lengths = np.concatenate([lengths[lengths < 1.0], TIME_LAGS, years]) / seconds
    return lengths[(lengths >= low) & (lengths <= high)]


def excess(line: Timeline, sign: float) -> LagExcess | None:
    """The lag at which most (sign 1) or fewest (sign -1) events follow, in standard deviations.

    None if no round lag is long enough for times rounded as these.
    """
    times, shares = ordered(line)
    n = len(times)
    gap = (times[-1] - times[0]) / n
    lags = round_lags(max(SHORTEST_LAG * gap, 2.0 * line.step), GROUP_GAPS * gap, line.unit)
    best, found = 0.0, None
    for lag in lags.tolist():
        observed = float(
            np.sum(np.searchsorted(times, times + lag, side="right") - 1 - np.arange(n))
        )
        expected = float((n - 1.0) * np.sum(line.share(times + lag) - shares))
        z = sign * (observed - expected) / np.sqrt(max(expected, 1e-300))
        if z > best and observed + expected >= MIN_LAG_PAIRS:
            best, found = z, LagExcess(lag, observed / expected)
    return found
