"""A fitted rate on the nodes of a grid, which is what maps, sums over axes and hot spots need."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hplus._checks import Floats
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
    # nodes whose hat functions do not reach into the window say nothing about it
    near = grid.integrals(window).ravel() > 0.0
    values = np.zeros(len(nodes))
    values[near] = at_scale(rate, grid.spacing).function(nodes[near])
    found = GridFunction(window, grid, values.reshape(grid.shape))
    return found * (rate.integral() / found.integral())


def at_scale(rate: FittedRate, sides: Floats) -> FittedRate:
    """The same rate as means over cells with about these sides, (d,), if trees know it finer."""
    if not isinstance(rate, TreeRate | StackedRate):
        return rate
    # no smaller than the cells that are shown, so that their middles miss none
    lattice = tree_parts(rate)[0].statistic.lattice
    return truncated(rate, int(np.floor(np.log2(np.max(lattice.sides / sides)))))


def tree_parts(rate: object) -> list[TreeRate]:
    """The rates by trees that a rate consists of."""
    parts = [part for _, part in rate.parts] if isinstance(rate, StackedRate) else [rate]
    return [part for part in parts if isinstance(part, TreeRate)]


def truncated(rate: TreeRate | StackedRate, depth: int) -> TreeRate | StackedRate:
    """The same rate without the levels of trees below some depth: these only divide the rest."""
    if isinstance(rate, TreeRate):
        return _shallow(rate, depth)
    cut = [(w, _shallow(p, depth) if isinstance(p, TreeRate) else p) for w, p in rate.parts]
    return replace(rate, parts=tuple(cut))


def _shallow(rate: TreeRate, depth: int) -> TreeRate:
    known = rate.clustering.concentrations
    # the root of a tree has twice the side of the lattice
    kept = np.where(np.arange(len(known)) < max(depth, 0) + 2, known, np.inf)
    found = replace(rate, clustering=replace(rate.clustering, concentrations=kept))
    # trees over the same events need not grow again
    vars(found)["forest"] = rate.forest._replace(concentrations=kept)
    return found
