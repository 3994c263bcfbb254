"""Rings of vertices cut to a box, and their areas, in compiled loops on the caller's arrays."""

from __future__ import annotations

import numpy as np
from numba import njit

from hplus._checks import Floats
from hplus.grids.hats import read_only

compiled = njit(cache=True, nogil=True, error_model="numpy")

VERTICES_PER_EDGE = 5
"""Vertices of a cut ring for each edge of the ring, at most: its end, and 4 crossings."""


def clipped(
    rings: list[Floats], low: tuple[float, float], high: tuple[float, float]
) -> list[Floats]:
    """Rings (n, 2) cut to a box, in the same directions, without those that enclose nothing."""
    found = []
    for ring in rings:
        out = np.empty((VERTICES_PER_EDGE * len(ring), 2))
        count = clip_ring(read_only(ring), len(ring), low[0], low[1], high[0], high[1], out)
        if count >= 3:
            found.append(out[:count])
    return found


@compiled
def clip_ring(
    ring: Floats,
    count: int,
    low0: float,
    low1: float,
    high0: float,
    high1: float,
    out: Floats,
) -> int:
    """Cut the ring of the first `count` vertices to a box; writes `out`, returns its new count.

    The new ring winds around the points of the box as before and around no others: a vertex is
    added at every crossing of a side, and each goes to the nearest point of the box. Vertices in
    the middle of a line along a side are left out, so that a ring that is cut to smaller and
    smaller boxes gets shorter. Areas of the parts of a box add up to rounding.

    Fewer than 3 vertices enclose nothing. -1 if `out` is too short; VERTICES_PER_EDGE·count rows
    are enough. `out` must not be `ring`.
    """
    size, box = 0, (low0, low1, high0, high1)
    x0, y0 = ring[count - 1, 0], ring[count - 1, 1]
    for i in range(count):
        if size + VERTICES_PER_EDGE > len(out):
            return -1
        x1, y1 = ring[i, 0], ring[i, 1]
        beyond = max(x0, x1) <= low0 or min(x0, x1) >= high0
        beyond = beyond or max(y0, y1) <= low1 or min(y0, y1) >= high1
        within = min(x0, x1) >= low0 and max(x0, x1) <= high0
        within = within and min(y0, y1) >= low1 and max(y0, y1) <= high1
        # beyond one side, the nearest points of the box lie on a line
        if not (beyond or within):
            size = _add_crossings((x0, y0, x1, y1), box, out, size)
        size = _add_vertex(x1, y1, box, out, size)
        x0, y0 = x1, y1
    return size


@compiled
def ring_area(ring: Floats, count: int) -> float:
    """The area inside the ring of the first `count` vertices: below 0 if it runs clockwise."""
    total = 0.0
    for i in range(1, count - 1):
        a, b = ring[i, 0] - ring[0, 0], ring[i, 1] - ring[0, 1]
        total += a * (ring[i + 1, 1] - ring[0, 1]) - b * (ring[i + 1, 0] - ring[0, 0])
    return 0.5 * total


@compiled
def _add_crossings(
    edge: tuple[float, float, float, float],
    box: tuple[float, float, float, float],
    out: Floats,
    size: int,
) -> int:
    """Add a vertex wherever an edge crosses the line through a side, in order."""
    x0, y0, x1, y1 = edge
    at = 0.0
    for _ in range(4):
        share, x, y = 1.0, x1, y1
        for side in range(4):
            bound = box[side]
            a, b = (x0, x1) if side % 2 == 0 else (y0, y1)
            if (a < bound) == (b < bound):
                continue
            t = (bound - a) / (b - a)
            if at < t < share:
                share, x, y = t, x0 + t * (x1 - x0), y0 + t * (y1 - y0)
                if side % 2 == 0:
                    x = bound
                else:
                    y = bound
        if share == 1.0:
            break
        size, at = _add_vertex(x, y, box, out, size), share
    return size


@compiled
def _add_vertex(
    x: float, y: float, box: tuple[float, float, float, float], out: Floats, size: int
) -> int:
    """Add the point of the box nearest to (x, y), unless it makes no difference."""
    low0, low1, high0, high1 = box
    x, y = min(max(x, low0), high0), min(max(y, low1), high1)
    if size >= 1 and out[size - 1, 0] == x and out[size - 1, 1] == y:
        return size
    if size >= 2:
        (a, b), (c, d) = out[size - 2], out[size - 1]
        along = x == a == c and x in (low0, high0)
        if along or (y == b == d and y in (low1, high1)):
            size -= 1
    out[size, 0], out[size, 1] = x, y
    return size + 1
