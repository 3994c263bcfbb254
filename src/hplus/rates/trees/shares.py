"""The share of a tree's mass that lies in a region: its first two moments, in compiled loops.

The shares of the children of a cell are Dirichlet(a), a = n + A f. Only cells on the border of a
region are opened. Which cells are opened at most depends on the tree alone, so that the mean shares
of the parts of a partition add up. Where the exposure varies, what is shared is ∫ of the rate: then
the cells inside a region are opened too, and those without exposure count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.trees.masses import box_mass, cell_bounds, window_area
from hplus.rates.trees.paths import cell_mass, first_at_least
from hplus.rates.trees.polygon_edges import MIN_SHARE, compiled, cut_edges, edges_area, inner, write
from hplus.rates.trees.roughness import enter_cell, inner_concentration


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
    """The open cell on each level of a tree: its code, place, run of events, mass, next child,
    roughness, and the concentration of its children.

    Entries begin[level]:begin[level + 1] are the regions whose border it meets: which region, its
    entry one level up, sums over children, and its edges in the cell. Below the `deepest` level
    the base measure is right.
    """

    deepest: int
    codes: Ints
    place: Ints
    runs: Ints
    mass: Floats
    child: Ints
    rough: Floats
    inner: Floats
    begin: Ints
    region: Ints
    above: Ints
    sums: Floats
    pieces: Ints
    edges: Floats


@compiled
def new_walk(concentrations, regions):
    """Room for the open cells and for the regions that they meet; all meet the root."""
    levels, r, m = len(concentrations), len(regions.plane), len(regions.edges)
    deepest = levels - 1
    while deepest > 0 and concentrations[deepest] == np.inf:
        deepest -= 1
    walk = Walk(
        deepest,
        np.zeros(levels, np.uint64),
        np.zeros((levels, 3), np.int64),
        np.zeros((levels, 2), np.int64),
        np.zeros(levels),
        np.zeros(levels, np.int64),
        np.zeros(levels),
        np.zeros(levels),
        np.zeros(levels + 1, np.int64),
        np.empty(levels * r, np.int64),
        np.empty(levels * r, np.int64),
        np.empty((levels * r, 4)),
        np.empty((levels * r, 2), np.int64),
        np.empty(((2 * levels + 1) * m, 4)),
    )
    walk.begin[1] = r
    for i in range(r):
        walk.region[i] = i
        walk.pieces[i, 0], walk.pieces[i, 1] = regions.starts[i], regions.starts[i + 1]
    write(regions.edges, walk.edges)
    return walk


@compiled
def region_moments(forest, regions, first, second):
    """E[share] and E[share²] of each region under each tree, written to (trees, r)."""
    walk, low, high = new_walk(forest.concentrations, regions), np.zeros(3), np.ones(3)
    for k in range(len(forest.codes)):
        share_moments(forest, k, regions, walk, low, high, first[k], second[k])


@inner
def share_moments(forest, k, regions, walk, low, high, first, second):
    """E[share] and E[share²] of each region under tree k, written to (r,)."""
    ground = forest.ground
    walk.runs[0, 0], walk.runs[0, 1] = 0, len(forest.codes[k])
    walk.mass[0] = cell_mass(ground, k, np.int64(0), walk.place[0], low, high)
    walk.child[0], level = 0, np.int64(0)
    walk.inner[0] = inner_concentration(forest, np.int64(0), 0.0, forest.counts[k, -1])
    walk.sums[: len(first)] = 0.0
    while level >= 0:
        if walk.child[level] < 1 << ground.roots.dimension:
            is_cell = next_child(ground, k, walk, level + 1, low, high)
            if is_cell and open_cell(forest, k, regions, walk, level + 1, low, high):
                level += 1
            continue
        for e in range(walk.begin[level], walk.begin[level + 1]):
            if not walk.mass[level] > 0.0:
                walk.sums[walk.above[e], 3] += walk.sums[e, 3]
                continue
            m1, m2 = joined_moments(forest, k, walk, level, e)
            if level > 0:
                add_child(forest, k, walk, level, walk.above[e], m1, m2)
            else:
                first[e], second[e] = m1, m2
        level -= 1


@inner
def next_child(ground, k, walk, level, low, high):
    """Go to the next child, on some level, of the open cell above; False if it is no cell."""
    roots, child = ground.roots, walk.child[level - 1]
    walk.child[level - 1] += 1
    walk.codes[level] = (walk.codes[level - 1] << np.uint64(roots.dimension)) | np.uint64(child)
    for j in range(roots.dimension):
        walk.place[level, j] = 2 * walk.place[level - 1, j] + ((child >> j) & 1)
    return cell_bounds(roots, ground.offsets[k], level, walk.place[level], low, high)


@inner
def open_cell(forest, k, regions, walk, level, low, high):
    """Add a cell's moments for the regions that it lies in; is it on the border of others?"""
    ground = forest.ground
    size, known, is_leaf = walk.begin[level], False, False
    for e in range(walk.begin[level - 1], walk.begin[level]):
        r = walk.region[e]
        share = volume_share(ground.roots, regions, r, walk, e, size, low, high)
        if share <= MIN_SHARE:
            continue
        if not known:
            known, is_leaf = True, find_cell(forest, k, walk, level, low, high)
        mass, inside = walk.mass[level], share >= 1.0 - MIN_SHARE
        if not (mass > 0.0 or ground.varies):
            break
        if inside and not ground.varies:
            add_child(forest, k, walk, level, e, 1.0, 1.0)
        elif is_leaf and mass > 0.0:
            share = leaf_mass(ground, regions, r, share, mass, low, high) / mass
            add_child(forest, k, walk, level, e, share, share * share)
        elif is_leaf or (inside and not mass > 0.0):
            walk.sums[e, 3] += leaf_mass(ground, regions, r, share, mass, low, high)
        else:
            walk.region[size], walk.above[size], walk.sums[size, :] = r, e, 0.0
            size += 1
    walk.begin[level + 1], walk.child[level] = size, 0
    return size > walk.begin[level]


@inner
def find_cell(forest, k, walk, level, low, high):
    """Find the events of a cell among those of the open cell above it, and its mass.

    Is it a leaf? If the base measure is right in it, as in empty cells, it needs no children where
    it is no larger than cells of the measure's grid, or inside and the density constant.
    """
    ground, codes = forest.ground, forest.codes[k]
    roots = ground.roots
    shift = np.uint64(roots.dimension * (roots.bits - level))
    first, last = walk.runs[level - 1, 0], walk.runs[level - 1, 1]
    first = first_at_least(codes, first, last, walk.codes[level] << shift)
    last = first_at_least(codes, first, last, (walk.codes[level] + np.uint64(1)) << shift)
    walk.runs[level, 0], walk.runs[level, 1] = first, last
    walk.mass[level] = cell_mass(ground, k, level, walk.place[level], low, high)
    enter_cell(forest, k, walk, level)
    if level == roots.bits or (first < last and level < walk.deepest):
        return level == roots.bits
    return level >= len(ground.pyramid.starts) - 1 or is_even(ground, walk.mass[level], low, high)


@inner
def is_even(ground, mass, low, high):
    """Is the density constant in a cell, all of it inside the window?"""
    for j in range(ground.roots.dimension):
        mass /= high[j] - low[j]
    # false if there is no constant, NaN
    return mass >= (1.0 - MIN_SHARE) * ground.measure.constant


@inner
def volume_share(roots, regions, r, walk, e, size, low, high):
    """The share of the volume of a cell in region r, whose edges in the cell above are those of
    entry e; those in the cell are written to entry `size`.
    """
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
    walk.pieces[size, 0] = walk.pieces[size, 1] = walk.pieces[size - 1, 1]
    if plane >= 0:
        share *= area_share(walk, e, size, low[plane:], high[plane:])
    return share


@inner
def area_share(walk, e, size, low, high):
    """The share of the area of a cell inside the edges of entry e, which are cut to it."""
    corner, end_corner = (low[0], low[1]), (high[0], high[1])
    begin, end, top = walk.pieces[e, 0], walk.pieces[e, 1], walk.pieces[size, 0]
    until = cut_edges(walk.edges, begin, end, corner, end_corner, walk.edges, top)
    walk.pieces[size, 1] = until
    area = edges_area(walk.edges, top, until, low[0])
    return area / ((high[0] - low[0]) * (high[1] - low[1]))


@inner
def leaf_mass(ground, regions, r, share, mass, low, high):
    """∫ of the rate of the base over the part of a cell in a region, given its share of the volume.

    The exposure counts too if it is constant, as it does in the cell's mass. In a region with a
    polygon the density is taken as constant in the cell.
    """
    roots, measure, plane = ground.roots, ground.rated, regions.plane[r]
    if ground.varies:
        mass = box_mass(roots, measure, low, high)
    elif measure.is_uniform or is_even(ground, mass, low, high):
        return share * mass
    if plane < 0:
        return min(box_share(roots, measure, regions, r, low, high), mass)
    if len(measure.border) == 0 or mass == 0.0:
        return share * mass
    area = (high[plane] - low[plane]) * (high[plane + 1] - low[plane + 1])
    return min(share * area / window_area(roots, measure, low, high), 1.0) * mass


@inner
def box_share(roots, measure, regions, r, low, high):
    """The base measure of a cell in a box, which it may meet from both ends of a cycle."""
    total = 0.0
    for image in range(1 << roots.dimension):
        a0, b0 = side_of(roots, regions, r, np.int64(0), image, low, high)
        a1, b1 = side_of(roots, regions, r, np.int64(1), image, low, high)
        a2, b2 = side_of(roots, regions, r, np.int64(2), image, low, high)
        if a0 < b0 and a1 < b1 and a2 < b2:
            total += box_mass(roots, measure, (a0, a1, a2), (b0, b1, b2))
    return total


@inner
def side_of(roots, regions, r, j, image, low, high):
    """The part of the side of a cell in a box or, if the image says so, one turn before it."""
    a, b = regions.low[r, j], regions.high[r, j]
    if (image >> j) & 1:
        if not roots.cyclic[j]:
            return 0.0, 0.0
        a, b = a - roots.cells[j], b - roots.cells[j]
    return max(low[j], a), min(high[j], b)


@inner
def add_child(forest, k, walk, level, e, m1, m2):
    """Add the moments of a cell to the sums of entry e of the cell above it."""
    A, counts = walk.inner[level - 1], forest.counts[k]
    f = walk.mass[level] / walk.mass[level - 1]
    a, more = f, 0.0
    if A < np.inf:
        a, more = counts[walk.runs[level, 1]] - counts[walk.runs[level, 0]] + A * f, 1.0
    walk.sums[e, 0] += a * m1
    walk.sums[e, 1] += a * (a + more) * m2
    walk.sums[e, 2] += a * a * m1 * m1


@inner
def joined_moments(forest, k, walk, level, e):
    """The moments of a cell from the sums of entry e over its children: Dirichlet shares.

    Children without exposure have the cell's own rate.
    """
    A, counts = walk.inner[level], forest.counts[k]
    first, second, squares = walk.sums[e, 0], walk.sums[e, 1], walk.sums[e, 2]
    fixed = walk.sums[e, 3] / walk.mass[level]
    m1, m2 = first, first * first + second - squares
    if A < np.inf:
        a = counts[walk.runs[level, 1]] - counts[walk.runs[level, 0]] + A
        m1, m2 = first / a, m2 / (a * (a + 1.0))
    return m1 + fixed, m2 + 2.0 * fixed * m1 + fixed * fixed
