"""Kernel rates at points and on grids: sums over pairs, or over a grid where kernels are wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.evaluation.edges import CELLS_PER_WIDTH, Edges, spread
from hplus.evaluation.pair_sums import REACH, CellList, cell_list, pair_sums, pairs_near
from hplus.grids import TensorGrid, integrals_within
from hplus.windows import Window

FEW_PAIRS = 300_000
"""Pairs of events and points that are summed without merging events or using a grid."""

NODE_COST = 8.0
"""Cost of a node and axis on a grid, in pairs."""

MAX_NODES = 2**23
"""Nodes of a grid, at most."""

COUNT_NODES = {1: 1025, 2: 401, 3: 81}
"""Nodes along the longest side of the grid for expected counts, by the number of axes."""


class Layer(NamedTuple):
    """Events X (n, d) with weights (n,) and kernels of one bandwidth h (d,)."""

    X: Floats
    weights: Floats
    h: Floats


class KernelMixture(NamedTuple):
    """λ(z) = (1 - share) Σ_i w_i k(z, x_i) + share Σ_i w_i/|W|: kernels and a uniform share."""

    edges: Edges
    layers: tuple[Layer, ...]
    share: float

    @property
    def total(self) -> float:
        """∫λ = Σ_i w_i."""
        return float(sum(layer.weights.sum() for layer in self.layers))

    def rates(self, Z: Floats) -> Floats:
        """λ at points, shape (m,)."""
        return self._mixed(sum_of_kernels(self.edges, self.layers, Z))

    def counts(self, regions: Sequence[Window], window: Window) -> Floats:
        """∫λ over regions within the window, (r,), of a rate that is linear between nodes.

        Exact for the whole window, and parts add up; a part is wrong by what lies in the cells
        that its border cuts, at most.
        """
        if all(region == window for region in regions):
            return np.full(len(regions), self.total)
        grid = count_grid(window)
        areas = grid.integrals(window)
        layers = [_node_rates(self.edges, layer, grid, areas) for layer in self.layers]
        rates = self._mixed(np.sum(layers, axis=0))
        found = [(rates * integrals_within(grid, region, window)).sum() for region in regions]
        return np.array(found, dtype=np.float64)

    def _mixed(self, rates: Floats) -> Floats:
        return (1.0 - self.share) * rates + self.share * self.total / self.edges.volume


def sum_of_kernels(edges: Edges, layers: Sequence[Layer], Z: Floats) -> Floats:
    """Σ_i w_i k(z, x_i) at each point z, shape (m,)."""
    return np.sum([kernel_rates(edges, layer, Z) for layer in layers], axis=0)


def kernel_rates(edges: Edges, layer: Layer, Z: Floats) -> Floats:
    """Σ_i w_i k(z, x_i) of one layer at each point z, shape (m,)."""
    h = edges.capped(layer.h)
    events = Layer(layer.X, layer.weights / edges.roots(layer.X, h), h)
    cells = _cells(edges, events, Z)
    if cells is None:
        rates = _on_grid(_grid(edges, events), events, Z)
    else:
        rates = pair_sums(cells, Z / h) / np.prod(np.sqrt(2.0 * np.pi) * h)
    return rates / edges.roots(Z, h)


def _cells(edges: Edges, events: Layer, Z: Floats) -> CellList | None:
    """Events and their images by cell, for sums over pairs; None if a grid is cheaper."""
    few = len(Z) * len(events.X) * edges.most_images(events.h) <= FEW_PAIRS
    cost = np.inf if few else _grid_cost(edges, events)
    if cost <= FEW_PAIRS:
        return None
    X, weights = edges.images(*(events if few else merged(events)))
    cells = cell_list(X / events.h, weights)
    return cells if cost == np.inf or pairs_near(cells, Z / events.h) <= cost else None


def merged(layer: Layer) -> Layer:
    """The events of each small cell as one, at their weighted mean.

    The error is that of a bandwidth that is 0.3 % too narrow, at most.
    """
    cells = np.floor((layer.X - layer.X.min(axis=0)) * (CELLS_PER_WIDTH / layer.h)).astype(np.int64)
    codes = np.ravel_multi_index(tuple(cells.T), tuple(cells.max(axis=0) + 1))
    found, place = np.unique(codes, return_inverse=True)
    if len(found) == len(codes):
        return layer
    weights: Floats = np.bincount(place, layer.weights).astype(np.float64)
    means = [np.bincount(place, layer.weights * x) / weights for x in layer.X.T]
    return Layer(np.column_stack(means), weights, layer.h)


def _grid_cost(edges: Edges, events: Layer) -> float:
    """The cost of a grid in pairs; infinite if it would have too many nodes."""
    low, high = _reached(edges, events)
    nodes = float(np.prod(CELLS_PER_WIDTH * (high - low) / events.h + 2.0))
    return NODE_COST * len(low) * nodes if nodes <= MAX_NODES else np.inf


def _reached(edges: Edges, events: Layer) -> tuple[Floats, Floats]:
    """The corners of the box that kernels reach, within the walls; cycles as a whole."""
    h, X = events.h, events.X
    low, high = X.min(axis=0) - REACH * h, X.max(axis=0) + REACH * h
    low, high = np.maximum(low, edges.walls[0]), np.minimum(high, edges.walls[1])
    closed = list(edges.closed)
    low[closed], high[closed] = edges.low[closed], edges.high[closed]
    return low, high


def _grid(edges: Edges, events: Layer) -> TensorGrid:
    low, high = _reached(edges, events)
    shape = np.ceil(CELLS_PER_WIDTH * (high - low) / events.h).astype(int) + 1
    return TensorGrid(tuple(low), tuple(high), tuple(shape.tolist()), edges.closed)


def _on_grid(grid: TensorGrid, layer: Layer, Z: Floats) -> Floats:
    """Σ_i w_i k(z, x_i) by binning, smoothing and interpolation; 0 beyond the grid."""
    binned = grid.bin(layer.X, layer.weights)
    for j in range(grid.dimension):
        first, last = (np.s_[:,] * j + (end,) for end in (0, -1))
        if j in grid.closed:
            # the last node is the first
            binned[first] += binned[last]
            binned = np.delete(binned, -1, axis=j)
        else:
            # the image of an event has a share in the node at the wall, too
            binned[first] *= 2.0
            binned[last] *= 2.0
    modes = tuple("wrap" if j in grid.closed else "mirror" for j in range(grid.dimension))
    masses = spread(binned, layer.h / grid.spacing, modes)
    for j in grid.closed:
        masses = np.concatenate([masses, np.take(masses, [0], axis=j)], axis=j)
    within = np.all((grid.low <= Z) & (grid.high >= Z), axis=1)
    return np.where(within, grid.interpolate(masses / np.prod(grid.spacing), Z), 0.0)


def count_grid(window: Window) -> TensorGrid:
    """Nodes on the bounding box of the window, equally dense on axes with the same unit."""
    low, high = window.bounds()
    last = COUNT_NODES[window.dimension] - 1
    cells = np.ceil(last * (high - low) / window.longest_sides()).astype(int)
    return TensorGrid(tuple(low), tuple(high), tuple((cells + 1).tolist()), window.closed_axes())


def _node_rates(edges: Edges, layer: Layer, grid: TensorGrid, areas: Floats) -> Floats:
    """A layer's rate at the nodes, scaled so that its integral is Σ_i w_i."""
    if np.all(layer.h >= 2.0 * grid.spacing):
        rates = kernel_rates(edges, layer, grid.nodes()).reshape(grid.shape) * (areas > 0.0)
    else:
        modes = ("constant",) * grid.dimension
        binned, inside = grid.bin(layer.X, layer.weights), areas > 0.0
        sums, masses = (spread(a, layer.h / grid.spacing, modes) for a in (binned, areas))
        rates = np.divide(sums, masses, out=np.zeros(grid.shape), where=inside)
    return rates * (layer.weights.sum() / (rates * areas).sum())
