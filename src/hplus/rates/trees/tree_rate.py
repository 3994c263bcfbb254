"""A rate by random dyadic trees, with its uncertainty, in closed form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hplus._checks import Floats, Ints
from hplus.positivity.exp import GridFunction
from hplus.rates.bands import LogBand
from hplus.rates.statistic import Statistic
from hplus.rates.trees.concentrations import Clustering
from hplus.rates.trees.gamma import TABLE_QUANTILES, gamma_factors
from hplus.rates.trees.paths import Forest, path_moments
from hplus.rates.trees.planting import (
    BaseDensity,
    draw_offsets,
    plant,
    prepare,
    sorted_codes,
    uniform_base,
)
from hplus.rates.trees.tree_regions import count_quantiles, share_moments_of
from hplus.solvers.result import SolverResult, Status
from hplus.windows import Window

MAX_TREES, MIN_TREES, TREES_TIMES_EVENTS = 64, 16, 500_000
"""Trees that are averaged: as many as the events allow."""

RATE_DRAWS = 256
"""Equally likely values of a rate at a point."""


def trees_for(events: float) -> int:
    """How many trees to average: more for fewer events."""
    return int(np.clip(TREES_TIMES_EVENTS / max(events, 1.0), MIN_TREES, MAX_TREES))


@dataclass(frozen=True)
class TreeRate:
    """The mean rate of random trees over the events of a statistic.

    The rate is relative to `base`, a smooth rate, or to a constant; `exposure` is at the nodes of
    the base's grid, or one number.
    """

    statistic: Statistic
    clustering: Clustering
    base: GridFunction | None
    exposure: float
    trees: int
    seed: int

    @cached_property
    def forest(self) -> Forest:
        """The trees, grown when they are first needed."""
        depth = self.clustering.depth
        statistic = self.statistic.coarsened(depth)
        offsets = draw_offsets(statistic.lattice, depth, self.trees, self.seed)
        ground = prepare(statistic.lattice, depth, self.density, offsets)
        return plant(statistic, ground, self.clustering.up_to(depth))

    @cached_property
    def density(self) -> BaseDensity:
        """The density of the base measure."""
        if self.base is None:
            return uniform_base(self.statistic.lattice)
        return BaseDensity(self.base.grid, self.base.values)

    def function(self, X: Floats) -> Floats:
        """The rate at each point, shape (n,)."""
        return self._factors(X)[0].mean(axis=0) * self._level(X)

    def _level(self, X: Floats) -> Floats:
        """The rate at each point if the base were right, (n,)."""
        values = np.ones(len(X)) if self.base is None else self.base(X)
        window = self.statistic.window
        mass = window.volume if self.base is None else self.base.integral()
        return values * (self.statistic.total / self.exposure / mass)

    def integrals(self, regions: Sequence[Window]) -> Floats:
        """∫ of the rate over the part of each region in the window, (r,)."""
        return self._shares(regions)[0].mean(axis=0) * (self.statistic.total / self.exposure)

    def count_draws(self, regions: Sequence[Window]) -> Floats:
        """Equally likely values of the expected count of each region, (r, k)."""
        shares = count_quantiles(
            *self._shares(regions), self.statistic.effective_events, RATE_DRAWS
        )
        return shares * (self.statistic.total / self.exposure)

    def _shares(self, regions: Sequence[Window]) -> tuple[Floats, Floats]:
        """Mean and second moment of the share of each region under each tree, (trees, r) each."""
        return share_moments_of(self.forest, self.density.grid, regions, self.statistic.window)

    def _factors(self, X: Floats) -> tuple[Floats, Floats]:
        """Mean and second moment of rate / base under each tree, (trees, n) each."""
        forest, lattice = self.forest, self.statistic.lattice
        depth = self.clustering.depth
        codes = lattice.codes(X) >> np.uint64(lattice.dimension * (lattice.bits - depth))
        cells = lattice.indices(codes)
        stops, prior = _stops(self.clustering.up_to(depth), lattice.dimension)
        mean, second = np.empty((2, self.trees, len(X)))
        for k in range(self.trees):
            asked, order = sorted_codes(forest.ground, k, cells)
            m1, m2 = np.empty((2, len(X)))
            path_moments(forest, k, asked, stops, prior, m1, m2)
            mean[k, order], second[k, order] = m1, m2
        return mean, second


def _stops(A: Floats, d: int) -> tuple[Ints, Floats]:
    """The levels whose counts matter, and the product of prior second moments below each level."""
    finite = A < np.inf
    matters = finite | np.append(finite[1:], False)
    f = 0.5**d
    with np.errstate(invalid="ignore"):
        seconds = np.where(finite, (A * f + 1.0) / (f * (A + 1.0)), 1.0)
    below = np.append(np.cumprod(seconds[:0:-1])[::-1], 1.0)
    levels = np.arange(len(A))
    return levels[matters & (levels > 0)], below
