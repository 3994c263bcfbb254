"""A rate summed over axes: by place and along the last axis."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from hplus._values import Value, value
from hplus.grids import TensorGrid
from hplus.plotting.maps import place_of
from hplus.positivity.exp import GridFunction
from hplus.rates.separable import SeparableRate
from hplus.windows import Interval, Window

NODES = 257
"""Nodes on an axis of a map that is the product of two curves."""


@final
@value
class Margins(Value):
    """A rate by place, on two axes, and along the last axis; None for what a window has not.

    Of three axes there are both; on a line there is no place, in the plane no line.
    """

    place: GridFunction | None
    line: GridFunction | None

    @property
    def main(self) -> GridFunction:
        """By place, or on a line along it."""
        found = self.line if self.place is None else self.place
        assert found is not None
        return found


def margins(model: Any) -> Margins:
    """What the figures of a fitted rate show, per unit of exposure."""
    rate = model.rate_
    if isinstance(rate, SeparableRate):
        return _separable(rate)
    f = rate.on_grid
    d = f.grid.dimension
    return Margins(None if d == 1 else by_place(f), None if d == 2 else by_last(f))


def _separable(rate: SeparableRate) -> Margins:
    """Place and time as they were learned; a place on a line and a time make one map."""
    place, time = rate.place.on_grid, rate.time.on_grid
    if place.grid.dimension == 2:
        return Margins(place * (rate.integral() / rate.events), time)
    low, high = rate.window.bounds()
    grid = TensorGrid(tuple(low), tuple(high), (NODES, NODES))
    factors = (f(axis[:, None]) for f, axis in zip((place, time), grid.axes, strict=True))
    values = np.multiply.outer(*factors) / rate.events
    return Margins(GridFunction(rate.window, grid, values), None)


def last_interval(window: Window) -> Interval:
    """The last axis of a window."""
    low, high = window.bounds()
    return Interval(float(low[-1]), float(high[-1]), unit=window.axis_units[-1])


def by_place(f: GridFunction, part: Interval | None = None) -> GridFunction:
    """∫f over the last of three axes, or over a part of it; a rate of two axes as it is."""
    if f.grid.dimension == 2:
        return f
    along = _last(f.grid).integrals(last_interval(f.window) if part is None else part)
    return GridFunction(place_of(f.window), _first(f.grid), f.values @ along)


def by_last(f: GridFunction) -> GridFunction:
    """∫f over the first two of three axes, a rate along the last; a rate of one axis as it is."""
    if f.grid.dimension == 1:
        return f
    hats = _first(f.grid).integrals(place_of(f.window))
    return GridFunction(last_interval(f.window), _last(f.grid), np.tensordot(hats, f.values, 2))


def _first(grid: TensorGrid) -> TensorGrid:
    return TensorGrid(grid.low[:2], grid.high[:2], grid.shape[:2])


def _last(grid: TensorGrid) -> TensorGrid:
    return TensorGrid(grid.low[-1:], grid.high[-1:], grid.shape[-1:])
