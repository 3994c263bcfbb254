"""CellLattice: the dyadic cells of a window, and Morton codes that number them; compiled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hplus._checks import Bools, Floats, Ints, as_points
from hplus.grids.hats import compiled, read_only
from hplus.windows import Window, check_window

Codes = NDArray[np.uint64]

LATTICE_BITS = {1: 50, 2: 26, 3: 20}
"""How often an axis is halved to give the smallest cells, by dimension."""

ENCODED_AT_ONCE = 2**10
"""Points whose bits are spread together, one step after another."""

SPREADS: dict[int, tuple[tuple[int, int], ...]] = {
    1: (),
    2: (
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ),
    3: (
        (32, 0x001F_0000_0000_FFFF),
        (16, 0x001F_0000_FF00_00FF),
        (8, 0x100F_00F0_0F00_F00F),
        (4, 0x10C3_0C30_C30C_30C3),
        (2, 0x1249_2492_4924_9249),
    ),
}
"""By dimension: shifts, each with the mask of the bits that are kept, that put every bit of an
index into a group of its own."""


@final
@dataclass(frozen=True)
class CellLattice:
    """Cells of a window's bounding box: at depth k, 2⁻ᵏ of the longest side of each axis' unit.

    Everything follows from the window. A cycle is divided into 2ᵏ cells, and its end is its
    beginning. The code of a cell interleaves the bits of its indices, those of axis 0 lowest, so
    that code >> d is the code of the cell around it one level up.

    >>> from hplus import Box
    >>> lattice = CellLattice(Box((0, 0), (4, 2)))
    >>> codes = lattice.codes([[3.5, 0.2]]) >> 2 * (lattice.bits - 1)
    >>> codes.tolist(), lattice.centers(codes, 1).tolist()
    ([1], [[3.0, 1.0]])
    """

    window: Window

    def __post_init__(self) -> None:
        check_window("window", self.window, *LATTICE_BITS)

    @property
    def dimension(self) -> int:
        """The number d of axes."""
        return self.window.dimension

    @property
    def bits(self) -> int:
        """The depth of the smallest cells."""
        return LATTICE_BITS[self.dimension]

    @cached_property
    def sides(self) -> Floats:
        """The side of the one cell of depth 0 on each axis, shape (d,)."""
        low, high = self.window.bounds()
        sides, closed = self.window.longest_sides(), list(self.window.closed_axes())
        sides[closed] = (high - low)[closed]
        return sides

    def cell_sides(self, depth: int) -> Floats:
        """The side of a cell on each axis, shape (d,)."""
        return self.sides * 0.5**depth

    def codes(self, X: ArrayLike) -> Codes:
        """The codes of the smallest cells that hold points X of the window, shape (n,)."""
        X = read_only(as_points("X", X, self.dimension))
        low, _ = self.window.bounds()
        closed = np.isin(np.arange(self.dimension), self.window.closed_axes())
        return _encode(X, low, self.sides, closed, self.bits, *self._spread)

    def indices(self, codes: Codes) -> Ints:
        """The place of each cell along each axis, counted from 0, shape (n, d)."""
        return _decode(read_only(codes), self.dimension, *self._spread)

    def centers(self, codes: Codes, depth: int) -> Floats:
        """The centre of each cell, inside the window's bounding box, shape (n, d)."""
        low, high = self.window.bounds()
        return np.clip(low + (self.indices(codes) + 0.5) * self.cell_sides(depth), low, high)

    @property
    def _spread(self) -> tuple[Codes, Codes]:
        steps = np.array(SPREADS[self.dimension], dtype=np.uint64).reshape(-1, 2)
        return np.ascontiguousarray(steps[:, 0]), np.ascontiguousarray(steps[:, 1])


@compiled
def _encode(
    X: Floats, low: Floats, sides: Floats, closed: Bools, bits: int, shifts: Codes, masks: Codes
) -> Codes:
    """The code of each point: ⌊2ᵇ (x - low)/side⌋ on each axis, with interleaved bits."""
    out = np.zeros(len(X), dtype=np.uint64)
    index, cells = np.empty(ENCODED_AT_ONCE, dtype=np.uint64), 2**bits
    for first in range(0, len(X), ENCODED_AT_ONCE):  # what is passed over again is in the cache
        n = min(ENCODED_AT_ONCE, len(X) - first)
        for j in range(X.shape[1]):
            end = 0 if closed[j] else cells - 1
            for i in range(n):
                u = int((X[first + i, j] - low[j]) / sides[j] * cells)
                index[i] = max(end if u >= cells else u, 0)
            for k in range(len(shifts)):
                shift, mask = shifts[k], masks[k]
                for i in range(n):
                    index[i] = (index[i] | (index[i] << shift)) & mask
            for i in range(n):
                out[first + i] |= index[i] << np.uint64(j)
    return out


@compiled
def _decode(codes: Codes, d: int, shifts: Codes, masks: Codes) -> Ints:
    """The indices of each cell on each axis: every d-th bit of its code."""
    out = np.empty((len(codes), d), dtype=np.int64)
    for i in range(len(codes)):
        for j in range(d):
            index = codes[i] >> np.uint64(j)
            for k in range(len(shifts) - 1, -1, -1):
                index &= masks[k]
                index |= index >> shifts[k]
            if len(shifts):
                index &= np.uint64(2**32 - 1) if d == 2 else np.uint64(2**21 - 1)
            out[i, j] = np.int64(index)
    return out
