"""Integrals of hat functions over the lags and distances that lie in a window; compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from hplus._checks import Floats
from hplus.rates.excitation.region_masks import Mask

DIRECTIONS = 48
"""Directions in which the part of a circle inside a window is measured."""

RADII_PER_SEGMENT = 4
"""Gauss nodes between two knots of the distance, for sums over cells."""

RADII_PER_PIECE = 6
"""Nodes between radii at which circles meet other edges of a window, or knots of the distance."""


@njit(cache=True, nogil=True)
def hat_integrals(knots, x):
    """∫ φ_l from 0 to each x, (n, K): the hat functions of `knots`, constant before the first."""
    K = len(knots) - 1
    found = np.zeros((len(x), K))
    for i in range(len(x)):
        if x[i] <= 0.0:
            continue
        found[i, 0] = min(x[i], knots[0])
        for lo in range(K):
            if x[i] <= knots[lo]:
                break
            width = knots[lo + 1] - knots[lo]
            u = min((x[i] - knots[lo]) / width, 1.0)
            found[i, lo] += width * u * (1.0 - 0.5 * u)
            if lo + 1 < K:
                found[i, lo + 1] += 0.5 * width * u * u
    return found


@njit(cache=True, nogil=True)
def lag_integral(masses, knots, lag):
    """∫ Σ_l masses_l φ_l from 0 to a lag."""
    total = masses[0] * min(lag, knots[0])
    for lo in range(len(knots) - 1):
        if lag <= knots[lo]:
            break
        width = knots[lo + 1] - knots[lo]
        u = min((lag - knots[lo]) / width, 1.0)
        total += masses[lo] * width * u * (1.0 - 0.5 * u)
        if lo + 2 < len(knots):
            total += masses[lo + 1] * 0.5 * width * u * u
    return total


@njit(cache=True, nogil=True)
def visible_lags(knots, times, start, end):
    """∫ φ_l over the lags from times (m,) that lie between `start` and `end`, (m, K)."""
    return hat_integrals(knots, end - times) - hat_integrals(knots, np.maximum(start - times, 0.0))


@njit(cache=True, nogil=True)
def direction_shares(bearings, directions, shares):
    """The share of what each hat function (D) adds in each direction, in shares (D, directions)."""
    for d in range(bearings.shape[0]):
        for k in range(len(directions)):
            cos, sin = directions[k, 0], directions[k, 1]
            along = bearings[d, 0] * (cos * cos - sin * sin) + bearings[d, 1] * 2.0 * cos * sin
            shares[d, k] = np.exp(along)
        shares[d] /= shares[d].sum()


@njit(cache=True, nogil=True, inline="always")
def ring_node(knots, d, v, weight):
    """A node at v from 0 to 1 between knots d and d + 1, or before the first: its radius, 2πu du,
    and what hat function max(d, 0) and the next one are there."""
    a = 0.0 if d < 0 else knots[d]
    width = knots[d + 1] - a
    u, right = a + width * v, v if d >= 0 else 0.0
    return u, 2.0 * np.pi * u * width * weight, 1.0 - right, right


@njit(cache=True, nogil=True, inline="always")
def _up_to(cumulative, angle):
    """The share of what is added in directions from -π to an angle, which may go on beyond π."""
    turns = (angle + np.pi) / (2.0 * np.pi)
    whole = np.floor(turns)
    place = (turns - whole) * (len(cumulative) - 1)
    k = min(int(place), len(cumulative) - 2)
    return whole + cumulative[k] + (place - k) * (cumulative[k + 1] - cumulative[k])


@njit(cache=True, nogil=True, inline="always")
def _share_in_box(x, y, radius, cumulative, low, high):
    """The share of what is added on a circle that lies in a box: of arcs whose x and y both do."""
    far_x = np.arccos(min(max((low[0] - x) / radius, -1.0), 1.0))
    near_x = np.arccos(min(max((high[0] - x) / radius, -1.0), 1.0))
    low_y = np.arcsin(min(max((low[1] - y) / radius, -1.0), 1.0))
    high_y = np.arcsin(min(max((high[1] - y) / radius, -1.0), 1.0))
    found = 0.0
    for a, b in ((near_x, far_x), (-far_x, -near_x)):
        for c, d in (
            (low_y, high_y), (np.pi - high_y, np.pi - low_y), (-np.pi - high_y, -np.pi - low_y)
        ):  # fmt: skip
            start, stop = max(a, c), min(b, d)
            if stop > start:
                found += _up_to(cumulative, stop) - _up_to(cumulative, start)
    return found


@njit(cache=True, nogil=True)
def _share_in_cells(x, y, radius, directions, shares, low, high, inside):
    """The share of what is added on a circle that lies in cells that belong to a region."""
    nx, ny = inside.shape
    per_x, per_y = nx / (high[0] - low[0]), ny / (high[1] - low[1])
    found = 0.0
    for k in range(len(directions)):
        px, py = x + radius * directions[k, 0], y + radius * directions[k, 1]
        if low[0] <= px <= high[0] and low[1] <= py <= high[1]:
            cx = min(int((px - low[0]) * per_x), nx - 1)
            cy = min(int((py - low[1]) * per_y), ny - 1)
            found += shares[k] * inside[cx, cy]
    return found


@njit(cache=True, nogil=True)
def _look_at(x, y, low, high, cumulative, directions, shares):
    """Directions (k, 2) in which a box is seen from a place, and shares (D, k) added in each."""
    first, width = -np.pi, 2.0 * np.pi
    if not (low[0] <= x <= high[0] and low[1] <= y <= high[1]):
        middle = np.arctan2(0.5 * (low[1] + high[1]) - y, 0.5 * (low[0] + high[0]) - x)
        cos, sin = np.cos(middle), np.sin(middle)
        least, most = 0.0, 0.0
        for cx in (low[0], high[0]):
            for cy in (low[1], high[1]):
                dx, dy = cx - x, cy - y
                off = np.arctan2(dy * cos - dx * sin, dx * cos + dy * sin)
                least, most = min(least, off), max(most, off)
        first, width = middle + least, most - least
    for k in range(len(directions)):
        a, b = first + width * k / DIRECTIONS, first + width * (k + 1) / DIRECTIONS
        directions[k, 0], directions[k, 1] = np.cos(0.5 * (a + b)), np.sin(0.5 * (a + b))
        for d in range(len(shares)):
            shares[d, k] = _up_to(cumulative[d], b) - _up_to(cumulative[d], a)


@njit(cache=True, nogil=True)
def _turning_radii(x, y, low, high, radii):
    """Distances from a place to the edges and corners of a box, sorted; and its nearest point."""
    radii[0], radii[1] = abs(low[0] - x), abs(high[0] - x)
    radii[2], radii[3] = abs(low[1] - y), abs(high[1] - y)
    for i in range(2):
        for j in range(2):
            radii[4 + 2 * i + j] = np.sqrt(radii[i] ** 2 + radii[2 + j] ** 2)
    radii.sort()
    out_x = max(low[0] - x, x - high[0], 0.0)
    out_y = max(low[1] - y, y - high[1], 0.0)
    return np.sqrt(out_x * out_x + out_y * out_y)


@njit(cache=True, nogil=True)
def _add_piece(
    row, knots, d, start, end, nodes, weights, cut, turned,
    x, y, scale, low, high, inside, cumulative, seen, parts,
):  # fmt: skip
    """Add the integrals between two radii, which lie between knots d and d + 1, to a row (D,).

    The circles are `cut` by the window or lie inside; hat functions are `turned` if each adds in
    directions of its own.
    """
    a, b = 0.0 if d < 0 else knots[d], knots[d + 1]
    for q in range(len(nodes)):
        u = start + (end - start) * nodes[q]
        area = 2.0 * np.pi * u * (end - start) * weights[q]
        right = (u - a) / (b - a) if d >= 0 else 0.0
        part = 1.0
        for r in range(max(d, 0), min(d + 2, len(row))):
            # without bearings, all hat functions have the same part inside
            if cut and (r == max(d, 0) or turned):
                if inside.size == 1:
                    part = _share_in_box(x, y, scale * u, cumulative[r], low, high)
                else:
                    part = _share_in_cells(x, y, scale * u, seen, parts[r], low, high, inside)
            row[r] += area * part * (right if r > d and d >= 0 else 1.0 - right)


@njit(cache=True, nogil=True)
def _ring_integrals(knots, xy, scales, low, high, inside, nodes, node_weights, bearings):
    """2π ∫ ψ_d(u) u · share of the circle of radius s u inside du, (m, D).

    Between radii at which the circle meets another edge or corner of the box, by `nodes` from 0 to
    1, which are dense at both ends: there the share may begin like a square root.
    """
    D = len(knots) - 1
    found = np.zeros((len(xy), D))
    solid = inside.size == 1
    angles = 2.0 * np.pi * (np.arange(DIRECTIONS) + 0.5) / DIRECTIONS - np.pi
    directions = np.column_stack((np.cos(angles), np.sin(angles)))
    shares, cumulative = np.zeros((D, DIRECTIONS)), np.zeros((D, DIRECTIONS + 1))
    cumulative[:, :] = np.arange(DIRECTIONS + 1) / DIRECTIONS
    seen, parts, radii = np.zeros((DIRECTIONS, 2)), np.zeros((D, DIRECTIONS)), np.zeros(8)
    for j in range(len(xy)):
        x, y, s = xy[j, 0], xy[j, 1], scales[j]
        if len(bearings):
            direction_shares(bearings[j], directions, shares)
            for d in range(D):
                cumulative[d, 1:] = np.cumsum(shares[d])
        nearest = _turning_radii(x, y, low, high, radii) / s
        farthest = radii[7] / s
        room = radii[0] / s if nearest == 0.0 and solid else 0.0
        if not solid:
            _look_at(x, y, low, high, cumulative, seen, parts)
        for d in range(-1, D):
            a, b = 0.0 if d < 0 else knots[d], knots[d + 1]
            start, stop = max(a, nearest), min(b, farthest)
            k = 0
            while start < stop:
                while k < 8 and radii[k] / s <= start:
                    k += 1
                end = min(stop, radii[k] / s) if k < 8 else stop
                _add_piece(
                    found[j], knots, d, start, end, nodes, node_weights, end > room,
                    len(bearings) > 0, x, y, s, low, high, inside, cumulative, seen, parts,
                )  # fmt: skip
                start = end
    return found


def visible_rings(
    knots: Floats, xy: Floats, scales: Floats, mask: Mask, bearings: Floats
) -> Floats:
    """∫ h_jd ψ_d(|x - x_j| / s_j) s_j⁻² over the places x of a region, (m, D).

    `bearings` (m, D, 3) say how h depends on the direction; without any, h = 1.
    """
    t, weights = np.polynomial.legendre.leggauss(RADII_PER_PIECE)
    t = 0.5 * (t + 1.0)
    nodes, weights = t**2 * (3.0 - 2.0 * t), 3.0 * weights * t * (1.0 - t)
    return _ring_integrals(knots, xy, scales, *mask, nodes, weights, bearings)


def visible_sides(knots: Floats, x: Floats, scales: Floats, low: float, high: float) -> Floats:
    """∫ ψ_d(|x - x_j| / s_j) s_j⁻¹ over x from low to high, (m, D): rings on one axis."""
    right, left = ((end - x) / scales for end in (high, low))
    ends = [np.sign(u)[:, None] * hat_integrals(knots, np.abs(u)) for u in (right, left)]
    return ends[0] - ends[1]


def ring_sizes(knots: Floats, axes: int) -> Floats:
    """2π ∫ ψ_d(u) u du in the whole plane, or 2 ∫ ψ_d(u) du on one axis, (D,)."""
    if axes == 1:
        return 2.0 * hat_integrals(knots, knots[-1:].copy())[0]
    return 2.0 * np.pi * hat_moments(knots)


def hat_moments(knots: Floats) -> Floats:
    """∫ φ_l(u) u du, (K,)."""
    a, b = knots[:-1], knots[1:]
    falling = (b - a) * (2.0 * a + b) / 6.0
    rising = (b - a) * (a + 2.0 * b) / 6.0
    found: Floats = falling
    found[1:] += rising[:-1]
    found[0] += 0.5 * knots[0] ** 2
    return found
