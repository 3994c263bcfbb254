"""What a user gives over a window, as a function or an array, and what is asked of its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import distance_transform_edt

from hplus._checks import Floats, as_floats, check_finite, check_positive, shown
from hplus.grids import TensorGrid
from hplus.rates.statistic import Statistic
from hplus.windows import Window

UNSEEN = 1e-6
"""Share of the events that may lie where nobody watched: rounding at the edge of an exposure."""

ONE_CELL = 1.8
"""Distance of nodes, in spacings, of one cell of at most three dimensions."""


class Covariates(NamedTuple):
    """Columns (p, *nodes) of mean 0 and size 1 under the exposure, their names and own sizes."""

    columns: Floats
    names: tuple[str, ...]
    sizes: Floats

    def by_name(self, numbers: Floats) -> dict[str, float]:
        """Numbers for each column, per unit of the covariate."""
        return dict(zip(self.names, (numbers / self.sizes).tolist(), strict=True))


def watched_events(exposure: Any, statistic: Statistic) -> tuple[Statistic, Floats]:
    """Events, and how long each node was watched, refused if negative, 0 throughout or at events.

    An event at the edge of what was watched stands for nodes on both sides: those within count.
    """
    grid = statistic.grid
    if np.ndim(exposure) == 0 and not callable(exposure):
        return statistic, np.full(grid.shape, check_positive("exposure", exposure))
    watched = at_nodes("exposure", exposure, grid)
    if np.any(watched < 0.0) or not np.any(watched > 0.0):
        raise ValueError(
            f"exposure must be at least 0 everywhere and above 0 somewhere, got values from "
            f"{watched.min():.6g} to {watched.max():.6g}."
        )
    unwatched = watched <= 0.0
    apart, nearest = distance_transform_edt(unwatched, return_indices=True)
    events = statistic.counts.sum(axis=0)
    unseen = float(events[apart > ONE_CELL].sum())
    if unseen > UNSEEN * statistic.total:
        raise ValueError(
            f"exposure must be above 0 where events were seen, got 0 around {unseen:.6g} of "
            f"{statistic.total:.6g} events: correct the exposure or drop them."
        )
    if not np.any(events[unwatched]):
        return statistic, watched
    counts = np.where(unwatched, 0.0, statistic.counts)
    strays = np.nonzero(unwatched & (events > 0.0))
    for part, given in zip(counts, statistic.counts, strict=True):
        np.add.at(part, tuple(axis[strays] for axis in nearest), given[strays])
    return statistic.replace(counts=counts), watched


def covariates_at_nodes(given: Any, statistic: Statistic, watched: Floats) -> Covariates:
    """One covariate, or several by name, refused if one is constant."""
    grid = statistic.grid
    named = given if isinstance(given, dict) else {"covariate": given}
    if not named:
        raise ValueError("covariates must hold at least one, got {}: leave them out instead.")
    mass = grid.integrals(statistic.window) * watched
    mass = mass / mass.sum()
    columns, sizes = [], []
    for name, one in named.items():
        values = at_nodes(f"covariate {name!r}", one, grid)
        values = values - np.sum(mass * values)
        size = float(np.sqrt(np.sum(mass * values**2)))
        if not size > 1e-12 * (1.0 + np.abs(values).max()):
            raise ValueError(f"covariate {name!r} must vary over the window, got a constant.")
        columns.append(values / size)
        sizes.append(size)
    return Covariates(np.stack(columns), tuple(named), np.array(sizes))


def at_nodes(name: str, given: Any, grid: TensorGrid) -> Floats:
    """A function, or an array of values on a regular grid over the box, at the nodes of `grid`."""
    return values_at(name, given, (grid.low, grid.high), grid.nodes()).reshape(grid.shape)


def values_at(name: str, given: Any, bounds: tuple[Any, Any], points: Floats) -> Floats:
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


def check_window(window: Any) -> None:
    """Refuse what is no window."""
    if not isinstance(window, Window):
        raise TypeError(
            f"window must be a Window such as Interval(0, 24), got {shown(window)}: say where "
            "events could have been seen."
        )


def over_regions(window: Window, regions: Any, measure: Callable[[Window], Any]) -> Any:
    """What is measured in one region, or an array of that, one row for each of several."""
    if not isinstance(regions, Iterable):
        return measure(_region(window, regions))
    return np.array([measure(_region(window, region)) for region in regions])


def rate_unit(window: Window) -> str:
    """The unit of a rate on the window, such as "1/km²"; "" if the window has none."""
    unit = window.volume_unit
    return f"1/({unit})" if " " in unit else f"1/{unit}" if unit else ""


def _region(window: Window, region: Any) -> Window:
    if not isinstance(region, Window) or region.dimension != window.dimension:
        raise ValueError(
            f"regions must be windows with {window.dimension} axes such as {shown(window)}, got "
            f"{shown(region)}: write Interval(low, high) or Box(lows, highs)."
        )
    _check_units(window, region)
    _check_cycles(window, region)
    return region


def _check_units(window: Window, region: Window) -> None:
    """Refuse a region that names other units than the window does."""
    pairs = zip(window.axis_units, region.axis_units, strict=True)
    if any(mine and other and mine != other for mine, other in pairs):
        raise ValueError(
            f"regions must be in the units of the window, {shown(window.axis_units)}, got "
            f"{shown(region.axis_units)}: convert them first."
        )


def _check_cycles(window: Window, region: Window) -> None:
    """Refuse a region that goes round the end of a cycle."""
    (low, high), (first, last) = window.bounds(), region.bounds()
    for axis in window.closed_axes():
        slack = 1e-9 * (high[axis] - low[axis])
        if first[axis] < low[axis] - slack or last[axis] > high[axis] + slack:
            raise ValueError(
                f"regions must lie between {low[axis]:g} and {high[axis]:g} on the axis of a "
                f"cycle, got {first[axis]:g} to {last[axis]:g}: ask for the parts before and after "
                "its end, and add them."
            )
