"""Hat functions of lag and distance summed over pairs of events in place and time; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hplus._checks import Floats, Ints
from hplus.rates.excitation.catalogue import Catalogue

MAX_CELLS_EACH_WAY = 1024
"""Cells of a grid of sources along an axis, at most."""


class Sources(NamedTuple):
    """Events that may trigger others, in grids of cells that are as wide as they reach.

    Sources of one class reach at most `sizes[c]` far. They are ordered by class, cell and time:
    those of cell k begin at starts[k]. Cells of class c are `shapes[c]`, from `firsts[c]` on.
    `bearings` (m, D, 3) are their directions, or (m, 0, 3) if these are all alike.
    `weights` (m, 2) are those of a source's column, and of the next one, per area of its reach.
    """

    times: Floats
    xy: Floats
    weights: Floats
    scales: Floats
    columns: Ints
    bearings: Floats
    low: Floats
    sizes: Floats
    shapes: Ints
    firsts: Ints
    starts: Ints


def in_cells(
    events: Catalogue, weights: Floats, scales: Floats, columns: Ints, farthest: float
) -> Sources:
    """Events as sources in cells; `farthest` is how far one with scale 1 reaches."""
    times, xy, bearings = events.times, events.plane, events.each_bearing
    if not len(times):
        none = np.zeros(1, dtype=np.int64)
        return Sources(times, xy, weights, scales, columns, bearings, np.zeros(2), np.ones(0),
                       np.zeros((0, 2), dtype=np.int64), none[:0], none)  # fmt: skip
    low, high = xy.min(axis=0), xy.max(axis=0)
    reach = farthest * scales
    kind = np.ceil(np.log2(reach / reach.min()) - 1e-9).astype(np.int64)
    least = float(np.max(high - low)) / MAX_CELLS_EACH_WAY
    sizes = np.maximum(reach.min() * 2.0 ** np.arange(kind.max() + 1), max(least, 1e-300))
    shapes = np.floor((high - low) / sizes[:, None]).astype(np.int64) + 1
    firsts = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))])
    at = np.minimum(((xy - low) / sizes[kind, None]).astype(np.int64), shapes[kind] - 1)
    cell = firsts[kind] + at[:, 0] * shapes[kind, 1] + at[:, 1]
    order = np.lexsort((times, cell))
    starts = np.searchsorted(cell[order], np.arange(firsts[-1] + 1)).astype(np.int64)
    return Sources(
        times[order], xy[order], weights[order], scales[order], columns[order], bearings[order],
        low, sizes, shapes, firsts[:-1].astype(np.int64), starts,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def knots_per_log(knots):
    """How many knots, which are evenly spaced on the log scale, there are per unit of it."""
    return (len(knots) - 1) / np.log(knots[-1] / knots[0]) if len(knots) else 0.0


@njit(cache=True, nogil=True, inline="always")
def hats_at(knots, per_log, x):
    """The two hat functions at x: the number of the first, and the weight of the second.

    `per_log` is that of `knots_per_log`. Before the first knot, the number is -1 and the weight 1;
    x must lie below the last knot.
    """
    if x < knots[0]:
        return -1, 1.0
    k = int(np.log(x / knots[0]) * per_log)
    k = min(max(k, 0), len(knots) - 2)
    if x < knots[k]:
        k -= 1
    elif x >= knots[k + 1]:
        k += 1
    return k, (x - knots[k]) / (knots[k + 1] - knots[k])


@njit(cache=True, nogil=True, inline="always")
def direction_factor(bearings, j, d, dx, dy):
    """How many times as much as on average hat function d of event j adds in a direction."""
    r2 = dx * dx + dy * dy
    if bearings.shape[1] == 0 or r2 <= 0.0:
        return 1.0
    along = bearings[j, d, 0] * (dx * dx - dy * dy) + bearings[j, d, 1] * 2.0 * dx * dy
    return np.exp(along / r2) * bearings[j, d, 2]


@njit(cache=True, nogil=True, inline="always")
def added_by_hats(table, lag, far, lags, distances, per_log, bearings, j, dx, dy):
    """What two hat functions of lags add at a lag and a distance: the first one's number, and each.

    `table` (L, D) are weights, `per_log` of lags and of distances; a hat function that does not
    exist adds 0. `bearings` (m, D, 3) are those of all events, of which j is the one, and (dx, dy)
    is where to.
    """
    L, D = table.shape
    k, u = hats_at(lags, per_log[0], lag)
    d, v = hats_at(distances, per_log[1], far) if len(distances) else (0, 0.0)
    low, high = 0.0, 0.0
    for r in range(max(d, 0), min(d + 2, D)):
        w = (v if r > d else 1.0 - v) * direction_factor(bearings, j, r, dx, dy)
        if k >= 0:
            low += (1.0 - u) * w * table[k, r]
        if k + 1 < L:
            high += u * w * table[k + 1, r]
    return k, low, high


@njit(cache=True, nogil=True, inline="always")
def _add_pair(row, sources, j, lag, far, dx, dy, lags, distances, per_log, weights):
    """Add w h_d φ_l(lag) ψ_d(far) to columns of a row, or their sum with weights to two columns."""
    L, D = len(lags) - 1, len(distances) - 1
    k, u = hats_at(lags, per_log[0], lag)
    d, v = hats_at(distances, per_log[1], far)
    first, w, next_w = sources.columns[j], sources.weights[j, 0], sources.weights[j, 1]
    total = 0.0
    for r in range(max(d, 0), min(d + 2, D)):
        wd = (v if r > d else 1.0 - v) * direction_factor(sources.bearings, j, r, dx, dy)
        for q in range(max(k, 0), min(k + 2, L)):
            each = wd * (u if q > k else 1.0 - u)
            if weights.size > 0:
                total += each * weights[q, r]
            else:
                row[first + q * D + r] += w * each
    if weights.size > 0:
        row[first] += w * total
        if next_w > 0.0:
            row[first + 1] += next_w * total


@njit(cache=True, nogil=True)
def add_pair_rows(targets, at, sources, lags, distances, weights, rows):
    """Add Σ_j w_j h_jd φ_l(t_i - t_j) ψ_d(|x_i - x_j| / s_j) over earlier events j to rows[i].

    Columns are those of the source's kind, then lags, then distances: `columns` is where the
    source's begin. With `weights` (L, D), the sum over l and d with these weights is added to the
    column of the source, and with its second weight to the next one.
    """
    longest, farthest = lags[-1], distances[-1]
    per_log = knots_per_log(lags), knots_per_log(distances)
    for i in range(len(targets)):
        t, x, y = targets[i], at[i, 0], at[i, 1]
        for c in range(len(sources.sizes)):
            size = sources.sizes[c]
            nx, ny = sources.shapes[c, 0], sources.shapes[c, 1]
            cx = int(np.floor((x - sources.low[0]) / size))
            cy = int(np.floor((y - sources.low[1]) / size))
            for gx in range(max(cx - 1, 0), min(cx + 2, nx)):
                for gy in range(max(cy - 1, 0), min(cy + 2, ny)):
                    cell = sources.firsts[c] + gx * ny + gy
                    a, b = sources.starts[cell], sources.starts[cell + 1]
                    a += np.searchsorted(sources.times[a:b], t - longest)
                    for j in range(a, b):
                        lag = t - sources.times[j]
                        if lag <= 0.0:
                            break
                        s = sources.scales[j]
                        dx, dy = x - sources.xy[j, 0], y - sources.xy[j, 1]
                        far = np.sqrt(dx * dx + dy * dy) / s
                        if far < farthest and lag < longest:
                            _add_pair(
                                rows[i], sources, j, lag, far, dx, dy, lags, distances, per_log,
                                weights,
                            )  # fmt: skip
