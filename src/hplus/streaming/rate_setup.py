"""From the parameters of StreamingIntensity to its grids, its learner and its density."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Floats, shown
from hplus.estimators.base import check_kernel
from hplus.grids import TensorGrid
from hplus.kernels import Gaussian, Kernel
from hplus.positivity.exp import GridFunction
from hplus.rates.by_region import warn_of_degrees
from hplus.streaming.budgets import KOMP, Budget, as_budget
from hplus.streaming.engine.layout import Rule
from hplus.streaming.engine.learner import Learner
from hplus.streaming.engine.nodes import grid_for, nodes_within
from hplus.streaming.engine.rules import RECIPROCAL
from hplus.streaming.engine.starts import start, start_grid
from hplus.streaming.methods import PMD, Method, Refit, as_method
from hplus.streaming.settings import budget_part, method_part, rule
from hplus.windows import Window, check_window

SIDES_PER_SCALE = {1: 25.0, 2: 18.0, 3: 10.0}
"""The longest side divided by the scale of kernel="auto", by dimension."""


class Resolution(NamedTuple):
    """Cells in the half-length of a kernel, and the largest number of nodes by dimension."""

    fineness: float
    most_nodes: dict[int, int]

    def grid(self, kernel: Kernel, window: Window) -> TensorGrid:
        return grid_for(kernel, window, self.fineness, self.most_nodes[window.dimension])


STEP_RESOLUTION = Resolution(1.3, {1: 2500, 2: 2500, 3: 2500})
"""For the integral in each step."""

RATE_RESOLUTION = Resolution(10.0, {1: 4097, 2: 40_000, 3: 60_000})
"""For the rate that predicts."""

REFIT_RESOLUTION = Resolution(8.0, {1: 2049, 2: 10_000, 3: 15_000})
"""For the problem that Refit solves, in which every Newton step visits all nodes."""


def check_parameters(window: Any, kernel: Any, method: Any, budget: Any) -> None:
    """Raise unless the parameters are valid and go together."""
    check_window("window", window, *SIDES_PER_SCALE)
    check_kernel(kernel)
    if isinstance(as_method(method), PMD) and budget != "auto":
        raise ValueError(f'budget must be "auto" for PMD, which has a grid, got {shown(budget)}.')
    if not isinstance(as_budget(budget), KOMP):
        raise ValueError(
            f'budget must be "auto" or a KOMP for a rate, got {shown(budget)}: the integral of '
            "each step is projected on the atoms."
        )
    warn_of_degrees(window)


def default_kernel(window: Window) -> Gaussian:
    """The kernel that "auto" stands for."""
    scales = window.longest_sides() / SIDES_PER_SCALE[window.dimension]
    return Gaussian(tuple(scales.tolist()))


def pmd_grid(method: PMD, window: Window) -> TensorGrid:
    """The fixed grid of PMD."""
    low, high = window.bounds()
    shape = method.grid if isinstance(method.grid, tuple) else (method.grid,) * len(low)
    if len(shape) != len(low):
        raise ValueError(f"grid must have one number for each of {len(low)} axes, got {shape}.")
    return TensorGrid(tuple(low.tolist()), tuple(high.tolist()), shape)


def rate_learner(
    method: Method, kernel: Kernel, window: Window, budget: Budget, half_life: float
) -> Learner:
    """A learner of a rate that has seen no event."""
    parts = {**method_part(method), "half_life": half_life}
    if isinstance(method, PMD):
        return start_grid(rule(parts), kernel, window, pmd_grid(method, window))
    inside = nodes_within(STEP_RESOLUTION.grid(kernel, window), window)
    grid = REFIT_RESOLUTION.grid(kernel, window) if isinstance(method, Refit) else None
    return start(rule(budget_part(budget), parts), kernel, inside, grid)


def density(window: Window, grid: TensorGrid, z: Floats, rule: Rule) -> GridFunction:
    """f/∫f for the values z of a stream's function at the nodes of a grid."""
    if rule.link == RECIPROCAL:
        z = -np.log(np.clip(1.0 - z, np.exp(-rule.cap), np.exp(rule.cap)))
    z = np.clip(z, -rule.cap, rule.cap)  # documented with the methods
    f = GridFunction(window, grid, np.exp(z - z.max()).reshape(grid.shape))
    return f * (1.0 / f.integral())
