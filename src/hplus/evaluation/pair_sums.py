"""Sums of Gaussians over the events near each point, in compiled loops.

All lengths are in bandwidths, so that the kernel is exp(-|x - z|²/2), cut off at `REACH`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.grids.hats import compiled, read_only

REACH = 6.0
"""Number of bandwidths beyond which a kernel is 0; it is 1.5e-8 of its peak there."""

CELLS_PER_REACH = 2
"""Cells of the lists of neighbours within the reach."""


class CellList(NamedTuple):
    """Events U (n, d) with weights (n,), sorted by the code of their cell, the last axis fastest.

    The cells start at `low` (d,), and there are `shape` (d,) of them.
    """

    U: Floats
    weights: Floats
    codes: Ints
    low: Floats
    shape: Ints


def cell_list(U: Floats, weights: Floats) -> CellList:
    """Sort events into cells."""
    low, side = U.min(axis=0), REACH / CELLS_PER_REACH
    cells = ((U - low) / side).astype(np.int64)
    shape = cells.max(axis=0) + 1
    codes = np.ravel_multi_index(tuple(cells.T), tuple(shape))
    order = np.argsort(codes, kind="stable")
    return CellList(U[order], weights[order], codes[order], low, shape)


def pair_sums(events: CellList, Z: Floats) -> Floats:
    """Σ_i weights[i] exp(-|U[i] - z|²/2) at each point z, shape (m,)."""
    return _sums(events, read_only(Z), True)


def pairs_near(events: CellList, Z: Floats) -> float:
    """The number of pairs that `pair_sums` looks at, estimated from some of the points."""
    some = Z[:: max(1, len(Z) // 256)]
    return float(_sums(events, read_only(some), False).mean() * len(Z))


@compiled
def _sums(events, Z, summed):
    """The sums, or the number of their terms."""
    d, reach, side = Z.shape[1], CELLS_PER_REACH, REACH / CELLS_PER_REACH
    width = 2 * reach + 1
    out, cell = np.zeros(len(Z)), np.zeros(d, np.int64)
    for m in range(len(Z)):
        for j in range(d):
            cell[j] = int(np.floor((Z[m, j] - events.low[j]) / side))
        first = max(cell[d - 1] - reach, 0)
        last = min(cell[d - 1] + reach, events.shape[d - 1] - 1)
        if first > last:
            continue
        for row in range(width ** (d - 1)):
            code, rest, inside = 0, row, True
            for j in range(d - 1):
                c = cell[j] + rest % width - reach
                rest //= width
                inside = inside and 0 <= c < events.shape[j]
                code = (code + c) * events.shape[j + 1]
            if inside:
                start = np.searchsorted(events.codes, code + first)
                stop = np.searchsorted(events.codes, code + last, side="right")
                out[m] += _row_sum(events, Z, m, start, stop) if summed else stop - start
    return out


@compiled
def _row_sum(events, Z, m, start, stop):
    total = 0.0
    for i in range(start, stop):
        square = 0.0
        for j in range(Z.shape[1]):
            square += (events.U[i, j] - Z[m, j]) ** 2
        if square < REACH * REACH:
            total += events.weights[i] * np.exp(-0.5 * square)
    return total
