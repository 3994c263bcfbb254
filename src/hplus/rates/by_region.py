"""Numbers by region of a window, the unit of a rate on it, and their checks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from hplus._checks import Floats, shown
from hplus.windows import Window, check_window

DEGREES = ("deg", "degree", "degrees", "°")


def as_regions(window: Window, regions: Any) -> list[Window]:
    """One region or several as a list; an error unless they can be parts of the window."""
    listed = list(regions) if isinstance(regions, Iterable) else [regions]
    for region in listed:
        _check_region(window, region)
    if window.closed_axes():
        for region in listed:
            _check_cycles(window, region)
    return listed


def one_or_all(regions: Any, numbers: Floats) -> Any:
    """Numbers (r,) by region as they were requested: a float for one region, or all of them."""
    return numbers if isinstance(regions, Iterable) else float(numbers[0])


def rate_unit(window: Window) -> str:
    """The unit of a rate on the window, such as "1/km²"; "" if the window has none."""
    unit = window.volume_unit
    return f"1/({unit})" if " " in unit else f"1/{unit}" if unit else ""


def _check_region(window: Window, region: Any) -> None:
    if not isinstance(region, Window) or region.dimension != window.dimension:
        raise ValueError(
            f"regions must be windows with {window.dimension} axes such as {shown(window)}, got "
            f"{shown(region)}: write Interval(low, high) or Box(lows, highs)."
        )
    check_window("regions", region)
    _check_units(window, region)


def _check_units(window: Window, region: Window) -> None:
    """Raise if a region has other units than the window."""
    pairs = zip(window.axis_units, region.axis_units, strict=True)
    if any(mine and other and mine != other for mine, other in pairs):
        raise ValueError(
            f"regions must be in the units of the window, {shown(window.axis_units)}, got "
            f"{shown(region.axis_units)}: convert them first."
        )


def _check_cycles(window: Window, region: Window) -> None:
    """Raise if a region extends beyond the end of a cycle."""
    (low, high), (first, last) = window.bounds(), region.bounds()
    for axis in window.closed_axes():
        slack = 1e-9 * (high[axis] - low[axis])
        if first[axis] < low[axis] - slack or last[axis] > high[axis] + slack:
            raise ValueError(
                f"regions must lie between {low[axis]:g} and {high[axis]:g} on the axis of a "
                f"cycle, got {first[axis]:g} to {last[axis]:g}: ask for the parts before and after "
                "its end, and add them."
            )


def warn_of_degrees(window: Window) -> None:
    """Warn if the axes look like longitude and latitude: degrees are not distances."""
    units = [unit.lower() for unit in window.axis_units]
    low, high = window.bounds()
    bare = window.dimension >= 2 and units[:2] == ["", ""]
    lonlat = np.all(np.abs([low[:2], high[:2]]) <= [180.0, 90.0])
    apart = np.min(np.abs([low[:2], high[:2]])) > 4.0 * np.max((high - low)[:2]) if bare else False
    world = bare and np.allclose([*low[:2], *high[:2]], [-180, -90, 180, 90])
    named = sum(unit in DEGREES for unit in units) >= 2
    if named or (bare and lonlat and (apart or world)):
        warnings.warn(
            "window looks like degrees of longitude and latitude, which are not distances: a "
            "degree of longitude shrinks towards the poles. Scale x to (longitude - center) * "
            "111.32 * cos(latitude) km and y to (latitude - center) * 110.57 km first, or give "
            "the window another unit.",
            UserWarning,
            stacklevel=4,
        )
