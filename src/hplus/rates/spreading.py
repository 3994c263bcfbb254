"""Events spread over the boxes that their rounded positions stand for; compiled."""

from __future__ import annotations

import math

import numpy as np

from hplus._checks import Bools, Floats, Ints
from hplus.grids.hats import compiled, read_only
from hplus.rates.cell_counts import GOLDEN, group_cells, mixed
from hplus.rates.lattice import Codes
from hplus.rates.statistic import Statistic

MAX_PLACED_EVENTS = 1000
"""Events of a position that are placed one by one; of more, numbers by cell are drawn."""

MAX_EXACT_MEAN = 30.0
"""Binomials with a smaller mean are drawn exactly; others are rounded from a normal variable."""


def spread(statistic: Statistic, sides: Floats, depth: int, seed: int) -> tuple[Codes, Ints]:
    """Sorted cells of a depth and their counts, each event moved at random in its box.

    `sides` (m, d) or (d,) are those of the boxes around the cells of the statistic, in the units
    of the window, 0 to leave events where they are. What lies outside the window is cut off;
    boxes wrap around cycles. The draws for a cell follow from its code and the seed.
    """
    lattice, shift = statistic.lattice, statistic.depth - depth
    width = lattice.cell_sides(statistic.depth)
    boxes = np.broadcast_to(sides / width, (len(statistic.codes), lattice.dimension))
    low, high = statistic.window.bounds()
    closed = np.isin(np.arange(lattice.dimension), statistic.window.closed_axes())
    indices, rows, counts = _spread(
        read_only(statistic.codes),
        read_only(lattice.indices(statistic.codes)),
        read_only(statistic.counts),
        read_only(boxes),
        np.maximum((high - low) / width, 1.0),
        closed,
        2.0**shift,
        np.uint64(seed),
    )
    levels = np.uint64(lattice.dimension * (lattice.bits - depth))
    centers = indices + 0.5
    centers *= lattice.cell_sides(depth)
    centers += low
    codes = lattice.codes(np.clip(centers, low, high, out=centers)) >> levels
    if statistic.window.box_bounds() is None:
        home = statistic.codes[rows] >> np.uint64(lattice.dimension * shift)
        outside = (codes != home) & ~_contained(statistic, codes, depth)
        codes[outside] = home[outside]
    return _grouped(codes, counts)


def _contained(statistic: Statistic, codes: Codes, depth: int) -> Bools:
    """Whether the centres of cells lie in the window."""
    cells, which = np.unique(codes, return_inverse=True)
    return statistic.window.contains(statistic.lattice.centers(cells, depth))[which]


def _grouped(codes: Codes, counts: Ints) -> tuple[Codes, Ints]:
    """Distinct codes, sorted, with their sums of counts; small counts are sorted as events."""
    if counts.sum() <= 2 * len(codes):
        codes = np.repeat(codes, counts)
        codes.sort()
        counts = np.ones_like(codes, dtype=np.int64)
    else:
        order = np.argsort(codes)
        codes, counts = codes[order], counts[order]
    cells, sums = group_cells(read_only(codes), read_only(counts[None]), np.uint64(0))
    return cells, sums[0]


@compiled
def _spread(
    codes: Codes,
    indices: Ints,
    counts: Ints,
    boxes: Floats,
    limits: Floats,
    closed: Bools,
    width: float,
    seed: np.uint64,
) -> tuple[Ints, Ints, Ints]:
    """Indices (k, d) of cells of `width` units, the rows they come from, and counts."""
    m, d = indices.shape
    low, high = np.empty(d), np.empty(d)
    first, sizes = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    room = 0
    for i in range(m):
        _box(indices[i], boxes[i], limits, closed, width, low, high, first, sizes)
        room += min(counts[i], np.prod(sizes))
    out, rows = np.empty((room, d), dtype=np.int64), np.empty(room, dtype=np.int64)
    sums = np.empty(room, dtype=np.int64)
    tally = np.zeros(MAX_PLACED_EVENTS, dtype=np.int64)
    k = np.int64(0)
    for i in range(m):
        _box(indices[i], boxes[i], limits, closed, width, low, high, first, sizes)
        state = mixed(codes[i] + mixed(seed + GOLDEN))
        before, cells = k, np.prod(sizes)
        if cells == 1:
            for j in range(d):
                out[k, j] = first[j]
            sums[k] = counts[i]
            k += 1
        elif counts[i] > max(MAX_PLACED_EVENTS, cells):
            k = _split(state, counts[i], low, high, first, sizes, width, out, sums, k)
        elif cells <= counts[i]:
            k = _place(state, counts[i], low, high, first, sizes, width, tally, out, sums, k)
        else:
            k = _place_each(state, counts[i], low, high, width, out, sums, k)
        rows[before:k] = i
        for j in range(d):
            if closed[j]:
                for c in range(before, k):
                    out[c, j] %= int(limits[j] / width)
    return out[:k], rows[:k], sums[:k]


@compiled
def _box(index, box, limits, closed, width, low, high, first, sizes):
    """The box around the centre of a cell, cut off at the window, and the cells that it meets."""
    for j in range(len(index)):
        half = 0.5 * min(box[j], limits[j])
        center = index[j] + 0.5
        low[j], high[j] = center - half, center + half
        if not closed[j]:
            low[j] = min(max(low[j], 0.0), limits[j])
            high[j] = max(min(high[j], limits[j]), low[j])
        first[j] = math.floor(low[j] / width)
        sizes[j] = max(math.ceil(high[j] / width) - first[j], 1)


@compiled
def _place(state, count, low, high, first, sizes, width, tally, out, sums, k):
    """Events placed one by one and counted by cell."""
    d, cells = len(low), np.prod(sizes)
    tally[:cells] = 0
    for _ in range(count):
        cell = 0
        for j in range(d):
            state += GOLDEN
            x = low[j] + (high[j] - low[j]) * _uniform(state)
            cell = cell * sizes[j] + min(math.floor(x / width) - first[j], sizes[j] - 1)
        tally[cell] += 1
    for cell in range(cells):
        if tally[cell]:
            _unravel(cell, first, sizes, out[k])
            sums[k] = tally[cell]
            k += 1
    return k


@compiled
def _place_each(state, count, low, high, width, out, sums, k):
    """Events placed one by one, each with a cell of its own."""
    for _ in range(count):
        for j in range(len(low)):
            state += GOLDEN
            out[k, j] = math.floor((low[j] + (high[j] - low[j]) * _uniform(state)) / width)
        sums[k] = 1
        k += 1
    return k


@compiled
def _split(state, count, low, high, first, sizes, width, out, sums, k):
    """Numbers of events by cell: a multinomial as one binomial after the other."""
    left, share = count, 1.0
    cells = np.prod(sizes)
    for cell in range(cells):
        _unravel(cell, first, sizes, out[k])
        p = 1.0
        for j in range(len(low)):
            a, b = max(low[j], out[k, j] * width), min(high[j], (out[k, j] + 1) * width)
            p *= max(b - a, 0.0) / (high[j] - low[j])
        state = mixed(state + GOLDEN)
        drawn = left if cell == cells - 1 or p >= share else _binomial(state, left, p / share)
        share -= p
        left -= drawn
        if drawn:
            sums[k] = drawn
            k += 1
    return k


@compiled
def _unravel(cell, first, sizes, out):
    """The indices of a cell of a box by its number."""
    for j in range(len(sizes) - 1, -1, -1):
        out[j] = first[j] + cell % sizes[j]
        cell //= sizes[j]


@compiled
def _binomial(state, n, p):
    """How many of n events occur with chance p: by the gaps between them, or nearly normal."""
    if p > 0.5:
        return n - _binomial(state, n, 1.0 - p)
    if n * p >= MAX_EXACT_MEAN:
        radius = math.sqrt(-2.0 * math.log(1.0 - _uniform(state + GOLDEN)))
        z = radius * math.cos(2.0 * math.pi * _uniform(state + GOLDEN + GOLDEN))
        drawn = math.floor(n * p + math.sqrt(n * p * (1.0 - p)) * z + 0.5)
        return min(max(np.int64(drawn), 0), n)
    drawn, passed = 0, 0.0
    while p > 0.0:
        state += GOLDEN
        passed += math.floor(math.log(1.0 - _uniform(state)) / math.log1p(-p)) + 1.0
        if passed > n:
            break
        drawn += 1
    return drawn


@compiled
def _uniform(state):
    """A hash of the state in [0, 1)."""
    return np.float64(mixed(state) >> np.uint64(11)) * 2.0**-53
