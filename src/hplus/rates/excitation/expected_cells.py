"""How many events a self-exciting rate expects in the cells of a grid of places; compiled."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numba import njit

from hplus._checks import Floats
from hplus.rates.excitation.conditional_rate import ConditionalRate
from hplus.rates.excitation.region_masks import mask_of
from hplus.rates.excitation.visible import (
    DIRECTIONS,
    RADII_PER_SEGMENT,
    direction_shares,
    ring_node,
)
from hplus.windows import Box, Interval


@njit(cache=True, nogil=True)
def _add_cells(knots, xy, scales, bearings, masses, low, high, inside, nodes, node_weights, out):
    """Add what each source triggers in each cell: Σ_d masses_d ψ_d over rings, by direction."""
    D, (nx, ny), (kx, ky) = len(knots) - 1, inside.shape, out.shape
    angles = 2.0 * np.pi * (np.arange(DIRECTIONS) + 0.5) / DIRECTIONS
    directions = np.column_stack((np.cos(angles), np.sin(angles)))
    shares = np.full((D, DIRECTIONS), 1.0 / DIRECTIONS)
    for j in range(len(xy)):
        if len(bearings):
            direction_shares(bearings[j], directions, shares)
        for d in range(-1, D):
            for q in range(len(nodes)):
                u, area, left, right = ring_node(knots, d, nodes[q], node_weights[q])
                near, far = max(d, 0), min(d + 1, D - 1)
                first = masses[j, near] * left * area
                second = masses[j, far] * right * area if d + 1 < D else 0.0
                if first + second <= 0.0:
                    continue
                for k in range(DIRECTIONS):
                    px = (xy[j, 0] + scales[j] * u * directions[k, 0] - low[0]) / (high[0] - low[0])
                    py = (xy[j, 1] + scales[j] * u * directions[k, 1] - low[1]) / (high[1] - low[1])
                    if 0.0 <= px < 1.0 and 0.0 <= py < 1.0 and inside[int(px * nx), int(py * ny)]:
                        each = first * shares[near, k] + second * shares[far, k]
                        out[int(px * kx), int(py * ky)] += each


def expected_cells(
    known: ConditionalRate, start: float, end: float, shape: tuple[int, ...]
) -> Floats:
    """∫λ of all types from start to end over cells of the region, given the sources."""
    rate, sources = known.rate, known.sources
    assert rate.region is not None
    if isinstance(rate.region, Interval):
        cuts = np.linspace(rate.region.low, rate.region.high, shape[0] + 1).tolist()
        return known.integrals([(Interval(a, b), start, end) for a, b in pairwise(cuts)])
    mask = mask_of(rate.region)
    weights = rate.trigger.weights.sum(axis=1)[sources.types]
    lags = known.factors.weigh(known.visible(start, end))
    masses = np.einsum("ml,mld->md", lags, weights)
    masses *= rate.effects.productivity(sources.marks)[:, None]
    nodes, node_weights = np.polynomial.legendre.leggauss(RADII_PER_SEGMENT)
    found = np.zeros(shape)
    reach = rate.effects.reach(sources.marks)
    _add_cells(rate.trigger.distances, sources.places, reach, sources.bearings, masses, *mask,
               0.5 * (nodes + 1.0), 0.5 * node_weights, found)  # fmt: skip
    edges = [np.linspace(a, b, n + 1) for a, b, n in zip(mask.low, mask.high, shape, strict=True)]
    cells = [
        Box(
            (float(edges[0][i]), float(edges[1][j])),
            (float(edges[0][i + 1]), float(edges[1][j + 1])),
        )
        for i in range(shape[0])
        for j in range(shape[1])
    ]
    for kind, total in enumerate(known.background(start, end)):
        found += total * rate.background.shares(cells, kind).reshape(shape)
    return found
