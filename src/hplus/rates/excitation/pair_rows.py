"""Hat functions of lag and distance summed over pairs of events in place and time; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hplus._checks import Floats, Ints

MAX_CELLS_EACH_WAY = 1024
"""Cells of a grid of sources along an axis, at most."""


class Sources(NamedTuple):
    """Events that may trigger others, in grids of cells that are as wide as they reach.

    Sources of one class reach at most `sizes[c]` far. They are ordered by class, cell and time:
    those of cell k begin at starts[k]. Cells of class c are `shapes[c]`, from `firsts[c]` on.
    """

    times: Floats
    xy: Floats
    weights: Floats
    scales: Floats
    columns: Ints
    low: Floats
    sizes: Floats
    shapes: Ints
    firsts: Ints
    starts: Ints


def in_cells(
    times: Floats, xy: Floats, weights: Floats, scales: Floats, columns: Ints, farthest: float
) -> Sources:
    """Sources sorted into cells; `farthest` is how far one with scale 1 reaches."""
    if not len(times):
        none = np.zeros(1, dtype=np.int64)
        return Sources(times, xy, weights, scales, columns, np.zeros(2), np.ones(0),
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
    return Sources(times[order], xy[order], weights[order], scales[order], columns[order], low,
                   sizes, shapes, firsts[:-1].astype(np.int64), starts)  # fmt: skip


@njit(cache=True, nogil=True, inline="always")
def _segment(knots, log_first, per_log, x):
    """The last knot at or below x, -1 before the first; knots are evenly spaced in log x."""
    if x < knots[0]:
        return -1
    k = int((np.log(x) - log_first) * per_log)
    k = min(max(k, 0), len(knots) - 2)
    if x < knots[k]:
        k -= 1
    elif x >= knots[k + 1]:
        k += 1
    return k


@njit(cache=True, nogil=True)
def add_pair_rows(targets, at, sources, lags, distances, weights, rows):
    """Add Σ_j w_j s_j⁻² φ_l(t_i - t_j) ψ_d(|x_i - x_j| / s_j) over earlier events j to rows[i].

    Columns are those of the source's kind, then lags, then distances: `columns` is where the
    source's begin. With `weights` (L, D), the sum over l and d with these weights is added to the
    one column of the source.
    """
    summed = weights.size > 0
    L, D = len(lags) - 1, len(distances) - 1
    log_lag, per_lag = np.log(lags[0]), L / np.log(lags[-1] / lags[0])
    log_far, per_far = np.log(distances[0]), D / np.log(distances[-1] / distances[0])
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
                    a += np.searchsorted(sources.times[a:b], t - lags[L])
                    for j in range(a, b):
                        lag = t - sources.times[j]
                        if lag <= 0.0:
                            break
                        dx, dy = x - sources.xy[j, 0], y - sources.xy[j, 1]
                        s = sources.scales[j]
                        far = np.sqrt(dx * dx + dy * dy) / s
                        if far >= distances[D] or lag >= lags[L]:
                            continue
                        w = sources.weights[j] / (s * s)
                        lo = _segment(lags, log_lag, per_lag, lag)
                        d = _segment(distances, log_far, per_far, far)
                        u = 1.0 if lo < 0 else (lag - lags[lo]) / (lags[lo + 1] - lags[lo])
                        v = 1.0
                        if d >= 0:
                            v = (far - distances[d]) / (distances[d + 1] - distances[d])
                        first = sources.columns[j]
                        for q in range(2):
                            ll = lo + q
                            wl = u if q else 1.0 - u
                            if ll < 0 or ll >= L or wl == 0.0:
                                continue
                            for r in range(2):
                                dd = d + r
                                wd = v if r else 1.0 - v
                                if dd < 0 or dd >= D:
                                    continue
                                if summed:
                                    rows[i, first] += w * wl * wd * weights[ll, dd]
                                else:
                                    rows[i, first + ll * D + dd] += w * wl * wd
