"""Trees over the cells of a statistic: their offsets, sorted codes, and base measure."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from hplus._checks import Bools, Floats, Ints
from hplus._threads import over_cores
from hplus.grids import TensorGrid
from hplus.grids.hats import compiled, read_only
from hplus.rates.binned import finest_grid
from hplus.rates.lattice import CellLattice, Codes
from hplus.rates.statistic import Statistic
from hplus.rates.trees.borders import border_of
from hplus.rates.trees.masses import Measure, Roots
from hplus.rates.trees.paths import (
    Forest,
    Ground,
    Pyramid,
    fill_lowest,
    fill_pyramid,
    smallest_masses,
    tree_codes,
)
from hplus.windows import Window

AXES = 3
"""Axes in compiled loops; those that a window does not have are one cell long."""


PLACES_PER_CELL = 8
"""Places in a tree for each cell that holds events up to which cells are put into their places,
one after the other, which is quicker than sorting them."""

MAX_HATS = 256
"""Integrals of hat functions that are kept: those of both axes of a hundred trees."""


class BaseDensity(NamedTuple):
    """The density of a base measure at the nodes of a grid on the bounding box of a window.

    `rated` is the density without the exposure; None if the exposure is constant.
    """

    grid: TensorGrid
    values: Floats
    rated: Floats | None = None

    @property
    def is_constant(self) -> bool:
        """Is the density the same everywhere?"""
        return bool(np.ptp(self.values) == 0.0)


def uniform_base(lattice: CellLattice) -> BaseDensity:
    """The density 1 on a window; polygons are known by the cells of a fine grid."""
    low, high = lattice.window.bounds()
    grid = TensorGrid(tuple(low.tolist()), tuple(high.tolist()), (2,) * lattice.dimension)
    if lattice.window.box_bounds() is None:
        grid = finest_grid(lattice.window)
    return BaseDensity(grid, np.ones(grid.shape))


def roots_over(lattice: CellLattice, depth: int, grid: TensorGrid) -> Roots:
    """Roots of trees whose smallest cells are those of the lattice at some depth.

    A root has twice the side of the lattice, to cover it at every offset; on a cycle it is the
    cycle, whose first halving changes nothing.
    """
    d = lattice.dimension
    scale, cells, cyclic = np.ones(AXES), np.ones(AXES, np.int64), np.zeros(AXES, np.int64)
    scale[:d] = lattice.cell_sides(depth) / grid.spacing
    cells[:d] = np.subtract(grid.shape, 1)
    cyclic[list(lattice.window.closed_axes())] = 1
    return Roots(depth + 1, d, scale, cells, cyclic)


def grid_depth(lattice: CellLattice, grid: TensorGrid) -> int:
    """The depth of the first cells that are no larger than those of a grid; 0 for a single cell."""
    if grid.size == 2**grid.dimension:
        return 0
    return int(np.ceil(np.log2(np.max(lattice.sides / grid.spacing))))


def measure_of(base: BaseDensity, window: Window) -> Measure:
    """The base density on a window for compiled loops."""
    values = read_only(np.asarray(base.values, dtype=float))
    strides = np.zeros(AXES, np.int64)
    strides[: values.ndim] = [s // values.itemsize for s in values.strides]
    is_uniform = bool(values.size == 2**values.ndim)
    constant = float(values.flat[0]) if base.is_constant else np.nan
    has_zeros = bool(np.any(values == 0.0))
    border = border_of(window, base.grid)
    return Measure(values.ravel(), strides, is_uniform, constant, has_zeros, *border)


def draw_offsets(lattice: CellLattice, depth: int, trees: int, seed: int) -> Ints:
    """Offsets of trees in cells of some depth, evenly spread over all sizes, (trees, 3)."""
    rng = np.random.default_rng(seed)
    offsets = np.zeros((trees, AXES), np.int64)
    offsets[:, : lattice.dimension] = rng.integers(0, 2**depth, (trees, lattice.dimension))
    return offsets


def prepare(lattice: CellLattice, depth: int, base: BaseDensity, offsets: Ints) -> Ground:
    """The cells of trees with some offsets, and their base measure."""
    roots = roots_over(lattice, depth, base.grid)
    measure = measure_of(base, lattice.window)
    varies, rated = base.rated is not None, measure
    if base.rated is not None:
        rated = measure._replace(
            values=read_only(base.rated).ravel(), constant=np.nan, has_zeros=False
        )
    pyramid = _pyramid(roots, base, len(offsets))
    ground = Ground(roots, measure, pyramid, offsets, varies, rated)
    for k in range(len(offsets) if len(pyramid.starts) else 0):
        if not measure.has_zeros:
            _fill_lowest(ground, k, base.values)
        if len(measure.border) or measure.has_zeros:
            fill_lowest(ground, k, inside=not measure.has_zeros)
        fill_pyramid(ground, k)
    return ground


def _fill_lowest(ground: Ground, k: int, values: Floats) -> None:
    """Write the masses of the lowest level of a pyramid: ∫ of the hats of each axis, in turn."""
    pyramid, roots = ground.pyramid, ground.roots
    level = len(pyramid.starts) - 1
    out = values
    for j in range(roots.dimension):
        side = 1 << (roots.bits - level)
        axis = float(roots.scale[j]), int(roots.cells[j]), bool(roots.cyclic[j])
        H = _hats_in_cells(*axis, int(ground.offsets[k, j]), side, int(pyramid.shape[level, j]))
        # the first axis becomes the last, so in the end all are back in place
        out = (H @ out.reshape(len(out), -1)).reshape(-1, *out.shape[1:])
        out = np.moveaxis(out, 0, -1)
    pyramid.masses[k, pyramid.starts[level] :] = out.ravel()


@lru_cache(maxsize=MAX_HATS)
def _hats_in_cells(
    scale: float, n: int, cyclic: bool, offset: int, side: int, count: int
) -> csr_array:
    """∫ of the hat function of each of n + 1 nodes over each of `count` cells of one axis.

    Cells have `side` smallest ones, which are `scale` cells of the grid each. Trees on the rates of
    several folds share them.
    """
    first = 0 if cyclic else offset // side
    edges = ((first + np.arange(count + 1)) * side - offset) * scale
    if not cyclic:
        edges = np.clip(edges, 0.0, n)
    low, high = edges[:-1], edges[1:]
    pieces = []
    for step in range(int(np.ceil((high - low).max())) + 1):
        cell = np.floor(low) + step
        a, b = np.clip(low - cell, 0.0, 1.0), np.clip(high - cell, 0.0, 1.0)
        length, middle = np.maximum(b - a, 0.0), 0.5 * (a + b)
        node = (cell % n if cyclic else np.minimum(cell, n - 1)).astype(int)
        pieces += [(node, length * (1.0 - middle)), (node + 1, length * middle)]
    rows = np.tile(np.arange(count), len(pieces))
    nodes, weights = (np.concatenate(x) for x in zip(*pieces, strict=True))
    return csr_array((weights, (rows, nodes)), shape=(count, n + 1))


def plant(statistic: Statistic, ground: Ground, concentrations: Floats, powers: Floats) -> Forest:
    """Trees whose smallest cells are those of the statistic."""
    cells, counts = statistic.lattice.indices(statistic.codes), effective_counts(statistic)
    kept = have_mass(ground, cells)
    cells, counts = cells[kept], counts[kept]
    trees = len(ground.offsets)
    codes, sums = np.empty((trees, len(cells)), np.uint64), np.zeros((trees, len(cells) + 1))

    def grow(k: int) -> None:
        codes[k], order = sorted_distinct_codes(ground, k, cells)
        np.cumsum(counts[order], out=sums[k, 1:])

    over_cores(grow, trees, len(cells))
    return Forest(ground, codes, sums, concentrations, powers)


def have_mass(ground: Ground, cells: Ints) -> Bools:
    """Do cells (m, d) of the lattice have a measure above 0? Shape (m,).

    A polygon may touch the cell of an event on its border only in a point.
    """
    masses = np.ones(len(cells))
    if not ground.measure.is_uniform:
        smallest_masses(ground, cells, masses)
    return masses > 0.0


def sorted_codes(ground: Ground, k: int, cells: Ints) -> tuple[Codes, Ints]:
    """The codes of cells (m, d) in tree k, sorted, and the order that sorts them."""
    codes = _codes_in_tree(ground, k, cells)
    order = np.argsort(codes)
    return codes[order], order


def sorted_distinct_codes(ground: Ground, k: int, cells: Ints) -> tuple[Codes, Ints]:
    """The same for cells that all differ, put into their places where they fill the tree."""
    places = 2 ** (ground.roots.dimension * ground.roots.bits)
    if places > PLACES_PER_CELL * len(cells):
        return sorted_codes(ground, k, cells)
    return _sorted_by_place(_codes_in_tree(ground, k, cells), places)


def _codes_in_tree(ground: Ground, k: int, cells: Ints) -> Codes:
    codes = np.empty(len(cells), np.uint64)
    tree_codes(ground.roots, ground.offsets[k], cells, codes)
    return codes


@compiled
def _sorted_by_place(codes: Codes, places: int) -> tuple[Codes, Ints]:
    """Distinct codes below a number of places, sorted, and the order that sorts them."""
    at = np.full(places, -1, np.int32)
    for i in range(len(codes)):
        at[codes[i]] = i
    out, order, m = np.empty(len(codes), np.uint64), np.empty(len(codes), np.int64), 0
    for place in range(places):
        if at[place] >= 0:
            out[m], order[m] = np.uint64(place), at[place]
            m += 1
    return out, order


def effective_counts(statistic: Statistic) -> Floats:
    """The weights in each cell, scaled to add up to the effective number of events, (m,)."""
    return statistic.masses * (statistic.effective_events / statistic.total)


def _pyramid(roots: Roots, base: BaseDensity, trees: int) -> Pyramid:
    """Room for the masses of cells that are larger than those of the base density's grid."""
    if base.values.size == 2**base.values.ndim:
        return Pyramid(np.zeros((trees, 0)), np.zeros(0, np.int64), np.zeros((0, AXES), np.int64))
    d, cells = roots.dimension, roots.cells
    sides = roots.scale[:d] * 2.0**roots.bits
    last = min(roots.bits, int(np.ceil(np.log2(sides.max()))))
    shape = np.ones((last + 1, AXES), np.int64)
    for level in range(last + 1):
        side = roots.scale[:d] * 2.0 ** (roots.bits - level)
        around = np.where(roots.cyclic[:d] > 0, 0, 2)
        shape[level, :d] = np.ceil(cells[:d] / side).astype(int) + around
    sizes = shape.prod(axis=1)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return Pyramid(np.zeros((trees, int(sizes.sum()))), starts, shape)
