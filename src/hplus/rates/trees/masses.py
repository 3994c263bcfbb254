"""The base measure of the cells of a tree, in compiled loops.

A tree cell of some level is given by its index on each axis. The base measure is a density that is
multilinear on the cells of a grid, so that its integral over a box inside one grid cell is the
volume of the box times the density at its center. Axes beyond the dimension of the window have one
cell and stride 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.trees.polygon_edges import cut_area, inner, uncounted


class Roots(NamedTuple):
    """How the cells of trees lie over the grid of a base measure.

    A root is halved `bits` times on each axis. The sides of the smallest cells are `scale` (3,) in
    cells of the grid, which has `cells` (3,) of them.
    """

    bits: int
    dimension: int
    scale: Floats
    cells: Ints
    cyclic: Ints


class Measure(NamedTuple):
    """A density at the nodes of a grid, flat, with the strides of its axes.

    If the window is a polygon on the axes `plane` and `plane` + 1, `border` says of each grid cell
    there whether it is INSIDE, OUTSIDE, or which cell b on the border it is: then it has
    edges[starts[b]:starts[b + 1]], counted from the cell's low corner, and the density at its
    center. `border` is empty if the window is a box. `constant` is the density if it is the same
    everywhere, NaN otherwise; it `is_uniform` if it is 1 on a box. Where a density that `has_zeros`
    begins it has the value at the center of a grid cell too: events there are not divided by next
    to nothing.
    """

    values: Floats
    strides: Ints
    is_uniform: bool
    constant: float
    has_zeros: bool
    plane: int
    border: Ints
    starts: Ints
    edges: Floats


INSIDE, OUTSIDE, BORDER = -1, -2, 0


@uncounted
def cell_bounds(roots, offset, level, index, low, high):
    """The sides of a cell in grid cells, written to low and high (3,); False if it is empty."""
    side = 1 << (roots.bits - level)
    for j in range(roots.dimension):
        if roots.cyclic[j]:
            turn = 1 << (roots.bits - 1)
            # the first halving of a cycle changes nothing
            if index[j] * side >= turn:
                return False
            side_j = min(side, turn)
            start = index[j] * side - offset[j]
            low[j], high[j] = start * roots.scale[j], (start + side_j) * roots.scale[j]
        else:
            start = index[j] * side - offset[j]
            low[j] = max(start * roots.scale[j], 0.0)
            high[j] = min((start + side) * roots.scale[j], float(roots.cells[j]))
        if not high[j] > low[j]:
            return False
    return True


@uncounted
def box_mass(roots, measure, low, high):
    """∫ of the base density over a box, in units of the volume of a grid cell."""
    if measure.is_uniform:
        volume = 1.0
        for j in range(roots.dimension):
            volume *= high[j] - low[j]
        return volume
    total = 0.0
    for i in range(math.floor(low[0]), math.ceil(high[0])):
        for j in range(math.floor(low[1]), math.ceil(high[1])):
            for k in range(math.floor(low[2]), math.ceil(high[2])):
                a = max(low[0] - i, 0.0), max(low[1] - j, 0.0), max(low[2] - k, 0.0)
                b = min(high[0] - i, 1.0), min(high[1] - j, 1.0), min(high[2] - k, 1.0)
                at = i % roots.cells[0], j % roots.cells[1], k % roots.cells[2]
                total += piece_mass(roots, measure, at, a, b)
    return total


@inner
def piece_mass(roots, measure, at, a, b):
    """∫ of the base density over a box, from a to b counted from the low corner of a grid cell."""
    u, v, w = 0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), 0.5 * (a[2] + b[2])
    volume = (b[0] - a[0]) * (b[1] - a[1]) * (b[2] - a[2])
    if len(measure.border):
        p = measure.plane
        share, on_border = inside_share(roots, measure, at, a, b)
        volume *= share
        if on_border and p == 0:
            u, v = 0.5, 0.5
        elif on_border:
            v, w = 0.5, 0.5
    if volume == 0.0:
        return 0.0
    s = measure.strides
    first = at[0] * s[0] + at[1] * s[1] + at[2] * s[2]
    if measure.has_zeros and has_zero(measure, first):
        u, v, w = 0.5, 0.5, 0.5
    return volume * at_point(measure, first, u, v, w)


@inner
def has_zero(measure, at):
    """Is the density 0 at a corner of the grid cell whose first node is `at`?"""
    s = measure.strides
    for corner in range(8):
        i, j, k = corner & 1, (corner >> 1) & 1, corner >> 2
        if measure.values[at + i * s[0] + j * s[1] + k * s[2]] == 0.0:
            return True
    return False


@inner
def inside_share(roots, measure, at, a, b):
    """The share of a piece of a grid cell inside the window; is the grid cell on its border?"""
    p = measure.plane
    cell = measure.border[at[p] * roots.cells[p + 1] + at[p + 1]]
    if cell < 0:
        return (1.0 if cell == INSIDE else 0.0), False
    low, high = (a[p], a[p + 1]), (b[p], b[p + 1])
    area = cut_area(measure.edges, measure.starts[cell], measure.starts[cell + 1], low, high)
    return max(area, 0.0) / ((high[0] - low[0]) * (high[1] - low[1])), True


@inner
def side_of(roots, measure, low, high):
    """INSIDE or OUTSIDE if all grid cells that a box meets lie there, else BORDER."""
    p, side = measure.plane, np.int64(BORDER)
    for i in range(math.floor(low[p]), math.ceil(high[p])):
        for j in range(math.floor(low[p + 1]), math.ceil(high[p + 1])):
            cell = measure.border[i * roots.cells[p + 1] + j]
            if cell >= 0 or (side != BORDER and cell != side):
                return np.int64(BORDER)
            side = cell
    return side


@inner
def window_area(roots, measure, low, high):
    """The area of the window in the planar sides of a box."""
    p, total = measure.plane, 0.0
    for i in range(math.floor(low[p]), math.ceil(high[p])):
        a0, b0 = max(low[p] - i, 0.0), min(high[p] - i, 1.0)
        for j in range(math.floor(low[p + 1]), math.ceil(high[p + 1])):
            a1, b1 = max(low[p + 1] - j, 0.0), min(high[p + 1] - j, 1.0)
            at, a, b = (i, j, j), (a0, a1, a1), (b0, b1, b1)
            if p == 1:
                at, a, b = (i, i, j), (a0, a0, a1), (b0, b0, b1)
            total += inside_share(roots, measure, at, a, b)[0] * (b0 - a0) * (b1 - a1)
    return total


@inner
def at_point(measure, at, u, v, w):
    """The multilinear density at a point of the grid cell whose first node is `at`."""
    s, values = measure.strides, measure.values
    x = (1.0 - u) * values[at] + u * values[at + s[0]]
    if s[1] > 0:
        near, far = at + s[1], at + s[1] + s[0]
        x = (1.0 - v) * x + v * ((1.0 - u) * values[near] + u * values[far])
    if s[2] > 0:
        at += s[2]
        y = (1.0 - u) * values[at] + u * values[at + s[0]]
        near, far = at + s[1], at + s[1] + s[0]
        y = (1.0 - v) * y + v * ((1.0 - u) * values[near] + u * values[far])
        x = (1.0 - w) * x + w * y
    return x
