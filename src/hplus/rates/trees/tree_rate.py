"""A rate by random dyadic trees, with its uncertainty, in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hplus._checks import Floats
from hplus._threads import over_cores
from hplus.rates.bands import LogBand
from hplus.rates.climbing import climbed
from hplus.rates.drawing import POINTS_AT_ONCE, RATE_DRAWS, interval_of_draws, log_band_of_draws
from hplus.rates.statistic import Statistic
from hplus.rates.trees.borders import at_centers
from hplus.rates.trees.concentrations import Clustering
from hplus.rates.trees.gamma import gamma_draws
from hplus.rates.trees.paths import Forest, cell_mass, path_moments
from hplus.rates.trees.planting import (
    AXES,
    BaseDensity,
    draw_offsets,
    plant,
    prepare,
    sorted_codes,
)
from hplus.rates.trees.tree_base import TreeBase, density_of
from hplus.rates.trees.tree_draws import draw_cells, draw_leaves
from hplus.rates.trees.tree_regions import share_moments_of
from hplus.solvers.result import SolverResult, Status
from hplus.windows import Window

MAX_TRIES = 100
"""Tries to find a point of a cell that lies in the window."""

MAX_CANDIDATES = 128
"""Crowded cells of each size among which the highest rate is looked for."""

TINY = np.finfo(float).tiny

MIN_VARIANCE = 1e-12
"""The least relative variance of a rate under one tree."""


@dataclass(frozen=True)
class TreeRate:
    """The mean rate of random trees over the events of a statistic.

    Relative to a base, or to a constant. The exposure is one number, of shape (), or the exposure
    at the nodes of the base's grid.
    """

    statistic: Statistic
    clustering: Clustering
    base: TreeBase | None
    exposure: Floats
    trees: int
    seed: int

    @cached_property
    def forest(self) -> Forest:
        """The trees, grown when they are first needed."""
        lattice, depth = self.statistic.lattice, self.statistic.depth
        offsets = draw_offsets(lattice, depth, self.trees, self.seed)
        ground = prepare(lattice, depth, self.density, offsets)
        return plant(self.statistic, ground, self.clustering.concentrations, self.clustering.powers)

    @cached_property
    def density(self) -> BaseDensity:
        """The density of the base measure: the base times the exposure."""
        return density_of(self.statistic, self.base, self.exposure)

    @property
    def result(self) -> SolverResult:
        """The solution is a closed form: its gap is 0."""
        gain = float(self.clustering.gains[np.isfinite(self.clustering.concentrations)].sum())
        return SolverResult(Status.CONVERGED, 0, -gain, 0.0, max(abs(gain), 1.0))

    @property
    def promised_gap(self) -> float:
        """The relative gap of the objective that the fit promised."""
        return 0.0

    @property
    def log_evidence(self) -> float:
        """The log evidence, relative to that of the base."""
        return -self.result.objective

    @property
    def on_grid(self) -> TreeRate:
        """The function that is sampled and has the highest point: the rate itself."""
        return self

    @property
    def finest_sides(self) -> Floats:
        """The sides of the smallest cells that the rate tells apart, (d,).

        Those in which events cluster or, if that is smaller, those of a smooth base.
        """
        sides = self.statistic.lattice.cell_sides(self.clustering.depth)
        uncertain = None if self.base is None else self.base.uncertain
        return sides if uncertain is None else np.minimum(sides, uncertain.finest_sides)

    def function(self, X: Floats) -> Floats:
        """The rate at each point, shape (n,)."""
        return _over_trees(self._factors(X)[0]) * self._level(X)

    def without(self, X: Floats) -> Floats:
        """The rate at each point if an event there had not been learned from, (n,)."""
        left = _over_trees(self._factors(X)[2]) * self._level(X)
        return left * (1.0 - 1.0 / self.statistic.effective_events) / (1.0 + self._base_variance(X))

    def _base_variance(self, X: Floats) -> Floats | float:
        """The relative variance of an uncertain base at each point, (n,), as far as it counts."""
        if self.base is None or self.base.uncertain is None:
            return 0.0
        variance: Floats = np.expm1(self.base.uncertain.deviations(X) ** 2)
        return self._untouched(None) * variance

    def _level(self, X: Floats) -> Floats:
        """The rate at each point if the base were right, (n,)."""
        values = np.ones(len(X))
        if self.base is not None:
            values = self.base.function(
                at_centers(self.forest.ground.measure, self.density.grid, X)
            )
        return values * (self.statistic.total / self._base_mass)

    @cached_property
    def _base_mass(self) -> float:
        """∫ of the base times the exposure over the window."""
        ground, root = self.forest.ground, np.zeros(AXES, np.int64)
        mass = cell_mass(ground, 0, 0, root, np.zeros(AXES), np.ones(AXES))
        factor = float(self.exposure) if self.base is None else 1.0
        return mass * factor * float(np.prod(self.density.grid.spacing))

    def rate_draws(self, X: Floats, k: int) -> Floats:
        """About k equally likely values of the rate at each point, (n, k)."""
        mean, second, _ = self._factors(X)
        return self._drawn(mean, second, self._base_variance(X), k) * self._level(X)[:, None]

    def _drawn(self, mean: Floats, second: Floats, base: Floats | float, k: int) -> Floats:
        """About k values with these moments under each tree, (n, k), if the total is uncertain.

        The relative variance of the base has that of the total in it.
        """
        of_total = 1.0 / self.statistic.effective_events
        relative = second / mean / mean * (1.0 + np.maximum(base, of_total)) - 1.0
        return gamma_draws(mean, 1.0 / np.maximum(relative, MIN_VARIANCE), k)

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that contain the rate at each point with probability `level`, (n,) each."""
        return interval_of_draws(self, X, level)

    def log_band(self, X: Floats, level: float) -> LogBand:
        """The same on the log scale: a center, and the distances of the bounds from it."""
        return log_band_of_draws(self, X, level)

    def sample(self, n: int, random_state: np.random.RandomState) -> Floats:
        """n independent points with density λ/∫λ, shape (n, d)."""
        found = [np.empty((0, self.statistic.window.dimension))]
        while (missing := n - sum(map(len, found))) > 0:
            found.append(self._sampled(min(missing, POINTS_AT_ONCE), random_state))
        return np.concatenate(found)

    def _sampled(self, n: int, rng: np.random.RandomState) -> Floats:
        """Up to n points: those whose cells have hardly any part in the window may be missing."""
        forest, window = self.forest, self.statistic.window
        d, grid = window.dimension, self.density.grid
        lows, highs = self._cells_drawn(n, rng)
        lows, sides, X = lows[:, :d], (highs - lows)[:, :d], np.full((n, d), np.nan)
        for _ in range(MAX_TRIES):
            missing = np.flatnonzero(~window.contains(X))
            if not len(missing):
                break
            at = lows[missing] + sides[missing] * rng.random_sample((len(missing), d))
            for axis in window.closed_axes():
                at[:, axis] %= forest.ground.roots.cells[axis]
            X[missing] = np.clip(grid.low + at * grid.spacing, grid.low, grid.high)
        return X[window.contains(X)]

    def _cells_drawn(self, n: int, rng: np.random.RandomState) -> tuple[Floats, Floats]:
        """The bounds of cells that hold n points with density λ/∫λ, in grid cells, (n, 3) each."""
        forest = self.forest
        lows, highs = np.zeros((2, n, AXES))
        if not forest.ground.varies:
            uniforms = rng.random_sample((n, forest.ground.roots.bits))
            draw_cells(forest, rng.randint(self.trees, size=n), uniforms, lows, highs)
            return lows, highs
        masses = self._shares([self.statistic.window])[0][:, 0]
        tree = rng.choice(self.trees, size=n, p=masses / masses.sum())
        for k in np.unique(tree).tolist():
            chosen = np.flatnonzero(tree == k)
            places = rng.random_sample(len(chosen)) * masses[k]
            order = np.argsort(places)
            at = chosen[order]
            lows[at], highs[at] = draw_leaves(forest, k, places[order])
        return lows, highs

    def peak(self) -> tuple[Floats, float]:
        """The highest point that is found from the centers of crowded cells, and the rate there."""
        statistic = self.statistic
        return climbed(self.function, self.candidates(), statistic.lattice, statistic.depth)

    def candidates(self) -> Floats:
        """Points where the rate may be highest: the centers of the most crowded cells, (n, d)."""
        found, cells, lattice = [], self.statistic, self.statistic.lattice
        for depth in range(self.statistic.depth, -1, -1):
            cells = cells.coarsened(depth)
            X, crowds = lattice.centers(cells.codes, depth), cells.masses
            if self.exposure.ndim:
                least = self.exposure[self.exposure > 0.0].min()
                exposure = self.density.grid.interpolate(self.exposure, X)
                crowds = crowds / np.maximum(exposure, least)
            found.append(X[np.argsort(crowds)[-MAX_CANDIDATES:]])
        X = np.concatenate(found)
        inside = X[lattice.window.contains(X)]
        return inside if len(inside) else lattice.window.quadrature(4)[0]

    def integral(self) -> float:
        """∫ of the rate over the window."""
        return float(self.integrals([self.statistic.window])[0])

    def integrals(self, regions: Sequence[Window]) -> Floats:
        """∫ of the rate over the part of each region in the window, (r,)."""
        return _over_trees(self._shares(regions)[0]) * self._per_share

    def count_draws(self, regions: Sequence[Window]) -> Floats:
        """Equally likely values of the expected count of each region, (r, k)."""
        mean, second = self._shares(regions)
        variance: Floats | float = 0.0
        if self.base is not None and self.base.uncertain is not None:
            values = self.base.uncertain.count_draws(regions)
            means = np.maximum(np.mean(values, axis=1), TINY)
            variance = self._untouched(regions) * np.var(values, axis=1) / means / means
        drawn = self._drawn(np.maximum(mean, TINY), second, variance, RATE_DRAWS)
        return drawn * self._per_share

    def _untouched(self, regions: Sequence[Window] | None) -> Floats:
        """The share of the base's variance that counts for each region, (r,), or at points, ().

        It is that of the levels on which trees leave the base as it is, among those whose cells
        are no smaller than the region: what smaller cells hold does not change its count.
        """
        finite = np.isfinite(self.clustering.concentrations)
        levels = finite[1 : len(self.forest.ground.pyramid.starts)]
        left = 1.0 - np.cumsum(levels) / np.arange(1, len(levels) + 1)
        if regions is None:
            return left[-1]
        roots = 2.0 * self.statistic.lattice.sides
        extents = np.array([np.subtract(*region.bounds()[::-1]) for region in regions])
        with np.errstate(divide="ignore"):
            deepest = np.floor(np.log2(np.min(roots / extents, axis=1)))
        return left[np.clip(deepest, 1, len(levels)).astype(int) - 1]

    @property
    def _per_share(self) -> float:
        """∫ of the rate for a share of 1; shares are per unit of an exposure that varies."""
        return self.statistic.total / (1.0 if self.exposure.ndim else float(self.exposure))

    def _shares(self, regions: Sequence[Window]) -> tuple[Floats, Floats]:
        """Mean and second moment of the share of each region under each tree, (trees, r) each."""
        asked = tuple(regions)
        if asked not in self._asked:
            self._asked.clear()
            self._asked[asked] = share_moments_of(
                self.forest, self.density.grid, asked, self.statistic.window
            )
        return self._asked[asked]

    @cached_property
    def _asked(self) -> dict[tuple[Window, ...], tuple[Floats, Floats]]:
        """The shares of the regions asked for last: a count and its interval need the same."""
        return {}

    def _factors(self, X: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean and second moment of rate / base, and its mean without an event: (trees, n) each."""
        forest, lattice = self.forest, self.statistic.lattice
        depth = self.statistic.depth
        codes = lattice.codes(X) >> np.uint64(lattice.dimension * (lattice.bits - depth))
        cells = lattice.indices(codes)
        stops = self.clustering.stops
        mean, second, without = np.empty((3, self.trees, len(X)))

        def follow(k: int) -> None:
            asked, order = sorted_codes(forest.ground, k, cells)
            m1, m2, left = np.empty((3, len(X)))
            path_moments(forest, k, asked, stops, m1, m2, left)
            mean[k, order], second[k, order], without[k, order] = m1, m2, left

        over_cores(follow, self.trees, len(X) * len(stops))
        return mean, second, without


def _over_trees(values: Floats) -> Floats:
    """The mean of each column of (trees, n), with the same bits whatever the other columns are."""
    return np.ascontiguousarray(values.T).mean(axis=1)
