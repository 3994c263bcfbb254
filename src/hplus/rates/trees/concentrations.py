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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from hplus._checks import Floats, Ints
from hplus.rates.lattice import Codes
from hplus.rates.statistic import Statistic
from hplus.rates.trees.evidence import (
    Crowded,
    Families,
    families_of,
    joined,
    left_out_gain,
    mean_gain,
)
from hplus.rates.trees.paths import Ground, cell_mass
from hplus.rates.trees.planting import (
    AXES,
    BaseDensity,
    draw_offsets,
    effective_counts,
    have_mass,
    prepare,
    sorted_codes,
)
from hplus.rates.trees.roughness import factors_of

MIN_GAIN, MIN_GAIN_OVER_CONSTANT, MIN_GAIN_PER_EVENT = 3.0, 0.5, 1e-4
"""Nats that a level must gain over a smooth base, and over a constant; nats per event."""

LOG_CONCENTRATIONS = np.arange(-6.0, 25.0, 3.0)
"""Log concentrations that are tried first."""

MAX_FAMILIES = 2048
"""Cells with two or more events, in each tree and level, from which a concentration is learned."""

LIKELY_LOSS = 1.92
"""Nats that the ends of a 95 % likelihood interval lose to the best value: a half of χ²."""

EVIDENCE_TREES, MANY_EVENTS = (16, 4), 10_000
"""Trees from which concentrations are learned, for fewer events than this and for more."""

MAX_LOG_CHANGE = 2.0
"""How far the log concentration that predicts best may lie from that of the evidence: where no
cell is empty, predictions alone would let it fall to 0."""

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

    def up_to(self, depth: int) -> Clustering:
        """The levels of trees whose smallest cells have some depth."""
        levels = slice(depth + 2)
        return replace(self, concentrations=self.concentrations[levels], gains=self.gains[levels])


@dataclass(frozen=True)
class Best:
    """The log of the concentration with the largest gain, that gain in nats, and the one to use."""

    log_concentration: float
    gain: float
    concentration: float


@dataclass(frozen=True)
class LevelEvidence:
    """What the children of cells say about the concentration of one level.

    Families of `trees` trees come with one in how many was taken: those of each tree if there are
    MANY_EVENTS, or else of all trees together. `powers` are those of the roughness and the count.
    """

    families: tuple[tuple[int, Families], ...]
    trees: int
    many: bool
    powers: tuple[float, float] = (0.0, 0.0)

    def loss(self, log_concentration: float) -> float:
        """Nats that a concentration loses to the base, averaged over trees."""
        return self._loss(mean_gain, log_concentration)

    def predicted_loss(self, log_concentration: float) -> float:
        """The same, if there are many events of each of them predicted from the others."""
        return self._loss(left_out_gain if self.many else mean_gain, log_concentration)

    def _loss(self, gain: Callable[..., float], log_concentration: float) -> float:
        A, found = float(np.exp(log_concentration)), zip(self.families, self.factors, strict=True)
        gains = (every * gain(A, factors, families) for (every, families), factors in found)
        return -sum(gains) / self.trees

    @cached_property
    def factors(self) -> list[Floats]:
        """What multiplies the concentration for each family of each tree."""
        powers = np.array(self.powers)
        return [
            factors_of(powers, found.roughness, np.maximum(found.parents - 1.0, 0.0))
            for _, found in self.families
        ]

    @cached_property
    def mean_log_factor(self) -> float:
        """The mean of the logs of the factors over events."""
        found = list(zip(self.families, self.factors, strict=True))
        logs = sum(every * float(f.parents @ np.log(factors)) for (every, f), factors in found)
        return logs / sum(every * float(f.parents.sum()) for every, f in self.families)

    @cached_property
    def tried(self) -> Floats:
        """The losses of LOG_CONCENTRATIONS."""
        return np.array([self.loss(x) for x in LOG_CONCENTRATIONS])

    def best(self) -> Best:
        """The concentration with the largest gain."""
        center = LOG_CONCENTRATIONS[int(np.argmin(self.tried))]
        step = LOG_CONCENTRATIONS[1] - LOG_CONCENTRATIONS[0]
        x, loss = _least(self.loss, center - step, center + step)
        return Best(x, -loss, float(np.exp(self.predicting(x) if self.many else x)))

    def predicting(self, near: float) -> float:
        """The log concentration, near another, under which events predict each other best."""
        return _least(self.predicted_loss, near - MAX_LOG_CHANGE, near + MAX_LOG_CHANGE)[0]

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
    persistence, then = _least(lambda x: loss((x, 0.0)), 0.0, MAX_PERSISTENCE)
    if first - then < least:
        persistence, then = 0.0, first
    crowding, last = _least(lambda x: loss((persistence, x)), *CROWDING)
    if then - last < least:
        return persistence, 0.0
    if persistence > 0.0:
        persistence, _ = _least(lambda x: loss((x, crowding)), 0.0, MAX_PERSISTENCE)
    return persistence, crowding


def _least(loss: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Where a loss is least between two numbers, and that loss."""
    best = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 0.05})
    return float(best.x), float(best.fun)


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
    levels: dict[int, list[tuple[int, Families]]] = {}
    for k in range(trees if len(cells) else 0):
        codes, order = sorted_codes(ground, k, cells)
        sums = (np.append(0, np.cumsum(x[order])) for x in (counts, events))
        for level, found in _tree_families(ground, k, codes, *sums):
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
    for level in range(1, ground.roots.bits + 1):
        every = max(1, len(crowded.runs) // MAX_FAMILIES)
        found, crowded = families_of(ground, k, level, codes, counts, events, crowded, every)
        if len(found.parents):
            yield level, (every, found)
        if not len(crowded.runs):
            return
