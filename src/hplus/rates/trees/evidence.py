"""How the events of a cell are shared among its children, and how much a concentration explains."""

from __future__ import annotations

import math

import numpy as np

from hplus.rates.cell_counts import mixed
from hplus.rates.trees.paths import cell_mass, indices_of
from hplus.rates.trees.polygon_edges import compiled

SMALL_COUNT = 6.0


@compiled
def log_rising(x, n):
    """log of Γ(x + n)/Γ(x) = x(x + 1)…(x + n - 1)."""
    if n <= SMALL_COUNT and n == math.floor(n):
        product = 1.0
        for i in range(int(n)):
            product *= x + i
        return math.log(product)
    return math.lgamma(x + n) - math.lgamma(x)


@compiled
def mean_gain(concentration, families, parents, shares, counts):
    """Nats that a concentration gains over the base measure, summed over families of cells."""
    A, total = concentration, 0.0
    for c in range(len(parents)):
        total -= log_rising(A, parents[c])
        for i in range(families[c], families[c + 1]):
            total += log_rising(A * shares[i], counts[i]) - counts[i] * math.log(shares[i])
    return total


@compiled
def left_out_gain(concentration, families, parents, shares, counts):
    """Nats that a concentration gains over the base measure in predicting each event, the child of
    its cell that it lies in, from all others.
    """
    A, total = concentration, 0.0
    for c in range(len(parents)):
        others = max(parents[c] - 1.0, 0.0) + A
        for i in range(families[c], families[c + 1]):
            share = (max(counts[i] - 1.0, 0.0) + A * shares[i]) / others
            total += counts[i] * math.log(share / shares[i])
    return total


@compiled
def families_of(ground, k, level, codes, counts, events, every):
    """Children of cells with two or more events on one level: where each family starts, the count
    of its parent, and the shares and counts of its children that are not empty.

    Of many families one in `every` is taken, by a hash of the parent's code.
    """
    roots = ground.roots
    d = roots.dimension
    low, high, index = np.zeros(3), np.ones(3), np.zeros(3, np.int64)
    m = len(codes)
    starts, parents = np.empty(m + 1, np.int64), np.empty(m)
    shares, children = np.empty(m), np.empty(m)
    families, size, i = 0, 0, 0
    while i < m:
        parent, j, seen = codes[i] >> np.uint64(d), i, 0
        while j < m and codes[j] >> np.uint64(d) == parent:
            seen += events[j]
            j += 1
        if seen > 1 and (every == 1 or mixed(parent) % np.uint64(every) == 0):
            indices_of(parent, d, index)
            above = cell_mass(ground, k, level - 1, index, low, high)
            starts[families], parents[families] = size, 0.0
            for c in range(i, j):
                indices_of(codes[c], d, index)
                mass = cell_mass(ground, k, level, index, low, high)
                if mass > 0.0 and above > 0.0:
                    shares[size], children[size] = mass / above, counts[c]
                    parents[families] += counts[c]
                    size += 1
            families += 1
        i = j
    starts[families] = size
    return starts[: families + 1], parents[:families], shares[:size], children[:size]


@compiled
def merged(codes, counts, events, dimension):
    """The cells one level up: their codes, counts and numbers of events."""
    m = len(codes)
    out, n, e = np.empty(m, np.uint64), np.empty(m), np.empty(m, np.int64)
    size = 0
    for i in range(m):
        parent = codes[i] >> np.uint64(dimension)
        if size == 0 or out[size - 1] != parent:
            out[size], n[size], e[size] = parent, 0.0, 0
            size += 1
        n[size - 1] += counts[i]
        e[size - 1] += events[i]
    return out[:size].copy(), n[:size].copy(), e[:size].copy()
