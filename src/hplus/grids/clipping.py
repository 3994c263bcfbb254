"""Hat functions on cells of side 1, integrated over intervals and inside rings of vertices."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from hplus._checks import Floats
from hplus.grids.hats import read_only

MIN_CELL_FRACTION = 1e-12
"""Integrals below this fraction of a cell are rounding errors of sums that cancel."""

# the two-point Gauss rule is exact for the cubics that are integrated along an edge
GAUSS_NODES = (0.5 - math.sqrt(1.0 / 12.0), 0.5 + math.sqrt(1.0 / 12.0))

# no fused multiply-adds: the same cut must round the same way in every process
compiled = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def inside_interval(low: float, high: float, count: int) -> Floats:
    """∫ φ_i from low to high, where φ_i is the hat at the point i; shape (count,).

    Zero if high is below low.
    """
    out = np.zeros(count)
    high = max(low, high)
    for cell in range(count - 1):
        a, b = min(max(low - cell, 0.0), 1.0), min(max(high - cell, 0.0), 1.0)
        # ∫_a^b (1 - u) du and ∫_a^b u du, without cancellation
        out[cell] += (b - a) * (1.0 - 0.5 * (a + b))
        out[cell + 1] += (b - a) * (0.5 * (a + b))
    return out


def inside_rings(rings: list[Floats], shape: tuple[int, int]) -> Floats:
    """∫ φ_g over what lies on the left of rings (n, 2), where φ_g is the hat at g = (i, j).

    Green's theorem, ∫ φ dA = ∮ (∫₀ˣ φ(s, y) ds) dy: an edge adds to the cells that it crosses
    and, with their full width, to all cells on their left. Array of `shape`, in units of cells.
    """
    nodes, beyond = np.zeros(shape), np.zeros((shape[0], shape[1] - 1, 2))
    for ring in rings:
        _add_edges(read_only(ring), nodes, beyond)
    _add_full_cells(nodes, beyond)
    return nodes


@compiled
def _add_full_cells(nodes: Floats, beyond: Floats) -> None:
    """Add what lies to the right of a cell, in all later columns; drop rounding errors."""
    for row in range(nodes.shape[1] - 1):
        low, high = 0.0, 0.0
        for column in range(len(nodes) - 2, -1, -1):
            low += beyond[column + 1, row, 0]
            high += beyond[column + 1, row, 1]
            for side in (column, column + 1):
                nodes[side, row] += 0.5 * low
                nodes[side, row + 1] += 0.5 * high
    for column in range(len(nodes)):
        for row in range(nodes.shape[1]):
            if not nodes[column, row] > MIN_CELL_FRACTION:
                nodes[column, row] = 0.0


@compiled
def _add_edges(ring: Floats, nodes: Floats, beyond: Floats) -> None:
    """Cut every edge where it passes from one row of cells to the next, and add the pieces."""
    rows = nodes.shape[1] - 1
    for e in range(len(ring)):
        sign, (x0, y0), (x1, y1) = 1.0, ring[e - 1], ring[e]
        if y0 > y1:
            sign, x0, y0, x1, y1 = -1.0, x1, y1, x0, y0
        x, y = x0, y0
        for row in range(math.floor(max(y0, 0.0)), math.ceil(min(y1, float(rows)))):
            if y < row:
                x, y = _between(y0, x0, y1, x1, float(row)), float(row)
            x_next, y_next = x1, y1
            if y1 > row + 1:
                x_next, y_next = _between(y0, x0, y1, x1, row + 1.0), row + 1.0
            _add_to_row(row, sign, (x, y - row, x_next, y_next - row), nodes, beyond)
            x, y = x_next, y_next


@compiled
def _between(s0: float, t0: float, s1: float, t1: float, s: float) -> float:
    """t where the line from (s0, t0) to (s1, t1) is at s, never past its ends."""
    t = t0 + (s - s0) / (s1 - s0) * (t1 - t0)
    return min(max(t, min(t0, t1)), max(t0, t1))


@compiled
def _add_to_row(
    row: int,
    sign: float,
    piece: tuple[float, float, float, float],
    nodes: Floats,
    beyond: Floats,
) -> None:
    """Cut a piece of an edge, which stays in one row, where it passes from cell to cell."""
    last = len(nodes) - 1
    x0, v0, x1, v1 = piece
    if x0 > x1:
        sign, x0, v0, x1, v1 = -sign, x1, v1, x0, v0
    if x1 <= 0.0:
        return
    x, v = x0, v0
    if x < 0.0:
        x, v = 0.0, _between(x0, v0, x1, v1, 0.0)
    # beyond the last column nothing is cut
    for column in range(math.floor(min(x, last)), math.floor(min(x1, last)) + 1):
        x_next, v_next = x1, v1
        if column < last and x1 > column + 1:
            x_next, v_next = column + 1.0, _between(x0, v0, x1, v1, column + 1.0)
        rise, middle = sign * (v_next - v), 0.5 * (v + v_next)
        beyond[column, row, 0] += rise * (1.0 - middle)
        beyond[column, row, 1] += rise * middle
        if column < last:
            corners = nodes[column : column + 2, row : row + 2]
            _add_to_cell((x - column, v, x_next - column, v_next), 0.5 * rise, corners)
        x, v = x_next, v_next


@compiled
def _add_to_cell(piece: tuple[float, float, float, float], rise: float, corners: Floats) -> None:
    """∫ (∫₀ᵘ φ(s, v) ds) dv along a piece of an edge in one cell, for the hats of its corners."""
    u0, v0, u1, v1 = piece
    for t in GAUSS_NODES:
        u, v = u0 + t * (u1 - u0), v0 + t * (v1 - v0)
        # ∫₀ᵘ (1 - s) ds and ∫₀ᵘ s ds
        left, right = u - 0.5 * u * u, 0.5 * u * u
        corners[0, 0] += rise * left * (1.0 - v)
        corners[0, 1] += rise * left * v
        corners[1, 0] += rise * right * (1.0 - v)
        corners[1, 1] += rise * right * v
