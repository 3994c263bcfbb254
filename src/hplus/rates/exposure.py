"""Exposure: how long or how often each place was observed, given as a function or an array."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import distance_transform_edt

from hplus._checks import Floats, as_floats, check_finite, check_positive
from hplus.grids import TensorGrid
from hplus.rates.statistic import Statistic

OverWindow = Callable[[Floats], ArrayLike] | ArrayLike
"""A number, a function of points, or values on a regular grid over the window's bounding box."""

MAX_UNEXPOSED = 1e-6
"""Share of the events that may lie where the exposure is 0: rounding at its edge."""

ONE_CELL = 1.8
"""Spacings within which nodes share a cell, in at most three dimensions."""


def with_exposure(statistic: Statistic, exposure: OverWindow) -> tuple[Statistic, Floats]:
    """Events, and the exposure at each node: at least 0, and above 0 somewhere and at events.

    An event at the edge of the exposed area is binned on nodes on both sides of it; those with
    exposure 0 pass their share on to the nearest one inside.
    """
    grid = statistic.grid
    if not callable(exposure) and np.ndim(exposure) == 0:
        return statistic, np.full(grid.shape, check_positive("exposure", exposure))
    values = at_nodes("exposure", exposure, grid)
    check_exposures(values)
    unexposed = values <= 0.0
    apart, nearest = distance_transform_edt(unexposed, return_indices=True)
    events = statistic.counts.sum(axis=0)
    lost = float(events[apart > ONE_CELL].sum())
    if lost > MAX_UNEXPOSED * statistic.total:
        raise ValueError(
            f"exposure must be above 0 where events were seen, got 0 around {lost:.6g} of "
            f"{statistic.total:.6g} events: correct the exposure or drop them."
        )
    if not np.any(events[unexposed]):
        return statistic, values
    counts = np.where(unexposed, 0.0, statistic.counts)
    strays = np.nonzero(unexposed & (events > 0.0))
    for part, given in zip(counts, statistic.counts, strict=True):
        np.add.at(part, tuple(axis[strays] for axis in nearest), given[strays])
    return statistic.replace(counts=counts), values


def check_exposures(values: Floats) -> None:
    """An error unless the exposure is at least 0 everywhere and above 0 somewhere."""
    if np.any(values < 0.0) or not np.any(values > 0.0):
        raise ValueError(
            f"exposure must be at least 0 everywhere and above 0 somewhere, got values from "
            f"{values.min():.6g} to {values.max():.6g}."
        )


def at_nodes(name: str, given: OverWindow, grid: TensorGrid) -> Floats:
    """A function, or an array of values on a regular grid over the box, at the nodes of `grid`."""
    return values_at(name, given, (grid.low, grid.high), grid.nodes()).reshape(grid.shape)


def values_at(
    name: str, given: OverWindow, bounds: tuple[ArrayLike, ArrayLike], points: Floats
) -> Floats:
    """A function, or an array of values on a regular grid over a box, at points, shape (n,)."""
    if callable(given):
        values = check_finite(name, as_floats(name, given(points)))
        if values.shape != (len(points),):
            raise ValueError(
                f"{name} must give one number for each of the {len(points)} points it is called "
                f"with, got shape {values.shape}."
            )
        return values
    values = check_finite(name, as_floats(name, given))
    low, high = (tuple(np.asarray(end).tolist()) for end in bounds)
    if values.ndim != len(low) or min(values.shape) < 2:
        raise ValueError(
            f"{name} must be an array with {len(low)} axes of at least 2 values, the first "
            f"and last on the edges of the window, got shape {values.shape}."
        )
    return TensorGrid(low, high, values.shape).interpolate(values, points)
