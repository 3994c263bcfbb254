"""Windows: where events could be seen. Intervals, cycles, boxes, polygons, and their products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, reduce
from typing import Any, final

import numpy as np

import hplus._geometry as geometry
from hplus._checks import (
    Bools,
    Floats,
    as_points,
    check_count,
    check_finite,
    check_positive,
    check_random_state,
    shown,
)
from hplus._values import Value, value

Bounds = tuple[Floats, Floats]
"""The lowest and the highest corner of a box, shape (d,) each."""

SHORT_RING = 8.0
"""How many times shorter than other axes of its unit a ring is measured by itself."""


@value
class Window(Value, ABC):
    """A bounded set W of points, boundary included; `left * right` is the product of two.

    >>> city = Box((0, 0), (3, 2), unit="km") * Interval(0, 365, unit="day")
    >>> city.volume, city.volume_unit
    (2190.0, 'km² day')
    """

    @property
    @abstractmethod
    def unit(self) -> str:
        """The unit that all axes share; "" if there is none or they differ."""

    @property
    @abstractmethod
    def axis_units(self) -> tuple[str, ...]:
        """The unit of each coordinate, "" for none."""

    @property
    @abstractmethod
    def volume(self) -> float:
        """Length, area or volume of W, in `volume_unit`."""

    @abstractmethod
    def bounds(self) -> Bounds:
        """The lowest and the highest corner of the smallest box around W, shape (d,) each."""

    @abstractmethod
    def box_bounds(self) -> Bounds | None:
        """`bounds()` if W is that box, None otherwise."""

    @abstractmethod
    def contains(self, X: Any) -> Bools:
        """Does X[i] lie in W? Shape (n,); True on the boundary, False for a NaN."""

    @abstractmethod
    def quadrature(self, order: int) -> geometry.Rule:
        """Nodes (q, d) and positive weights (q,), Σ_q weights[q] = volume.

        Exact for polynomials of degree 2·order - 1: on each axis of a box, in all on a polygon.
        """

    @abstractmethod
    def sample(self, n: int, random_state: Any = None) -> Floats:
        """n independent uniform points, shape (n, d)."""

    @property
    def dimension(self) -> int:
        """The number d of coordinates of a point."""
        return len(self.axis_units)

    @property
    def volume_unit(self) -> str:
        """The unit of `volume`, such as "km² day"; "" without units."""
        return geometry.unit_words(self.axis_units)

    def axis_groups(self) -> tuple[str, ...]:
        """A name for each axis, the same for axes that can be measured with one ruler.

        Those are the axes of one unit; without units, the axes of one factor of a product.
        """
        return tuple(unit or "0" for unit in self.axis_units)

    def longest_sides(self) -> Floats:
        """For each axis the longest side of W among the axes of its group, shape (d,).

        A short ring has a ruler of its own, as the hours of a day beside those of a year.
        """
        sides, groups = np.subtract(*self.bounds()[::-1]), np.array(self.axis_groups())
        longest = np.array([np.max(sides[groups == group]) for group in groups])
        rings = [j for j in self.closed_axes() if sides[j] < longest[j] / SHORT_RING]
        longest[rings] = sides[rings]
        return longest

    def closed_axes(self) -> tuple[int, ...]:
        """The axes whose end is their beginning, such as the hours of a week."""
        return ()

    def require(self, name: str, X: Any) -> Floats:
        """X as points, shape (n, d), refused if some are not finite or lie outside W."""
        X = check_finite(name, as_points(name, X, self.dimension))
        outside = np.flatnonzero(~self.contains(X))
        if len(outside):
            raise ValueError(
                f"{name} must lie in the window, got {len(outside)} of {len(X)} points outside "
                f"{shown(self)}, the first in row {outside[0]}: drop them or widen the window."
            )
        return X

    def __mul__(self, other: Window) -> Product:
        return Product(self, other) if isinstance(other, Window) else NotImplemented


@value
class Cuboid(Window):
    """What `Interval` and `Box` share: all follows from the two corners."""

    @property
    def axis_units(self) -> tuple[str, ...]:
        return (self.unit,) * len(self.bounds()[0])

    @property
    def volume(self) -> float:
        low, high = self.bounds()
        return float(np.prod(high - low))

    def box_bounds(self) -> Bounds:
        return self.bounds()

    def contains(self, X: Any) -> Bools:
        X = as_points("X", X, self.dimension)
        low, high = self.bounds()
        return np.all((low <= X) & (high >= X), axis=1)

    def quadrature(self, order: int) -> geometry.Rule:
        s, w = geometry.gauss(check_count("order", order))
        low, high = self.bounds()
        geometry.check_nodes(len(w) ** len(low), len(low))
        # ∫_a^b f = (b - a) Σ_q w_q f(a + (b - a) s_q) on every axis
        axes = [(a + side * s, side * w) for a, side in zip(low, high - low, strict=True)]
        return reduce(geometry.cross, axes)

    def sample(self, n: int, random_state: Any = None) -> Floats:
        rng = check_random_state(random_state)
        low, high = self.bounds()
        u = rng.random_sample((check_count("n", n, least=0), len(low)))
        # u <= 1 - 2⁻⁵³, so that rounding cannot carry a point past high
        return low + (high - low) * u


@final
@value
class Interval(Cuboid):
    """The points low <= x <= high of a line."""

    low: float
    high: float
    unit: str = ""

    def __post_init__(self) -> None:
        low, high = geometry.check_edges(self.low, self.high, axes=0)
        self._set(low=float(low), high=float(high))
        _check_window(self)

    def bounds(self) -> Bounds:
        return np.array([self.low]), np.array([self.high])


@final
@value
class Cycle(Cuboid):
    """The points 0 <= x <= length of a circle, whose end is its beginning, as the hours of a week.

    Both ends are neighbours to `Intensity` and `Density` of model "exp" and to `EdgeCorrectedKDE`;
    to all else it is the interval. A part that goes past the end is two intervals.

    >>> (Box((0, 0), (3, 2), unit="km") * Cycle(168, unit="h")).volume_unit
    'km² h'
    """

    length: float
    unit: str = ""

    def __post_init__(self) -> None:
        self._set(length=check_positive("length", self.length))
        _check_window(self)

    def bounds(self) -> Bounds:
        return np.zeros(1), np.array([self.length])

    def closed_axes(self) -> tuple[int, ...]:
        return (0,)


@final
@value
class Box(Cuboid):
    """The points with low[j] <= x[j] <= high[j] on every axis j; one unit for all axes."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    unit: str = ""

    def __post_init__(self) -> None:
        low, high = geometry.check_edges(self.low, self.high, axes=1)
        self._set(low=tuple(low.tolist()), high=tuple(high.tolist()))
        _check_window(self)

    def bounds(self) -> Bounds:
        return np.array(self.low), np.array(self.high)


@value
class Planar(Window):
    """What `Polygon` and `Polygons` share: all follows from polygons without a common inside."""

    @abstractmethod
    def polygons(self) -> tuple[Polygon, ...]:
        """The polygons that W is made of."""

    def rings(self) -> geometry.Rings:
        """The rings around W, shape (n, 2), each with 1 for a border or -1 for a hole."""
        borders = [(polygon.outer, 1) for polygon in self.polygons()]
        return borders + [(hole, -1) for polygon in self.polygons() for hole in polygon.holes]

    def common_rings(self, other: Planar) -> geometry.Rings:
        """The rings around what lies in both windows."""
        mine, others = ([part._shape for part in w.polygons()] for w in (self, other))
        return self.rings() if self == other else geometry.common_rings(mine, others)

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

    def sample(self, n: int, random_state: Any = None) -> Floats:
        rng = check_random_state(random_state)
        return geometry.triangle_sample(self._triangles, check_count("n", n, least=0), rng)

    @cached_property
    def _shape(self) -> Any:
        return geometry.build_shape([(part.outer, part.holes) for part in self.polygons()])

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
        _check_window(self)

    def polygons(self) -> tuple[Polygon, ...]:
        return (self,)


@final
@value
class Polygons(Planar):
    """Several polygons that may touch and do not overlap, such as a city with islands.

    Their unit is that of the parts, which must agree, or the one given for parts without any.

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
            raise ValueError("parts must hold at least one Polygon, got none.")
        units = {str(unit) for unit in (self.unit, *(part.unit for part in parts)) if unit}
        if len(units) > 1:
            raise ValueError(f"parts must share one unit, got {sorted(units)}: convert them.")
        unit = next((part.unit for part in parts if part.unit), self.unit)
        self._set(parts=tuple(part.replace(unit=unit) for part in parts), unit=unit)
        geometry.check_apart([part._shape for part in self.parts])
        _check_window(self)

    def polygons(self) -> tuple[Polygon, ...]:
        return self.parts


@final
@value
class Product(Window):
    """The points (x, z) with x in `left` and z in `right`, such as a city times a year."""

    left: Window
    right: Window

    def __post_init__(self) -> None:
        for side in (self.left, self.right):
            if not isinstance(side, Window):
                raise TypeError(f"both sides of a Product must be windows, got {side!r}.")
        _check_window(self)

    @property
    def unit(self) -> str:
        return self.left.unit if self.left.unit == self.right.unit else ""

    @property
    def axis_units(self) -> tuple[str, ...]:
        return self.left.axis_units + self.right.axis_units

    @property
    def volume(self) -> float:
        return self.left.volume * self.right.volume

    def axis_groups(self) -> tuple[str, ...]:
        left, right = self.left.axis_groups(), self.right.axis_groups()
        shift = 1 + max((int(group) for group in left if group.isdigit()), default=-1)
        moved = (str(int(group) + shift) if group.isdigit() else group for group in right)
        return left + tuple(moved)

    def closed_axes(self) -> tuple[int, ...]:
        shift = self.left.dimension
        return self.left.closed_axes() + tuple(shift + j for j in self.right.closed_axes())

    def bounds(self) -> Bounds:
        left, right = self.left.bounds(), self.right.bounds()
        return np.append(left[0], right[0]), np.append(left[1], right[1])

    def box_bounds(self) -> Bounds | None:
        boxes = all(side.box_bounds() is not None for side in (self.left, self.right))
        return self.bounds() if boxes else None

    def contains(self, X: Any) -> Bools:
        X = as_points("X", X, self.dimension)
        split = self.left.dimension
        return self.left.contains(X[:, :split]) & self.right.contains(X[:, split:])

    def quadrature(self, order: int) -> geometry.Rule:
        return geometry.cross(self.left.quadrature(order), self.right.quadrature(order))

    def sample(self, n: int, random_state: Any = None) -> Floats:
        rng = check_random_state(random_state)
        return np.hstack([self.left.sample(n, rng), self.right.sample(n, rng)])

    def __repr__(self) -> str:
        right = f"({self.right})" if isinstance(self.right, Product) else f"{self.right}"
        return f"{self.left} * {right}"


WINDOWS: tuple[type[Window], ...] = (Interval, Cycle, Box, Polygon, Polygons, Product)
"""Every window class."""


def _check_window(window: Window) -> None:
    if not isinstance(window.unit, str):
        raise TypeError(f"unit must be text such as 'km', got {window.unit!r}.")
    with np.errstate(over="ignore", under="ignore"):
        volume = window.volume
    if not 0.0 < volume < np.inf:
        raise ValueError(
            f"the volume of {shown(window)} must be positive and finite, got {volume}: rescale "
            f"the axes."
        )
