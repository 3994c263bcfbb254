"""Nodes of a window that are as dense as a kernel needs them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Bools, Floats
from hplus.grids import TensorGrid
from hplus.kernels import Kernel, Nugget
from hplus.kernels.base import Product, Scaled, Sum
from hplus.windows import Window

TRIED = np.geomspace(1e-4, 1.0, 200)
"""Distances, as shares of a window's side, at which a kernel is looked at."""


def grid_for(kernel: Kernel, window: Window, fineness: float, most: int) -> TensorGrid:
    """A grid on the bounding box of W with `fineness` cells where the kernel falls by half.

    It has at most `most` nodes.
    """
    low, high = window.bounds()
    cells = np.maximum(np.ceil(fineness * (high - low) / _half_lengths(kernel, window)), 4.0)
    while np.prod(cells + 1.0) > most and cells.max() > 4.0:
        cells = np.maximum(np.floor(0.95 * cells), 4.0)
    shape = tuple(int(n) + 1 for n in cells)
    return TensorGrid(tuple(low.tolist()), tuple(high.tolist()), shape)


class Inside(NamedTuple):
    """Nodes (q, d), their shares (q,) of a window, and which of a grid's nodes they are (G,)."""

    nodes: Floats
    shares: Floats
    which: Bools


def nodes_within(grid: TensorGrid, window: Window) -> Inside:
    """The nodes whose hat functions reach into W."""
    volumes = grid.integrals(window).ravel()
    which = volumes > 0.0
    return Inside(grid.nodes()[which], volumes[which] / volumes.sum(), which)


def nowhere(dimension: int) -> Inside:
    """No nodes: where nothing is integrated."""
    return Inside(np.zeros((0, dimension)), np.zeros(0), np.zeros(0, dtype=np.bool_))


def _half_lengths(kernel: Kernel, window: Window) -> Floats:
    """On each axis, how far from the middle of W the kernel, or one of its parts, has fallen by
    half; the side if none has. A wide part beside it does not hide a narrow one."""
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
        points = np.repeat(middle[None], len(TRIED), axis=0)
        points[:, axis] += 0.5 * TRIED * (high - low)[axis]
        k, own = kernel(middle[None], points)[0], kernel.diag(points)
        fallen = np.flatnonzero(k < 0.5 * np.sqrt(own * kernel.diag(middle[None])))
        if len(fallen):
            lengths[axis] *= 0.5 * TRIED[fallen[0]]
    return lengths
