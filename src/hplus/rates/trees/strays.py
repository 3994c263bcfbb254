"""Events in cells without base measure, which are moved to cells that have some."""

from __future__ import annotations

import numpy as np

from hplus.grids.hats import read_only
from hplus.rates.cell_counts import group_cells
from hplus.rates.statistic import Statistic
from hplus.rates.trees.paths import cell_mass, indices_of
from hplus.rates.trees.planting import AXES, BaseDensity, have_mass, prepare
from hplus.rates.trees.polygon_edges import compiled


def moved_onto(statistic: Statistic, base: BaseDensity) -> Statistic:
    """The same events; those in cells without measure are moved to one close by that has some.

    They lie on the border of a polygon, or at the edge of the exposed area.
    """
    lattice, depth = statistic.lattice, statistic.depth
    if statistic.window.box_bounds() is not None and np.all(base.values > 0.0):
        return statistic
    ground = prepare(lattice, depth, base, np.zeros((1, AXES), np.int64))
    strays = np.flatnonzero(~have_mass(ground, lattice.indices(statistic.codes)))
    if not len(strays):
        return statistic
    codes = statistic.codes.copy()
    for i in strays.tolist():
        codes[i] = nearby_cell(ground, codes[i])
    order = np.argsort(codes, kind="stable")
    rows = np.stack([statistic.counts, *statistic.weights.reshape(-1, len(codes))])
    codes, rows = group_cells(read_only(codes[order]), read_only(rows[:, order]), np.uint64(0))
    weights = rows[1] if len(rows) > 1 else statistic.weights
    return Statistic(statistic.window, depth, codes, rows[0], weights, statistic.squares)


@compiled
def nearby_cell(ground, code):
    """The code of a smallest cell with measure, near one without; in a tree without an offset.

    From the first cell above that has measure down again, always to the nearest child that has.
    """
    roots, d = ground.roots, ground.roots.dimension
    low, high = np.zeros(3), np.ones(3)
    index, asked = np.zeros(3, np.int64), np.zeros(3, np.int64)
    indices_of(code, d, asked)
    level, found = roots.bits, code
    mass = 0.0
    while level > 0 and not mass > 0.0:
        level, found = level - 1, found >> np.uint64(d)
        indices_of(found, d, index)
        mass = cell_mass(ground, np.int64(0), level, index, low, high)
    while level < roots.bits:
        level, above, least = level + 1, found, np.inf
        for c in range(1 << d):
            child, distance = (above << np.uint64(d)) | np.uint64(c), 0.0
            indices_of(child, d, index)
            if not cell_mass(ground, np.int64(0), level, index, low, high) > 0.0:
                continue
            for j in range(d):
                first = index[j] << (roots.bits - level)
                last = first + (1 << (roots.bits - level)) - 1
                distance += float(max(first - asked[j], asked[j] - last, 0)) ** 2
            if distance < least:
                least, found = distance, child
    return found
