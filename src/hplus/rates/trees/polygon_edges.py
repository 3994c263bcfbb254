"""The area inside both a polygon and a box, from the edges of the polygon, in compiled loops.

An edge is a row (x_a, y_a, x_b, y_b) with the inside on its left. The area in a box is
∮ (x - low) dy with x and y moved into the box (Green's theorem), so that edges need no order.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hplus._checks import Floats
from hplus.kernels.compiled import NO_WRAPPERS

compiled = njit(cache=True, nogil=True, error_model="numpy")

uncounted = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)  # type: ignore[call-overload]
"""For functions that make no arrays: counting references to their arguments took most of the
time."""

inner = njit(error_model="numpy", _nrt=False, **NO_WRAPPERS)  # type: ignore[call-overload]
"""The same for functions that only compiled code calls: compiled and cached as a part of the
caller."""

MIN_SHARE = 1e-12
"""Shares of a box this close to 0 or 1 are 0 or 1."""


def edges_of(rings: list[Floats], corner: Floats, step: Floats) -> Floats:
    """The edges of rings, in cells of a grid with some corner and sides of cells, (n, 4)."""
    placed = [(ring - corner) / step for ring in rings]
    pairs = [np.hstack([ring, np.roll(ring, -1, axis=0)]) for ring in placed]
    return np.concatenate([np.empty((0, 4)), *pairs])


@inner
def write(edges, out):
    """Copy edges (m, 4) to the first rows of `out`: assigning a slice takes seconds to compile."""
    for e in range(len(edges)):
        for c in range(4):
            out[e, c] = edges[e, c]


@inner
def cut_edge(edges, e, low, high):
    """The part (x_a, y_a, x_b, y_b) of an edge in a box, then the first and the last y of it.

    It comes from beyond the high x if the first y is not y_a, and leaves there if the last is not
    y_b. What lies beyond the low x is dropped. All are 0 if nothing is left.
    """
    xa, ya, xb, yb = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
    first, last = min(max(ya, low[1]), high[1]), min(max(yb, low[1]), high[1])
    if first == last or max(xa, xb) <= low[0]:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    a = xa if first == ya else _between(ya, xa, yb, xb, first)
    b = xb if last == yb else _between(ya, xa, yb, xb, last)
    if a < low[0] and b < low[0]:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if a < low[0]:
        a, first = low[0], _between(a, first, b, last, low[0])
    elif b < low[0]:
        b, last = low[0], _between(a, first, b, last, low[0])
    y, z = first, last
    if a > high[0] and b > high[0]:
        a, b = high[0], high[0]
    elif a > high[0]:
        a, y = high[0], _between(a, first, b, last, high[0])
    elif b > high[0]:
        b, z = high[0], _between(a, first, b, last, high[0])
    return a, y, b, z, first, last


@inner
def _between(s0, t0, s1, t1, s):
    """t where the line from (s0, t0) to (s1, t1) is at s, never past its ends."""
    t = t0 + (s - s0) / (s1 - s0) * (t1 - t0)
    return min(max(t, min(t0, t1)), max(t0, t1))


@inner
def cut_area(edges, begin, end, low, high):
    """The area inside edges[begin:end] and a box."""
    total, width = 0.0, high[0] - low[0]
    for e in range(begin, end):
        a, y, b, z, first, last = cut_edge(edges, e, low, high)
        total += (0.5 * (a + b) - low[0]) * (z - y) + width * ((y - first) + (last - z))
    return total


@inner
def cut_edges(edges, begin, end, low, high, out, size):
    """Add the edges around what lies inside edges[begin:end] and a box to out; the new size.

    Those along the low sides are left out, and those along the high x are joined where one
    follows the other, so that at most 2(end - begin) are added.
    """
    start = size
    for e in range(begin, end):
        ya, yb = edges[e, 1], edges[e, 3]
        if max(ya, yb) <= low[1] or min(ya, yb) >= high[1]:
            continue
        if max(edges[e, 0], edges[e, 2]) <= low[0]:
            continue
        a, y, b, z, first, last = cut_edge(edges, e, low, high)
        size = _add_edge(out, start, size, high[0], first, high[0], y, high[0])
        size = _add_edge(out, start, size, a, y, b, z, high[0])
        size = _add_edge(out, start, size, high[0], z, high[0], last, high[0])
    return size


@inner
def _add_edge(out, start, size, xa, ya, xb, yb, high):
    """Add an edge unless it is horizontal; joined to the one before along the high x."""
    if ya == yb:
        return size
    along = size > start and xa == high and xb == high and out[size - 1, 3] == ya
    if along and out[size - 1, 0] == high and out[size - 1, 2] == high:
        out[size - 1, 3] = yb
        return size if out[size - 1, 1] != yb else size - 1
    out[size, 0], out[size, 1], out[size, 2], out[size, 3] = xa, ya, xb, yb
    return size + 1


@inner
def edges_area(edges, begin, end, low):
    """The area inside edges that were cut to a box whose lowest x is `low`."""
    total = 0.0
    for e in range(begin, end):
        total += (0.5 * (edges[e, 0] + edges[e, 2]) - low) * (edges[e, 3] - edges[e, 1])
    return total
