"""How much counts of cells vary over time, compared with those of independent events.

Events in bursts fall into one cell together, so that its count varies more than a Poisson count
even where the rate is right. Counts of a cell in neighbouring blocks of time tell by how much,
whatever the rate says of the cell: a wrong rate is wrong in both blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.evaluation.residuals import Tiling
from hplus.evaluation.timelines import Timeline
from hplus.windows import Cycle, Product, Window
from hplus.wording import SECONDS_IN

MIN_CYCLES, MAX_CYCLES = 4, 1024
"""Fewest whole cycles that are compared; more are joined to as many blocks."""

MIN_TIME_BLOCKS = 16
"""Blocks are joined in pairs, for longer bursts, as long as this many are left."""

SHARE_BLOCKS = 64
"""Blocks of time that is not folded."""


class TimeBlocks(NamedTuple):
    """The block of time of each event, shape (n,): one of `number`, or a later one.

    A cell of the first `axes` axes of the window expects as many events in each block.
    """

    blocks: Ints
    number: int
    axes: int

    def variation(self, tiling: Tiling, X: Floats) -> float:
        """The variance of the counts of X (n, d) in cells over their mean, at least 1.

        The largest of those in blocks of several lengths: long bursts are seen in long blocks.
        These are few, and the largest of several is too large: half a standard error less.
        """
        axes = self.axes
        cells = tiling.replace(shape=(*tiling.shape[:axes], *[1] * (len(tiling.shape) - axes)))
        kept = self.blocks < self.number
        shape = int(np.prod(cells.shape)), self.number
        flat = cells.index(X[kept]) * self.number + self.blocks[kept]
        counts = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).astype(float)
        whole = axes == len(tiling.shape) and shape[0] > 1
        shares = counts.sum(axis=1, keepdims=True) / max(counts.sum(), 1.0) if whole else 0.0
        found = [1.0, neighbour_index(counts, shares)]
        while counts.shape[1] >= 2 * MIN_TIME_BLOCKS:
            counts = counts[:, : counts.shape[1] // 2 * 2].reshape(shape[0], -1, 2).sum(axis=2)
            # the variance of differences that overlap, relative to their square, is 3
            error = np.sqrt(3.0 / (counts.size - len(counts)))
            found.append(neighbour_index(counts, shares) * (1.0 - 0.5 * error))
        return float(max(found))


def neighbour_index(counts: Floats, shares: Floats | float = 0.0) -> float:
    """Σ(L-R)²/Σ(L+R) over neighbouring blocks of each cell, from counts (cells, blocks).

    1 on average for independent events, and the variance of a count over its mean for others. With
    the `shares` of cells (cells, 1), L-R is compared with the cell's share of that of all cells: a
    change of the total is not one of the shape.
    """
    left, right = counts[:, :-1], counts[:, 1:]
    off = left - right
    off = off - shares * off.sum(axis=0)
    events = float(np.sum((left + right) * (1.0 - np.asarray(shares))))
    return float(np.sum(off**2) / max(events, 1.0))


def time_blocks(window: Window, line: Timeline) -> TimeBlocks:
    """Whole cycles, if time is folded into a cycle; otherwise equal shares of expected events."""
    last = window.right if isinstance(window, Product) else window
    period = _period(last, line.unit)
    whole = int((line.nodes[-1] - line.nodes[0]) / period * (1.0 + 1e-9))
    if whole >= MIN_CYCLES:
        joined = -(-whole // MAX_CYCLES)
        index = ((line.times - line.nodes[0]) / (joined * period)).astype(np.int64)
        return TimeBlocks(index, whole // joined, window.dimension)
    index = np.minimum((line.share(line.times) * SHARE_BLOCKS).astype(np.int64), SHARE_BLOCKS - 1)
    return TimeBlocks(index, SHARE_BLOCKS, window.dimension - (last.dimension == 1))


def _period(last: Window, unit: str) -> float:
    """The length of a cycle in units of a timeline; infinite if it is none."""
    if not isinstance(last, Cycle) or not {last.unit, unit} <= set(SECONDS_IN):
        return np.inf
    return last.length * SECONDS_IN[last.unit] / SECONDS_IN[unit]
