"""What marks change: how many events an event triggers, and how far away."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from hplus._checks import Floats, frozen_array
from hplus._values import Value, value
from hplus.grids.hats import knot_weights

MOST_MARK_SEGMENTS = 7
"""Segments of marks in which productivity is linear, at most."""

LARGEST_LEFT, LARGEST_EVENTS = 5, 30
"""Events above the last knot, and above the one before it: the slope between them is what
productivity is extrapolated by, and how much single events trigger varies widely."""

TAIL_SHARE = 0.1
"""Share of the largest marks whose excesses are taken to be exponential."""

MARKS_AVERAGED = 2000
"""Marks, and quantiles of the tail, of which means are taken."""

MEAN_EXCESSES_BEYOND = 2.0
"""How far simulated marks go beyond the largest one observed, in mean excesses."""


@final
@value
class MarkEffects(Value):
    """Productivity κ(m), linear between knots with e^logs there, and reach e^(growth (m - center)).

    Beyond the last knot log κ goes on with its last slope, so that larger marks than any that was
    learned from trigger more. Without marks both are 1.
    """

    knots: Floats
    logs: Floats
    growth: float
    center: float

    def __post_init__(self) -> None:
        self._set(knots=frozen_array("knots", self.knots), logs=frozen_array("logs", self.logs))

    def productivity(self, marks: Floats) -> Floats:
        """How many events each mark triggers, relative to the average event, (n,)."""
        inner = np.interp(marks, self.knots, np.exp(self.logs))
        if len(self.knots) < 2:
            return inner
        slope = (self.logs[-1] - self.logs[-2]) / (self.knots[-1] - self.knots[-2])
        return inner * np.exp(slope * np.maximum(marks - self.knots[-1], 0.0))

    def reach(self, marks: Floats) -> Floats:
        """How far events of each mark reach, relative to one in the center, (n,)."""
        return np.exp(self.growth * (marks - self.center))

    def hats(self, marks: Floats) -> Floats:
        """κ(m) = hats @ e^logs: weights of the knots for each mark, (n, knots)."""
        near = knot_weights(self.knots, marks)
        return near * (self.productivity(marks) / (near @ np.exp(self.logs)))[:, None]

    def slopes(self, marks: Floats) -> Floats:
        """Slopes of log κ in the logs at the knots, (n, knots), for two knots at least."""
        near = knot_weights(self.knots, marks)
        found = near * np.exp(self.logs) / (near @ np.exp(self.logs))[:, None]
        beyond = np.maximum(marks - self.knots[-1], 0.0) / (self.knots[-1] - self.knots[-2])
        found[:, -2:] += np.column_stack([-beyond, beyond])
        return found

    def scaled(self, marks: Floats) -> tuple[MarkEffects, float]:
        """The same with a mean productivity of 1 over these marks, and the log of what it was."""
        shift = float(np.log(self.productivity(marks).mean()))
        return self.replace(logs=self.logs - shift), shift


NO_MARKS = MarkEffects(np.zeros(1), np.zeros(1), 0.0, 0.0)
"""The effects of marks that are all the same."""


def first_effects(marks: Floats) -> MarkEffects:
    """Knots for these marks, and constant productivity to begin with."""
    ordered = np.sort(marks)
    low, high = float(ordered[0]), float(ordered[-min(LARGEST_LEFT, len(marks))])
    if not high > low:
        return NO_MARKS.replace(knots=np.array([low]), center=low)
    width = high - float(ordered[-min(LARGEST_EVENTS, len(marks))])
    segments = int(np.clip((high - low) / max(width, 1e-300), 1, MOST_MARK_SEGMENTS))
    knots = np.linspace(low, high, segments + 1)
    return MarkEffects(knots, np.zeros(len(knots)), 0.0, float(np.median(marks)))


def slope_precision(knots: Floats, excess: float) -> Floats:
    """The precision of log κ at the knots if its slopes are normal, (M, M).

    Their standard deviation is one per mean excess of large marks: where log κ rises faster than
    large marks become rare, the largest ones trigger nearly all.
    """
    D = np.diff(np.eye(len(knots)), axis=0) / np.diff(knots)[:, None]
    return excess**2 * D.T @ D


@final
@value
class MarkLaw(Value):
    """How marks are distributed: as observed, and with an exponential tail above `threshold`.

    `marks` (k,) are those observed, sorted; `excess` is the mean excess over the threshold, and no
    mark is larger than `largest`.
    """

    marks: Floats
    threshold: float
    excess: float
    largest: float

    def __post_init__(self) -> None:
        self._set(marks=frozen_array("marks", self.marks))

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """n independent marks."""
        found = self.marks[rng.integers(len(self.marks), size=n)]
        tail = np.flatnonzero(found > self.threshold)
        if len(tail):
            found[tail] = self._in_tail(rng.random(len(tail)))
        return found

    def mean(self, function: Callable[[Floats], Floats]) -> float:
        """The mean of a function of marks."""
        some = self.marks[:: len(self.marks) // MARKS_AVERAGED + 1]
        tail = some > self.threshold
        levels = (np.arange(MARKS_AVERAGED) + 0.5) / MARKS_AVERAGED
        large = float(function(self._in_tail(levels)).mean()) if tail.any() else 0.0
        return (float(function(some[~tail]).sum()) + large * int(tail.sum())) / len(some)

    def _in_tail(self, levels: Floats) -> Floats:
        """Quantiles of the marks above the threshold."""
        room = -np.expm1(-(self.largest - self.threshold) / self.excess)
        return self.threshold - self.excess * np.log1p(-room * levels)


def learn_mark_law(marks: Floats) -> MarkLaw:
    """The law of marks (n,)."""
    ordered = np.sort(marks)
    threshold = float(np.quantile(ordered, 1.0 - TAIL_SHARE))
    above = ordered[ordered > threshold] - threshold
    excess = float(above.mean()) if len(above) else 0.0
    return MarkLaw(ordered, threshold, excess, float(ordered[-1]) + MEAN_EXCESSES_BEYOND * excess)
