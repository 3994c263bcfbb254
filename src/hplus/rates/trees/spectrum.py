"""ScaleSpectrum: at which sizes events cluster, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hplus._checks import Floats
from hplus.rates.statistic import Statistic
from hplus.rates.trees.concentrations import Clustering, evidence_of, least_gain
from hplus.rates.trees.planting import BaseDensity
from hplus.windows import Window


@final
@dataclass(frozen=True, eq=False)
class ScaleSpectrum:
    """How much the rates of neighbouring cells differ, for cells of each size.

    A cell is halved along every axis into 2ᵈ cells. Given its events, the shares of these cells
    are Dirichlet(A f), f their shares of the exposure: the smaller A, the more events cluster at
    this size. The smallest sizes, of which events say little, are left out, and so are those below the step
    of the events' positions.

    Parameters
    ----------
    window : Window
    sizes : array, shape (k,) or (k, d)
        Sides of the cells from the largest to the smallest, in the unit of the window; for each
        axis if axes have different units.
    concentrations : array, shape (k,)
        The most likely A; infinite where events do not cluster.
    bounds : array, shape (2, k)
        The least and the greatest A whose evidence is within 1.92 nats of the largest, as those of
        a 95 % likelihood interval.
    gains : array, shape (k,)
        Nats by which clustering at this size explains the events better than none.
    """

    window: Window
    sizes: Floats
    concentrations: Floats
    bounds: Floats
    gains: Floats

    @property
    def variation(self) -> Floats:
        """The standard deviation of the rates of neighbouring cells over their mean, (k,).

        √((2ᵈ - 1)/(A + 1)): 0 where events do not cluster, √(2ᵈ - 1) if all are in one cell.
        """
        return self._variation(self.concentrations)

    @property
    def variation_interval(self) -> tuple[Floats, Floats]:
        """The bounds of `variation`, (k,) each."""
        least, greatest = self.bounds
        return self._variation(greatest), self._variation(least)

    def clustering(self, depth: int) -> Clustering:
        """The concentrations of trees whose smallest cells have some depth."""
        concentrations, gains = np.full(depth + 2, np.inf), np.zeros(depth + 2)
        levels = slice(1, 1 + len(self.gains))
        concentrations[levels], gains[levels] = self.concentrations, self.gains
        return Clustering(concentrations, gains)

    def _variation(self, concentrations: Floats) -> Floats:
        return np.sqrt((2.0**self.window.dimension - 1.0) / (concentrations + 1.0))


def learn_spectrum(
    statistic: Statistic, base: BaseDensity, distinct: bool, seed: int
) -> ScaleSpectrum:
    """The spectrum of sizes down to the cells of a statistic, as `learn_clustering` learns them."""
    evidence = evidence_of(statistic, base, distinct, seed)
    least, levels = least_gain(statistic, base), statistic.depth + 1
    concentrations, gains = np.full(levels, np.inf), np.zeros(levels)
    bounds = np.tile([[0.0], [np.inf]], levels)
    for level, of_level in evidence.items():
        best = of_level.best()
        gains[level - 1], bounds[:, level - 1] = best.gain, of_level.bounds(best)
        if best.gain >= least:
            concentrations[level - 1] = best.concentration
    known = np.flatnonzero((bounds[0] > 1.0) | (concentrations < np.inf))
    k = int(known[-1]) + 1 if len(known) else 0
    window = statistic.window
    sizes = np.array([statistic.lattice.cell_sides(depth) for depth in range(k)])
    sizes = sizes.reshape(k, window.dimension)
    if len(set(window.axis_groups())) == 1 and np.ptp(statistic.lattice.sides) == 0.0:
        sizes = sizes[:, 0]
    return ScaleSpectrum(window, sizes, concentrations[:k], bounds[:, :k], gains[:k])
