"""A search for the Gaussian kernel and the penalty of a rate by squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus._progress import step
from hplus.kernels import Gaussian, Kernel
from hplus.rates.window_features import MAX_FEATURES, Setting, WeightedEvents, setting
from hplus.windows import Window

FIRST_SCALE, SCALE_RATIO, SCALE_COUNT, LARGER_SCALES = 0.5, 25.0 ** (-1.0 / 7.0), 8, 4
"""Scales: the first one as a share of the window's side, the ratio of the next to it, how many, and
how many larger ones are tried where the first is the best."""

HOPELESS_NATS = 5.0
"""Nats below the best at which smaller scales are not tried any more."""

PENALTY_RATIO, MAX_PENALTY_STEPS = 10.0**0.5, 10
"""The ratio of one penalty to the next, and how many steps from the first one."""

USUAL_KERNELS = 12
"""Kernels that a search tries as a rule, to report its progress."""


class Penalties(NamedTuple):
    """Penalties for one kernel: which one to start from, their bounds, and their scores in nats."""

    usual: float
    least: float
    most: float
    score: Callable[[float], float]

    def within_bounds(self, penalty: float) -> float:
        """The score, -∞ beyond the bounds."""
        return self.score(penalty) if self.least <= penalty <= self.most else -np.inf


class Choice(NamedTuple):
    """A kernel and a penalty, and how good they are, in nats."""

    score: float
    kernel: Kernel
    penalty: float


KernelJudge = Callable[[Kernel, float | None], Choice]
"""The best penalty for a kernel, looked for around one that was good for another kernel."""


def best_gaussian(window: Window, judge: KernelJudge) -> Choice:
    """The Gaussian of the highest score, with one scale for all axes of a group.

    First every other scale, from large to small and for all groups of axes together, until the
    score is hopeless; then uphill by single steps, all groups together and each on its own.
    """
    groups, group = np.unique(window.axis_groups(), return_inverse=True)
    sides = window.longest_sides()

    def at(steps: Floats, penalty: float | None) -> Place:
        scales = (FIRST_SCALE * sides * SCALE_RATIO ** steps[group]).tolist()
        return judge(Gaussian(scales[0] if len(groups) == 1 else tuple(scales)), penalty), steps

    best = at(np.zeros(len(groups)), None)
    for place in range(2, SCALE_COUNT, 2):
        tried = at(np.full(len(groups), float(place)), best[0].penalty)
        if not tried[0].score > best[0].score - HOPELESS_NATS:
            break
        best = tried if tried[0].score > best[0].score else best
    single = list(np.eye(len(groups))) if len(groups) > 1 else []
    for move in (np.ones(len(groups)), *single, *single):
        best = _uphill(at, best, move)
    return best[0]


Place = tuple[Choice, Floats]
"""A choice, and how many steps below the largest its scales are, shape (groups,)."""


def _uphill(at: Callable[[Floats, float | None], Place], best: Place, move: Floats) -> Place:
    """Steps along a direction, one way or the other, as long as the score rises."""
    start = best
    for way in (move, -move):
        while best is start or (best[1] - start[1]) @ way > 0.0:
            there = best[1] + way
            if there.min() < -LARGER_SCALES or there.max() >= SCALE_COUNT:
                break
            tried = at(there, best[0].penalty)
            if not tried[0].score > best[0].score:
                break
            best = tried
    return best


def best_penalty(score: Callable[[float], float], start: float, kernel: Kernel) -> Choice:
    """The penalty of the highest score, uphill from `start` by factors of √10."""
    first = best = Choice(score(start), kernel, start)
    for ratio in (1.0 / PENALTY_RATIO, PENALTY_RATIO):
        for _ in range(MAX_PENALTY_STEPS if best is first else 0):
            penalty = best.penalty * ratio
            tried = Choice(score(penalty), kernel, penalty)
            if not tried.score > best.score:
                break
            best = tried
    return best


def learn_kernel(
    events: WeightedEvents,
    kernel: Kernel | None,
    penalty: float | None,
    compare: Callable[[Setting], Penalties],
    width: int = MAX_FEATURES,
) -> tuple[Kernel, float]:
    """The best Gaussian, or the kernel that is given, with the best penalty, or the one given.

    A learned kernel must be resolved by `width` features, and every kernel must reach all events.
    """
    stage, tried, most = "learning penalties", 0, 1 if kernel is not None else USUAL_KERNELS

    def judge(candidate: Kernel, start: float | None) -> Choice:
        nonlocal tried
        step(stage, min(tried, most), most)
        tried += 1
        s = setting(events, candidate, width)
        found = compare(s)
        if s.out_of_reach or (kernel is None and not s.resolved):
            return Choice(-np.inf, candidate, penalty or start or found.usual)
        if penalty is not None:
            return Choice(found.score(penalty), candidate, penalty)
        return best_penalty(found.within_bounds, start or found.usual, candidate)

    best = best_gaussian(events.window, judge) if kernel is None else judge(kernel, None)
    step(stage, most, most)
    return best.kernel, best.penalty
