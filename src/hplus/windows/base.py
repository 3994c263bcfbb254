"""What every window has, and the product of two windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np

from hplus._checks import Bools, Floats, Seed, as_points, check_finite, check_random_state, shown
from hplus._values import Value, value
from hplus.windows.geometry import Rule, cross, product_of_units

Bounds = tuple[Floats, Floats]
"""The lowest and the highest corner of a box, shape (d,) each."""

SHORT_CYCLE_RATIO = 8.0
"""A cycle this many times shorter than the longest axis of its unit is measured on its own."""


@value
class Window(Value, ABC):
    """A bounded set W of points, boundary included; `left * right` is the product of two.

    >>> from hplus.windows import Box, Interval
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
    def quadrature(self, order: int) -> Rule:
        """Nodes (q, d) and positive weights (q,), Σ_q weights[q] = volume.

        Exact for polynomials of degree 2·order - 1: per axis on a box, in total on a polygon.
        """

    @abstractmethod
    def sample(self, n: int, random_state: Seed = None) -> Floats:
        """n independent uniform points, shape (n, d)."""

    @property
    def dimension(self) -> int:
        """The number d of coordinates of a point."""
        return len(self.axis_units)

    @property
    def volume_unit(self) -> str:
        """The unit of `volume`, for example "km² day"; "" without units."""
        return product_of_units(self.axis_units)

    def axis_groups(self) -> tuple[str, ...]:
        """A label for each axis, equal for axes whose lengths can be compared.

        These are the axes with the same unit; without units, the axes of one factor of a product.
        """
        return tuple(unit or "0" for unit in self.axis_units)

    def longest_sides(self) -> Floats:
        """For each axis, the longest side of W among the axes of its group, shape (d,).

        A short cycle has its own length instead, like the hours of a day next to those of a year.
        """
        sides, groups = np.subtract(*self.bounds()[::-1]), np.array(self.axis_groups())
        longest = np.array([np.max(sides[groups == group]) for group in groups])
        short = [j for j in self.closed_axes() if sides[j] < longest[j] / SHORT_CYCLE_RATIO]
        longest[short] = sides[short]
        return longest

    def closed_axes(self) -> tuple[int, ...]:
        """The axes that wrap around: their end is their beginning."""
        return ()

    def require(self, name: str, X: Any) -> Floats:
        """X as points, shape (n, d); an error unless all are finite and lie in W."""
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

    def _check(self) -> None:
        """An error unless the unit is text and the volume positive and finite."""
        if not isinstance(self.unit, str):
            raise TypeError(f"unit must be a string, for example 'km', got {self.unit!r}.")
        with np.errstate(over="ignore", under="ignore"):
            volume = self.volume
        if not 0.0 < volume < np.inf:
            raise ValueError(
                f"the volume of {shown(self)} must be positive and finite, got {volume}: rescale "
                f"the axes."
            )


@final
@value
class Product(Window):
    """The points (x, z) with x in `left` and z in `right`, for example a city times a year."""

    left: Window
    right: Window

    def __post_init__(self) -> None:
        check_window("left", self.left)
        check_window("right", self.right)
        self._check()

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

    def quadrature(self, order: int) -> Rule:
        return cross(self.left.quadrature(order), self.right.quadrature(order))

    def sample(self, n: int, random_state: Seed = None) -> Floats:
        rng = check_random_state(random_state)
        return np.hstack([self.left.sample(n, rng), self.right.sample(n, rng)])

    def __repr__(self) -> str:
        right = f"({self.right})" if isinstance(self.right, Product) else f"{self.right}"
        return f"{self.left} * {right}"


def check_window(name: str, window: object, *axes: int) -> None:
    """An error unless `window` is a Window, with one of these numbers of axes if there are any."""
    if not isinstance(window, Window):
        raise TypeError(f"{name} must be a Window such as Interval(0, 1), got {shown(window)}.")
    if not np.isfinite(window.volume):
        raise ValueError(
            f"{name} must have finite ends, got {shown(window)}: only Density.probability takes "
            "infinite ones."
        )
    if axes and window.dimension not in axes:
        *others, last = map(str, axes)
        rule = f"{', '.join(others)} or {last}" if others else last
        plural = "axis" if axes == (1,) else "axes"
        raise ValueError(f"{name} must have {rule} {plural}, got {window.dimension}.")
