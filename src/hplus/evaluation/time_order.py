"""The order of events in time: what tests of gaps, neighbours and counts find together."""

from __future__ import annotations

from typing import final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.evaluation.dispersion import CountDispersion, dispersion_test
from hplus.evaluation.lags import LagExcess, excess
from hplus.evaluation.residuals import Predicted
from hplus.evaluation.scores import Rate
from hplus.evaluation.timelines import (
    PROFILE_TIMES,
    Timeline,
    cumulative_shares,
    ordered,
    slow_part,
    time_profile,
    with_hours,
)
from hplus.rates.gaps import (
    GROUP_GAPS,
    Gaps,
    Neighbours,
    gap_test,
    grouped_gaps,
    neighbour_test,
)
from hplus.windows import Interval, Product

PATTERN_LEVEL = 0.005
"""Level at which one check by itself names a pattern.

There are four: of gaps under the rate and under its slow part, of neighbours and of counts. So
independent events are called dependent in 2 % of cases at most.
"""

PEAK_STEP = GROUP_GAPS // 4
"""Events over which a rate may change: a peak takes four such steps, and fewer are a burst."""


@final
@value
class TimeOrder(Value):
    """Do events depend on the events before them? Tests in rescaled time, first to last event.

    `more` and `fewer` say within which lag of an event there are most and fewest others, compared
    with the rate. `gap` is the average gap, and `step` what times were rounded to, in `unit`.
    """

    gaps: Gaps
    neighbours: Neighbours
    dispersion: CountDispersion | None
    more: LagExcess | None
    fewer: LagExcess | None
    gap: float
    step: float = 0.0
    unit: str = ""


def time_order(line: Timeline) -> TimeOrder | None:
    """The tests of the events of a timeline, spread over their rounding; None for few events."""
    times, shares = ordered(line)
    table = grouped_gaps(shares)
    if table is None:
        return None
    within = (shares[1:-1] - shares[0]) / (shares[-1] - shares[0])
    return TimeOrder(
        gap_test(table),
        neighbour_test(table),
        dispersion_test(within),
        excess(line, 1.0),
        excess(line, -1.0),
        gap=float((times[-1] - times[0]) / (len(times) - 1.0)),
        step=line.step,
        unit=line.unit,
    )


def order_unfollowed(line: Timeline) -> TimeOrder | None:
    """The tests; of the slow part of the rate if events depend and a rate that follows hides it.

    Where the rate has learned each burst, rescaled gaps are odd, but not those of bursts, or they
    are as they should be. In one pattern of events, bursts and peaks of a rate are the same thing:
    what a few events have made is taken for a burst.
    """
    found = time_order(line)
    if found is None:
        return None
    odd = min(found.gaps.p_value, found.neighbours.p_value) <= PATTERN_LEVEL
    slow = time_order(with_hours(slow_part(line, GROUP_GAPS if odd else PEAK_STEP)))
    if slow is None or slow.gaps.p_value > PATTERN_LEVEL or slow.gaps.variation < 1.0:
        return found
    return slow


def line_of_rate(
    model: Rate, X: Floats, nodes: Predicted, rng: np.random.RandomState
) -> Timeline | None:
    """The timeline of events X (n, d) whose last axis is time; None if it is folded or unknown.

    An axis with the unit of another one is a place, like the latitude of a map around the world.
    On a line shares are exact at the events; with uneven exposure, at lattice nodes (q, 1). The
    rate of each hour of the day is that of its events, if hours differ.
    """
    window, even = model.window, bool(np.all(nodes.exposures == 1.0))
    last = window.right if isinstance(window, Product) else window
    *others, group = window.axis_groups()
    if not isinstance(last, Interval) or group in others or not (even or window.dimension == 1):
        return None
    ends = np.array([last.low, last.high])
    line = Timeline(X[:, -1], ends, np.array([0.0, 1.0]), last.unit).spread(rng)
    if not even:
        edges = np.linspace(last.low, last.high, len(nodes.X) + 1)
        return line.replace(nodes=edges, shares=cumulative_shares(nodes.intensities))
    if window.dimension == 1:
        times = np.sort(line.times)
        shares = cumulative_shares(between(model, times))
        line = line.replace(nodes=np.concatenate([ends[:1], times, ends[1:]]), shares=shares)
        return with_hours(line)
    edges = np.linspace(last.low, last.high, PROFILE_TIMES + 1)
    rates = time_profile(model, 0.5 * (edges[1:] + edges[:-1]), rng)
    return with_hours(line.replace(nodes=edges, shares=cumulative_shares(rates)))


def between(model: Rate, times: Floats) -> Floats:
    """∫λ up to, between and after n sorted times on a line, shape (n + 1,)."""
    low, high = model.window.bounds()
    edges = np.concatenate([low, times, high])
    gaps = np.diff(edges) > 0.0  # nothing lies between events at the same time
    pieces = [Interval(a, b) for a, b in zip(edges[:-1][gaps], edges[1:][gaps], strict=True)]
    integrals = np.zeros(len(edges) - 1)
    integrals[gaps] = model.expected_count(pieces)
    return integrals
