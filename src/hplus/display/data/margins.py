"""A rate summed over axes, by place and along the last axis, and how concentrated it is."""

from __future__ import annotations

from itertools import pairwise
from typing import final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.display.data.framing import PlotData, centres, last_axis, place_of
from hplus.display.data.gridded import gridded
from hplus.display.data.rate_data import CurveData, MapData, curve_data, raster
from hplus.estimators.intensity import Intensity
from hplus.estimators.separable import SeparableIntensity
from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.rates.fitted import FittedRate
from hplus.rates.separable import SeparableRate
from hplus.rates.stacked_rate import StackedRate
from hplus.rates.trees.tree_rate import TreeRate
from hplus.windows import Interval, Window

PRODUCT_NODES = 257
"""Nodes on an axis of a map that is the product of two curves."""

MAP_PIXELS, LEAST_SIDE = 320, 0.3
"""Pixels on the longer side of a map, and the share of them on the other side at least."""

SLABS = 24
"""Parts of the last of three axes whose counts tell how uncertain the rate along it is."""

CURVE_POINTS = 400
"""Points of a curve."""

BAND_LEVEL = 0.9
"""Probability that a band holds the rate."""


@final
@value
class Margins(Value):
    """A rate by place, on two axes, and along the last axis; None for one that does not exist.

    A rate on three axes has both; on a line there is no place, in the plane no line. `fine` is the
    rate by place, but for a factor, where trees know it more finely than the grid of `place` does.
    """

    place: GridFunction | None
    line: GridFunction | None
    fine: TreeRate | StackedRate | None = None

    @property
    def finest(self) -> GridFunction | TreeRate | StackedRate | None:
        """The rate by place at its resolution, but for a factor."""
        return self.place if self.fine is None else self.fine

    @property
    def main(self) -> GridFunction:
        """By place or, on a line, along it."""
        found = self.line if self.place is None else self.place
        assert found is not None
        return found


def margins(model: Intensity | SeparableIntensity) -> Margins:
    """A fitted rate summed over axes, as figures show it, per unit of exposure."""
    rate = model.rate_
    if isinstance(rate, SeparableRate):
        return _separable(rate)
    f = gridded(rate, model.window)
    d = f.grid.dimension
    fine = rate if d == 2 and isinstance(rate, TreeRate | StackedRate) else None
    return Margins(None if d == 1 else by_place(f), None if d == 2 else by_last(f), fine)


def _separable(rate: SeparableRate) -> Margins:
    """Place and time as they were fitted; a place on a line and a time make one map."""
    place, time = gridded(rate.place, rate.window.left), gridded(rate.time, rate.window.right)
    if place.grid.dimension == 2:
        fine = rate.place if isinstance(rate.place, TreeRate | StackedRate) else None
        return Margins(place * (rate.integral() / rate.events), time, fine)
    low, high = rate.window.bounds()
    grid = TensorGrid(tuple(low), tuple(high), (PRODUCT_NODES, PRODUCT_NODES))
    factors = (f(axis[:, None]) for f, axis in zip((place, time), grid.axes, strict=True))
    values = np.multiply.outer(*factors) / rate.events
    if rate.by_time is not None:
        values = values * rate.by_time.at(grid.nodes()).reshape(grid.shape)
    return Margins(GridFunction(rate.window, grid, values), None)


def by_place(f: GridFunction, part: Interval | None = None) -> GridFunction:
    """∫f over the last of three axes, or over a part of it; a rate of two axes unchanged."""
    if f.grid.dimension == 2:
        return f
    along = _axes(f.grid, slice(2, 3)).integrals(last_axis(f.window) if part is None else part)
    return GridFunction(place_of(f.window), _axes(f.grid, slice(2)), f.values @ along)


def by_last(f: GridFunction) -> GridFunction:
    """∫f over the first two of three axes, a rate along the last; a rate of one axis unchanged."""
    if f.grid.dimension == 1:
        return f
    hats = _axes(f.grid, slice(2)).integrals(place_of(f.window))
    values = np.tensordot(hats, f.values, 2)
    return GridFunction(last_axis(f.window), _axes(f.grid, slice(2, 3)), values)


def _axes(grid: TensorGrid, chosen: slice) -> TensorGrid:
    return TensorGrid(grid.low[chosen], grid.high[chosen], grid.shape[chosen])


def place_map(f: GridFunction, factor: float = 1.0, pixels: int = MAP_PIXELS) -> MapData:
    """A rate of two axes, times a factor, in pixels."""
    grid = raster(f.window, pixels, least=round(LEAST_SIDE * pixels))
    rate = grid.filled(factor * f(grid.points))
    return MapData(f.window, f.window, grid.x, grid.y, rate, factor * f.integral())


def part_maps(f: GridFunction, parts: int, pixels: int) -> list[tuple[Interval, MapData]]:
    """The last of three axes in equal parts, and the rate by place in each."""
    span = last_axis(f.window)
    intervals = [Interval(a, b) for a, b in pairwise(np.linspace(span.low, span.high, parts + 1))]
    return [(part, place_map(by_place(f, part), pixels=pixels)) for part in intervals]


def line_curve(model: Intensity | SeparableIntensity) -> CurveData:
    """The rate along the only axis, or along the last of three, with its band."""
    if isinstance(model, SeparableIntensity):
        return curve_data(model.time_, BAND_LEVEL, CURVE_POINTS)
    if model.window.dimension == 1:
        return curve_data(model, BAND_LEVEL, CURVE_POINTS)
    return marginal_curve(model.rate_, model.window)


def marginal_curve(rate: FittedRate, window: Window) -> CurveData:
    """The rate of three axes summed over the first two, along the last, with its band.

    The band is that of the counts of slabs, as multiples of them.
    """
    line, place = by_last(gridded(rate, window)), place_of(window)
    edges = np.linspace(line.grid.low[0], line.grid.high[0], SLABS + 1)
    draws = rate.count_draws([place * Interval(a, b) for a, b in pairwise(edges.tolist())])
    tails = (0.5 * (1.0 - BAND_LEVEL), 0.5 * (1.0 + BAND_LEVEL))
    ratios = np.quantile(draws, tails, axis=1) / draws.mean(axis=1)
    x = np.linspace(edges[0], edges[-1], CURVE_POINTS)
    found = line(x[:, None])
    below, above = (found * np.interp(x, centres(edges), ratio) for ratio in ratios)
    bounds = np.minimum(below, found), np.maximum(above, found)
    return CurveData(line.window, x, found, line.integral(), *bounds, BAND_LEVEL)


@final
@value
class Concentration(PlotData):
    """The smallest shares of a window that hold these shares of its events, (p,) each, rising."""

    window: Floats
    events: Floats

    def holding(self, share: float) -> float:
        """The smallest share of the window that holds this share of the events."""
        return float(np.interp(share, self.events, self.window))


def concentration(f: GridFunction) -> Concentration:
    """Shares of the window and of ∫f, accumulated from the highest value down.

    Nodes stand for their hat functions, with volumes ∫φ and masses values·∫φ.
    """
    volumes, values = f.grid.integrals(f.window).ravel(), f.values.ravel()
    order = np.argsort(-values, kind="stable")
    mass = np.concatenate([[0.0], np.cumsum((values * volumes)[order])])
    volume = np.concatenate([[0.0], np.cumsum(volumes[order])])
    return Concentration(volume / volume[-1], mass / mass[-1])
