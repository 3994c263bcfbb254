"""Regions as compiled loops over trees know them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hplus._checks import Floats
from hplus.grids import TensorGrid
from hplus.grids.regions import common_parts
from hplus.rates.trees.paths import Forest
from hplus.rates.trees.planting import AXES
from hplus.rates.trees.polygon_edges import edges_of
from hplus.rates.trees.shares import RegionSet, region_moments
from hplus.windows import Window

REGIONS_AT_ONCE = 1024
"""Regions whose edges in all open cells are held in memory at the same time."""


def share_moments_of(
    forest: Forest, grid: TensorGrid, regions: Sequence[Window], window: Window
) -> tuple[Floats, Floats]:
    """E[share] and E[share²] of the mass in each region under each tree, (trees, r) each."""
    trees, found = len(forest.codes), [np.empty((2, len(forest.codes), 0))]
    for i in range(0, len(regions), REGIONS_AT_ONCE):
        placed = region_set(grid, regions[i : i + REGIONS_AT_ONCE], window)
        found.append(np.empty((2, trees, len(placed.plane))))
        region_moments(forest, placed, *found[-1])
    first, second = np.concatenate(found, axis=2)
    return first, second


def region_set(grid: TensorGrid, regions: Sequence[Window], window: Window) -> RegionSet:
    """Regions in cells of a grid, cut to the window."""
    low, high = np.zeros((len(regions), AXES)), np.ones((len(regions), AXES))
    plane, edges = np.full(len(regions), -1), []
    for r, region in enumerate(regions):
        plane[r], rows = _place(grid, region, window, low[r], high[r])
        edges.append(rows)
    starts = np.cumsum([0, *map(len, edges)])
    return RegionSet(low, high, plane, starts, np.concatenate([np.empty((0, 4)), *edges]))


def _place(
    grid: TensorGrid, region: Window, window: Window, low: Floats, high: Floats
) -> tuple[int, Floats]:
    """Write the bounds of a region in cells of a grid; its first planar axis, -1 for a box, and
    its edges.
    """
    d, corner, step = grid.dimension, np.array(grid.low), grid.spacing
    box = region.box_bounds()
    if box is not None:
        last = np.subtract(grid.shape, 1)
        low[:d], high[:d] = (np.clip((end - corner) / step, 0.0, last) for end in box)
        return -1, np.empty((0, 4))
    axis, plane, edges = 0, -1, np.empty((0, 4))
    (parts,) = common_parts([region], window)
    for part in parts:
        if isinstance(part, tuple):
            low[axis], high[axis] = (np.array(part) - corner[axis]) / step[axis]
            axis += 1
            continue
        at, plane = slice(axis, axis + 2), axis
        edges = edges_of(part, corner[at], step[at])
        for j in set(window.closed_axes()) & {axis, axis + 1}:
            # the root of a cycle may begin before it
            turn = np.tile(np.eye(2)[j - axis], 2) * (grid.shape[j] - 1)
            edges = np.concatenate([edges, edges - turn])
        ends = edges.reshape(-1, 2)
        if len(ends):
            low[at], high[at] = ends.min(axis=0), ends.max(axis=0)
        else:
            high[at] = 0.0
        axis += 2
    return plane, edges
