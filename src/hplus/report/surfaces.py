"""A rate in pixels, along a curve with its band, and where most of it lies."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from hplus._checks import Bools, Floats
from hplus._values import value
from hplus.plotting.display import PlotData
from hplus.plotting.maps import outline
from hplus.positivity.exp import GridFunction
from hplus.rates.fitted import MAX_LOG_FACTOR
from hplus.rates.grid_rate import GridRate
from hplus.report.margins import by_last

PIXELS, FEW_PIXELS = 320, 140
"""Pixels on the longer side of a map, and of a small one."""

POINTS = 400
"""Points of a curve."""

LEVEL = 0.9
"""Probability that a band holds the rate."""

TOPPED = 0.02
"""Share of the events, at most, whose rates all have the last colour."""

STEEP = (2.5, 16.0)
"""Rate of the last colour over that of a usual event from which colours follow a root of it."""

MOST_DOTS = 4000
"""Events drawn at most."""


@final
@value
class Surface(PlotData):
    """A rate in pixels over the box `low` to `high`, shape (rows, columns), lowest row first.

    `inside` says which pixels have their centre in the window. The colour of a rate is
    (rate/top)^power of the ramp; rates from `top` to `peak` have the last one.
    """

    low: Floats
    high: Floats
    rate: Floats
    inside: Bools
    rings: tuple[Floats, ...]
    peak: float
    top: float
    power: float

    @property
    def shares(self) -> Floats:
        """Where each pixel's colour is on the ramp, from 0 to 1."""
        return np.clip(self.rate / self.top, 0.0, 1.0) ** self.power


@final
@value
class Course(PlotData):
    """A rate along one axis, `x` and `rate` (p,); `low` and `high` bound it at a level of 90 %."""

    x: Floats
    rate: Floats
    low: Floats
    high: Floats


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
    """Shares of the window and of ∫f, taken together from the highest value on.

    Nodes stand for their hat functions, with volumes ∫φ and masses values·∫φ.
    """
    volumes, values = f.grid.integrals(f.window).ravel(), f.values.ravel()
    order = np.argsort(-values, kind="stable")
    mass = np.concatenate([[0.0], np.cumsum((values * volumes)[order])])
    volume = np.concatenate([[0.0], np.cumsum(volumes[order])])
    return Concentration(volume / volume[-1], mass / mass[-1])


def surface(f: GridFunction, factor: float = 1.0, pixels: int = PIXELS) -> Surface:
    """A rate of two axes, times a factor, in pixels.

    Pixels outside the window have the value of the grid there: what is drawn is cut along rings.
    """
    low, high = f.window.bounds()
    sides = high - low
    one = len(set(f.window.axis_units)) == 1
    shape = pixels * np.maximum(sides / sides.max(), 0.3) if one else np.full(2, 0.75 * pixels)
    columns, rows = np.ceil(shape).astype(int).tolist()
    centres = np.stack(
        np.meshgrid(_centres(low[0], high[0], columns), _centres(low[1], high[1], rows)), axis=-1
    ).reshape(-1, 2)
    inside = f.window.contains(centres).reshape(rows, columns)
    rate = factor * f(centres).reshape(rows, columns)
    seen = np.sort(rate[inside] if inside.any() else rate.ravel())
    shares = np.cumsum(seen) / (seen.sum() or 1.0)
    usual, top = seen[np.searchsorted(shares, (0.5, 1.0 - TOPPED))]
    # a top that is close to the peak may as well be the peak
    top = float(top if seen[-1] > 2.0 * top else seen[-1]) or 1.0
    power = 0.5 ** sum(top > bound * usual for bound in STEEP)
    rings = tuple(ring for ring, _ in outline(f.window))
    return Surface(low, high, rate, inside, rings, float(seen[-1]), top, power)


def _centres(low: float, high: float, count: int) -> Floats:
    edges = np.linspace(low, high, count + 1)
    return 0.5 * (edges[1:] + edges[:-1])


def dots(events: Floats | None) -> Floats | None:
    """At most 4,000 of the events (n, d), spread evenly over the rows."""
    if events is None:
        return None
    return events[:: -(-len(events) // MOST_DOTS) or 1]


def course(model: Any, factor: float = 1.0) -> Course:
    """The rate of a model on one axis, times a factor, with its band."""
    window = model.window
    (start,), (end,) = window.bounds()
    x = np.linspace(start, end, POINTS)
    low, high = model.predict_interval(x[:, None], LEVEL)
    return Course(x, factor * model.predict(x[:, None]), factor * low, factor * high)


def marginal_course(rate: GridRate, factor: float = 1.0) -> Course:
    """The rate of three axes summed over the first two, along the last, with its band.

    The band is that of the sums of the draws, as multiples of the rate, at the coarse nodes.
    """
    line, grid = by_last(rate.function), rate.function.grid
    mass = rate.function.values * grid.integrals(rate.function.window)
    while grid.shape != rate.coarse.shape:
        grid, mass = grid.coarser(), grid.restrict(mass)
    draws = np.exp(np.clip(np.asarray(rate.draws, dtype=float), -MAX_LOG_FACTOR, MAX_LOG_FACTOR))
    sums = np.einsum("sijk,ijk->sk", draws, mass)
    tails = (0.5 * (1.0 - LEVEL), 0.5 * (1.0 + LEVEL))
    low, high = np.quantile(sums, tails, axis=0) / mass.sum(axis=(0, 1))
    x = np.linspace(grid.low[2], grid.high[2], POINTS)
    found = factor * line(x[:, None])
    below, above = (found * np.interp(x, grid.axes[2], ratio) for ratio in (low, high))
    return Course(x, found, np.minimum(below, found), np.maximum(above, found))
