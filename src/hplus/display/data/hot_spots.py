"""Hot spots: the cells of a given size in which most events are expected, ranked."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.ndimage import maximum_filter

from hplus._checks import Floats
from hplus._values import value
from hplus.display.data.framing import PlotData, cuboid, last_axis
from hplus.display.data.gridded import gridded
from hplus.display.data.margins import BAND_LEVEL, Margins
from hplus.estimators.intensity import Intensity
from hplus.estimators.separable import SeparableIntensity
from hplus.grids import integrals_near
from hplus.positivity.exp import GridFunction
from hplus.windows import Interval, Window
from hplus.windows.geometry import product_points
from hplus.wording import nice_step

MOST_HOT_SPOTS = 8
"""Hot spots listed at most."""

CELLS_PER_SIDE = {1: 20.0, 2: 32.0}
"""About how many cells fit along the longest side of a window with one or two axes."""

CUSTOMARY_HOURS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 12.0, 24.0)
"""Customary lengths of an interval, in hours."""

LEAST_BUSIER = 1.005
"""How many times the average the rate of the first hot spot is, if there are any."""

SHIFTS = 8
"""Positions tried for a cell along its own side."""


@final
@value
class HotSpots(PlotData):
    """Cells from `low` to `high`, (k, m) each, ordered by the count `expected` in them, (k,).

    `fewest` and `most` are 90 % intervals of the counts in another exposure like that of the fit;
    `ratio` is the rate in the cell over that of the whole window. `observed` are the counts of
    given events. With three axes a cell has the first two, and `peak` is where on the last it is
    busiest, unless that is the same everywhere.
    """

    low: Floats
    high: Floats
    expected: Floats
    fewest: Floats
    most: Floats
    ratio: Floats
    observed: Floats | None = None
    peak: Floats | None = None

    @property
    def stand_out(self) -> bool:
        """Is any cell clearly busier than the average? If not, none is worth showing."""
        return bool(self.ratio[0] >= LEAST_BUSIER)

    @property
    def middle(self) -> Floats:
        """The middle of each cell, (k, m)."""
        return 0.5 * (self.low + self.high)


def find_hot_spots(
    model: Intensity | SeparableIntensity,
    sums: Margins,
    exposure: float,
    events: Floats | None = None,
    unit: float = 1.0,
) -> HotSpots:
    """The hot spots of a fitted rate, with counts for an exposure, which vary in some unit."""
    f = sums.main
    sides = cell_sides(f.window)
    low = best_corners(f, sides)
    cells = [cuboid(corner, corner + sides, f.window.axis_units) for corner in low]
    deep = f.window.dimension < model.window.dimension
    regions = [cell * last_axis(model.window) if deep else cell for cell in cells]
    expected = np.asarray(model.expected_count(regions, exposure=exposure))
    ends = model.count_interval(regions, BAND_LEVEL, exposure=exposure / unit)
    fewest, most = (unit * np.asarray(end) for end in ends)
    total = float(model.expected_count(model.window, exposure=exposure))
    # hat functions sum to 1
    near = integrals_near(f.grid, cells, f.window)
    shares = np.array([hats.sum() for _, hats in near]) / f.window.volume
    ratio = expected / shares / total
    order = np.argsort(-expected, kind="stable")
    # the first is kept whatever it is, others if they are busier than the average
    order = order[(ratio[order] > 1.0) | (np.arange(len(order)) == 0)]
    low = low[order]
    joint = deep and not isinstance(model, SeparableIntensity)
    return HotSpots(
        low=low,
        high=low + sides,
        expected=expected[order],
        fewest=fewest[order],
        most=most[order],
        ratio=ratio[order],
        observed=None if events is None else _counts(events, low, low + sides),
        peak=_peaks(gridded(model.rate_, model.window), low + 0.5 * sides) if joint else None,
    )


def cell_sides(window: Window) -> Floats:
    """The sides of a cell, (m,): round numbers, the same on axes with the same unit."""
    low, high = window.bounds()
    rough = window.longest_sides() / CELLS_PER_SIDE[len(low)]
    sides = [_side(s, unit) for s, unit in zip(rough.tolist(), window.axis_units, strict=True)]
    return np.minimum(sides, high - low)


def _side(rough: float, unit: str) -> float:
    if unit == "h" and CUSTOMARY_HOURS[0] <= rough <= CUSTOMARY_HOURS[-1]:
        return min(CUSTOMARY_HOURS, key=lambda hours: abs(np.log(hours / rough)))
    return nice_step(rough)


def best_corners(f: GridFunction, sides: Floats) -> Floats:
    """Low corners (k, m), on round numbers, of cells with much of ∫f that do not overlap.

    In the plane a cell is listed if no cell that overlaps it holds more; on a line the best cell is
    taken, then the best of those left.
    """
    line = len(sides) == 1
    steps = 1 if line else SHIFTS
    axes = [
        _corners(a, b, d, steps) for a, b, d in zip(*f.window.bounds(), sides / steps, strict=True)
    ]
    mass = _line_mass(f, axes[0], sides[0]) if line else _cell_mass(f, axes, sides / steps)
    if not line:
        mass = np.where(mass >= maximum_filter(mass, 2 * steps - 1), mass, 0.0)
    points = product_points(axes)
    chosen: list[int] = []
    for i in np.argsort(-mass.ravel(), kind="stable"):
        if mass.ravel()[i] <= 0.0 or len(chosen) == MOST_HOT_SPOTS:
            break
        if all(np.any(np.abs(points[i] - points[j]) >= sides * (1.0 - 1e-9)) for j in chosen):
            chosen.append(int(i))
    return points[chosen]


def _corners(low: float, high: float, step: float, steps: int) -> Floats:
    """Multiples of a step from which this many steps fit between low and high, or low itself."""
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step - steps + 1e-9)
    return step * np.arange(first, last + 1.0) if last >= first else np.array([low])


def _line_mass(f: GridFunction, starts: Floats, side: float) -> Floats:
    """∫f over the intervals of one length from these starts, (n,)."""
    return f.integrals([Interval(a, a + side) for a in starts.tolist()])


def _cell_mass(f: GridFunction, axes: list[Floats], step: Floats) -> Floats:
    """∫f/step² over cells of 8 by 8 steps from each corner, about: sums of f within the window."""
    fine = [
        x[0] + d * (np.arange(len(x) + SHIFTS - 1) + 0.5) for x, d in zip(axes, step, strict=True)
    ]
    points = product_points(fine)
    values = np.where(f.window.contains(points), f(points), 0.0).reshape(*map(len, fine))
    return sliding_window_view(values, (SHIFTS, SHIFTS)).sum(axis=(2, 3))


def _counts(events: Floats, low: Floats, high: Floats) -> Floats:
    """How many events lie in each cell, (k,)."""
    X = events[:, None, : low.shape[1]]
    return np.sum(np.all((low <= X) & (high >= X), axis=2), axis=0).astype(float)


def _peaks(f: GridFunction, middle: Floats) -> Floats:
    """Where on the last axis the rate at each place is highest, (k,)."""
    whole = last_axis(f.window)
    z = np.linspace(whole.low, whole.high, 337)
    X = np.hstack([np.repeat(middle, len(z), axis=0), np.tile(z, len(middle))[:, None]])
    return z[f(X).reshape(len(middle), -1).argmax(axis=1)]
