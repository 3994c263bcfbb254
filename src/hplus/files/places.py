"""Longitude and latitude as kilometres east and north, with exact areas."""

from __future__ import annotations

from typing import final

import numpy as np

from hplus._checks import Floats, check_number
from hplus._values import Value, value

EARTH_RADIUS = 6371.0072
"""Kilometres: the radius of the sphere with the area of the Earth."""

HIGHEST_PARALLEL = 70.0
"""Degrees: a map that is true to scale beyond this latitude distorts its surroundings too much."""


@final
@value
class EqualArea(Value):
    """The cylindrical equal-area map with its origin at a corner, true to scale at latitude φ₀.

    x = R cos φ₀ (λ - west), y = R (sin φ - sin south) / cos φ₀, for longitude λ and latitude φ.
    Boxes of longitude and latitude are boxes on it, and areas are those on the sphere; shapes are
    distorted far north and south of the parallel.

    >>> EqualArea(-74.0, 40.7, 40.75).forward([[-73.9, 40.8]]).round(2)
    array([[ 8.42, 11.12]])
    """

    west: float
    south: float
    parallel: float

    def __post_init__(self) -> None:
        parallel = float(
            np.clip(check_number("parallel", self.parallel), -HIGHEST_PARALLEL, HIGHEST_PARALLEL)
        )
        west, south = check_number("west", self.west), check_number("south", self.south)
        self._set(west=west, south=south, parallel=parallel)

    def forward(self, lonlat: Floats) -> Floats:
        """Kilometres east and north of the corner, (n, 2), of longitudes and latitudes (n, 2)."""
        lon, lat = np.asarray(lonlat, dtype=float).T
        # the way east, so that a map may cross 180 degrees
        east = np.where(lon == self.west + 360.0, 360.0, (lon - self.west) % 360.0)
        return self._kilometres(east, lat)

    def ring(self, lonlat: Floats, middle: float) -> Floats:
        """The same for a ring, uncut, on the side of the map's seam that is nearest to `middle`."""
        lon, lat = np.asarray(lonlat, dtype=float).T
        turns = np.round((middle - (lon.min() + lon.max()) / 2.0) / 360.0)
        return self._kilometres(lon + 360.0 * turns - self.west, lat)

    def _kilometres(self, east: Floats, lat: Floats) -> Floats:
        north = np.sin(np.radians(lat)) - np.sin(np.radians(self.south))
        return np.column_stack(
            [EARTH_RADIUS * self._scale * np.radians(east), EARTH_RADIUS * north / self._scale]
        )

    def backward(self, X: Floats) -> Floats:
        """Longitudes and latitudes (n, 2) of kilometres east and north (n, 2).

        Longitudes increase from `west`, also beyond 180: a file with 0 to 360 keeps them, and a
        cell across 180 degrees does not become one around the world.
        """
        x, y = np.asarray(X, dtype=float).T
        lon = self.west + np.degrees(x / (EARTH_RADIUS * self._scale))
        sine = np.clip(y * self._scale / EARTH_RADIUS + np.sin(np.radians(self.south)), -1.0, 1.0)
        return np.column_stack([lon, np.degrees(np.arcsin(sine))])

    @property
    def _scale(self) -> float:
        return float(np.cos(np.radians(self.parallel)))
