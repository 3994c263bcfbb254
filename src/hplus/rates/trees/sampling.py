"""Points drawn from trees: down a path by the mean shares of cells, evenly in the last one."""

from __future__ import annotations

import numpy as np

from hplus.rates.trees.masses import cell_bounds
from hplus.rates.trees.paths import cell_mass, run_of, spread_bits
from hplus.rates.trees.polygon_edges import compiled


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
        first, last = 0, len(codes)
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
                runs[c] = run_of(codes, first, last, code << np.uint64(shift), shift)
                total += masses[c]
            n = counts[last] - counts[first]
            chosen, left = 0, uniforms[i, level - 1]
            for c in range(1 << d):
                f = masses[c] / total
                share = f
                if n > 0.0 and A[level] < np.inf:
                    share = (counts[runs[c, 1]] - counts[runs[c, 0]] + A[level] * f) / (
                        n + A[level]
                    )
                if masses[c] > 0.0:
                    chosen = c
                    left -= share
                    if left < 0.0:
                        break
            first, last = runs[chosen]
            for j in range(d):
                index[j] = 2 * index[j] + (chosen >> j & 1)
        cell_bounds(roots, ground.offsets[k], roots.bits, index, low, high)
        lows[i], highs[i] = low, high
