"""The margin of a statistic: the same events in cells of some of its axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hplus.grids.hats import read_only
from hplus.rates.cell_counts import group_cells
from hplus.rates.lattice import CellLattice
from hplus.rates.statistic import Statistic
from hplus.rates.weight_units import WEIGHT_BITS
from hplus.windows import Window


def margin(statistic: Statistic, window: Window, axes: Sequence[int]) -> Statistic:
    """The statistic of the events on some axes, of which `window` is the window.

    Its cells have the sides of those of the statistic, or the next larger ones of their lattice.
    """
    own, lattice = statistic.lattice, CellLattice(window)
    ratios = lattice.sides / own.cell_sides(statistic.depth)[list(axes)]
    depth = int(np.clip(np.floor(np.log2(ratios).min() + 1e-9), 0, lattice.bits))
    X = own.centers(statistic.codes, statistic.depth)[:, list(axes)]
    codes = lattice.codes(X) >> np.uint64(lattice.dimension * (lattice.bits - depth))
    order = np.argsort(codes, kind="stable")
    weights = statistic.weights if statistic.weights.size else statistic.counts << WEIGHT_BITS
    rows = np.stack([statistic.counts[order], weights[order]])
    codes, (counts, weights) = group_cells(read_only(codes[order]), read_only(rows), np.uint64(0))
    return Statistic(window, depth, codes, counts, weights, statistic.squares)
