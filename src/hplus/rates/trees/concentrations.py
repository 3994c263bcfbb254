"""How much the events of each level of trees cluster: one concentration for each level.

Given the mass of a cell, the shares of its children are Dirichlet(A f), f their shares of the base
measure. The concentration A of a level maximises the evidence, averaged over several trees; it is
infinite, and the base measure right at that level, unless that gains enough. Where events are many,
some of the cells of a level are far more even than others (land and coast), and no concentration is
right for all: then the one is taken, near that of the evidence, that predicts each event best from
the others. The concentration also depends on the roughness and the count of the cell, by two powers
that all levels share, where that explains the events better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hplus._checks import Floats, Ints
from hplus._threads import over_cores
from hplus.rates.lattice import Codes
from hplus.rates.statistic import Statistic
from hplus.rates.trees.evidence import Crowded, Families, families_of, joined
from hplus.rates.trees.level_evidence import Best, LevelEvidence, least_loss
from hplus.rates.trees.paths import Ground, cell_mass
from hplus.rates.trees.planting import (
    AXES,
    BaseDensity,
    draw_offsets,
    effective_counts,
    have_mass,
    prepare,
    sorted_distinct_codes,
)

MIN_GAIN, MIN_GAIN_OVER_CONSTANT, MIN_GAIN_PER_EVENT = 3.0, 0.5, 1e-4
"""Nats that a level must gain over a smooth base, and over a constant; nats per event."""

MAX_FAMILIES = 2048
"""Cells with two or more events, in each tree and level, from which a concentration is learned."""

MAX_CROWDED = 2**16
"""Cells with two or more events, in each tree and level, whose children are looked at."""

EVIDENCE_TREES = ((10_000, 16), (1_000_000, 4), (np.inf, 2))
"""Up to how many events, concentrations are learned from how many trees."""

MANY_EVENTS = 10_000
"""Events from which on concentrations are those that predict best."""

MAX_PERSISTENCE, CROWDING = 3.0, (-0.5, 0.5)
"""The largest power of the roughness, and the range of that of the count."""

POWER_TREES = 1
"""Trees from which powers are learned if there are MANY_EVENTS: two numbers need no more."""


@dataclass(frozen=True)
class Clustering:
    """The concentration of each level of trees and what it gains over the base, (levels,) each.

    For the children of a cell it is multiplied by (0.2 + roughness)^-persistence·count^crowding.
    """

    concentrations: Floats
    gains: Floats
    persistence: float = 0.0
    crowding: float = 0.0

    @property
    def depth(self) -> int:
        """The depth of the smallest cells in which events cluster; 0 if they do not."""
        finite = np.flatnonzero(self.concentrations < np.inf)
        return max(int(finite[-1]) - 1, 0) if len(finite) else 0

    @property
    def powers(self) -> Floats:
        """The persistence and the crowding, (2,)."""
        return np.array([self.persistence, self.crowding])

    @property
    def stops(self) -> Ints:
        """The levels whose counts matter: all down to the last where events cluster, if roughness
        does. Else those where they do, and those just above.
        """
        finite = self.concentrations < np.inf
        matters = finite | np.append(finite[1:], False)
        if self.powers.any():
            matters = np.cumsum(finite[::-1])[::-1] > 0
        levels = np.arange(len(finite))
        return levels[matters & (levels > 0)]

    def up_to(self, depth: int) -> Clustering:
        """The levels of trees whose smallest cells have some depth."""
        levels = slice(depth + 2)
        return replace(self, concentrations=self.concentrations[levels], gains=self.gains[levels])


def learn_clustering(
    statistic: Statistic, base: BaseDensity, distinct: bool, seed: int
) -> Clustering:
    """The concentrations of all levels down to the cells of a statistic.

    `distinct` counts events at the same position once: too few to say how finely positions are
    known, they would look like the finest structure.
    """
    evidence = evidence_of(statistic, base, distinct, seed)
    best = {level: of_level.best() for level, of_level in evidence.items()}
    return clustering_of(statistic, base, evidence, best)


def clustering_of(
    statistic: Statistic,
    base: BaseDensity,
    evidence: dict[int, LevelEvidence],
    best: dict[int, Best],
) -> Clustering:
    """The best concentrations of those levels where they gain enough, and powers that do."""
    enough = MIN_GAIN_PER_EVENT * statistic.effective_events
    least = max(MIN_GAIN_OVER_CONSTANT if base.is_constant else MIN_GAIN, enough)
    gains = np.zeros(statistic.depth + 2)
    concentrations = np.full(statistic.depth + 2, np.inf)
    for level, found in best.items():
        gains[level] = found.gain
        if found.gain >= least:
            concentrations[level] = found.concentration
    used = {level: evidence[level] for level in best if concentrations[level] < np.inf}
    logs = {level: float(np.log(concentrations[level])) for level in used}
    powers = _powers(used, logs, max(MIN_GAIN, enough))
    for level, of_level in used.items() if any(powers) else ():
        changed = replace(of_level, powers=powers)
        near = logs[level] - changed.mean_log_factor
        concentrations[level] = np.exp(changed.predicting(near))
    return Clustering(concentrations, gains, *powers)


def _powers(
    used: dict[int, LevelEvidence], logs: dict[int, float], least: float
) -> tuple[float, float]:
    """The powers of roughness and count, each 0 unless it gains `least` nats in all."""
    few = {
        level: replace(of_level, families=of_level.families[:POWER_TREES], trees=POWER_TREES)
        if of_level.many
        else of_level
        for level, of_level in used.items()
    }

    def loss(powers: tuple[float, float]) -> float:
        levels = ((logs[level], replace(found, powers=powers)) for level, found in few.items())
        return sum(found.predicted_loss(x - found.mean_log_factor) for x, found in levels)

    first = loss((0.0, 0.0))
    persistence, then = least_loss(lambda x: loss((x, 0.0)), 0.0, MAX_PERSISTENCE)
    if first - then < least:
        persistence, then = 0.0, first
    crowding, last = least_loss(lambda x: loss((persistence, x)), *CROWDING)
    if then - last < least:
        return persistence, 0.0
    if persistence > 0.0:
        persistence, _ = least_loss(lambda x: loss((x, crowding)), 0.0, MAX_PERSISTENCE)
    return persistence, crowding


def evidence_of(
    statistic: Statistic, base: BaseDensity, distinct: bool, seed: int
) -> dict[int, LevelEvidence]:
    """The evidence of each level that has any, from several trees."""
    counts = effective_counts(statistic) / np.where(distinct, statistic.counts, 1)
    events = np.where(distinct, 1, statistic.counts)
    many = statistic.events >= MANY_EVENTS
    trees = next(trees for most, trees in EVIDENCE_TREES if statistic.events < most)
    offsets = draw_offsets(statistic.lattice, statistic.depth, trees, seed)
    ground = prepare(statistic.lattice, statistic.depth, base, offsets)
    cells = statistic.lattice.indices(statistic.codes)
    kept = have_mass(ground, cells)
    cells, counts, events = cells[kept], counts[kept], events[kept]
    levels: dict[int, list[tuple[int, Families]]] = {}

    def families(k: int) -> list[tuple[int, tuple[int, Families]]]:
        codes, order = sorted_distinct_codes(ground, k, cells)
        sums = (np.append(0, np.cumsum(x[order])) for x in (counts, events))
        return list(_tree_families(ground, k, codes, *sums))

    for of_tree in over_cores(families, trees if len(cells) else 0, len(cells)):
        for level, found in of_tree:
            levels.setdefault(level, []).append(found)
    return {level: _level_evidence(found, many) for level, found in levels.items()}


def _level_evidence(found: list[tuple[int, Families]], many: bool) -> LevelEvidence:
    """The evidence of one level from the families of several trees."""
    if many or any(every > 1 for every, _ in found):
        return LevelEvidence(tuple(found), len(found), many)
    return LevelEvidence(((1, joined([families for _, families in found])),), len(found), many)


def _tree_families(
    ground: Ground, k: int, codes: Codes, counts: Floats, events: Ints
) -> Iterator[tuple[int, tuple[int, Families]]]:
    """Levels of one tree that have families, with one in how many was taken."""
    mass = cell_mass(ground, k, 0, np.zeros(AXES, np.int64), np.zeros(AXES), np.ones(AXES))
    crowded = Crowded(np.array([[0, len(codes)]]), np.array([mass]), np.zeros(1))
    passed = 1
    for level in range(1, ground.roots.bits + 1):
        jump = max(1, len(crowded.runs) // MAX_CROWDED)
        crowded, passed = crowded.every(jump), passed * jump
        every = max(1, len(crowded.runs) // MAX_FAMILIES)
        found, crowded = families_of(ground, k, level, codes, counts, events, crowded, every)
        if len(found.parents):
            yield level, (passed * every, found)
        if not len(crowded.runs):
            return
