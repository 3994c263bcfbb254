"""Timelines: when events happened, and what share of them a rate expects up to any time."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from scipy.stats import binom

from hplus._checks import Floats, frozen_array
from hplus._values import Value, value
from hplus.evaluation.residuals import chi_square
from hplus.evaluation.scores import Rate
from hplus.rates.positions import find_positions
from hplus.rates.statistic import Statistic
from hplus.windows import Interval
from hplus.wording import SECONDS_IN

HEAPS = (60.0, 300.0, 600.0, 900.0, 1800.0, 3600.0)
"""Steps in seconds to which people round some of the times."""

HEAP_BINS = 60
"""Parts of such a step, one of which holds the rounded times."""

MIN_HEAP, HEAP_LEVEL = 0.02, 1e-6
"""Share of rounded times from which they matter, and the chance of finding them where none are."""

MORE_HEAPED = 1.3
"""How many times as many times lie on a longer step as on others of the shorter one."""

BLOCK_STARTS = 8
"""Where the blocks of a slow rate begin, in parts of a block."""

PROFILE_PLACES = 64
"""Places over which a rate is averaged to see how it changes in time."""

PROFILE_TIMES = 2**12
"""Steps of time at which it is."""

MIN_HOURS, MAX_HOURS = 336, 2**20
"""Hours of a period in which hours of the day are compared: two weeks at least."""

MAX_HOUR_STEP = 6.0
"""Hours to which times may be rounded for that."""

HOURS_LEVEL = 1e-3
"""Level at which hours of the day differ."""

MIN_TURNS = 24
"""Number of steps that times must span."""

MIN_STEP_EVENTS = 10
"""Fewer times do not tell how they were rounded."""


@final
@value
class Timeline(Value):
    """The time of each event, shape (n,), and the share of the expected events up to any time.

    `shares` from 0 to 1 are those at `nodes`, shape (k,) each and increasing; in between they are
    linear. `step` is how far times may have been rounded, if that is known; they are in `unit`.
    """

    times: Floats
    nodes: Floats
    shares: Floats
    unit: str = ""
    step: float = 0.0

    def __post_init__(self) -> None:
        for name in ("times", "nodes", "shares"):
            self._set(**{name: frozen_array(name, getattr(self, name))})

    def share(self, times: Floats) -> Floats:
        """The share of the expected events up to each time, shape (n,)."""
        return np.interp(times, self.nodes, self.shares)

    def spread(self, rng: np.random.RandomState) -> Timeline:
        """The same with rounded times spread over their step: ties are not bursts."""
        step = max(self.step, time_step(self.times, self.unit))
        if not step:
            return self
        # a time stands for those around it, a date for the hours after midnight
        day = SECONDS_IN["day"] / SECONDS_IN.get(self.unit, np.inf)
        before = 0.0 if 0.0 < day <= step else 0.5
        moved = self.times + (rng.random_sample(len(self.times)) - before) * step
        low, high = self.nodes[0], self.nodes[-1]
        # those that would leave the period are reflected into it
        moved = np.where(moved < low, 2.0 * low - moved, moved)
        moved = np.where(moved > high, 2.0 * high - moved, moved)
        return self.replace(times=np.clip(moved, low, high), step=float(step))


def slow_part(line: Timeline, events: int) -> Timeline:
    """The timeline of a rate that is constant over blocks of so many events, averaged over blocks.

    A rate that was learned from bursts may follow them, which does not make them independent. The
    blocks begin at several events, so that the foot of a peak shares blocks with its slope.
    """
    parts = BLOCK_STARTS * max(1, round(len(line.times) / events))
    steps = np.linspace(0.0, 1.0, parts + 1)
    nodes = np.interp(steps, line.shares, line.nodes)
    nodes[0], nodes[-1] = line.nodes[0], line.nodes[-1]
    shares = np.zeros(parts + 1)
    for start in range(BLOCK_STARTS):
        ends = np.unique(np.concatenate([[0], np.arange(start, parts, BLOCK_STARTS), [parts]]))
        shares += np.interp(nodes, nodes[ends], steps[ends]) / BLOCK_STARTS
    return line.replace(nodes=nodes, shares=shares)


def with_hours(line: Timeline) -> Timeline:
    """The timeline with the rate of each hour of the day scaled to its events, if hours differ.

    A cycle that the rate leaves out is not a burst. Unchanged for periods under two weeks.
    """
    if line.unit not in SECONDS_IN:
        return line
    hour = SECONDS_IN["h"] / SECONDS_IN[line.unit]
    low, high = float(line.nodes[0]), float(line.nodes[-1])
    hours = int(np.ceil((high - low) / hour))
    if not MIN_HOURS <= hours <= MAX_HOURS or line.step > MAX_HOUR_STEP * hour:
        return line
    edges = np.minimum(low + hour * np.arange(hours + 1), high)
    masses, of_day = np.diff(line.share(edges)), np.arange(hours) % 24
    expected = len(line.times) * np.bincount(of_day, masses, 24).astype(float)
    at = np.minimum(((line.times - low) / hour).astype(np.int64), hours - 1)
    observed = np.bincount(at % 24, minlength=24).astype(float)
    if expected.min() <= 0.0 or chi_square(observed, expected)[1] > HOURS_LEVEL:
        return line
    ratio = (observed + 1.0) / (expected + 1.0)
    return line.replace(nodes=edges, shares=cumulative_shares(masses * ratio[of_day]))


def time_profile(model: Rate, times: Floats, rng: np.random.RandomState) -> Floats:
    """The rate at each time (k,), up to a constant: averaged over some places of the window."""
    if model.window.dimension == 1:
        return model.predict(times[:, None])
    places = model.window.sample(PROFILE_PLACES, random_state=rng)[:, :-1]
    X = np.column_stack([np.tile(places, (len(times), 1)), np.repeat(times, len(places))])
    return model.predict(X).reshape(len(times), -1).mean(axis=1)


def cumulative_shares(rates: Floats) -> Floats:
    """Shares (k + 1,) of the total up to the ends of k steps of equal length."""
    total = np.append(0.0, np.cumsum(rates))
    return total / total[-1]


class Ordered(NamedTuple):
    """Sorted times (n,), and the share of the expected events up to each."""

    times: Floats
    shares: Floats


def ordered(line: Timeline) -> Ordered:
    """The events of a timeline in order of time."""
    times = np.sort(line.times)
    return Ordered(times, line.share(times))


def time_step(times: Floats, unit: str) -> float:
    """The step that times are rounded to, all of them or a notable share; 0 if there is none."""
    low, high = float(times.min()), float(times.max())
    if len(times) < MIN_STEP_EVENTS or not low < high:
        return 0.0
    window = Interval(low, high)
    step = float(find_positions(Statistic.of(window, times[:, None])).rounding[0])
    if unit not in SECONDS_IN:
        return step
    return max(step, heap_step(times * SECONDS_IN[unit]) / SECONDS_IN[unit])


def heap_step(seconds: Floats) -> float:
    """The longest step of minutes up to an hour that many times are rounded to, in seconds."""
    found, n = 0.0, len(seconds)
    span = float(np.ptp(seconds))
    for step in (step for step in HEAPS if MIN_TURNS * step <= span):
        turns = seconds / step
        bins = ((turns * HEAP_BINS + 0.5).astype(np.int64) % HEAP_BINS).astype(np.int64)
        counts = np.bincount(bins, minlength=HEAP_BINS)
        top = int(counts.argmax())
        # the heaps of a shorter step, without this one
        others = (np.arange(HEAP_BINS) - top) % HEAP_BINS
        alike = (others > 0) & (others % max(1, round(HEAP_BINS * found / step)) == 0)
        rest = np.median(counts[counts > 0]) if not found else counts[alike].mean()
        even = max(rest, 1.0) / n
        excess = counts[top] / n - even
        more = counts[top] > MORE_HEAPED * rest
        if (
            more
            and excess > MIN_HEAP
            and HEAP_BINS * binom.sf(counts[top] - 1, n, even) < HEAP_LEVEL
        ):
            found = step
    return found
