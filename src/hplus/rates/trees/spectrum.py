"""ScaleSpectrum: at which sizes events cluster, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hplus._checks import Floats
from hplus.rates.lattice import CellLattice
from hplus.rates.statistic import Statistic
from hplus.rates.trees.concentrations import MIN_GAIN, Clustering, clustering_of, evidence_of
from hplus.rates.trees.planting import BaseDensity
from hplus.windows import Window


@final
@dataclass(frozen=True, eq=False)
class ScaleSpectrum:
    """How much the rates of neighbouring cells differ, for cells of each size.

    A cell is halved along every axis into 2ᵈ cells. Given its events, the shares of these cells
    are Dirichlet(A f), f their shares of the exposure: the smaller A, the more events cluster at
    this size. Left out are the smallest sizes, of which the events say little, and those below
    the step of their positions.

    Parameters
    ----------
    window : Window
    sizes : array, shape (k,) or (k, d)
        Sides of the cells from the largest to the smallest, in the unit of the window; for each
        axis if axes have different units.
    concentrations : array, shape (k,)
        The most likely A; infinite where clustering gains less than 3 nats.
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

    def down_to(self, step: Floats) -> ScaleSpectrum:
        """The sizes that are no smaller than the step of positions on each axis, (d,)."""
        sides = self.sizes if self.sizes.ndim == 2 else self.sizes[:, None]
        k = np.count_nonzero(np.all(sides >= step, axis=1))
        return ScaleSpectrum(
            self.window, self.sizes[:k], self.concentrations[:k], self.bounds[:, :k], self.gains[:k]
        )

    def _variation(self, concentrations: Floats) -> Floats:
        return np.sqrt((2.0**self.window.dimension - 1.0) / (concentrations + 1.0))


def learn_spectrum(
    statistic: Statistic, base: BaseDensity, distinct: bool, seed: int
) -> tuple[Clustering, ScaleSpectrum]:
    """The concentrations as `learn_clustering` learns them, and the spectrum of sizes.

    Trees use what gains little too, as it does no harm to predictions; the spectrum does not.
    """
    evidence = evidence_of(statistic, base, distinct, seed)
    best = {level: of_level.best() for level, of_level in evidence.items()}
    clustering = clustering_of(statistic, base, evidence, best)
    found = clustering.gains >= MIN_GAIN
    concentrations = np.where(found, clustering.concentrations, np.inf)[1:]
    bounds = np.tile([[0.0], [np.inf]], len(concentrations))
    for level, of_level in evidence.items():
        bounds[:, level - 1] = of_level.bounds(best[level])
        if found[level]:
            concentrations[level - 1] = np.exp(best[level].log_concentration)
    known = np.flatnonzero((bounds[0] > 1.0) | (concentrations < np.inf))
    k = int(known[-1]) + 1 if len(known) else 0
    sizes = _sizes(statistic.lattice, k)
    gains = clustering.gains[1 : k + 1]
    return clustering, ScaleSpectrum(
        statistic.window, sizes, concentrations[:k], bounds[:, :k], gains
    )


def _sizes(lattice: CellLattice, count: int) -> Floats:
    """The sides of the largest cells; on each axis if their units differ."""
    sides = np.outer(0.5 ** np.arange(count), lattice.sides)
    one_side = len(set(lattice.window.axis_groups())) == 1 and np.ptp(lattice.sides) == 0.0
    return sides[:, 0] if one_side else sides
