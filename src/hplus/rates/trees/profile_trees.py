"""Trees of places whose cells have profiles of time, each drawn around that of the cell above.

A table of counts by place and time is moved by an offset, which makes it one of many trees. Places
are halved along every axis from level to level, and times, within each cell, from halving to
halving. The share of the first half of a span of time in a cell is Beta(A s, A (1 - s)), s the same
share in the cell of places around it: if A is infinite, both have the same profile. Each level of
places and halving of times has a concentration A of its own, found by its evidence, so that a
change may be wide and brief, or narrow and lasting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.rates.trees.evidence import Families, joined
from hplus.rates.trees.level_evidence import Best, LevelEvidence

EVIDENCE_SHIFTS = 4
"""Trees from which the concentrations are learned."""

MAX_SPLITS = 2048
"""Spans of time in cells, of each tree, from which a concentration is learned."""

MIN_PART = 1e-9
"""The least share of a half."""

MAX_BALANCING_STEPS, BALANCED = 200, 1e-12
"""Steps in which means by place and by time become 1, at most, and when they are."""

Halves = list[Floats]
"""Of each halving, from long spans to short ones, counts (*cells, spans, 2), or shares of the first
halves (*cells, spans)."""

Drawn = Callable[[Floats, Floats, float], Floats]
"""Shares of first halves from counts (…, 2), the shares in the cell above, and a concentration."""


class Shift(NamedTuple):
    """How a table (*cells, bins) is moved: by how many cells along each axis, and what wraps."""

    cells: tuple[int, ...]
    closed: tuple[bool, ...]

    def moved(self, table: Floats) -> Floats:
        """The table of a tree: twice as long along axes that do not wrap."""
        for axis, (offset, wraps) in enumerate(zip(self.cells, self.closed, strict=True)):
            if wraps:
                table = np.roll(table, offset, axis)
                continue
            sides = [(0, 0)] * table.ndim
            sides[axis] = (offset, table.shape[axis] - offset)
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


def shifts(shape: tuple[int, ...], closed: tuple[bool, ...], count: int, seed: int) -> list[Shift]:
    """The offsets of some trees over a table, drawn at random."""
    drawn = np.random.default_rng(seed).integers(0, shape, (count, len(shape)))
    return [Shift(tuple(row), closed) for row in drawn.tolist()]


def place_levels(table: Floats, shift: Shift, depth: int | None = None) -> list[Halves]:
    """The counts of halves of time in the cells of each level of a tree, the largest first.

    The first level is all places together; None for the depth goes down to the smallest cells.
    """
    moved, axes = shift.moved(table), tuple(range(table.ndim - 1))
    found = [moved]
    for _ in range(int(np.log2(table.shape[0]))):
        for axis in axes:
            moved = np.add.reduceat(moved, np.arange(0, moved.shape[axis], 2), axis)
        found.append(moved)
    found.append(moved.sum(axis=axes, keepdims=True))
    levels = found[::-1]
    return [_halves(each) for each in levels[: None if depth is None else depth + 1]]


def _halves(table: Floats) -> Halves:
    found: Halves = []
    while table.shape[-1] > 1:
        pairs = table.reshape(*table.shape[:-1], -1, 2)
        found.append(pairs)
        table = pairs[..., 0] + pairs[..., 1]
    return found[::-1]


def _first_shares(level: Halves) -> Halves:
    """The shares of first halves among all places; a half where nothing was counted."""
    return [
        np.divide(n[..., 0], n.sum(axis=-1), out=np.full(n.shape[:-1], 0.5), where=n.any(axis=-1))
        for n in level
    ]


def _above(shares: Floats, shape: tuple[int, ...]) -> Floats:
    """The shares of the cell around each cell of a level that has counts of a shape."""
    for axis, size in enumerate(shape[:-2]):
        shares = np.repeat(shares, size // shares.shape[axis], axis)
    return shares


def _inner(level: Halves, above: Halves, concentrations: Floats, drawn: Drawn) -> Halves:
    """The shares of a level, from its counts and the shares of the level above."""
    found = []
    for n, around, A in zip(level, above, concentrations.tolist(), strict=True):
        s = _above(around, n.shape)
        found.append(drawn(n, s, A) if A < np.inf else s)
    return found


def mean_shares(n: Floats, s: Floats, A: float) -> Floats:
    """Posterior means of the shares of first halves."""
    return (n[..., 0] + A * s) / (n[..., 0] + n[..., 1] + A)


def drawn_shares(rng: np.random.Generator) -> Drawn:
    """Posterior draws of the shares of first halves."""

    def drawn(n: Floats, s: Floats, A: float) -> Floats:
        s = np.clip(s, MIN_PART, 1.0 - MIN_PART)
        return rng.beta(n[..., 0] + A * s, n[..., 1] + A * (1.0 - s))

    return drawn


def learned_concentrations(
    table: Floats, closed: tuple[bool, ...], least: float, seed: int
) -> tuple[Floats, Floats]:
    """The concentrations of levels of places and halvings of times, and their gains in nats.

    Both (levels, halvings). A concentration is infinite unless it gains `least` nats.
    """
    drawn = shifts(table.shape, closed, EVIDENCE_SHIFTS, seed)
    trees = [place_levels(table, shift) for shift in drawn]
    above = [_first_shares(tree[0]) for tree in trees]
    concentrations = np.full((len(trees[0]) - 1, len(trees[0][0])), np.inf)
    gains = np.zeros(concentrations.shape)
    for k in range(len(concentrations)):
        levels = [tree[k + 1] for tree in trees]
        for j in range(len(above[0])):
            parts = zip(levels, above, strict=True)
            best = _best([_splits(level[j], shares[j]) for level, shares in parts])
            gains[k, j] = best.gain
            if best.gain >= least:
                concentrations[k, j] = best.concentration
        pairs = zip(levels, above, strict=True)
        above = [_inner(n, s, concentrations[k], mean_shares) for n, s in pairs]
    return concentrations, gains


def _best(found: list[tuple[int, Families]]) -> Best:
    """The concentration of the largest evidence; infinite if halves vary no more than by chance."""
    if sum(every * _overdispersion(families) for every, families in found) <= 0.0:
        return Best(np.inf, 0.0, np.inf)
    if all(every == 1 for every, _ in found):
        found = [(1, joined([families for _, families in found]))]
    return LevelEvidence(tuple(found), EVIDENCE_SHIFTS, False).best()


def _splits(n: Floats, around: Floats) -> tuple[int, Families]:
    """Spans with two or more events in a cell, of which one in so many was taken."""
    total, s = n.sum(axis=-1).ravel(), _above(around, n.shape).ravel()
    some = np.flatnonzero(total > 1.0)
    every = max(1, len(some) // MAX_SPLITS)
    some = some[::every]
    first = np.clip(s[some], MIN_PART, 1.0 - MIN_PART)
    shares, counts = np.stack([first, 1.0 - first], axis=1), n.reshape(-1, 2)[some]
    starts = 2 * np.arange(len(some) + 1)
    return every, Families(starts, total[some], np.zeros(len(some)), shares.ravel(), counts.ravel())


def _overdispersion(found: Families) -> float:
    """The derivative of the evidence by 1/A at 0: Σ ((n₁ - ns)²/(s(1 - s)) - n)/2."""
    s, first = found.shares[::2], found.counts[::2]
    squares = (first - found.parents * s) ** 2 / (s * (1.0 - s))
    return 0.5 * float(np.sum(squares - found.parents))


def profile_ratios(table: Floats, shift: Shift, concentrations: Floats, drawn: Drawn) -> Floats:
    """The profile of each cell of a table over that of all places, of one tree, (*cells, bins).

    Below the last level of a finite concentration, cells have the profile of that level.
    """
    depth = int(np.max(np.flatnonzero(np.isfinite(concentrations).any(axis=1)) + 1, initial=0))
    levels = place_levels(table, shift, depth)
    shares = everywhere = _first_shares(levels[0])
    for level, A in zip(levels[1:], concentrations, strict=False):
        shares = _inner(level, shares, A, drawn)
    # where no place has events in a half, its profile is that of all places
    parts = (
        _in_halves(s, where) / _in_halves(where, where)
        for s, where in zip(shares, everywhere, strict=True)
    )
    ratios = np.ones(1)
    for part in parts:
        ratios = np.repeat(ratios, 2, axis=-1) * part if ratios.ndim > 1 else part
    for axis, (size, wraps) in enumerate(zip(table.shape[:-1], shift.closed, strict=False)):
        ratios = np.repeat(ratios, size * (2 - wraps) // ratios.shape[axis], axis)
    return shift.back(ratios, table.shape)


def _in_halves(shares: Floats, everywhere: Floats) -> Floats:
    """Shares of both halves of spans, (…, 2 spans); 1 where nothing was counted anywhere."""
    both = np.stack([shares, 1.0 - shares], axis=-1)
    known = np.stack([everywhere > 0.0, everywhere < 1.0], axis=-1)
    return np.where(known, both, 1.0).reshape(*shares.shape[:-1], -1)


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
