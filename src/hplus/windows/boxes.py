"""Intervals, cycles and boxes: windows that two corners describe."""

from __future__ import annotations

from functools import reduce
from typing import Any, final

import numpy as np

from hplus._checks import (
    Bools,
    Floats,
    Seed,
    as_points,
    check_count,
    check_positive,
    check_random_state,
)
from hplus._values import value
from hplus.windows.base import Bounds, Window, check_window
from hplus.windows.geometry import Rule, check_edges, check_nodes, cross, gauss


@value
class Cuboid(Window):
    """What intervals and boxes share: everything follows from the two corners."""

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
        inside = np.ones(len(X), dtype=bool)
        for x, low, high in zip(X.T, *self.bounds(), strict=True):
            inside &= (low <= x) & (x <= high)
        return inside

    def quadrature(self, order: int) -> Rule:
        s, w = gauss(check_count("order", order))
        check_window("window", self)
        low, high = self.bounds()
        check_nodes(len(w) ** len(low), len(low))
        # ∫_a^b f = (b - a) Σ_q w_q f(a + (b - a) s_q) on every axis
        axes = [(a + side * s, side * w) for a, side in zip(low, high - low, strict=True)]
        return reduce(cross, axes)

    def sample(self, n: int, random_state: Seed = None) -> Floats:
        rng = check_random_state(random_state)
        check_window("window", self)
        low, high = self.bounds()
        u = rng.random_sample((check_count("n", n, least=0), len(low)))
        # u <= 1 - 2⁻⁵³, so rounding cannot push a point past high
        return low + (high - low) * u


@final
@value
class Interval(Cuboid):
    """The points low <= x <= high on a line.

    As a region of `Density.probability`, either end may be infinite; a window has finite ends.
    """

    low: float
    high: float
    unit: str = ""

    def __post_init__(self) -> None:
        low, high = check_edges(self.low, self.high, axes=0, infinite=True)
        self._set(low=float(low), high=float(high))
        if np.isfinite([low, high]).all():
            self._check()

    def bounds(self) -> Bounds:
        return np.array([self.low]), np.array([self.high])


@final
@value
class Cycle(Cuboid):
    """The points 0 <= x <= length of a circle, like the hours of a week: the end is the beginning.

    `Intensity` and `Density`, except with model "sos" or "square", and kernel density estimates
    treat both ends as neighbours; everything else treats it as an interval. A part across the end
    is two intervals.

    >>> (Box((0, 0), (3, 2), unit="km") * Cycle(168, unit="h")).volume_unit
    'km² h'
    """

    length: float
    unit: str = ""

    def __post_init__(self) -> None:
        self._set(length=check_positive("length", self.length))
        self._check()

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
        low, high = check_edges(self.low, self.high, axes=1)
        self._set(low=tuple(low.tolist()), high=tuple(high.tolist()))
        self._check()

    def bounds(self) -> Bounds:
        return np.array(self.low), np.array(self.high)
