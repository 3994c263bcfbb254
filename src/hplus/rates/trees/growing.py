"""Learning a rate by trees from a statistic, down to the step of the events' positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hplus._checks import Floats
from hplus.rates.positions import Positions
from hplus.rates.spreading import spread
from hplus.rates.statistic import Statistic
from hplus.rates.trees.concentrations import Clustering, learn_clustering
from hplus.rates.trees.planting import grid_depth
from hplus.rates.trees.strays import moved_onto
from hplus.rates.trees.tree_base import TreeBase, density_of
from hplus.rates.trees.tree_rate import TreeRate

MAX_TREES, USUAL_TREES, MIN_TREES = 64, 32, 16
"""Trees that are averaged: most of few events, fewest of very many and on a smooth base."""

FEW_TREE_EVENTS, MAX_TREE_EVENTS = 500_000, 16_000_000
"""Events times trees up to which more trees than usual are averaged, and at most the usual."""

MAX_TREE_CELLS, FEWEST_TREES = 2**24, 4
"""Occupied cells of all trees, which are kept with 16 bytes each, as long as there are so many
trees: where cells are so many, each holds so many events that a few trees agree."""


def learn_tree_rate(
    cells: Statistic, base: TreeBase | None, exposure: Floats, seed: int, distinct: bool
) -> TreeRate:
    """The rate by trees over cells that are as small as positions allow, relative to a base.

    `distinct` counts events at the same position once when it comes to how fine structure is.
    """
    density = density_of(cells, base, exposure)
    cells = moved_onto(cells, density)
    clustering = learn_clustering(cells, density, distinct, seed)
    return tree_rate(cells, clustering, base, exposure, seed)


def tree_rate(
    cells: Statistic, clustering: Clustering, base: TreeBase | None, exposure: Floats, seed: int
) -> TreeRate:
    """The rate by trees of known concentrations, over cells that are as small as these need."""
    # in the smallest cells the base is taken as if it were linear
    grid = density_of(cells, base, exposure).grid
    depth = min(max(clustering.depth, grid_depth(cells.lattice, grid)), cells.depth)
    cells = cells.coarsened(depth)
    trees = trees_for(cells.effective_events, base is not None)
    trees = max(min(trees, MAX_TREE_CELLS // max(len(cells.codes), 1)), FEWEST_TREES)
    return TreeRate(cells, clustering.up_to(depth), base, exposure, trees, seed)


def regrown(rate: TreeRate, events: Statistic) -> TreeRate:
    """The rate of other events of the same kind: their trees have the same concentrations."""
    cells = events.coarsened(min(rate.statistic.depth, events.depth))
    return replace(rate, statistic=moved_onto(cells, rate.density))


def working_cells(statistic: Statistic, positions: Positions, seed: int) -> Statistic:
    """Events in cells as small as their positions allow.

    Events at rounded positions are spread at random over the boxes that were rounded to them, or
    cells would see the pattern of the rounding. Their cells are half as large as these boxes, or a
    position that very many events share would be blurred over its neighbours. Other cells are no
    smaller than the step.
    """
    if not positions.step.any():
        return statistic
    if not positions.rounding.any() or statistic.weights.size:
        return statistic.coarsened(_depth(statistic, np.floor, positions.step))
    spacing = np.where(positions.spacing > positions.rounding, positions.spacing, 0.0)
    depth = min(
        _depth(statistic, np.ceil, 0.5 * positions.rounding),
        _depth(statistic, np.floor, spacing),
    )
    codes, counts = spread(statistic, positions.rounding, depth, seed)
    return Statistic(statistic.window, depth, codes, counts, statistic.weights, statistic.squares)


def _depth(statistic: Statistic, whole: Callable[[Floats], Floats], sides: Floats) -> int:
    """The depth at which cells have about these sides or larger ones; 0 is any side."""
    with np.errstate(divide="ignore"):
        most = whole(np.log2(statistic.lattice.sides / sides))
    return int(np.clip(most.min(), 0, statistic.depth))


def trees_for(events: float, smooth: bool) -> int:
    """How many trees to average: more for fewer events, and few on a smooth base."""
    if smooth:
        return MIN_TREES
    most = np.clip(FEW_TREE_EVENTS / max(events, 1.0), USUAL_TREES, MAX_TREES)
    return int(max(min(most, MAX_TREE_EVENTS / max(events, 1.0)), MIN_TREES))
