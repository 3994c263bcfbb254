"""Which cells of a grid lie inside a polygon, and the polygon's edges in those on its border."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats, Ints
from hplus.grids import TensorGrid
from hplus.grids.regions import common_parts
from hplus.rates.trees.masses import INSIDE, OUTSIDE, Measure
from hplus.rates.trees.polygon_edges import (
    MIN_SHARE,
    compiled,
    cut_edges,
    edges_area,
    edges_of,
    write,
)
from hplus.windows import Window

Border = tuple[int, Ints, Ints, Floats]
"""The first axis of a polygon, then `border`, `starts` and `edges` of a `Measure`."""


def border_of(window: Window, grid: TensorGrid) -> Border:
    """The polygon that a window has on two of its axes, in cells of a grid; empty for a box."""
    (parts,) = common_parts([window], window)
    # all other parts are intervals
    for axis, part in enumerate(parts):
        if isinstance(part, list):
            plane = slice(axis, axis + 2)
            edges = edges_of(part, np.array(grid.low)[plane], grid.spacing[plane])
            return axis, *_sort_cells(edges, *np.subtract(grid.shape, 1)[plane].tolist())
    return 0, np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros((0, 4))


def at_centers(measure: Measure, grid: TensorGrid, X: Floats) -> Floats:
    """Points (n, d); in cells on the border of a polygon, where the density is taken."""
    if not len(measure.border):
        return X
    plane = slice(measure.plane, measure.plane + 2)
    low, step = np.array(grid.low)[plane], grid.spacing[plane]
    cells = np.subtract(grid.shape, 1)[plane]
    at = np.clip(((X[:, plane] - low) / step).astype(int), 0, cells - 1)
    on_border = measure.border[at[:, 0] * cells[1] + at[:, 1]] >= 0
    out = X.copy()
    out[on_border, plane] = low + (at[on_border] + 0.5) * step
    return out


@compiled
def _sort_cells(edges: Floats, columns: int, rows: int) -> tuple[Ints, Ints, Floats]:
    """INSIDE, OUTSIDE or its number on the border for each cell; where the edges of those begin.

    Blocks of cells that are not inside or outside as a whole are cut into two.
    """
    border, starts = np.empty(columns * rows, np.int64), np.zeros(1 + columns * rows, np.int64)
    m, levels = len(edges), 2 + int(np.ceil(np.log2(columns)) + np.ceil(np.log2(rows)))
    buffer, out, count = np.empty(((2 * levels + 1) * m, 4)), np.empty((4 * m + 64, 4)), 0
    write(edges, buffer)
    stack, top = np.zeros((2 * levels, 6), np.int64), 1
    stack[0, 1], stack[0, 3], stack[0, 5] = columns, rows, m
    while top > 0:
        top -= 1
        i, i_end, j, j_end, begin, end = stack[top]
        low, high = (float(i), float(j)), (float(i_end), float(j_end))
        until = cut_edges(buffer, begin, end, low, high, buffer, end)
        share = edges_area(buffer, end, until, low[0]) / ((i_end - i) * (j_end - j))
        if share <= MIN_SHARE or share >= 1.0 - MIN_SHARE:
            for x in range(i, i_end):
                border[x * rows + j : x * rows + j_end] = INSIDE if share > 0.5 else OUTSIDE
        elif i_end - i > 1 or j_end - j > 1:
            for row in (top, top + 1):
                stack[row, 0], stack[row, 1], stack[row, 2] = i, i_end, j
                stack[row, 3], stack[row, 4], stack[row, 5] = j_end, end, until
            axis = 0 if i_end - i >= j_end - j else 2
            middle = (stack[top, axis] + stack[top, axis + 1]) // 2
            stack[top, axis], stack[top + 1, axis + 1] = middle, middle
            top += 2
        else:
            size = starts[count]
            if size + until - end > len(out):
                out = np.concatenate((out, np.empty((len(out) + until - end, 4))))
            for e in range(until - end):
                for c in range(4):
                    out[size + e, c] = buffer[end + e, c] - (i if c % 2 == 0 else j)
            border[i * rows + j] = count
            count += 1
            starts[count] = size + until - end
    return border, starts[: count + 1].copy(), out[: starts[count]].copy()
