"""Hat functions on cells of side 1, integrated over intervals and inside rings of vertices."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from hplus._checks import Floats
from hplus.windows.geometry import Rings, oriented

MIN_CELL_FRACTION = 1e-12
"""Integrals below this fraction of a cell are rounding errors of sums that cancel."""

# the two-point Gauss rule is exact for the cubics that are integrated along an edge
GAUSS_NODES = (0.5 - math.sqrt(1.0 / 12.0), 0.5 + math.sqrt(1.0 / 12.0))

# no fused multiply-adds: the same cut must round the same way in every process
compiled = njit(cache=True, nogil=True, error_model="numpy")


def inside_interval(low: float, high: float, count: int) -> Floats:
    """∫ φ_i from low to high, where φ_i is the hat at the point i; shape (count,).

    Zero if high is below low.
    """
    cells = np.arange(count - 1)
    a, b = np.clip(low - cells, 0.0, 1.0), np.clip(max(low, high) - cells, 0.0, 1.0)
    # ∫_a^b (1 - u) du and ∫_a^b u du, without cancellation
    left, right = (b - a) * (1.0 - 0.5 * (a + b)), (b - a) * (0.5 * (a + b))
    return np.append(left, 0.0) + np.append(0.0, right)


def inside_rings(rings: Rings, shape: tuple[int, int]) -> Floats:
    """∫ φ_g inside rings, where φ_g is the hat at the point g = (i, j).

    Green's theorem, ∫ φ dA = ∮ (∫₀ˣ φ(s, y) ds) dy: an edge adds to the cells that it crosses
    and, with their full width, to all cells on their left. Array of `shape`, in units of cells.
    """
    nodes, beyond = np.zeros(shape), np.zeros((shape[0], shape[1] - 1, 2))
    _add_edges(_edges(rings), nodes, beyond)
    # what lies to the right of a cell is in all later columns
    full = 0.5 * np.cumsum(beyond[:0:-1], axis=0)[::-1]
    for side in (nodes[:-1], nodes[1:]):
        side[:, :-1] += full[..., 0]
        side[:, 1:] += full[..., 1]
    return np.where(nodes > MIN_CELL_FRACTION, nodes, 0.0)


def clamped_rings(rings: Rings, low: tuple[float, float], high: tuple[float, float]) -> Rings:
    """Rings moved into a box: they wind around the points inside as before and around no others.

    A vertex is added at every crossing, then each goes to the nearest point of the box.
    """
    return [(np.clip(_with_crossings(ring, low, high), low, high), role) for ring, role in rings]


def _with_crossings(ring: Floats, low: tuple[float, float], high: tuple[float, float]) -> Floats:
    """A ring with a vertex wherever it crosses a line through a side of the box."""
    for axis, bound in ((0, low[0]), (0, high[0]), (1, low[1]), (1, high[1])):
        side = np.sign(ring[:, axis] - bound)
        crossing = np.flatnonzero(side * np.roll(side, -1) < 0.0)
        a, b = ring[crossing], np.roll(ring, -1, axis=0)[crossing]
        share = (bound - a[:, axis]) / (b[:, axis] - a[:, axis])
        ring = np.insert(ring, crossing + 1, a + share[:, None] * (b - a), axis=0)
    return ring


def _edges(rings: Rings) -> Floats:
    """The two ends of every edge, shape (m, 2, 2), with the inside on its left."""
    turned = (oriented(ring, role) for ring, role in rings)
    pairs = [np.stack([ring, np.roll(ring, -1, axis=0)], axis=1) for ring in turned]
    return np.concatenate([np.empty((0, 2, 2)), *pairs])


@compiled
def _add_edges(edges: Floats, nodes: Floats, beyond: Floats) -> None:
    """Cut every edge where it passes from one row of cells to the next, and add the pieces."""
    rows = nodes.shape[1] - 1
    for e in range(len(edges)):
        sign, (x0, y0), (x1, y1) = 1.0, edges[e, 0], edges[e, 1]
        if y0 > y1:
            sign, x0, y0, x1, y1 = -1.0, x1, y1, x0, y0
        x, y = x0, y0
        for row in range(math.floor(max(y0, 0.0)), math.ceil(min(y1, float(rows)))):
            if y < row:
                x, y = _between(y0, x0, y1, x1, row), float(row)
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
