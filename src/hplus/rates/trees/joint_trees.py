"""Trees over a table of counts by place and time, relative to independent places and times.

All trees come from one table on the finest lattice: a tree is the table moved by an offset, and a
level of it the table summed over blocks, half as long as those above along every axis. A cycle
wraps around. The base measure of a cell is its place's count times its time's count, so that only
what place and time say together is structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.rates.trees.concentrations import Best, LevelEvidence
from hplus.rates.trees.evidence import Families, joined

EVIDENCE_OFFSETS = 8
"""Trees from which the concentrations are learned."""

MAX_BALANCING_STEPS, BALANCED = 200, 1e-12
"""Steps in which means by place and by time become 1, at most, and when they are."""

Shares = Callable[[Floats, Floats, float, Floats], Floats]
"""Shares of cells from their counts, the counts above, the concentration and the base's shares."""


class Shift(NamedTuple):
    """How a table (*cells, bins) is moved: by how many cells along each axis, and what wraps."""

    cells: tuple[int, ...]
    closed: tuple[bool, ...]
    levels: int

    def moved(self, table: Floats) -> Floats:
        """The table of a tree: longer by one of its largest cells along axes that do not wrap."""
        for axis, (offset, wraps) in enumerate(zip(self.cells, self.closed, strict=True)):
            if wraps:
                table = np.roll(table, offset, axis)
                continue
            sides = [(0, 0)] * table.ndim
            sides[axis] = (offset, 2**self.levels - offset)
            table = np.pad(table, sides)
        return table

    def back(self, table: Floats, shape: tuple[int, ...]) -> Floats:
        """The part of a tree's table that was moved there, of this shape."""
        for axis, (offset, wraps) in enumerate(zip(self.cells, self.closed, strict=True)):
            if wraps:
                table = np.roll(table, -offset, axis)
            else:
                table = np.take(table, np.arange(offset, offset + shape[axis]), axis)
        return table


def shifts(closed: tuple[bool, ...], levels: int, count: int, seed: int) -> list[Shift]:
    """The offsets of some trees, evenly spread over the largest cells."""
    drawn = np.random.default_rng(seed).integers(0, 2**levels, (count, len(closed)))
    return [Shift(tuple(row), closed, levels) for row in drawn.tolist()]


def halvings(table: Floats, levels: int) -> list[Floats]:
    """A table summed over cells of every level, the largest first."""
    found = [table]
    for _ in range(levels):
        table = _pairs_added(table)
        found.append(table)
    return found[::-1]


def _pairs_added(table: Floats) -> Floats:
    for axis in range(table.ndim):
        table = np.add.reduceat(table, np.arange(0, table.shape[axis], 2), axis)
    return table


def _doubled(table: Floats) -> Floats:
    """The value of the cell above, for every cell."""
    for axis in range(table.ndim):
        table = np.repeat(table, 2, axis)
    return table


class Level(NamedTuple):
    """The counts of cells of a tree, and their shares of the base measure of the cell above."""

    counts: Floats
    shares: Floats


def tree_levels(table: Floats, shift: Shift) -> Iterator[Level]:
    """The levels of a tree below the largest cells."""
    moved = shift.moved(table)
    places = halvings(moved.sum(axis=-1), shift.levels)
    times = halvings(moved.sum(axis=tuple(range(moved.ndim - 1))), shift.levels)
    for level, counts in enumerate(halvings(moved, shift.levels)[1:], start=1):
        where, when = (_inner_shares(x[level], x[level - 1]) for x in (places, times))
        yield Level(counts, where[..., None] * when)


def _inner_shares(inner: Floats, outer: Floats) -> Floats:
    above = _doubled(outer)
    return np.divide(inner, above, out=np.zeros_like(inner), where=above > 0.0)


def learned_levels(table: Floats, closed: tuple[bool, ...], levels: int, seed: int) -> list[Best]:
    """The concentration of each level with the largest evidence, and what it gains."""
    found: list[list[Families]] = [[] for _ in range(levels)]
    for shift in shifts(closed, levels, EVIDENCE_OFFSETS, seed):
        for level, each in enumerate(tree_levels(table, shift)):
            found[level].append(_families(each))
    return [
        LevelEvidence(((1, joined(each)),), EVIDENCE_OFFSETS, False).best()
        for each in found
        if sum(len(families.parents) for families in each)
    ]


def _families(level: Level) -> Families:
    """Cells with two or more events, with their children that have any."""
    inside = np.nonzero(level.counts)
    shape = tuple(-(-n // 2) for n in level.counts.shape)
    above = np.ravel_multi_index([index // 2 for index in inside], shape)
    order = np.argsort(above, kind="stable")
    counts, shares, above = level.counts[inside][order], level.shares[inside][order], above[order]
    parents = np.bincount(above, counts, minlength=int(np.prod(shape))).astype(float)
    kept = parents[above] > 1.0
    counts, shares, above = counts[kept], shares[kept], above[kept]
    first = np.flatnonzero(np.diff(above, prepend=-1))
    starts = np.append(first, len(above)).astype(np.int64)
    return Families(starts, parents[above[first]], np.zeros(len(first)), shares, counts)


def mean_ratios(table: Floats, shift: Shift, concentrations: Floats) -> Floats:
    """The mean of a tree's measure over the base measure in each cell of the table."""

    def shares(counts: Floats, above: Floats, A: float, f: Floats) -> Floats:
        return (counts + A * f) / (above + A)

    return _ratios(table, shift, concentrations, shares)


def drawn_ratios(
    table: Floats, shift: Shift, concentrations: Floats, rng: np.random.Generator
) -> Floats:
    """The same for shares that are drawn: one posterior draw of the tree's measure."""

    def shares(counts: Floats, above: Floats, A: float, f: Floats) -> Floats:
        drawn = rng.gamma(counts + A * f)
        total = _doubled(_pairs_added(drawn))
        mean = (counts + A * f) / (above + A)
        return np.divide(drawn, total, out=mean, where=total > 0.0)

    return _ratios(table, shift, concentrations, shares)


def _ratios(table: Floats, shift: Shift, concentrations: Floats, shares: Shares) -> Floats:
    ratios = np.ones((1,) * table.ndim)
    for A, level in zip(concentrations.tolist(), tree_levels(table, shift), strict=True):
        ratios = np.ones([n // 2 for n in level.counts.shape]) * ratios
        ratios = _doubled(ratios)
        if A < np.inf:
            above = _doubled(_pairs_added(level.counts))
            found = shares(level.counts, above, A, level.shares)
            # where nothing was counted by place or by time, the cell above is all that is known
            ones = np.ones_like(found)
            ratios = ratios * np.divide(found, level.shares, out=ones, where=level.shares > 0.0)
    return shift.back(ratios, table.shape)


def balanced(ratios: Floats, places: Floats, times: Floats) -> Floats:
    """Ratios (…, cells, bins), scaled so that their means by place and by time are 1.

    Means have the weights of cells (cells,) and of bins (bins,). By iterative proportional fitting.
    """
    p, t = places / places.sum(), times / times.sum()
    for _ in range(MAX_BALANCING_STEPS):
        ratios = ratios / (np.swapaxes(ratios, -1, -2) @ p)[..., None, :]
        by_place = ratios @ t
        ratios = ratios / by_place[..., None]
        if np.max(np.abs(by_place[..., p > 0.0] - 1.0), initial=0.0) < BALANCED:
            break
    return ratios
