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
from numba import njit

from hplus._checks import Floats, Ints

compiled = njit(cache=True, nogil=True, error_model="numpy")


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

    In a grid cell on the border of a polygon, `border` says which of the `rings` to cut (see
    `cut_area`); it is -1 for a cell inside and -2 for one outside, and empty if the window is a
    box.
    """

    values: Floats
    strides: Ints
    is_uniform: bool


@compiled
def cell_bounds(roots, offset, level, index, low, high):
    """The sides of a cell in grid cells, written to low and high (3,); False if it is empty."""
    side = 1 << (roots.bits - level)
    for j in range(roots.dimension):
        if roots.cyclic[j]:
            side_j = min(side, 1 << (roots.bits - 1))
            start = index[j] * side - offset[j]
            low[j], high[j] = start * roots.scale[j], (start + side_j) * roots.scale[j]
        else:
            start = index[j] * side - offset[j]
            low[j] = max(start * roots.scale[j], 0.0)
            high[j] = min((start + side) * roots.scale[j], float(roots.cells[j]))
        if not high[j] > low[j]:
            return False
    return True


@compiled
def box_mass(roots, measure, low, high):
    """∫ of the base density over a box, in units of the volume of a grid cell."""
    if measure.is_uniform:
        volume = 1.0
        for j in range(roots.dimension):
            volume *= high[j] - low[j]
        return volume
    first0, last0 = math.floor(low[0]), math.ceil(high[0])
    first1, last1 = math.floor(low[1]), math.ceil(high[1])
    first2, last2 = math.floor(low[2]), math.ceil(high[2])
    total = 0.0
    for i in range(first0, last0):
        a0, b0 = max(low[0] - i, 0.0), min(high[0] - i, 1.0)
        at0 = (i % roots.cells[0]) * measure.strides[0]
        for j in range(first1, last1):
            a1, b1 = max(low[1] - j, 0.0), min(high[1] - j, 1.0)
            at1 = at0 + (j % roots.cells[1]) * measure.strides[1]
            for k in range(first2, last2):
                a2, b2 = max(low[2] - k, 0.0), min(high[2] - k, 1.0)
                at = at1 + (k % roots.cells[2]) * measure.strides[2]
                volume = (b0 - a0) * (b1 - a1) * (b2 - a2)
                density = at_point(
                    measure, at, 0.5 * (a0 + b0), 0.5 * (a1 + b1), 0.5 * (a2 + b2)
                )
                total += volume * density
    return total


@compiled
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
