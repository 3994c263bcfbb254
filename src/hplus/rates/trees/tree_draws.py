"""Cells drawn from trees: down a path by mean shares, or from all leaves if exposure varies."""

from __future__ import annotations

import numpy as np

from hplus.rates.trees.masses import box_mass, cell_bounds
from hplus.rates.trees.paths import cell_mass, indices_of, run_of, spread_bits
from hplus.rates.trees.polygon_edges import compiled, inner
from hplus.rates.trees.roughness import factor_of, roughness_of


@compiled
def draw_cells(forest, trees, uniforms, lows, highs):
    """The bounds in grid cells of the smallest cells that points of some trees (n,) fall into.

    `uniforms` (n, bits) choose the child on each level; `lows` and `highs` are (n, 3).
    """
    ground, A = forest.ground, forest.concentrations
    roots, d = ground.roots, ground.roots.dimension
    low, high = np.zeros(3), np.ones(3)
    index, child = np.zeros(3, np.int64), np.zeros(3, np.int64)
    masses, runs = np.empty(8), np.empty((8, 2), np.int64)
    for i in range(len(trees)):
        k = trees[i]
        codes, counts = forest.codes[k], forest.counts[k]
        first, last, rough = np.int64(0), len(codes), 0.0
        index[:] = 0
        for level in range(1, roots.bits + 1):
            shift = d * (roots.bits - level)
            total = 0.0
            for c in range(1 << d):
                code = np.uint64(0)
                for j in range(d):
                    child[j] = 2 * index[j] + (c >> j & 1)
                    code |= spread_bits(child[j], d) << np.uint64(j)
                masses[c] = cell_mass(ground, k, level, child, low, high)
                a, b = run_of(codes, first, last, code << np.uint64(shift), shift)
                runs[c, 0], runs[c, 1] = a, b
                total += masses[c]
            for c in range(1 << d):
                masses[c] /= total
            n, u = counts[last] - counts[first], uniforms[i, level - 1]
            inner = A[level] * factor_of(forest.powers, rough, n)
            chosen = _chosen_child(masses[: 1 << d], runs, counts, n, inner, u)
            first, last = runs[chosen]
            rough = roughness_of(rough, counts[last] - counts[first], n, masses[chosen])
            for j in range(d):
                index[j] = 2 * index[j] + (chosen >> j & 1)
        cell_bounds(roots, ground.offsets[k], roots.bits, index, low, high)
        _write(low, lows[i])
        _write(high, highs[i])


@inner
def _write(corner, out):
    """Copy the corner of a cell, (3,): assigning an array takes seconds to compile."""
    for j in range(3):
        out[j] = corner[j]


@inner
def _chosen_child(shares, runs, counts, n, A, uniform):
    """The child that a uniform number falls into, by the mean shares of a cell with n events."""
    chosen = 0
    for c in range(len(shares)):
        f = shares[c]
        if f > 0.0:
            chosen, share = c, f
            if n > 0.0 and A < np.inf:
                share = (counts[runs[c, 1]] - counts[runs[c, 0]] + A * f) / (n + A)
            uniform -= share
            if uniform < 0.0:
                break
    return chosen


@compiled
def draw_leaves(forest, k, places):
    """The bounds in grid cells of the leaves of tree k at some places, (n, 3) each.

    The places (n,) are sorted: how much of ∫ of the mean rate, in the units of shares, lies in the
    leaves before. Where the exposure is 0 the rate is that of the last exposed cell above.
    """
    ground = forest.ground
    roots, d = ground.roots, ground.roots.dimension
    lows, highs = np.zeros((2, len(places), 3))
    low, high, index = np.zeros(3), np.ones(3), np.zeros(3, np.int64)
    room = (roots.bits + 1) << d
    spans, codes = np.zeros((room, 3), np.int64), np.zeros(room, np.uint64)
    numbers = np.empty((room, 3))
    mass = cell_mass(ground, k, np.int64(0), index, low, high)
    spans[0, 2] = len(forest.codes[k])
    numbers[0, 0], numbers[0, 1], numbers[0, 2] = mass, 1.0 / mass, 0.0
    top, found, total = 1, 0, 0.0
    while top > 0 and found < len(places):
        top -= 1
        level, first, last = spans[top]
        if level < roots.bits and (first < last or level < len(ground.pyramid.starts) - 1):
            top = _push_children(forest, k, spans, codes, numbers, top)
            continue
        indices_of(codes[top], d, index)
        cell_bounds(roots, ground.offsets[k], level, index, low, high)
        mass = numbers[top, 1] * box_mass(roots, ground.rated, low, high)
        total += mass
        while found < len(places) and mass > 0.0 and places[found] < total:
            _write(low, lows[found])
            _write(high, highs[found])
            found += 1
        if mass > 0.0:
            # where rounding leaves some places behind the last leaf
            for i in range(found, len(places)):
                _write(low, lows[i])
                _write(high, highs[i])
    return lows, highs


@compiled
def _push_children(forest, k, spans, codes, numbers, top):
    """Replace a cell by its children: level and events, code, mass, ∫ of the rate per mass, and
    roughness.
    """
    ground, counts = forest.ground, forest.counts[k]
    roots, d = ground.roots, ground.roots.dimension
    low, high, index = np.zeros(3), np.ones(3), np.zeros(3, np.int64)
    (above, rate, rough), code = numbers[top], codes[top]
    level, first, last = spans[top, 0] + 1, spans[top, 1], spans[top, 2]
    n, shift = forest.counts[k, last] - forest.counts[k, first], d * (roots.bits - level)
    A = forest.concentrations[level] * factor_of(forest.powers, rough, n)
    for c in range(1 << d):
        child = (code << np.uint64(d)) | np.uint64(c)
        indices_of(child, d, index)
        if not cell_bounds(roots, ground.offsets[k], level, index, low, high):
            continue
        mass = cell_mass(ground, k, level, index, low, high)
        a, b = run_of(forest.codes[k], first, last, child << np.uint64(shift), shift)
        spans[top, 0], spans[top, 1], spans[top, 2] = level, a, b
        codes[top], numbers[top, 0], numbers[top, 1], numbers[top, 2] = child, mass, rate, rough
        if mass > 0.0:
            f, inside = mass / above, counts[b] - counts[a]
            numbers[top, 2] = roughness_of(rough, inside, n, f)
            if A < np.inf:
                numbers[top, 1] = rate * (inside + A * f) / ((n + A) * f)
        top += 1
    return top
