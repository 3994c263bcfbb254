"""Nodes of a window, as dense as a kernel needs them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Bools, Floats
from hplus.grids import TensorGrid
from hplus.kernels import Kernel, Nugget
from hplus.kernels.base import Product, Scaled, Sum
from hplus.windows import Window

RELATIVE_DISTANCES = np.geomspace(1e-4, 1.0, 200)
"""Distances at which a kernel is evaluated, as shares of a half side of the window."""


def grid_for(kernel: Kernel, window: Window, fineness: float, most: int) -> TensorGrid:
    """A grid on the bounding box of W with `fineness` cells per half-length of the kernel.

    Coarser if it would have more than `most` nodes.
    """
    low, high = window.bounds()
    cells = np.maximum(np.ceil(fineness * (high - low) / _half_lengths(kernel, window)), 4.0)
    while np.prod(cells + 1.0) > most and cells.max() > 4.0:
        cells = np.maximum(np.floor(0.95 * cells), 4.0)
    shape = tuple(int(n) + 1 for n in cells)
    return TensorGrid(tuple(low.tolist()), tuple(high.tolist()), shape)


class Inside(NamedTuple):
    """Nodes (q, d), their shares (q,) of a window, and a mask (G,) of them among a grid's nodes."""

    nodes: Floats
    shares: Floats
    which: Bools


def nodes_within(grid: TensorGrid, window: Window) -> Inside:
    """The nodes of a grid whose hat functions overlap W."""
    volumes = grid.integrals(window).ravel()
    which = volumes > 0.0
    return Inside(grid.nodes()[which], volumes[which] / volumes.sum(), which)


def no_nodes(dimension: int) -> Inside:
    """No nodes, for streams without an integral."""
    return Inside(np.zeros((0, dimension)), np.zeros(0), np.zeros(0, dtype=np.bool_))


def _half_lengths(kernel: Kernel, window: Window) -> Floats:
    """The half-length on each axis: the shortest distance at which the kernel or one of its parts
    falls to half its value, or the side if none does."""
    parts = [kernel, *_leaves(kernel)]
    return np.min([_half_length_of(part, window) for part in parts], axis=0)


def _leaves(kernel: Kernel) -> list[Kernel]:
    if isinstance(kernel, Scaled):
        return _leaves(kernel.kernel)
    if isinstance(kernel, Sum | Product):
        return _leaves(kernel.left) + _leaves(kernel.right)
    return [] if isinstance(kernel, Nugget) else [kernel]


def _half_length_of(kernel: Kernel, window: Window) -> Floats:
    low, high = window.bounds()
    middle, lengths = 0.5 * (low + high), high - low
    for axis in range(len(low)):
        points = np.repeat(middle[None], len(RELATIVE_DISTANCES), axis=0)
        points[:, axis] += 0.5 * RELATIVE_DISTANCES * (high - low)[axis]
        k, own = kernel(middle[None], points)[0], kernel.diag(points)
        fallen = np.flatnonzero(k < 0.5 * np.sqrt(own * kernel.diag(middle[None])))
        if len(fallen):
            lengths[axis] *= 0.5 * RELATIVE_DISTANCES[fallen[0]]
    return lengths
