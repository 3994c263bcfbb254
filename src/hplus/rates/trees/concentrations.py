"""How much the events of each level of trees cluster: one concentration for each level.

Given the mass of a cell, the shares of its children are Dirichlet(A f), f their shares of the base
measure. The concentration A of a level maximises the evidence, averaged over several trees; it is
infinite, and the base measure right at that level, unless that gains enough. Where events are many,
some of the cells of a level are far more even than others (land and coast), and no concentration is
right for all: then the one is taken, near that of the evidence, that predicts each event best from
the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from hplus._checks import Floats, Ints
from hplus.rates.statistic import Statistic
from hplus.rates.trees.evidence import families_of, left_out_gain, mean_gain, merged
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

LIKELY_LOSS = 1.92
"""Nats that the ends of a 95 % likelihood interval lose to the best value: a half of χ²."""

EVIDENCE_TREES, MANY_EVENTS = (16, 4), 10_000
"""Trees from which concentrations are learned, for fewer events than this and for more."""

MAX_LOG_CHANGE = 2.0
"""How far the log concentration that predicts best may lie from that of the evidence: where no
cell is empty, predictions alone would let it fall to 0."""


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


@dataclass(frozen=True)
class Best:
    """The log of the concentration with the largest gain, that gain in nats, and the one to use."""

    log_concentration: float
    gain: float
    concentration: float


Families = tuple[Ints, Floats, Floats, Floats]
"""Cells of one level with their children, as in `families_of`."""


@dataclass(frozen=True)
class LevelEvidence:
    """What the children of cells say about the concentration of one level.

    By `every`, one in how many families was taken: the families of all trees. `many` says whether
    there are MANY_EVENTS.
    """

    families: dict[int, Families]
    trees: int
    many: bool

    def loss(self, log_concentration: float) -> float:
        """Nats that a concentration loses to the base, averaged over trees."""
        A = float(np.exp(log_concentration))
        gains = (every * mean_gain(A, *found) for every, found in self.families.items())
        return -sum(gains) / self.trees

    @cached_property
    def tried(self) -> Floats:
        """The losses of LOG_CONCENTRATIONS."""
        return np.array([self.loss(x) for x in LOG_CONCENTRATIONS])

    def best(self) -> Best:
        """The concentration with the largest gain."""
        center = LOG_CONCENTRATIONS[int(np.argmin(self.tried))]
        step = LOG_CONCENTRATIONS[1] - LOG_CONCENTRATIONS[0]
        around = center - step, center + step
        best = minimize_scalar(self.loss, bounds=around, method="bounded", options={"xatol": 0.05})
        x = float(best.x)
        return Best(x, -float(best.fun), float(np.exp(self._predicting(x) if self.many else x)))

    def _predicting(self, near: float) -> float:
        """The log concentration, near another, under which events predict each other best."""

        def loss(x: float) -> float:
            A = float(np.exp(x))
            return -sum(every * left_out_gain(A, *found) for every, found in self.families.items())

        around = near - MAX_LOG_CHANGE, near + MAX_LOG_CHANGE
        best = minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 0.05})
        return float(best.x)

    def bounds(self, best: Best) -> tuple[float, float]:
        """The least and the greatest concentration that gain nearly as much; 0 or inf if all do.

        They contain the one to use.
        """

        def above(x: float) -> float:
            return self.loss(x) + best.gain - LIKELY_LOSS

        x, far = best.log_concentration, LOG_CONCENTRATIONS[self.tried + best.gain > LIKELY_LOSS]
        low, high = far[far < x], far[far > x]
        least = float(np.exp(brentq(above, low[-1], x, xtol=0.05))) if len(low) else 0.0
        most = float(np.exp(brentq(above, x, high[0], xtol=0.05))) if len(high) else np.inf
        return min(least, best.concentration), max(most, best.concentration)


def learn_clustering(
    statistic: Statistic, base: BaseDensity, distinct: bool, seed: int
) -> Clustering:
    """The concentrations of all levels down to the cells of a statistic.

    `distinct` counts events at the same position once: too few to say how finely positions are
    known, they would look like the finest structure.
    """
    evidence = evidence_of(statistic, base, distinct, seed)
    best = {level: of_level.best() for level, of_level in evidence.items()}
    return clustering_of(statistic, base, best)


def clustering_of(statistic: Statistic, base: BaseDensity, best: dict[int, Best]) -> Clustering:
    """The best concentrations of those levels where they gain enough."""
    least = MIN_GAIN_OVER_CONSTANT if base.is_constant else MIN_GAIN
    least = max(least, MIN_GAIN_PER_EVENT * statistic.effective_events)
    gains = np.zeros(statistic.depth + 2)
    concentrations = np.full(statistic.depth + 2, np.inf)
    for level, found in best.items():
        gains[level] = found.gain
        if found.gain >= least:
            concentrations[level] = found.concentration
    return Clustering(concentrations, gains)


def evidence_of(
    statistic: Statistic, base: BaseDensity, distinct: bool, seed: int
) -> dict[int, LevelEvidence]:
    """The evidence of each level that has any, from several trees."""
    counts = effective_counts(statistic) / np.where(distinct, statistic.counts, 1)
    events = np.where(distinct, 1, statistic.counts)
    many = statistic.events >= MANY_EVENTS
    trees = EVIDENCE_TREES[many]
    offsets = draw_offsets(statistic.lattice, statistic.depth, trees, seed)
    ground = prepare(statistic.lattice, statistic.depth, base, offsets)
    cells = statistic.lattice.indices(statistic.codes)
    kept = have_mass(ground, cells)
    cells, counts, events = cells[kept], counts[kept], events[kept]
    found: dict[tuple[int, int], list[Families]] = {}
    for k in range(trees):
        codes, order = sorted_codes(ground, k, cells)
        at = codes, counts[order], events[order]
        for level in range(statistic.depth + 1, 0, -1):
            every = max(1, len(at[0]) // MAX_FAMILIES)
            families = families_of(ground, k, level, *at, every)
            if len(families[1]):
                found.setdefault((level, every), []).append(families)
            at = merged(*at, statistic.window.dimension)
    levels: dict[int, dict[int, Families]] = {}
    for (level, every), parts in found.items():
        levels.setdefault(level, {})[every] = _joined(parts)
    return {level: LevelEvidence(families, trees, many) for level, families in levels.items()}


def _joined(parts: list[Families]) -> Families:
    """Families of several trees as if they were of one."""
    starts, parents, shares, counts = zip(*parts, strict=True)
    sizes = np.concatenate([np.diff(s) for s in starts])
    return (
        np.append(0, np.cumsum(sizes)),
        np.concatenate(parents),
        np.concatenate(shares),
        np.concatenate(counts),
    )
