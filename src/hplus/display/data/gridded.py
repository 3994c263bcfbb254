"""A fitted rate on the nodes of a grid, which is what maps, sums over axes and hot spots need."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hplus._checks import Floats
from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.rates.binned import finest_grid
from hplus.rates.fitted import FittedRate
from hplus.rates.stacked_rate import StackedRate
from hplus.rates.trees.tree_rate import TreeRate
from hplus.windows import Window


def gridded(rate: FittedRate, window: Window) -> GridFunction:
    """A rate at the nodes of a grid: its own or, with trees, means over cells of about its size.

    A place whose rate is high on much less than a cell is on the map with all of its events.
    """
    own = rate.on_grid
    if isinstance(own, GridFunction):
        return own
    grid = finest_grid(window)
    nodes = np.clip(grid.nodes(), *window.bounds())
    found = GridFunction(window, grid, _means(rate, nodes, grid).reshape(grid.shape))
    return found * (rate.integral() / found.integral())


def _means(rate: FittedRate, X: Floats, grid: TensorGrid) -> Floats:
    """The rate around each point, (n,), in cells no larger than those of a grid."""
    if isinstance(rate, StackedRate):
        return sum((w * _means(part, X, grid) for w, part in rate.parts), np.zeros(len(X)))
    return (_coarser(rate, grid) if isinstance(rate, TreeRate) else rate).function(X)


def _coarser(rate: TreeRate, grid: TensorGrid) -> TreeRate:
    """The same trees without the levels that a grid does not show: these only divide the rest.

    The smallest cells are no smaller than those of the grid, so that nodes miss none of them.
    """
    lattice = rate.statistic.lattice
    depth = int(np.floor(np.log2(np.max(lattice.sides / grid.spacing))))
    known = rate.clustering.concentrations
    shown = np.where(np.arange(len(known)) < max(depth, 0) + 2, known, np.inf)
    return replace(rate, clustering=replace(rate.clustering, concentrations=shown))
