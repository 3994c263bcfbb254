"""Counts and masses along the paths of a forest, in compiled loops.

A cell of a tree is a run of its sorted Morton codes, so that its count is a difference of two
cumulative counts. Axis 0 is in the lowest bit of each group of bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.lattice import Codes
from hplus.rates.trees.masses import BORDER, OUTSIDE, Measure, Roots, box_mass, cell_bounds, side_of
from hplus.rates.trees.polygon_edges import compiled, inner, uncounted
from hplus.rates.trees.roughness import empty_second_moment, factor_of, roughness_of


class Pyramid(NamedTuple):
    """The base measure of all cells of the first levels of each tree, (trees, size).

    Level l begins at starts[l] and has shape[l] (3,) cells; there are as many levels as starts.
    """

    masses: Floats
    starts: Ints
    shape: Ints


class Ground(NamedTuple):
    """Cells of several trees and their base measure; offsets (trees, 3) are in smallest cells.

    The base measure is an exposure times a rate. If the exposure `varies`, `rated` has the density
    of that rate; else it is the measure itself.
    """

    roots: Roots
    measure: Measure
    pyramid: Pyramid
    offsets: Ints
    varies: bool
    rated: Measure


class Forest(NamedTuple):
    """Trees over the same events: sorted codes (trees, m), cumulative counts (trees, m + 1).

    `concentrations` (bits + 1,) are by level, infinite where the base measure is right; `powers`
    (2,) are those of the roughness and of the count of a cell that they depend on.
    """

    ground: Ground
    codes: Codes
    counts: Floats
    concentrations: Floats
    powers: Floats


@inner
def spread_bits(x, dimension):
    """The bits of x, with room for those of the other axes between them."""
    x = np.uint64(x)
    if dimension == 2:
        x = (x | (x << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
        x = (x | (x << np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
        x = (x | (x << np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        x = (x | (x << np.uint64(2))) & np.uint64(0x3333333333333333)
        x = (x | (x << np.uint64(1))) & np.uint64(0x5555555555555555)
    elif dimension == 3:
        x = (x | (x << np.uint64(32))) & np.uint64(0x001F00000000FFFF)
        x = (x | (x << np.uint64(16))) & np.uint64(0x001F0000FF0000FF)
        x = (x | (x << np.uint64(8))) & np.uint64(0x100F00F00F00F00F)
        x = (x | (x << np.uint64(4))) & np.uint64(0x10C30C30C30C30C3)
        x = (x | (x << np.uint64(2))) & np.uint64(0x1249249249249249)
    return x


@inner
def tree_index(roots, offset, cell, out):
    """The index of a cell of the window's lattice in a tree, and its Morton code."""
    code = np.uint64(0)
    for j in range(roots.dimension):
        out[j] = cell[j] + offset[j]
        if roots.cyclic[j]:
            out[j] &= (1 << (roots.bits - 1)) - 1
        code |= spread_bits(out[j], roots.dimension) << np.uint64(j)
    return code


@compiled
def tree_codes(roots, offset, cells, out):
    """The Morton codes of cells (m, d) of the window's lattice in a tree."""
    d, last = roots.dimension, (1 << (roots.bits - 1)) - 1
    out[:] = 0
    for j in range(d):  # axis by axis, without branches inside
        start, mask = offset[j], last if roots.cyclic[j] else -1
        for i in range(len(cells)):
            out[i] |= spread_bits((cells[i, j] + start) & mask, d) << np.uint64(j)


@uncounted
def cell_mass(ground, k, level, index, low, high):
    """The base measure of a cell of tree k."""
    roots, pyramid = ground.roots, ground.pyramid
    if level < len(pyramid.starts):
        at, shift = 0, roots.bits - level
        for j in range(3):
            first = 0
            if j < roots.dimension and not roots.cyclic[j]:
                first = ground.offsets[k, j] >> shift
            local = index[j] - first if j < roots.dimension else 0
            if local < 0 or local >= pyramid.shape[level, j]:
                return 0.0
            at = at * pyramid.shape[level, j] + local
        return pyramid.masses[k, pyramid.starts[level] + at]
    if not cell_bounds(roots, ground.offsets[k], level, index, low, high):
        return 0.0
    return box_mass(roots, ground.measure, low, high)


@compiled
def smallest_masses(ground, cells, out):
    """The base measure of cells (m, d) of the window's lattice; the same in every tree."""
    low, high, index = np.zeros(3), np.ones(3), np.empty(3, np.int64)
    for i in range(len(cells)):
        tree_index(ground.roots, ground.offsets[0], cells[i], index)
        out[i] = cell_mass(ground, np.int64(0), ground.roots.bits, index, low, high)


@inner
def first_at_least(codes, low, high, code):
    """The first place from low to high where the sorted codes are at least `code`."""
    while low < high:
        middle = (low + high) >> 1
        if codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def run_of(codes, low, high, code, shift):
    """The run of codes of the cell that a code belongs to, `shift` bits above the smallest."""
    first = (code >> np.uint64(shift)) << np.uint64(shift)
    low = first_at_least(codes, low, high, first)
    return low, first_at_least(codes, low, high, first + (np.uint64(1) << np.uint64(shift)))


@compiled
def fill_lowest(ground, k, inside):
    """Write the base measure of the cells of the lowest level of the pyramid of tree k.

    If `inside`, those of cells inside the window are there already.
    """
    pyramid, roots = ground.pyramid, ground.roots
    low, high, index = np.zeros(3), np.ones(3), np.zeros(3, np.int64)
    level, first = len(pyramid.starts) - 1, np.zeros(3, np.int64)
    shape, at = pyramid.shape[level], pyramid.starts[level]
    for j in range(roots.dimension):
        first[j] = 0 if roots.cyclic[j] else ground.offsets[k, j] >> (roots.bits - level)
    for x in range(shape[0]):
        for y in range(shape[1]):
            for z in range(shape[2]):
                index[0], index[1], index[2] = first[0] + x, first[1] + y, first[2] + z
                if cell_bounds(roots, ground.offsets[k], level, index, low, high):
                    side = side_of(roots, ground.measure, low, high) if inside else BORDER
                    if side == OUTSIDE:
                        pyramid.masses[k, at] = 0.0
                    elif side == BORDER:
                        pyramid.masses[k, at] = box_mass(roots, ground.measure, low, high)
                at += 1


@compiled
def fill_pyramid(ground, k):
    """Add up the base measure of the lowest level for those above it, in tree k."""
    pyramid, roots = ground.pyramid, ground.roots
    index = np.zeros(3, np.int64)
    last = len(pyramid.starts) - 1
    first = np.zeros(3, np.int64)
    for level in range(last, -1, -1):
        shape, start = pyramid.shape[level], pyramid.starts[level]
        before = first.copy()
        for j in range(roots.dimension):
            first[j] = 0 if roots.cyclic[j] else ground.offsets[k, j] >> (roots.bits - level)
        if level == last:
            continue
        finer, below = pyramid.shape[level + 1], pyramid.starts[level + 1]
        for at in range(finer[0] * finer[1] * finer[2]):
            mass = pyramid.masses[k, below + at]
            if not mass > 0.0:
                continue
            index[0] = at // (finer[1] * finer[2])
            index[1] = at // finer[2] % finer[1]
            index[2] = at % finer[2]
            to = 0
            for j in range(3):
                local = index[j]
                if j < roots.dimension:
                    local = ((index[j] + before[j]) >> 1) - first[j]
                    if roots.cyclic[j] and level == 0:
                        local = 0
                to = to * shape[j] + local
            pyramid.masses[k, start + to] += mass


@inner
def gathered_bits(x, dimension):
    """Every `dimension`-th bit of x: undoes `spread_bits`."""
    x = np.uint64(x)
    if dimension == 2:
        x = x & np.uint64(0x5555555555555555)
        x = (x | (x >> np.uint64(1))) & np.uint64(0x3333333333333333)
        x = (x | (x >> np.uint64(2))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        x = (x | (x >> np.uint64(4))) & np.uint64(0x00FF00FF00FF00FF)
        x = (x | (x >> np.uint64(8))) & np.uint64(0x0000FFFF0000FFFF)
        x = (x | (x >> np.uint64(16))) & np.uint64(0x00000000FFFFFFFF)
    elif dimension == 3:
        x = x & np.uint64(0x1249249249249249)
        x = (x | (x >> np.uint64(2))) & np.uint64(0x10C30C30C30C30C3)
        x = (x | (x >> np.uint64(4))) & np.uint64(0x100F00F00F00F00F)
        x = (x | (x >> np.uint64(8))) & np.uint64(0x001F0000FF0000FF)
        x = (x | (x >> np.uint64(16))) & np.uint64(0x001F00000000FFFF)
        x = (x | (x >> np.uint64(32))) & np.uint64(0x00000000001FFFFF)
    return np.int64(x)


@inner
def indices_of(code, dimension, out):
    """The index on each axis of a Morton code."""
    for j in range(dimension):
        out[j] = gathered_bits(code >> np.uint64(j), dimension)


@inner
def _go_down(numbers, n, before, f, A):
    """Change the moments and the roughness of a cell to those of its child with n events."""
    numbers[3] = roughness_of(numbers[3], n, before, f)
    if A < np.inf:
        share, whole = n + A * f, before + A
        numbers[1] *= share / (whole * f)
        numbers[2] *= share * (share + 1.0) / (whole * (whole + 1.0) * f * f)
        if before > 0.0:
            numbers[4] *= max(share - 1.0, 0.0) / ((whole - 1.0) * f)


@inner
def _put(span, stop, first, last, begin, end):
    """Write a row element by element: assigning a tuple takes seconds to compile."""
    span[0], span[1], span[2], span[3], span[4] = stop, first, last, begin, end


@inner
def _number(row, mass, mean, second, rough, without):
    row[0], row[1], row[2], row[3], row[4] = mass, mean, second, rough, without


@compiled
def path_moments(forest, k, asked, stops, mean, second, without):
    """Mean, second moment and mean without an event there, of tree k, relative to the base measure.

    At the cells with sorted codes `asked` (n,). The paths stop at levels `stops` only, and end in
    empty cells.
    """
    ground, powers = forest.ground, forest.powers
    d, counts = ground.roots.dimension, forest.counts[k]
    low, high, index = np.zeros(3), np.ones(3), np.zeros(3, np.int64)
    # what is pending shares no cell that is asked for
    most = max(len(asked), 1)
    spans, numbers = np.empty((most, 5), np.int64), np.empty((most, 5))
    _put(spans[0], np.int64(0), np.int64(0), len(forest.codes[k]), np.int64(0), len(asked))
    mass = cell_mass(ground, k, np.int64(0), index, low, high)
    _number(numbers[0], mass, 1.0, 1.0, 0.0, 1.0)
    top = 1
    while top > 0:
        top -= 1
        stop, first, last, begin, end = spans[top]
        above, m1, m2, rough, left = numbers[top]
        if first == last or stop == len(stops):
            if first == last:
                level = stops[stop - 1] if stop > 0 else 0
                m2 *= empty_second_moment(forest.concentrations, powers, level, rough, d)
            mean[begin:end], second[begin:end], without[begin:end] = m1, m2, left
            continue
        level, before = stops[stop], counts[last] - counts[first]
        A = forest.concentrations[level] * factor_of(powers, rough, before)
        shift = d * (ground.roots.bits - level)
        while begin < end:
            a, b = run_of(forest.codes[k], first, last, asked[begin], shift)
            until = run_of(asked, begin, end, asked[begin], shift)[1]
            indices_of(asked[begin] >> np.uint64(shift), d, index)
            mass = cell_mass(ground, k, level, index, low, high)
            _number(numbers[top], mass, m1, m2, rough, left)
            if mass > 0.0:
                _go_down(numbers[top], counts[b] - counts[a], before, mass / above, A)
            _put(spans[top], stop + 1 if mass > 0.0 else len(stops), a, b, begin, until)
            top += 1
            begin, first = until, b
