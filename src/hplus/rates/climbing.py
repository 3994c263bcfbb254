"""The highest point of a rate that is constant in cells: steps to better neighbours."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from hplus._checks import Floats
from hplus.rates.lattice import CellLattice

CLIMBERS = 64
"""Points from which a higher one is looked for."""


def climbed(
    function: Callable[[Floats], Floats], X: Floats, lattice: CellLattice, depth: int
) -> tuple[Floats, float]:
    """The highest point that steps from some points X (n, d) lead to, and the value there.

    Steps are as long as the sides of cells, from half a window down to those of some depth.
    """
    steps = np.array(list(product((-0.5, 0.0, 0.5), repeat=lattice.dimension)))
    low, high = lattice.window.bounds()
    X, values = _highest(X, function(X))
    for k in range(1, depth + 1):
        around = X[:, None] + steps * lattice.cell_sides(k)
        Y = np.clip(around.reshape(-1, lattice.dimension), low, high)
        Y = Y[lattice.window.contains(Y)]
        X, values = _highest(np.concatenate([X, Y]), np.append(values, function(Y)))
    return X[0], float(values[0])


def _highest(X: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The points of the highest values, the highest first."""
    order = np.argsort(-values, kind="stable")[:CLIMBERS]
    return X[order], values[order]
