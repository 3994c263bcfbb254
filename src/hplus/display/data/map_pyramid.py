"""MapPyramid: a rate of the plane in cells of every size, smaller ones where there are events."""

from __future__ import annotations

from typing import NamedTuple, Self, final

import numpy as np

from hplus._checks import Bools, Floats
from hplus._values import value
from hplus.display.data.framing import PlotData
from hplus.display.data.gridded import tree_parts, truncated
from hplus.positivity.exp import GridFunction
from hplus.rates.lattice import CellLattice, Codes
from hplus.rates.stacked_rate import StackedRate
from hplus.rates.statistic import Statistic
from hplus.rates.trees.tree_rate import TreeRate
from hplus.windows import Window

MOST_CELLS = 250_000
"""Cells of a pyramid at most: about a byte each in a page, and 10 µs to compute."""

FULL_DEPTH = 8
"""Down to 2⁻⁸ of the longest side, all cells are divided."""

AVERAGED_DEPTH = 10
"""Cells down to this depth that are not divided are averaged over 2 by 2 points."""

BORDER_PARTS = 4
"""A cell whose middle is outside of the window is averaged over 4 by 4 points."""

CHILDREN, BELOW = 4, np.arange(4, dtype=np.uint64)
"""How many cells a cell is divided into, and their codes within it."""

PlaneRate = GridFunction | TreeRate | StackedRate
"""A rate of two axes."""


@final
@value
class MapPyramid(PlotData):
    """A rate in the cells of a quadtree: the largest first, then those of half its sides, ….

    `rates` (n,) are means over cells, `split` (n,) says which cells are divided. The children of
    the i-th cell that is divided, counted from 0, are cells 4i + 1 to 4i + 4: low and high on axis
    0, first those that are low on axis 1. The largest cell has its lowest corner at `low` and sides
    `sides`, (2,) each, and holds the window.
    """

    low: Floats
    sides: Floats
    depth: int
    rates: Floats
    split: Bools

    def scaled(self, factor: float) -> Self:
        """The same rates in another unit."""
        return self.replace(rates=factor * self.rates)


class PyramidLevel(NamedTuple):
    """The cells of one size: sorted codes (n,), and which of them are divided."""

    codes: Codes
    split: Bools


def map_pyramid(rate: PlaneRate, window: Window, most: int = MOST_CELLS) -> MapPyramid:
    """A rate of the plane, in cells down to its resolution where most of the events are."""
    lattice, trees = CellLattice(window), tree_parts(rate)
    events = trees[0].statistic if trees else None
    sides = rate.grid.spacing if isinstance(rate, GridFunction) else rate.finest_sides
    depth = max(0, int(np.ceil(np.log2(np.max(lattice.sides / sides)) - 1e-6)))
    if events is not None:
        depth = min(depth, events.depth)
    crowds = _crowds(lattice, depth, events)
    levels = _levels(lattice, crowds, most)
    rates: list[Floats] = []
    for k in range(len(levels) - 1, -1, -1):
        found = _leaf_rates(rate, lattice, k, levels[k])
        if rates:
            found[levels[k].split] = _mean(rates[0].reshape(-1, CHILDREN))
        rates.insert(0, found)
    _fill(rates, levels)
    low, _ = window.bounds()
    split = np.concatenate([level.split for level in levels])
    return MapPyramid(low, lattice.sides, len(levels) - 1, np.concatenate(rates), split)


def _crowds(
    lattice: CellLattice, depth: int, events: Statistic | None
) -> list[tuple[Codes, Floats]]:
    """Cells that are larger than the smallest, by depth, and how many events are in each.

    Sorted codes and counts: of the cells with events, or of all cells of a smooth rate.
    """
    if events is None:
        cells = [_all_cells(lattice, k) for k in range(depth)]
        return [(codes, np.full(len(codes), 0.25**k)) for k, codes in enumerate(cells)]
    coarse = [events.coarsened(k) for k in range(depth)]
    return [(cells.codes, cells.masses) for cells in coarse]


def _all_cells(lattice: CellLattice, depth: int) -> Codes:
    """The sorted codes of the cells that meet the bounding box of the window."""
    low, high = lattice.window.bounds()
    sides = lattice.cell_sides(depth)
    counts = np.clip(np.ceil((high - low) / sides - 1e-9), 1, 2**depth).astype(int)
    axes = [low[j] + (np.arange(n) + 0.5) * sides[j] for j, n in enumerate(counts)]
    centers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.sort(lattice.codes(centers) >> np.uint64(2 * (lattice.bits - depth)))


def _levels(
    lattice: CellLattice, crowds: list[tuple[Codes, Floats]], most: int
) -> list[PyramidLevel]:
    """The cells of each depth: those with most events are divided, until there are `most`."""
    full = [_all_cells(lattice, k) for k in range(min(FULL_DEPTH, len(crowds)))]
    counts = np.sort(np.concatenate([[0.0], *(n for _, n in crowds)]))[::-1]
    room = max(0, most // CHILDREN - sum(map(len, full)))
    # cells with as many events as the first for which there is no room are not divided
    least = counts[room] if room < len(counts) else 0.0
    codes: Codes = np.zeros(1, np.uint64)
    levels = []
    for k, (cells, masses) in enumerate(crowds):
        divided = cells[masses > least]
        if k < len(full):
            divided = np.union1d(divided, full[k]).astype(np.uint64)
        levels.append(PyramidLevel(codes, np.isin(codes, divided)))
        codes = (np.uint64(CHILDREN) * divided[:, None] + BELOW).ravel()
        if not len(codes):
            return levels
    return [*levels, PyramidLevel(codes, np.zeros(len(codes), bool))]


def _leaf_rates(rate: PlaneRate, lattice: CellLattice, depth: int, level: PyramidLevel) -> Floats:
    """The mean rates of the cells that are not divided, (n,); NaN of others and of those outside.

    Trees that know nothing of smaller cells have means over cells of about the same size: the rate
    in the middle is that of the cell, within a tenth or so.
    """
    found = np.full(len(level.codes), np.nan)
    parts = 2 if depth <= AVERAGED_DEPTH else 1
    if not isinstance(rate, GridFunction):
        rate = truncated(rate, depth + parts - 1)
    leaves = np.flatnonzero(~level.split)
    found[leaves] = _means(rate, lattice, level.codes[leaves], depth, parts)
    # the middle of a cell across the border may be outside
    missed = leaves[np.isnan(found[leaves])]
    found[missed] = _means(rate, lattice, level.codes[missed], depth, BORDER_PARTS)
    return found


def _means(rate: PlaneRate, lattice: CellLattice, codes: Codes, depth: int, parts: int) -> Floats:
    """The mean of a rate over the centers of parts² parts of cells, (n,), NaN if none is inside."""
    at = (np.arange(parts) + 0.5) / parts
    steps = np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)
    low, corners = lattice.window.bounds()[0], lattice.indices(codes)[:, None]
    X = (low + (corners + steps) * lattice.cell_sides(depth)).reshape(-1, 2)
    inside, values = lattice.window.contains(X), np.full(len(X), np.nan)
    values[inside] = rate(X[inside]) if isinstance(rate, GridFunction) else rate.function(X[inside])
    return _mean(values.reshape(-1, parts * parts))


def _mean(values: Floats) -> Floats:
    """The mean of each row (n, k) over what is known, NaN of rows of which nothing is."""
    known = ~np.isnan(values)
    sums = np.where(known, values, 0.0).sum(axis=1)
    return np.where(known.any(axis=1), sums / np.maximum(known.sum(axis=1), 1), np.nan)


def _fill(rates: list[Floats], levels: list[PyramidLevel]) -> None:
    """Give cells outside of the window the rates of the cells around them."""
    for above, level, below in zip(rates, levels, rates[1:], strict=False):
        np.copyto(below, np.repeat(above[level.split], CHILDREN), where=np.isnan(below))
