"""A rate, a density or a ratio of rates, along a line or in cells of the plane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self, final

import numpy as np

from hplus._checks import (
    Bools,
    Floats,
    check_count,
    check_fraction,
    check_memory,
    check_number,
    shown,
)
from hplus._values import value
from hplus.display.data.framing import (
    PlotData,
    centres,
    check_model,
    drawn_window,
    ignore_feature_names,
    noun_and_total,
    place_of,
    same_unit,
)
from hplus.display.data.gridded import at_scale
from hplus.estimators.density import Density
from hplus.evaluation.scores import Rate
from hplus.rates.ratio import RateRatio
from hplus.rates.stacked_rate import StackedRate
from hplus.rates.trees.tree_rate import TreeRate
from hplus.windows import Box, Window, check_window

AVERAGED_SLICES = 64
"""Places on the last axis at which a rate of three axes is averaged."""


@final
@value
class CurveData(PlotData):
    """A rate λ at places x of a line, shape (p,) each; `expected` is its integral.

    `noun` is "rate", or "density" if λ is one.
    `low` and `high`, shape (p,), bound it with probability `level`; all three are None without a
    band.
    """

    window: Window
    x: Floats
    rate: Floats
    expected: float
    low: Floats | None = None
    high: Floats | None = None
    level: float | None = None
    noun: str = "rate"

    def scaled(self, factor: float) -> Self:
        """The same curve in another unit."""
        low, high = (None if end is None else factor * end for end in (self.low, self.high))
        return self.replace(rate=factor * self.rate, low=low, high=high)


def curve_data(
    model: Rate | Density, level: float | None = 0.9, points: int = 512, X: Any = None
) -> CurveData:
    """λ(x) and its band at equally spaced places, both ends of the window included.

    `level=None` leaves the band out, for a model without `predict_interval`. A density without a
    window is shown around X (n, 1) or, without X, three standard deviations around its mean.
    """
    window = drawn_window(model, X, (1,))
    x = _along(window, points)
    with ignore_feature_names():
        low, high = (None, None) if level is None else _interval(model, x[:, None], level)
        rate = model.predict(x[:, None])
    noun, expected = noun_and_total(model, window)
    return CurveData(window, x, rate, expected, low, high, level, noun)


def _along(window: Window, points: int) -> Floats:
    (start,), (end,) = window.bounds()
    return np.linspace(start, end, check_count("points", points, least=2))


def _interval(model: Rate | Density, X: Floats, level: float) -> tuple[Floats, Floats]:
    """Bounds of λ(X[i]) with probability `level`; an error for a model that has none."""
    level, interval = check_fraction("level", level), getattr(model, "predict_interval", None)
    if interval is None:
        name = type(model).__name__
        raise ValueError(f"level must be None for {name}, which has no band, got {level}.")
    low, high = interval(X, level)
    return low, high


class Raster(NamedTuple):
    """Cells of the plane between edges x (columns + 1,) and y (rows + 1,).

    `inside` (rows, columns) says which centres lie in the window; `points` (n, 2) are those.
    """

    x: Floats
    y: Floats
    inside: Bools
    points: Floats

    def filled(self, values: Floats) -> Floats:
        """Values at the points as cells (rows, columns), NaN outside the window."""
        cells = np.full(self.inside.shape, np.nan)
        cells[self.inside] = values
        return cells


def raster(place: Window, cells: int, least: int = 1, view: Box | None = None) -> Raster:
    """`cells` cells on the longest side, square if both axes share a unit, at least `least`.

    `view` is the part of the plane that they cover, by default the bounding box of the place.
    """
    if view is not None:
        check_window("view", view, 2)
    low, high = (place if view is None else view).bounds()
    sides = high - low
    longest = sides.max() if same_unit(place) else sides
    shape = np.maximum(least, np.round(check_count("cells", cells) * sides / longest)).astype(int)
    columns, rows = shape.tolist()
    check_memory(64.0 * columns * rows, f"A map of {columns} by {rows} cells", "lower cells")
    x, y = np.linspace(low[0], high[0], columns + 1), np.linspace(low[1], high[1], rows + 1)
    middles = np.stack(np.meshgrid(centres(x), centres(y)), axis=-1)
    inside = place.contains(middles.reshape(-1, 2)).reshape(rows, columns)
    if not inside.any():
        raise ValueError(
            f"cells must be larger, so that the centre of a cell lies in the window, got {cells}."
        )
    return Raster(x, y, inside, middles[inside])


@final
@value
class MapData(PlotData):
    """A rate in cells of the plane, shape (rows, columns), NaN where a centre is outside.

    The edges of the cells are `x`, shape (columns + 1,), and `y`, shape (rows + 1,). A rate on
    three axes is that `at` a place of the last, or its mean over it if `at` is None. `place` is
    the window of the first two axes, or the part of it that is shown, `expected` the rate's
    integral over the whole window, `noun` is "rate", or "density" if it is one.
    """

    window: Window
    place: Window
    x: Floats
    y: Floats
    rate: Floats
    expected: float
    at: float | None = None
    noun: str = "rate"


def map_data(
    model: Rate | Density,
    cells: int = 256,
    at: float | None = None,
    X: Any = None,
    view: Box | None = None,
) -> MapData:
    """λ in `cells` cells on the longest side; square if axes share a unit.

    Rates are those at the centres of cells; what trees know of smaller places is averaged over
    them. `view` is the part of the plane to show, for example one with details that are smaller
    than a cell of the whole map. A density without a window is shown around X (n, d) or, without
    X, three standard deviations around its mean.
    """
    window = drawn_window(model, X, (2, 3))
    place, levels = place_of(window), _levels(window, at)
    grid = raster(place, cells, view=view)
    with ignore_feature_names():
        predict = _predict(model, window, np.array([grid.x[1] - grid.x[0], grid.y[1] - grid.y[0]]))
        rate = grid.filled(_mean_rate(predict, grid.points, levels))
    noun, expected = noun_and_total(model, window)
    return MapData(window, view or place, grid.x, grid.y, rate, expected, at, noun)


def _predict(model: Rate | Density, window: Window, sides: Floats) -> Callable[[Floats], Floats]:
    """The rate at points, in the plane as means over cells with these sides."""
    rate = getattr(model, "rate_", None)
    if window.dimension == 2 and isinstance(rate, TreeRate | StackedRate):
        return at_scale(rate, sides).function
    return model.predict


def _levels(window: Window, at: Any) -> Floats:
    """Places on the last axis to average over, shape (k, 1); in the plane (1, 0): none."""
    if window.dimension == 2:
        if at is not None:
            raise ValueError(f"at must be None for a window of 2 axes, got {shown(at)}.")
        return np.empty((1, 0))
    low, high = window.bounds()[0][2], window.bounds()[1][2]
    if at is None:
        return centres(np.linspace(low, high, AVERAGED_SLICES + 1))[:, None]
    if not low <= check_number("at", at) <= high:
        raise ValueError(f"at must lie from {low:g} to {high:g}, in the window, got {shown(at)}.")
    return np.array([[float(at)]])


def _mean_rate(predict: Callable[[Floats], Floats], X: Floats, levels: Floats) -> Floats:
    """The mean of λ(X[i], levels[k]) over the places k on the last axis, shape (n,)."""
    total = np.zeros(len(X))
    # one level at a time: memory stays that of a single map
    for level in levels:
        total += predict(np.hstack([X, np.tile(level, (len(X), 1))]))
    return total / len(levels)


@value
class RatioData(PlotData):
    """A ratio and bounds that contain it with probability `level`, arrays of one shape each."""

    window: Window
    ratio: Floats
    low: Floats
    high: Floats
    level: float

    @property
    def differs(self) -> Bools:
        """Where the bounds exclude 1; nowhere outside the window."""
        return (self.low > 1.0) | (self.high < 1.0)


@final
@value
class RatioCurve(RatioData):
    """A ratio at places x of a line, shape (p,) each."""

    x: Floats


@final
@value
class RatioMap(RatioData):
    """A ratio in cells of the plane, shape (rows, columns), NaN where a centre is outside.

    The edges of the cells are `x`, shape (columns + 1,), and `y`, shape (rows + 1,).
    """

    x: Floats
    y: Floats


def ratio_data(
    ratio: RateRatio, level: float = 0.9, points: int = 512, cells: int = 256
) -> RatioCurve | RatioMap:
    """The ratio and its bounds at equally spaced places of a line, or at the centres of cells."""
    window, level = check_model(ratio, (1, 2)), check_fraction("level", level)
    if window.dimension == 1:
        x = _along(window, points)
        low, high = ratio.predict_interval(x[:, None], level)
        return RatioCurve(window, ratio.predict(x[:, None]), low, high, level, x)
    grid = raster(window, cells)
    bounds = ratio.predict_interval(grid.points, level)
    middle, low, high = (grid.filled(v) for v in (ratio.predict(grid.points), *bounds))
    return RatioMap(window, middle, low, high, level, grid.x, grid.y)
