"""How the events of a cell are shared among its children, and how much a concentration explains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.cell_counts import mixed
from hplus.rates.trees.paths import cell_mass, indices_of
from hplus.rates.trees.polygon_edges import compiled, inner
from hplus.rates.trees.roughness import roughness_of

SMALL_COUNT = 24.0
"""Events up to which factors are multiplied one by one: logs cost more."""

LARGEST_PRODUCT = 1e150
"""Where the log of a product is taken, before it overflows; of small ones at its inverse."""


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


def joined(parts: Sequence[Families]) -> Families:
    """The families of several trees as one list: calls of compiled code are fewer and longer."""
    before = np.cumsum([0, *(len(part.shares) for part in parts)])
    starts = [part.starts[:-1] + n for part, n in zip(parts, before, strict=False)]
    columns = (np.concatenate(column) for column in zip(*(part[1:] for part in parts), strict=True))
    return Families(np.append(np.concatenate(starts), before[-1]), *columns)


class Crowded(NamedTuple):
    """The cells of one level of a tree that hold two or more events.

    Their runs (m, 2) of the tree's sorted codes, base measures and roughness.
    """

    runs: Ints
    masses: Floats
    roughness: Floats

    def every(self, jump: int) -> Crowded:
        """One in `jump` of the cells."""
        runs, masses, roughness = self.runs[::jump], self.masses[::jump], self.roughness[::jump]
        return Crowded(runs.copy(), masses.copy(), roughness.copy())


@compiled
def times_rising(log, product, A, share, n):
    """log and product, together multiplied by Γ(A·share + n)/Γ(A·share)/shareⁿ.

    That is A(A + 1/share)…(A + (n - 1)/share): the log is taken of many such factors at once.
    """
    if n > SMALL_COUNT or n != math.floor(n):
        x = A * share
        return log + math.lgamma(x + n) - math.lgamma(x) - n * math.log(share), product
    step = 1.0 / share
    for i in range(int(n)):
        product *= A + i * step
        if not 1.0 / LARGEST_PRODUCT < product < LARGEST_PRODUCT:
            log, product = log + math.log(product), 1.0
    return log, product


@compiled
def mean_gain(concentration, factors, families):
    """Nats that a concentration gains over the base measure, summed over families of cells.

    It is multiplied by the factor of each family.
    """
    starts, shares, counts = families.starts, families.shares, families.counts
    gained, gain, lost, loss = 0.0, 1.0, 0.0, 1.0
    for c in range(len(families.parents)):
        A = concentration * factors[c]
        lost, loss = times_rising(lost, loss, A, 1.0, families.parents[c])
        for i in range(starts[c], starts[c + 1]):
            gained, gain = times_rising(gained, gain, A, shares[i], counts[i])
    return gained + math.log(gain) - lost - math.log(loss)


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


@inner
def _end_of_cell(codes, i, end, shift):
    """The end of the run of codes that lie in the same cell as that at i."""
    code, j = codes[i] >> shift, i + 1
    while j < end and codes[j] >> shift == code:
        j += 1
    return j


@compiled
def _room_for_families(parents, children):
    return Families(
        np.zeros(parents + 1, np.int64),
        np.zeros(parents),
        np.empty(parents),
        np.empty(children),
        np.empty(children),
    )


@compiled
def _room_for_crowded(cells):
    return Crowded(np.empty((cells, 2), np.int64), np.empty(cells), np.empty(cells))


@compiled
def _cut_families(found, parents, children):
    return Families(
        found.starts[: parents + 1].copy(),
        found.parents[:parents].copy(),
        found.roughness[:parents].copy(),
        found.shares[:children].copy(),
        found.counts[:children].copy(),
    )


@compiled
def _cut_crowded(found, cells):
    return Crowded(
        found.runs[:cells].copy(), found.masses[:cells].copy(), found.roughness[:cells].copy()
    )


@compiled
def families_of(ground, k, level, codes, counts, events, above, every):
    """The families of cells whose children are on a level, and those children that are crowded.

    The sorted codes of a tree come with cumulative counts and numbers of events; `above` are the
    crowded cells one level up. Of many families one in `every` is taken, by a hash of the code.
    """
    d, m = ground.roots.dimension, len(above.runs)
    most, shift = min(m << d, len(codes)), np.uint64(d * (ground.roots.bits - level))
    low, high, index = np.zeros(3), np.ones(3), np.zeros(3, np.int64)
    found, inside = _room_for_families(m, most), _room_for_crowded(most)
    families = size = crowded = np.int64(0)
    for c in range(m):
        i, end = above.runs[c]
        taken = every == 1 or mixed(codes[i] >> shift >> np.uint64(d)) % np.uint64(every) == 0
        others, rough = max(counts[end] - counts[i] - 1.0, 0.0), above.roughness[c]
        while i < end:
            j = _end_of_cell(codes, i, end, shift)
            indices_of(codes[i] >> shift, d, index)
            mass, n = cell_mass(ground, k, level, index, low, high), counts[j] - counts[i]
            f = mass / above.masses[c]
            if taken and mass > 0.0:
                found.shares[size], found.counts[size] = f, n
                found.parents[families] += n
                size += 1
            if mass > 0.0 and events[j] - events[i] > 1:
                inside.runs[crowded, 0], inside.runs[crowded, 1] = i, j
                inside.masses[crowded] = mass
                inside.roughness[crowded] = roughness_of(rough, max(n - 1.0, 0.0), others, f)
                crowded += 1
            i = j
        if size > found.starts[families]:
            found.roughness[families], found.starts[families + 1] = rough, size
            families += 1
    return _cut_families(found, families, size), _cut_crowded(inside, crowded)
