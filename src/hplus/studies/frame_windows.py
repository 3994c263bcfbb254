"""Windows in a file's own coordinates: boxes and outlines, also of longitude and latitude."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hplus._checks import Floats
from hplus.files.feeds import TableError
from hplus.files.outlines import Outline, Rings
from hplus.files.places import EqualArea
from hplus.windows import Box, Cycle, Interval, Polygon, Polygons, Window

LONGITUDES, LATITUDES = ("lon", "lng", "long", "longitude"), ("lat", "latitude")


def polygon_window(
    polygons: Sequence[Rings], place: EqualArea | None, middle: float, unit: str
) -> Window:
    """Polygons as a window, on a map around a middle longitude if there is one."""
    parts = []
    for rings in polygons:
        outer, *holes = rings if place is None else [place.ring(ring, middle) for ring in rings]
        parts.append(Polygon(outer, tuple(holes), unit=unit))
    return parts[0] if len(parts) == 1 else Polygons(tuple(parts))


def is_lonlat(columns: Sequence[str]) -> bool:
    """Are two columns called longitude and latitude?"""
    names = [name.lower() for name in columns]
    return len(names) == 2 and any(
        a in LONGITUDES and b in LATITUDES for a, b in (names, names[::-1])
    )


def lonlat_map(low: Floats, high: Floats) -> EqualArea:
    """The map of a box of longitude and latitude."""
    for name, a, b, most in (
        ("longitude", low[0], high[0], 360.0),
        ("latitude", low[1], high[1], 90.0),
    ):
        if not -most <= a < b <= most:
            raise TableError(
                f"the {name} of a window must increase, between {-most:g} and {most:g}, got {a:g} "
                f"to {b:g}: are longitude and latitude swapped?"
            )
    return EqualArea(float(low[0]), float(low[1]), float(low[1] + high[1]) / 2.0)


def box_region(low: Floats, high: Floats, place: EqualArea | None, unit: str) -> Window:
    """A box in the file's own coordinates as a window; around the whole world it is a ring."""
    if place is not None:
        (low, high), unit = place.forward(np.array([low, high])), _map_unit(unit)
        if high[0] == place.forward(np.array([[place.west + 360.0, 0.0]]))[0, 0]:
            return Cycle(float(high[0]), unit=unit) * Interval(
                float(low[1]), float(high[1]), unit=unit
            )
    if len(low) == 1:
        return Interval(float(low[0]), float(high[0]), unit=unit)
    return Box(tuple(low.tolist()), tuple(high.tolist()), unit=unit)


def outlines_region(
    outlines: Sequence[Outline], lonlat: bool, unit: str
) -> tuple[Window, EqualArea | None]:
    """All polygons of a file as one window, and the map that it is on."""
    polygons = [rings for outline in outlines for rings in outline.polygons]
    place, middle = None, 0.0
    if lonlat:
        corners = np.concatenate([rings[0] for rings in polygons])
        low, high = corners.min(axis=0), corners.max(axis=0)
        place, middle = lonlat_map(low, high), float(low[0] + high[0]) / 2.0
    return polygon_window(polygons, place, middle, _map_unit(unit) if lonlat else unit), place


def _map_unit(unit: str) -> str:
    """Kilometres: no other unit can be asked for."""
    if unit not in ("", "km"):
        raise ValueError(
            f"unit must be left out for longitude and latitude, which are converted to km, got "
            f"{unit!r}."
        )
    return "km"
