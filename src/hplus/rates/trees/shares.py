"""The share of a tree's mass that lies in a region: its first two moments, in compiled loops.

The shares of the children of a cell are Dirichlet(a), a = n + A f. Only cells on the border of a
region are opened. Which cells are opened at most depends on the tree alone, so that the mean shares
of the parts of a partition add up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.trees.edges import compiled, cut_edges, edges_area
from hplus.rates.trees.masses import box_mass, cell_bounds, window_area
from hplus.rates.trees.paths import cell_mass, first_at_least

ROUNDING = 1e-12
"""Fractions of a cell this close to 0 or 1 are 0 or 1."""


class RegionSet(NamedTuple):
    """Regions in cells of the grid of a base measure: boxes, and prisms over polygons.

    Bounds are `low` and `high` (r, 3). Region r is a box if plane[r] is -1; else, on the axes
    plane[r] and plane[r] + 1, it is what lies inside edges[starts[r]:starts[r + 1]] (see `edges`).
    """

    low: Floats
    high: Floats
    plane: Ints
    starts: Ints
    edges: Floats


class Walk(NamedTuple):
    """The open cell on each level of a tree: its code and index, its run of events and its mass, its
    next child and sums over children. The region's edges in it end at ends[level + 1] of `edges`.
    """

    codes: Ints
    index: Ints
    runs: Ints
    mass: Floats
    child: Ints
    sums: Floats
    ends: Ints
    edges: Floats


@compiled
def new_walk(levels, edges):
    """Room for the cells on the levels of a tree and for regions with some number of edges."""
    return Walk(
        np.zeros(levels, np.uint64),
        np.zeros((levels, 3), np.int64),
        np.zeros((levels, 2), np.int64),
        np.zeros(levels),
        np.zeros(levels, np.int64),
        np.zeros((levels, 3)),
        np.zeros(levels + 1, np.int64),
        np.empty((edges * (2 * levels + 3), 4)),
    )


@compiled
def region_moments(forest, regions, first, second):
    """E[share] and E[share²] of each region under each tree, written to (trees, r)."""
    most = 0
    for r in range(len(regions.plane)):
        most = max(most, regions.starts[r + 1] - regions.starts[r])
    walk = new_walk(forest.ground.roots.bits + 1, most)
    for r in range(len(regions.plane)):
        begin, end = regions.starts[r], regions.starts[r + 1]
        walk.edges[: end - begin] = regions.edges[begin:end]
        walk.ends[0] = end - begin
        for k in range(len(forest.codes)):
            first[k, r], second[k, r] = share_moments(forest, k, regions, r, walk)


@compiled
def share_moments(forest, k, regions, r, walk):
    """E[share] and E[share²] of region r under tree k."""
    low, high = np.zeros(3), np.ones(3)
    walk.codes[0], walk.index[0, :] = 0, 0
    level = 0
    m1, m2 = cell_moments(forest, k, regions, r, walk, level, low, high)
    while m1 < 0.0 or level > 0:
        if m1 < 0.0:
            walk.child[level], walk.sums[level, :] = 0, 0.0
        else:
            if m1 > 0.0:
                add_child(forest, k, walk, level, m1, m2)
            level -= 1
        if walk.child[level] == 1 << forest.ground.roots.dimension:
            m1, m2 = joined_moments(forest, k, walk, level)
        else:
            level += 1
            m1, m2 = 0.0, 0.0
            if next_child(forest.ground.roots, walk, level):
                m1, m2 = cell_moments(forest, k, regions, r, walk, level, low, high)
    return m1, m2


@compiled
def next_child(roots, walk, level):
    """Go to the next child, on some level, of the open cell above; False if it is no cell."""
    child = walk.child[level - 1]
    walk.child[level - 1] += 1
    walk.codes[level] = (walk.codes[level - 1] << np.uint64(roots.dimension)) | np.uint64(child)
    for j in range(roots.dimension):
        half = (child >> j) & 1
        walk.index[level, j] = 2 * walk.index[level - 1, j] + half
        # the first halving of a cycle changes nothing
        if half and level == 1 and roots.cyclic[j]:
            return False
    return True


@compiled
def cell_moments(forest, k, regions, r, walk, level, low, high):
    """The moments of the share of a cell in a region; negative if its children must be asked."""
    ground, index = forest.ground, walk.index[level]
    roots = ground.roots
    if not cell_bounds(roots, ground.offsets[k], level, index, low, high):
        return 0.0, 0.0
    share = volume_share(roots, regions, r, walk, level, low, high)
    if share <= ROUNDING:
        return 0.0, 0.0
    find_run(forest, k, walk, level)
    mass = cell_mass(ground, k, level, index, low, high)
    walk.mass[level] = mass
    if not mass > 0.0:
        return 0.0, 0.0
    if share >= 1.0 - ROUNDING:
        return 1.0, 1.0
    empty = walk.runs[level, 0] == walk.runs[level, 1]
    if level < roots.bits and not (empty and level >= len(ground.pyramid.starts) - 1):
        return -1.0, -1.0
    share = base_share(ground, regions, r, share, mass, low, high)
    return share, share * share


@compiled
def find_run(forest, k, walk, level):
    """Find the events of a cell among those of the open cell above it."""
    roots, codes = forest.ground.roots, forest.codes[k]
    shift = np.uint64(roots.dimension * (roots.bits - level))
    first, last = 0, len(codes)
    if level > 0:
        first, last = walk.runs[level - 1]
    first = first_at_least(codes, first, last, walk.codes[level] << shift)
    walk.runs[level, 0] = first
    end = (walk.codes[level] + np.uint64(1)) << shift
    walk.runs[level, 1] = first_at_least(codes, first, last, end)


@compiled
def volume_share(roots, regions, r, walk, level, low, high):
    """The share of the volume of a cell that lies in a region."""
    share, plane = 1.0, regions.plane[r]
    for j in range(roots.dimension):
        a, b = regions.low[r, j], regions.high[r, j]
        length = max(min(high[j], b) - max(low[j], a), 0.0)
        if roots.cyclic[j]:
            turn = roots.cells[j]
            length += max(min(high[j], b - turn) - max(low[j], a - turn), 0.0)
        if length == 0.0:
            return 0.0
        if plane < 0 or not plane <= j <= plane + 1:
            share *= length / (high[j] - low[j])
    if plane >= 0:
        begin, end = walk.ends[level - 1] if level > 0 else 0, walk.ends[level]
        corner, end_corner = (low[plane], low[plane + 1]), (high[plane], high[plane + 1])
        size = cut_edges(walk.edges, begin, end, corner, end_corner, walk.edges, end)
        walk.ends[level + 1] = size
        area = edges_area(walk.edges, end, size, low[plane])
        share *= area / ((high[plane] - low[plane]) * (high[plane + 1] - low[plane + 1]))
    return share


@compiled
def base_share(ground, regions, r, share, mass, low, high):
    """The share of the base measure of a cell in a region, given that of its volume.

    In a region with a polygon the density is taken as constant in the cell. Where the exposure is
    not constant, this would be the smooth rate's mass in the region over the base measure's.
    """
    roots, measure, plane = ground.roots, ground.measure, regions.plane[r]
    if measure.is_uniform:
        return share
    if plane >= 0:
        if len(measure.border) == 0:
            return share
        area = (high[plane] - low[plane]) * (high[plane + 1] - low[plane + 1])
        return min(share * area / window_area(roots, measure, low, high), 1.0)
    return min(box_share(roots, measure, regions, r, low, high) / mass, 1.0)


@compiled
def box_share(roots, measure, regions, r, low, high):
    """The base measure of what lies in a cell and a box, which may be met from both ends of a cycle."""
    total, a, b = 0.0, np.zeros(3), np.ones(3)
    for images in range(1 << roots.dimension):
        meets = True
        for j in range(roots.dimension):
            turn = 0
            if (images >> j) & 1:
                turn = roots.cells[j]
                meets = meets and roots.cyclic[j]
            a[j] = max(low[j], regions.low[r, j] - turn)
            b[j] = min(high[j], regions.high[r, j] - turn)
            meets = meets and a[j] < b[j]
        if meets:
            total += box_mass(roots, measure, a, b)
    return total


@compiled
def add_child(forest, k, walk, level, m1, m2):
    """Add the moments of a cell to the sums of the cell above it."""
    A, counts, sums = forest.concentrations[level], forest.counts[k], walk.sums[level - 1]
    f = walk.mass[level] / walk.mass[level - 1]
    a, more = f, 0.0
    if A < np.inf:
        a, more = counts[walk.runs[level, 1]] - counts[walk.runs[level, 0]] + A * f, 1.0
    sums[0] += a * m1
    sums[1] += a * (a + more) * m2
    sums[2] += a * a * m1 * m1


@compiled
def joined_moments(forest, k, walk, level):
    """The moments of a cell from the sums over its children: their shares are Dirichlet."""
    A, counts = forest.concentrations[level + 1], forest.counts[k]
    first, second, squares = walk.sums[level]
    if A == np.inf:
        return first, first * first + second - squares
    a = counts[walk.runs[level, 1]] - counts[walk.runs[level, 0]] + A
    return first / a, (second + first * first - squares) / (a * (a + 1.0))
