"""Polygons in the plane, alone or several together; they need shapely."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from hplus._checks import Bools, Floats, Seed, as_points, check_count, check_random_state, shown
from hplus._values import value
from hplus.windows import geometry
from hplus.windows.base import Bounds, Window

MIN_PART_SHARE = 1e-9
"""Parts of a polygon in a box that have a smaller share of its area are none."""


@value
class Planar(Window):
    """What `Polygon` and `Polygons` share: everything follows from polygons that do not overlap."""

    @abstractmethod
    def polygons(self) -> tuple[Polygon, ...]:
        """The polygons that W consists of."""

    def rings(self) -> geometry.Rings:
        """The rings around W, shape (n, 2), each with 1 for a border or -1 for a hole."""
        borders = [(polygon.outer, 1) for polygon in self.polygons()]
        return borders + [(hole, -1) for polygon in self.polygons() for hole in polygon.holes]

    @cached_property
    def turned_rings(self) -> list[Floats]:
        """The rings around W, shape (n, 2), with W on the left of their edges."""
        return [geometry.oriented(ring, role) for ring, role in self.rings()]

    def rings_near(self, low: tuple[float, float], high: tuple[float, float]) -> list[Floats]:
        """Those of `turned_rings` whose own bounds meet a box."""
        first, last = self._ring_bounds
        near = np.flatnonzero(np.all((first < high) & (last > low), axis=1))
        return [self.turned_rings[i] for i in near]

    def rings_within(self, window: Planar) -> list[Floats]:
        """The rings around the part of W in a window, with it on the left of their edges."""
        rings, others = self.turned_rings, window.turned_rings
        if len(rings) == len(others) and all(map(np.array_equal, rings, others)):
            return rings
        mine = [part._shape for part in self.polygons()]
        return [geometry.oriented(*ring) for ring in geometry.common_rings(mine, window._tree)]

    def meets_boxes(self, low: Floats, high: Floats) -> tuple[Bools, Bools]:
        """Which of the boxes between corners (n, 2) W meets, and which lie in it, shape (n,)."""
        shapely = geometry.load_shapely()
        boxes = shapely.box(*low.T, *high.T)
        return shapely.intersects(self._shape, boxes), shapely.covers(self._shape, boxes)

    def within_box(self, low: Floats, high: Floats) -> Planar | None:
        """The part of W in a box, None if there is none."""
        shapely = geometry.load_shapely()
        common = shapely.intersection(self._shape, shapely.box(*low.tolist(), *high.tolist()))
        least = MIN_PART_SHARE * float(np.prod(high - low))
        parts = [
            Polygon(
                shapely.get_coordinates(part.exterior),
                tuple(shapely.get_coordinates(hole) for hole in part.interiors),
                unit=self.unit,
            )
            for part in shapely.get_parts(common)
            if part.geom_type == "Polygon" and part.area > least
        ]
        return None if not parts else parts[0] if len(parts) == 1 else Polygons(tuple(parts))

    @property
    def axis_units(self) -> tuple[str, ...]:
        return (self.unit, self.unit)

    @property
    def volume(self) -> float:
        return float(self._shape.area)

    def bounds(self) -> Bounds:
        outer = np.concatenate([polygon.outer for polygon in self.polygons()])
        return outer.min(axis=0), outer.max(axis=0)

    def box_bounds(self) -> None:
        return None

    def contains(self, X: Any) -> Bools:
        return geometry.covers(self._shape, as_points("X", X, 2))

    def quadrature(self, order: int) -> geometry.Rule:
        return geometry.triangle_rule(self._triangles, check_count("order", order))

    def sample(self, n: int, random_state: Seed = None) -> Floats:
        rng = check_random_state(random_state)
        return geometry.triangle_sample(self._triangles, check_count("n", n, least=0), rng)

    @cached_property
    def _shape(self) -> geometry.Shape:
        return geometry.build_shape([(part.outer, part.holes) for part in self.polygons()])

    @cached_property
    def _ring_bounds(self) -> Bounds:
        """The lowest and the highest corner of each of `turned_rings`, shape (n, 2) each."""
        pairs = [(ring.min(axis=0), ring.max(axis=0)) for ring in self.turned_rings]
        low, high = np.swapaxes(pairs, 0, 1)
        return low, high

    @cached_property
    def _tree(self) -> geometry.Shape:
        """The polygons of W in a tree that finds those near another shape."""
        return geometry.load_shapely().STRtree([part._shape for part in self.polygons()])

    @cached_property
    def _triangles(self) -> Floats:
        return geometry.triangulate(self._shape)


@final
@value
class Polygon(Planar):
    """The region inside the ring `outer` and outside the rings `holes`; needs shapely.

    A ring is an array of vertices, shape (n, 2), in either direction, closed or not.
    """

    outer: Floats
    holes: tuple[Floats, ...] = ()
    unit: str = ""

    def __post_init__(self) -> None:
        outer, holes = geometry.check_ring("outer", self.outer), geometry.check_holes(self.holes)
        self._set(outer=outer, holes=holes)
        self._check()

    def polygons(self) -> tuple[Polygon, ...]:
        return (self,)


@final
@value
class Polygons(Planar):
    """Several polygons that may touch but not overlap, for example a city with islands.

    The unit is that of the parts, which must agree; `unit` is for parts that have none.

    >>> island = Polygon([[6, 0], [7, 0], [7, 1]], unit="km")
    >>> Polygons((Polygon([[0, 0], [5, 0], [5, 4], [0, 4]], unit="km"), island)).volume
    20.5
    """

    parts: tuple[Polygon, ...]
    unit: str = ""

    def __post_init__(self) -> None:
        parts = self.parts
        if not isinstance(parts, tuple | list) or not all(isinstance(p, Polygon) for p in parts):
            raise TypeError(f"parts must be a tuple of Polygons, got {shown(parts)}.")
        if not parts:
            raise ValueError("parts must contain at least one Polygon, got none.")
        units = {str(unit) for unit in (self.unit, *(part.unit for part in parts)) if unit}
        if len(units) > 1:
            raise ValueError(
                f"parts must share one unit, got {sorted(units)}: convert them to one."
            )
        unit = next((part.unit for part in parts if part.unit), self.unit)
        self._set(parts=tuple(part.replace(unit=unit) for part in parts), unit=unit)
        geometry.check_apart([part._shape for part in self.parts])
        self._check()

    def polygons(self) -> tuple[Polygon, ...]:
        return self.parts


def overlapping(whole: Window, parts: Sequence[Window]) -> Bools:
    """Has each part more than a border in common with the whole? Not for products, shape (r,)."""
    if not parts:
        return np.zeros(0, dtype=bool)
    low, high = np.stack([part.bounds() for part in parts], axis=1)
    first, last = whole.bounds()
    found: Bools = np.all((low < last) & (high > first), axis=1)
    if any(isinstance(window, Planar) for window in (whole, *parts)):
        shapes = [_shape_of(part) for part, near in zip(parts, found, strict=True) if near]
        found[found] = geometry.share_area(_shape_of(whole), np.array(shapes, dtype="O"))
    return found


def _shape_of(window: Window) -> geometry.Shape:
    if isinstance(window, Planar):
        return window._shape
    low, high = window.bounds()
    return geometry.load_shapely().box(*low.tolist(), *high.tolist())
