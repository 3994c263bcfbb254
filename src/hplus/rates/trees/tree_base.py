"""TreeBase: a smooth rate that trees are relative to, and the density of the base measure."""

from __future__ import annotations

from dataclasses import dataclass

from hplus._checks import Floats
from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.rates.grid_rate import GridRate
from hplus.rates.statistic import Statistic
from hplus.rates.trees.planting import BaseDensity, uniform_base


@dataclass(frozen=True)
class TreeBase:
    """A smooth rate that trees are relative to, with its uncertainty if that is known."""

    function: GridFunction
    uncertain: GridRate | None = None

    def on_grid(self, grid: TensorGrid) -> TreeBase:
        """The same rate at the nodes of a finer grid."""
        f = self.function
        values = f.grid.interpolate(f.values, grid.nodes()).reshape(grid.shape)
        return TreeBase(GridFunction(f.window, grid, values), self.uncertain)


def density_of(statistic: Statistic, base: TreeBase | None, exposure: Floats) -> BaseDensity:
    """The density of the base measure: the base times the exposure."""
    if base is None:
        return uniform_base(statistic.lattice)
    values = base.function.values
    return BaseDensity(base.function.grid, values * exposure, values if exposure.ndim else None)
