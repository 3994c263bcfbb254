"""Binned events on nested grids, each with half the cells of the next."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from hplus._checks import Bools, Floats, Reals, check_memory
from hplus.grids import TensorGrid
from hplus.rates.binned import GRID_DOUBLINGS, AnyStatistic, BinnedStatistic, binned_folds
from hplus.rates.torus import Torus
from hplus.windows import Window

START_BLUR, START_FLOOR = 0.05, 0.05
"""The first guess: its blur as a share of the sides, and its least rate as a share of the mean."""

WORK_ARRAYS = {1: 80.0, 2: 90.0, 3: 110.0}
"""Arrays of the size of the finest grid that a fit holds at once, at most, by dimension."""


PREDICTED_EVENTS, MAX_FOLD_DRAWS = 2000, 4
"""Predictions of events by which priors are compared: fewer events are predicted several times,
under several draws of folds, at most so many."""


@dataclass(frozen=True)
class Level:
    """Counts by fold (f, *grid), and ∫ of the exposure under the hat function of each node."""

    window: Window
    grid: TensorGrid
    folds: Floats
    exposure: Floats

    @classmethod
    def of(cls, statistic: BinnedStatistic, exposure: Floats) -> Level:
        """Events on the finest grid, for an exposure at its nodes, if memory allows."""
        grid = statistic.grid
        need = 8.0 * WORK_ARRAYS[grid.dimension] * grid.size
        check_memory(need, f"A fit on {grid.size} nodes", "fit fewer axes at a time")
        hats = grid.integrals(statistic.window)
        return cls(statistic.window, grid, statistic.counts, hats * exposure)

    @property
    def counts(self) -> Floats:
        """All events, shape (1, *grid)."""
        return self.folds.sum(axis=0, keepdims=True)

    @property
    def total(self) -> float:
        """The sum of the weights of all events."""
        return float(self.counts.sum())

    def without_parts(self, parts: int) -> Floats:
        """The events without each of the first `parts` filled folds, shape (parts, *grid)."""
        return self.counts - self.folds[self.filled()][:parts]

    def arrays(self, dtype: DTypeLike = np.float64) -> tuple[Reals, Reals]:
        """Counts s and exposures ν in some precision, shape (1, *grid) each."""
        return self.counts.astype(dtype), self.exposure[None].astype(dtype)

    def filled(self) -> Bools:
        """Which folds have any events? Shape (f,)."""
        return self.folds.reshape(len(self.folds), -1).sum(axis=1) > 0.0

    @property
    def tolerance(self) -> float:
        """Nats to which a mode can be found in single precision, and need not be found better."""
        return max(0.05, 2e-6 * float(self.folds.sum()))

    def coarser(self) -> Level:
        """The same events on every second node; exact, as a coarse hat is a sum of fine ones."""
        folds = np.stack([self.grid.restrict(fold) for fold in self.folds])
        return Level(self.window, self.grid.coarser(), folds, self.grid.restrict(self.exposure))

    def prolong(self, z: Reals) -> Reals:
        """Log rates (k, *coarser grid) on the next coarser level, on this one, (k, *grid)."""
        return np.stack([self.grid.prolong(part.astype(float)) for part in z]).astype(z.dtype)

    def on_about(self, most: int) -> Level:
        """The same events on a grid of at most `most` nodes, with cells of the same shape."""
        ratio = min(1.0, most / self.grid.size) ** (1.0 / self.grid.dimension)
        shape = np.maximum((ratio * np.array(self.grid.shape)).astype(int), 2)
        grid, nodes = self.grid.replace(shape=tuple(shape.tolist())), self.grid.nodes()
        folds = np.stack([grid.bin(nodes, fold.ravel()) for fold in self.folds])
        hats = self.grid.integrals(self.window)
        exposed, volume = (grid.bin(nodes, m.ravel()) for m in (self.exposure, hats))
        exposure = np.divide(exposed, volume, out=np.zeros_like(volume), where=volume > 0.0)
        return Level(self.window, grid, folds, grid.integrals(self.window) * exposure)

    def start(self) -> Floats:
        """A first guess of the log rate: blurred counts over blurred exposure, (1, *grid)."""
        torus = Torus.of(self.grid, self.grid.closed)
        exponents = np.zeros(())
        for side, omega in zip(torus.sides, torus.frequencies, strict=True):
            exponents = exponents + 0.5 * (START_BLUR * side * omega) ** 2
        blur = np.exp(-exponents)
        events, exposure = (np.maximum(torus.apply(blur, x), 0.0) for x in self.arrays())
        mean = self.total / self.exposure.sum()
        tiny = 1e-12 * float(self.exposure.max())
        return np.log(events / (exposure + tiny) + START_FLOOR * mean)


def fold_draws(events: float) -> int:
    """Under how many draws of folds priors are compared: more of few events, to even out luck."""
    return math.ceil(min(max(PREDICTED_EVENTS / events, 1.0), MAX_FOLD_DRAWS))


def redrawn(statistic: AnyStatistic, seed: int, level: Level) -> list[Level]:
    """The events of a level with other draws of folds: the more, the fewer events there are.

    None of the events of an earlier version, whose folds are known but not the events.
    """
    if isinstance(statistic, BinnedStatistic):
        return []
    seeds = np.random.default_rng(seed).integers(2**31, size=fold_draws(level.total) - 1)
    folds = (binned_folds(statistic, level.grid, other) for other in seeds.tolist())
    return [replace(level, folds=parts) for parts in folds]


def descend(level: Level) -> list[Level]:
    """A level and those below it, down to the grid on which priors are compared."""
    levels = [level]
    for _ in range(GRID_DOUBLINGS[level.grid.dimension]):
        levels.append(levels[-1].coarser())
    return levels
