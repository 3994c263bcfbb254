"""From the parameters of StreamingIntensity to its grids, its learner and its density."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from hplus._checks import Floats, as_floats, check_finite, check_positive, shown
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
from hplus.streaming.methods import PMD, Method, Refit, SteppedMethod, Tree, as_method
from hplus.streaming.settings import budget_part, method_part, rule
from hplus.windows import Window, check_window

SIDES_PER_SCALE = {1: 25.0, 2: 18.0, 3: 10.0}
"""The longest side divided by the scale of kernel="auto", by dimension."""


MOST_HALF_LIVES = 1e12
"""Times in half-lives, at most: beyond that they are too coarse to weigh events by."""


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


def check_parameters(window: Any, kernel: object, method: object, budget: object) -> None:
    """Raise unless the parameters are valid and go together."""
    check_window("window", window, *SIDES_PER_SCALE)
    check_kernel(kernel)
    if isinstance(as_method(method), Tree):
        _check_for_trees("kernel", kernel, "every scale is learned")
        _check_for_trees("budget", budget, "memory is bounded by the number of cells")
    if isinstance(as_method(method), PMD) and budget != "auto":
        raise ValueError(f'budget must be "auto" for PMD, which has a grid, got {shown(budget)}.')
    if not isinstance(as_budget(budget), KOMP):
        raise ValueError(
            f'budget must be "auto" or a KOMP for a rate, got {shown(budget)}: the integral of '
            "each step is projected on the atoms."
        )
    warn_of_degrees(window)


def _check_for_trees(name: str, given: object, why: str) -> None:
    if given != "auto":
        raise ValueError(f'{name} must be "auto" for Tree, as {why}, got {shown(given)}.')


def exposure_given(exposure: Any, n: int, fresh: bool) -> Floats | None:
    """The exposure of n events: a number of shape (), one for each, or None."""
    if exposure is None:
        return None
    E = check_finite("exposure", as_floats("exposure", exposure))
    if E.shape not in ((), (n,)):
        raise ValueError(
            f"exposure must be a number or one for each of the {n} events, got shape {E.shape}."
        )
    # later events may occur at the same moment as the one before
    enough = E.sum() > 0.0 or (n > 0 and not fresh)
    if np.any(E < 0.0) or not enough:
        raise ValueError(
            f"exposure must be non-negative with a positive sum, got {shown(exposure)}."
        )
    return E


def times_given(times: Any, n: int, method: Method, forget: float | None) -> Floats | None:
    """The times of n events, or None; an error unless something is forgotten by them."""
    if times is None:
        return None
    if not isinstance(method, Tree) or forget is None:
        raise ValueError(
            f'times must be None unless method="tree" and forget is given, got {shown(times)}: '
            "nothing else depends on them."
        )
    t = check_finite("times", as_floats("times", times))
    if t.shape != (n,):
        raise ValueError(f"times must hold one for each of the {n} events, got shape {t.shape}.")
    largest = float(np.abs(t).max(initial=0.0))
    if largest > MOST_HALF_LIVES * check_positive("forget", forget):
        raise ValueError(
            f"times must be within {MOST_HALF_LIVES:g} half-lives of 0, got {largest:g}: count "
            "them from a later moment."
        )
    return t


def check_always_given(name: str, given: object, before: bool) -> None:
    """An error if an argument was given before and is not now, or the other way round."""
    if before != (given is not None):
        raise ValueError(
            f"{name} must be given in every call or in none, got {shown(given)} after calls "
            f"{'with' if before else 'without'} it."
        )


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
    method: SteppedMethod, kernel: Kernel, window: Window, budget: Budget, half_life: float
) -> Learner:
    """A learner of a rate that has seen no event."""
    parts = {**method_part(method), "half_life": half_life}
    if isinstance(method, PMD):
        return start_grid(rule(parts), kernel, window, pmd_grid(method, window))
    inside = nodes_within(STEP_RESOLUTION.grid(kernel, window), window)
    grid = REFIT_RESOLUTION.grid(kernel, window) if isinstance(method, Refit) else None
    return start(rule(budget_part(budget), parts), kernel, inside, grid)


def mean_log(z: Floats, grid: TensorGrid, window: Window) -> float:
    """The log of the mean of e^z over a window, for values z at the nodes of a grid."""
    inside = nodes_within(grid, window)
    return float(logsumexp(z[inside.which], b=inside.shares))


def density(window: Window, grid: TensorGrid, z: Floats, rule: Rule) -> GridFunction:
    """f/∫f for the values z of a stream's function at the nodes of a grid."""
    if rule.link == RECIPROCAL:
        z = -np.log(np.clip(1.0 - z, np.exp(-rule.cap), np.exp(rule.cap)))
    z = np.clip(z, -rule.cap, rule.cap)  # documented with the methods
    f = GridFunction(window, grid, np.exp(z - z.max()).reshape(grid.shape))
    return f * (1.0 / f.integral())


PlainBox = tuple[list[float], list[float]]
"""The lowest corner of a window and its highest one, as plain numbers."""


def plain_box(window: Window) -> PlainBox | None:
    """The corners of a box; None for other windows."""
    box = window.box_bounds()
    return None if box is None else (box[0].tolist(), box[1].tolist())


def in_box(box: PlainBox | None, row: Floats) -> bool:
    """Is a point (1, d) in a box? False if there is none."""
    if box is None or row.shape != (1, len(box[0])):
        return False
    return all(a <= x <= b for a, x, b in zip(box[0], row[0].tolist(), box[1], strict=True))
