"""Which events a fit is tested on: those of a later time, of blocks of time, or a random share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import final

import numpy as np

from hplus._checks import Floats, Ints, check_count, check_number
from hplus._values import Value, value
from hplus.studies.frames import Frame
from hplus.studies.spans import CYCLES, SECONDS, Clock, phases
from hplus.windows import Interval
from hplus.wording import count, counted, quantity

Span = tuple[float, float]
"""From and to, in seconds since 1970."""

Rounding = Callable[[Floats], Floats]
"""To whole numbers."""

LEARNED_STRETCHES = 4
"""Stretches of the time before a hold-out, of which later ones are predicted by earlier ones."""

GAP_SHARE = 0.25
"""The gap on both sides of a block that is held out, as a share of its length."""

ERROR_BLOCKS, MAX_ERROR_BLOCKS = 10, 40
"""Blocks of time behind a standard error: as many whole cycles, or at least these."""

MAX_HOLDOUT = 0.9
"""The largest share of events that may be held out."""

HELD, UNUSED = -1, -2
"""Parts of events that are not learned from: those held out, and those in gaps."""


@final
@value
class StepExposure(Value):
    """How often each part of an axis of time was observed: amounts (k,) between edges (k + 1,)."""

    edges: tuple[float, ...]
    amounts: tuple[float, ...]

    @property
    def total(self) -> float:
        """∫E over the axis."""
        return float(np.diff(self.edges) @ self.amounts)

    @property
    def over_axis(self) -> float | Callable[[Floats], Floats]:
        """E as the fit of a rate takes it: a number, or a function of points (n, d)."""
        if len(set(self.amounts)) == 1:
            return self.amounts[0]
        return lambda X: self.at(X[:, -1])

    @property
    def is_positive(self) -> bool:
        """Was every part observed?"""
        return min(self.amounts) > 0.0

    def at(self, times: Floats) -> Floats:
        """E at each point of the axis, (n,); the end belongs to the last part."""
        which = np.searchsorted(self.edges, times, side="right") - 1
        return np.asarray(self.amounts)[np.clip(which, 0, len(self.amounts) - 1)]

    def pieces(self) -> list[Interval]:
        """The parts of the axis."""
        return [Interval(a, b) for a, b in pairwise(self.edges)]

    def refined(self, edges: Sequence[float]) -> StepExposure:
        """The same with more edges."""
        every = sorted({*self.edges, *edges})
        middles = 0.5 * (np.array(every[:-1]) + np.array(every[1:]))
        return StepExposure(tuple(every), tuple(self.at(middles).tolist()))


def step_exposure(clock: Clock, spans: Sequence[Span]) -> StepExposure:
    """How often each part of a clock's axis was observed during some spans of time."""
    low, high = (float(end[0]) for end in clock.window.bounds())
    if clock.cycle:
        parts = [part for a, b in spans for part in phases(clock, a, b - a)]
    else:
        ends = (clock.axis(np.array(span)).tolist() for span in spans)
        parts = [(a, b, 1.0) for a, b in ends]
    inner = sorted({x for a, b, _ in parts for x in (a, b) if low < x < high})
    edges = np.array([low, *inner, high])
    middles = 0.5 * (edges[1:] + edges[:-1])
    amounts = np.sum([n * ((a <= middles) & (middles < b)) for a, b, n in parts], axis=0)
    return StepExposure(tuple(edges.tolist()), tuple(np.broadcast_to(amounts, len(middles))))


@final
@value
class Split(Value):
    """Which events are held out: of spans of time or, where `held` is empty, a random `share`.

    `learned` are spans of time to learn from, in order. `blocks` is the number of blocks that are
    held out, 1 for the last part of the observation period. A random share is one of whole trials
    if it is chosen `by_trial`.
    """

    share: float
    blocks: int = 1
    learned: tuple[Span, ...] = ()
    held: tuple[Span, ...] = ()
    by_trial: bool = False

    @property
    def kind(self) -> str:
        """ "later", "blocks", "trials" or "random"."""
        if not self.held:
            return "trials" if self.by_trial else "random"
        return "later" if self.blocks == 1 else "blocks"

    def parts(self, seconds: Floats, u: Floats) -> Ints:
        """The part of each event, (n,): a span to learn from, HELD or UNUSED.

        u (n,) are independent uniform numbers, by which a random share is chosen.
        """
        if not self.held:
            return np.where(u < self.share, HELD, 0)
        found = np.full(len(seconds), UNUSED)
        for i, (a, b) in enumerate(self.learned):
            found[(a <= seconds) & (seconds < b)] = i
        for a, b in self.held:
            found[(a <= seconds) & (seconds < b)] = HELD
        return found

    def error_blocks(self, clock: Clock | None, seconds: Floats) -> Ints:
        """The block of time or the trial of each held-out event, (n,), or each by itself.

        Blocks are whole cycles if there are enough.
        """
        if clock is None:
            trials = np.unique(seconds, return_inverse=True)[1]
            return trials if self.by_trial else np.arange(len(seconds))
        return time_blocks(seconds, self.held or ((clock.start, clock.end),), clock.cycle)

    def words(self, events: int, trials: int = 0, noun: str = "trial") -> str:
        """What was held out, such as "the last 73 days: 1,200 events later than those learned"."""
        if self.kind == "trials":
            return f"{counted(trials, noun)} at random: {count(events)} events"
        if not self.held:
            return f"{count(events)} events, held out at random"
        lengths = [b - a for a, b in self.held]
        if self.blocks == 1:
            return (
                f"the last {_duration(lengths[0])}: {count(events)} events later than those "
                "learned from"
            )
        return (
            f"{self.blocks} blocks of {_duration(lengths[0])}: {count(events)} events, with gaps "
            "to those learned from"
        )


def time_blocks(seconds: Floats, spans: Sequence[Span], cycle: str) -> Ints:
    """The block of each time in spans, (n,): blocks of the same length, about, in every span."""
    starts, ends = np.array(spans).T
    before = np.concatenate([[0.0], np.cumsum(ends - starts)])
    which = np.clip(np.searchsorted(starts, seconds, side="right") - 1, 0, len(starts) - 1)
    within = np.clip(before[which] + seconds - starts[which], 0.0, before[-1])
    cycles = int(before[-1] / CYCLES[cycle]) if cycle else 0
    blocks = ERROR_BLOCKS
    if cycles >= ERROR_BLOCKS:
        blocks = cycles // -(-cycles // MAX_ERROR_BLOCKS)
    return np.minimum((within / before[-1] * blocks).astype(np.int64), blocks - 1)


def check_split(holdout: float, blocks: int) -> None:
    """Raise unless a share can be held out, in a number of blocks."""
    if not 0.0 <= check_number("holdout", holdout) <= MAX_HOLDOUT:
        raise ValueError(
            f"holdout must be a share from 0 to {MAX_HOLDOUT}, got {holdout}: the fit needs the "
            "rest."
        )
    check_count("blocks", blocks)


def split_of(frame: Frame, share: float, blocks: int = 1) -> Split:
    """How to split the events of a frame.

    By time if there are times; the last part of the observation period, or several blocks with
    gaps. By trial if there are trials. At random if there are neither, or if what was learned says
    nothing about a later time: a line of times without a cycle, or a period in which no cycle is
    left to learn from.
    """
    clock = frame.clock
    alone = clock is not None and not clock.cycle and frame.region is None
    if clock is None or share == 0.0 or (alone and blocks == 1):
        return Split(share, by_trial=bool(frame.trial))
    held, learned = _spans(clock, share, blocks)
    if clock.cycle and not step_exposure(clock, learned).is_positive:
        return Split(share)
    return Split(share, blocks, learned, held)


def _spans(clock: Clock, share: float, blocks: int) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The spans of time that are held out, and those to learn from; whole cycles if possible."""
    start, length = clock.start, clock.end - clock.start
    if blocks == 1:
        cut = clock.end - share * length
        edges = _snapped(clock, np.linspace(start, cut, LEARNED_STRETCHES + 1))
        return ((edges[-1], clock.end),), tuple(pairwise(edges))
    each, block = length / blocks, share * length / blocks
    gap = min(GAP_SHARE * block, 0.25 * (each - block))
    middles = start + each * (np.arange(blocks, dtype=np.float64) + 0.5)
    lows, highs = (_snapped(clock, middles + side * block) for side in (-0.5, 0.5))
    before = _snapped(clock, np.array(lows) - gap, np.floor)
    after = _snapped(clock, np.array(highs) + gap, np.ceil)
    held = tuple(zip(lows, highs, strict=True))
    return held, tuple(zip([start, *after], [*before, clock.end], strict=True))


def _snapped(clock: Clock, times: Floats, rounded: Rounding = np.rint) -> list[float]:
    """Times at whole cycles from the start, if they are at least a cycle apart."""
    cycle = CYCLES.get(clock.cycle, 0.0)
    if not cycle or np.min(np.diff(times, append=clock.end)) < cycle:
        return list(times.tolist())
    return list((clock.start + cycle * rounded((times - clock.start) / cycle)).tolist())


def _duration(seconds: float) -> str:
    unit = next(u for u in ("day", "h", "min", "s") if seconds >= 3 * SECONDS[u] or u == "s")
    return quantity(seconds / SECONDS[unit], unit)
