"""How much the events of each level of trees cluster: one concentration for each level.

Given the mass of a cell, the shares of its children are Dirichlet(A f), f their shares of the base
measure. The concentration A of a level maximises the evidence, averaged over several trees; it is
infinite, and the base measure right at that level, unless that gains enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from hplus._checks import Floats, Ints
from hplus.rates.statistic import Statistic
from hplus.rates.trees.evidence import families_of, mean_gain, merged
from hplus.rates.trees.planting import (
    BaseDensity,
    draw_offsets,
    effective_counts,
    have_mass,
    prepare,
    sorted_codes,
)

MIN_GAIN, MIN_GAIN_OVER_CONSTANT, MIN_GAIN_PER_EVENT = 3.0, 0.5, 1e-4
"""Nats that a level must gain over a smooth base, and over a constant; nats per event."""

LOG_CONCENTRATIONS = np.arange(-6.0, 25.0, 3.0)
"""Log concentrations that are tried first."""

MAX_FAMILIES = 8192
"""Cells with children, in each tree and level, from which a concentration is learned."""

EVIDENCE_TREES, MANY_EVENTS = (16, 4), 10_000
"""Trees from which concentrations are learned, for fewer events than this and for more."""


@dataclass(frozen=True)
class Clustering:
    """The concentration of each level of trees and what it gains over the base, (levels,) each."""

    concentrations: Floats
    gains: Floats

    @property
    def depth(self) -> int:
        """The depth of the smallest cells in which events cluster; 0 if they do not."""
        finite = np.flatnonzero(self.concentrations < np.inf)
        return max(int(finite[-1]) - 1, 0) if len(finite) else 0

    def up_to(self, depth: int) -> Clustering:
        """The levels of trees whose smallest cells have some depth."""
        return Clustering(self.concentrations[: depth + 2], self.gains[: depth + 2])


def learn_clustering(
    statistic: Statistic, base: BaseDensity, distinct: bool, seed: int
) -> Clustering:
    """The concentrations of all levels down to the cells of a statistic.

    `distinct` counts events at the same position once: too few to say how finely positions are
    known, they would look like the finest structure.
    """
    events = effective_counts(statistic) / np.where(distinct, statistic.counts, 1)
    numbers = np.where(distinct, 1, statistic.counts)
    trees = EVIDENCE_TREES[statistic.events >= MANY_EVENTS]
    offsets = draw_offsets(statistic.lattice, statistic.depth, trees, seed)
    gains = np.zeros(statistic.depth + 2)
    concentrations = np.full(statistic.depth + 2, np.inf)
    families = _families(statistic, base, offsets, events, numbers)
    least = MIN_GAIN_OVER_CONSTANT if base.is_constant else MIN_GAIN
    least = max(least, MIN_GAIN_PER_EVENT * statistic.effective_events)
    for level, found in families.items():
        A, gains[level] = best_concentration(found, trees)
        if gains[level] >= least:
            concentrations[level] = A
    return Clustering(concentrations, gains)


Families = tuple[int, tuple[Ints, Floats, Floats, Floats]]
"""One in how many families was taken, and the families as in `families_of`."""


def _families(
    statistic: Statistic,
    base: BaseDensity,
    offsets: Ints,
    counts: Floats,
    events: Ints,
) -> dict[int, list[Families]]:
    """The families of each level in each tree."""
    ground = prepare(statistic.lattice, statistic.depth, base, offsets)
    cells = statistic.lattice.indices(statistic.codes)
    kept = have_mass(ground, cells)
    cells, counts, events = cells[kept], counts[kept], events[kept]
    out: dict[int, list[Families]] = {}
    for k in range(len(offsets)):
        codes, order = sorted_codes(ground, k, cells)
        at = codes, counts[order], events[order]
        for level in range(statistic.depth + 1, 0, -1):
            every = max(1, len(at[0]) // MAX_FAMILIES)
            found = families_of(ground, k, level, *at, every)
            if len(found[1]):
                out.setdefault(level, []).append((every, found))
            at = merged(*at, statistic.window.dimension)
    return out


def best_concentration(families: list[Families], trees: int) -> tuple[float, float]:
    """The concentration with the largest gain, averaged over trees, and that gain in nats."""

    def loss(log_concentration: float) -> float:
        A = float(np.exp(log_concentration))
        return -sum(every * mean_gain(A, *found) for every, found in families) / trees

    losses = [loss(x) for x in LOG_CONCENTRATIONS]
    i = int(np.argmin(losses))
    step = LOG_CONCENTRATIONS[1] - LOG_CONCENTRATIONS[0]
    around = LOG_CONCENTRATIONS[i] - step, LOG_CONCENTRATIONS[i] + step
    best = minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 0.05})
    return float(np.exp(best.x)), -float(best.fun)
