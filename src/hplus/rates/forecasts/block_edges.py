"""Time cut into blocks: those observed, and those to come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import Floats, Ints, as_floats, check_finite, check_positive, shown

MIN_BLOCKS, USUAL_BLOCKS, MAX_BLOCKS = 64, 1024, 4096
"""Blocks of an observation period: few for few events, many for a short horizon."""

EVENTS_PER_BLOCK = 4
"""Events of a block on average, unless there are MIN_BLOCKS or USUAL_BLOCKS of them."""

BLOCKS_AHEAD = 4
"""Blocks of a horizon, at least, if the observation period has no more than MAX_BLOCKS of them."""

FINE_STEPS = 50
"""Blocks of fewer steps of rounded times than this hold a whole number of them."""

MAX_CYCLE_BLOCKS = 8.0
"""Blocks as long as the shortest cycle would be cut into at most this many."""

MAX_EVEN_BLOCKS = 1024
"""Blocks to come of the same length as those observed; later ones are longer and longer."""

GROWTH = 1.05
"""Ratio of the lengths of two later blocks."""

EDGE_SLACK = 1e-6
"""How far before an edge, as a share of a part, a time is taken to be at it."""

EXPOSURE_POINTS = 16
"""Points of a part of a block at which a function of time is evaluated."""

Exposure = float | Callable[[Floats], ArrayLike]


@dataclass(frozen=True)
class BlockEdges:
    """Edges of blocks, in order; the first `observed` ones were observed."""

    edges: Floats
    observed: int

    @property
    def now(self) -> float:
        """The end of the observation period."""
        return float(self.edges[self.observed])

    @property
    def block(self) -> float:
        """The length of a block."""
        return float(self.edges[self.observed] - self.edges[self.observed - 1])

    @property
    def steps(self) -> Floats:
        """The time from the center of the block before to each block's, in blocks' lengths."""
        centers = 0.5 * (self.edges[1:] + self.edges[:-1])
        steps = np.diff(centers, prepend=centers[0])
        return np.round(steps / self.block, 9) * self.block

    def whole_steps(self, period: float, start: float) -> Floats:
        """The time before each block in whole periods: 0 in all but the first block of a period."""
        centers = 0.5 * (self.edges[1:] + self.edges[:-1])
        number = np.floor((centers - start) / period + 1e-9)
        return period * np.diff(number, prepend=number[0])

    def blocks_of(self, times: Floats) -> Ints:
        """The block that each time lies in."""
        return part_of(self.edges, times)

    def changed(self, times: Floats) -> tuple[int, ...]:
        """The observed blocks that times lie in, each once, without the first."""
        blocks = np.unique(self.blocks_of(times))
        return tuple(blocks[(blocks > 0) & (blocks < self.observed)].tolist())


def block_length(span: float, horizon: float, events: int, step: float, cycle: float) -> float:
    """The length of a block: short against the horizon, but so that there are not too many.

    A whole number of steps, if times are rounded, or of the shortest cycle, so that what a cycle
    misses at some hours is no difference between blocks.
    """
    usual = int(np.clip(events // EVENTS_PER_BLOCK, MIN_BLOCKS, USUAL_BLOCKS))
    block = span / usual
    if horizon > 0.0:
        block = max(min(block, horizon / BLOCKS_AHEAD), span / MAX_BLOCKS)
    if 0.0 < cycle <= MAX_CYCLE_BLOCKS * block and MIN_BLOCKS * cycle <= span:
        return cycle * max(round(block / cycle), 1)
    if 0.0 < step and block < FINE_STEPS * step:
        return step * max(round(block / step), 1)
    return block


def make_block_edges(low: float, high: float, horizon: float, block: float) -> BlockEdges:
    """Blocks of this length up to the end of the horizon; one ends with the observation period."""
    span = high - low
    count = max(int(np.ceil(span / block - 1e-6)), 1)
    past = high - block * np.arange(count, -1, -1)
    past[0] = low
    even = min(int(np.ceil(horizon / block - 1e-6)), MAX_EVEN_BLOCKS)
    future = block * np.arange(1, even + 1)
    longer = block
    while horizon - (future[-1] if len(future) else 0.0) > 1e-6 * block:
        longer *= GROWTH
        future = np.append(future, future[-1] + longer)
    if len(future):
        future[-1] = horizon
    return BlockEdges(np.concatenate([past, high + future]), count)


def part_of(edges: Floats, times: Floats) -> Ints:
    """The part between edges that each time lies in; one at an edge, up to rounding, begins there.

    Rounded times are at edges.
    """
    slack = EDGE_SLACK * (edges[-1] - edges[0]) / (len(edges) - 1)
    found = np.searchsorted(edges, times + slack, side="right") - 1
    return np.clip(found, 0, len(edges) - 2)


def rounding_step(times: Floats) -> float:
    """The step of which all times are multiples but for a constant, or 0."""
    values = np.unique(times)
    if len(values) < 3:
        return 0.0
    gaps = np.diff(values)
    step = float(gaps.min())
    if len(values) > 0.9 * len(times) and len(times) < 4.0 * (values[-1] - values[0]) / step:
        return 0.0
    return step if np.all(np.abs(gaps / step - np.round(gaps / step)) < 1e-3) else 0.0


def exposure_of(given: Exposure, edges: Floats) -> Floats:
    """∫ of the exposure over each of the parts between edges, (parts,)."""
    lengths = np.diff(edges)
    if not callable(given):
        return given * lengths
    at = (np.arange(EXPOSURE_POINTS) + 0.5) / EXPOSURE_POINTS
    points = edges[:-1, None] + lengths[:, None] * at
    values = as_floats("exposure", given(points.reshape(-1, 1)))
    if values.size != points.size or not np.all(np.isfinite(values) & (values >= 0.0)):
        raise ValueError(
            "exposure must return one finite number of at least 0 for each time, got "
            f"{shown(values)} for {points.size} times."
        )
    return lengths * values.reshape(points.shape).mean(axis=1)


def as_exposure(given: Exposure | ArrayLike, low: float, high: float) -> Exposure:
    """A number, a function of times (n, 1), or values on a regular grid from low to high."""
    if callable(given):
        return given
    if np.ndim(given) == 0:
        return check_positive("exposure", given)
    values = check_finite("exposure", as_floats("exposure", given))
    if values.ndim != 1 or len(values) < 2 or np.any(values < 0.0) or not np.any(values > 0.0):
        raise ValueError(
            "exposure must be a positive number, a function of times or an array of at least two "
            f"numbers, none below 0 and not all 0, got {shown(values)}."
        )
    grid = np.linspace(low, high, len(values))
    return lambda times: np.interp(times[:, 0], grid, values)
