"""How the events of a cell are shared among its children, and how much a concentration explains."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.cell_counts import mixed
from hplus.rates.trees.paths import cell_mass, indices_of
from hplus.rates.trees.polygon_edges import compiled
from hplus.rates.trees.roughness import roughness_of

SMALL_COUNT = 6.0


class Families(NamedTuple):
    """Cells of one level of a tree with their children that are not empty.

    Children starts[c]:starts[c + 1] are those of parent c, with their shares of its base measure
    and their counts. The roughness of a parent is that seen by each of its events, without it.
    """

    starts: Ints
    parents: Floats
    roughness: Floats
    shares: Floats
    counts: Floats


class Crowded(NamedTuple):
    """The cells of one level of a tree that hold two or more events.

    Their runs (m, 2) of the tree's sorted codes, base measures and roughness.
    """

    runs: Ints
    masses: Floats
    roughness: Floats


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
def mean_gain(concentration, factors, families):
    """Nats that a concentration gains over the base measure, summed over families of cells.

    It is multiplied by the factor of each family.
    """
    total, starts, shares, counts = 0.0, families.starts, families.shares, families.counts
    for c in range(len(families.parents)):
        A = concentration * factors[c]
        total -= log_rising(A, families.parents[c])
        for i in range(starts[c], starts[c + 1]):
            total += log_rising(A * shares[i], counts[i]) - counts[i] * math.log(shares[i])
    return total


@compiled
def left_out_gain(concentration, factors, families):
    """Nats that a concentration gains over the base measure in predicting each event, the child of
    its cell that it lies in, from all others.
    """
    total, starts, shares, counts = 0.0, families.starts, families.shares, families.counts
    for c in range(len(families.parents)):
        A = concentration * factors[c]
        others = max(families.parents[c] - 1.0, 0.0) + A
        for i in range(starts[c], starts[c + 1]):
            share = (max(counts[i] - 1.0, 0.0) + A * shares[i]) / others
            total += counts[i] * math.log(share / shares[i])
    return total


@compiled
def families_of(ground, k, level, codes, counts, events, above, every):
    """The families of cells whose children are on a level, and those children that are crowded.

    The sorted codes of a tree come with cumulative counts and numbers of events; `above` are the
    crowded cells one level up. Of many families one in `every` is taken, by a hash of the code.
    """
    roots = ground.roots
    d, m = roots.dimension, len(above.runs)
    shift = np.uint64(d * (roots.bits - level))
    low, high, index = np.zeros(3), np.ones(3), np.zeros(3, np.int64)
    most = min(m << d, len(codes))
    starts, parents, rough = np.zeros(m + 1, np.int64), np.zeros(m), np.empty(m)
    shares, children = np.empty(most), np.empty(most)
    runs, masses, roughness = np.empty((most, 2), np.int64), np.empty(most), np.empty(most)
    families, size, crowded = 0, 0, 0
    for c in range(m):
        i, end = above.runs[c]
        parent = codes[i] >> shift >> np.uint64(d)
        taken = every == 1 or mixed(parent) % np.uint64(every) == 0
        others = max(counts[end] - counts[i] - 1.0, 0.0)
        while i < end:
            code, j = codes[i] >> shift, i + 1
            while j < end and codes[j] >> shift == code:
                j += 1
            indices_of(code, d, index)
            mass, n = cell_mass(ground, k, level, index, low, high), counts[j] - counts[i]
            f = mass / above.masses[c]
            if taken and mass > 0.0:
                shares[size], children[size] = f, n
                parents[families] += n
                size += 1
            if mass > 0.0 and events[j] - events[i] > 1:
                runs[crowded, 0], runs[crowded, 1], masses[crowded] = i, j, mass
                before = max(n - 1.0, 0.0)
                roughness[crowded] = roughness_of(above.roughness[c], before, others, f)
                crowded += 1
            i = j
        if taken and size > starts[families]:
            rough[families] = above.roughness[c]
            families += 1
            starts[families] = size
    found = Families(
        starts[: families + 1].copy(),
        parents[:families].copy(),
        rough[:families].copy(),
        shares[:size].copy(),
        children[:size].copy(),
    )
    cells = Crowded(runs[:crowded].copy(), masses[:crowded].copy(), roughness[:crowded].copy())
    return found, cells
