"""Binned events on nested grids, each with half the cells of the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hplus._checks import Bools, Floats
from hplus.grids import TensorGrid
from hplus.rates.torus import Torus
from hplus.windows import Window

START, LEAST = 0.05, 0.05
"""Blur of the first guess, as a share of the sides, and its least rate as a share of the mean."""


@dataclass(frozen=True)
class Level:
    """Counts by fold (f, *grid), and the exposure ν of each node's hat function."""

    grid: TensorGrid
    folds: Floats
    measure: Floats

    @property
    def counts(self) -> Floats:
        """All events, shape (1, *grid)."""
        return self.folds.sum(axis=0, keepdims=True)

    @property
    def nu(self) -> Floats:
        """The exposure, shape (1, *grid)."""
        return self.measure[None]

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
        return Level(self.grid.coarser(), folds, self.grid.restrict(self.measure))

    def on_about(self, most: int, window: Window) -> Level:
        """The same events on a grid of at most `most` nodes, with cells of the same shape."""
        ratio = min(1.0, most / self.grid.size) ** (1.0 / self.grid.dimension)
        shape = np.maximum((ratio * np.array(self.grid.shape)).astype(int), 2)
        grid, nodes = self.grid.replace(shape=tuple(shape.tolist())), self.grid.nodes()
        folds = np.stack([grid.bin(nodes, fold.ravel()) for fold in self.folds])
        areas = self.grid.integrals(window)
        watched, seen = (grid.bin(nodes, m.ravel()) for m in (self.measure, areas))
        exposure = np.divide(watched, seen, out=np.zeros_like(seen), where=seen > 0.0)
        return Level(grid, folds, grid.integrals(window) * exposure)

    def start(self) -> Floats:
        """A first guess of the log rate: blurred counts over blurred exposure, (1, *grid)."""
        torus = Torus.of(self.grid, self.grid.closed)
        exponents: Any = 0.0
        for side, omega in zip(torus.sides, torus.frequencies, strict=True):
            exponents = exponents + 0.5 * (START * side * omega) ** 2
        blur = np.exp(-exponents)
        events, exposure = (np.maximum(torus.apply(blur, x), 0.0) for x in (self.counts, self.nu))
        mean = self.counts.sum() / self.measure.sum()
        tiny = 1e-12 * float(self.measure.max())
        return np.log(events / (exposure + tiny) + LEAST * mean)


def descend(level: Level, times: int) -> list[Level]:
    """A level and those below it, the coarsest last."""
    levels = [level]
    for _ in range(times):
        levels.append(levels[-1].coarser())
    return levels
