"""A rate or density in the plane: an image with units, the outline, a dot for each event."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np

from hplus._checks import Floats, check_count, check_memory, check_number, shown
from hplus._values import value
from hplus.estimators.density import Density
from hplus.evaluation.scores import Rate
from hplus.plotting.display import (
    INK,
    THIN,
    Display,
    PlotData,
    check_events,
    colour_bar,
    drawn_window,
    nameless,
    noun_and_total,
    opacity,
    thinned,
    tidy,
)
from hplus.plotting.words import (
    AXES,
    axis_label,
    events_words,
    height_label,
    quantity,
    window_words,
)
from hplus.windows import Interval, Planar, Product, Window
from hplus.windows.geometry import Rings

SLICES = 64
"""Places on the last axis at which a rate of three axes is averaged."""

LONGEST = 3.0
"""Longer side over shorter up to which both axes of a map are drawn to one scale."""

SQUARE_ROOT_FROM = 10.0
"""Largest rate over the median rate from which colours follow the square root of the rate."""


@final
@value
class MapData(PlotData):
    """A rate in cells of the plane, shape (rows, columns), NaN where a centre is outside.

    The edges of the cells are `x`, shape (columns + 1,), and `y`, shape (rows + 1,). A rate on
    three axes is that `at` a place of the last, or its mean over it if `at` is None. `place` is
    the window of the first two axes, `expected` the rate's integral over the whole window, `noun`
    is "rate", or "density" if it is one.
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
    model: Rate | Density, cells: int = 256, at: float | None = None, X: Any = None
) -> MapData:
    """λ at the centres of `cells` cells on the longest side; cells are square in one unit.

    A density without a window is shown around X (n, d) or, without X, three standard deviations
    around its mean.
    """
    window = drawn_window(model, X, (2, 3))
    place, levels = place_of(window), _levels(window, at)
    x, y = _edges(place, check_count("cells", cells))
    centres = np.stack(np.meshgrid(_middles(x), _middles(y)), axis=-1)
    inside = place.contains(centres.reshape(-1, 2)).reshape(centres.shape[:2])
    if not inside.any():
        raise ValueError(f"cells must be more, so that a centre is in the window, got {cells}.")
    rate = np.full(inside.shape, np.nan)
    with nameless():
        rate[inside] = _mean_rate(model, centres[inside], levels)
    noun, expected = noun_and_total(model, window)
    return MapData(window, place, x, y, rate, expected, at, noun)


def place_of(window: Window) -> Window:
    """The window of the first two axes, refused where the third is not apart from them."""
    if window.dimension == 2:
        return window
    if isinstance(window, Product) and window.left.dimension == 2:
        return window.left
    bounds = window.box_bounds()
    if bounds is None:
        raise ValueError(
            f"the last axis of the window must be apart from the first two, as in Polygon * "
            f"Interval, got {shown(window)}."
        )
    sides = zip(*bounds, window.axis_units, strict=True)
    first, second, _ = (Interval(low, high, unit) for low, high, unit in sides)
    return first * second


def outline(place: Window) -> Rings:
    """The closed rings around a window of the plane, (n + 1, 2) each, as `Planar.rings` does."""
    if isinstance(place, Planar):
        return [(np.vstack([ring, ring[:1]]), role) for ring, role in place.rings()]
    (left, bottom), (right, top) = place.bounds()
    corners = [[left, bottom], [right, bottom], [right, top], [left, top], [left, bottom]]
    return [(np.array(corners), 1)]


def _levels(window: Window, at: Any) -> Floats:
    """Places on the last axis to average over, shape (k, 1); in the plane (1, 0): none."""
    if window.dimension == 2:
        if at is not None:
            raise ValueError(f"at must be None for a window of 2 axes, got {shown(at)}.")
        return np.empty((1, 0))
    low, high = window.bounds()[0][2], window.bounds()[1][2]
    if at is None:
        return _middles(np.linspace(low, high, SLICES + 1))[:, None]
    if not low <= check_number("at", at) <= high:
        raise ValueError(f"at must lie from {low:g} to {high:g}, in the window, got {shown(at)}.")
    return np.array([[float(at)]])


def _edges(place: Window, cells: int) -> tuple[Floats, Floats]:
    """The edges of columns and of rows: as many of both where the axes have different units."""
    low, high = place.bounds()
    sides = high - low
    # lengths of different units cannot be compared
    longest = sides.max() if len(set(place.axis_units)) == 1 else sides
    columns, rows = np.maximum(1, np.round(cells * sides / longest)).astype(int).tolist()
    check_memory(64.0 * columns * rows, f"A map of {columns} by {rows} cells", "lower cells")
    return np.linspace(low[0], high[0], columns + 1), np.linspace(low[1], high[1], rows + 1)


def _middles(edges: Floats) -> Floats:
    return 0.5 * (edges[1:] + edges[:-1])


def _mean_rate(model: Rate | Density, X: Floats, levels: Floats) -> Floats:
    """The mean of λ(X[i], levels[k]) over the places k on the last axis, shape (n,)."""
    total = np.zeros(len(X))
    # one level at a time: memory stays that of a single map
    for level in levels:
        total += model.predict(np.hstack([X, np.tile(level, (len(X), 1))]))
    return total / len(levels)


@final
class IntensityMapDisplay(Display):
    """A rate or a density as an image, with the window's outline and a dot for each event X (n, d).

    Colours follow the rate or, where its largest value is far above its median, the square root.
    """

    def __init__(self, data: MapData, X: Any = None) -> None:
        self.data = data
        self.events = check_events(data.window, X)

    @classmethod
    def from_estimator(
        cls,
        model: Rate | Density,
        X: Any = None,
        *,
        cells: int = 256,
        at: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the rate, or the density, of a fitted model, as `map_data` computes it."""
        return cls(map_data(model, cells, at, X), X).plot(ax)

    def _size(self) -> tuple[float, float]:
        return plane_size(self.data.place)

    def _title(self) -> str:
        data = self.data
        title = events_words(data.noun, self.events, data.expected)
        if data.noun == "rate":
            title = f"{title}, {window_words(data.place)}"
        if data.window.dimension == 2:
            return title
        unit, (low, high) = data.window.axis_units[2], np.array(data.window.bounds())[:, 2]
        if data.at is None:
            return f"{title}\n{data.noun} averaged over {quantity(high - low, unit)}"
        return f"{title}\n{data.noun} at {AXES[2]} = {quantity(data.at, unit)}"

    def _draw(self, ax: Any) -> None:
        from matplotlib.colors import PowerNorm

        data = self.data
        peak = np.nanmax(data.rate)
        steep = bool(peak > SQUARE_ROOT_FROM * np.nanmedian(data.rate))
        # from 0 on, or a rate that is nearly constant would look like one that is not
        norm = PowerNorm(0.5 if steep else 1.0, vmin=0.0, vmax=peak or 1.0)
        rates = np.ma.masked_invalid(data.rate)
        # pixels even in a vector graphic, where thousands of cells would show their seams
        image = ax.pcolormesh(data.x, data.y, rates, norm=norm, cmap="viridis", rasterized=True)
        if self.events is not None:
            draw_dots(ax, thinned(self.events)[:, :2])
        draw_plane(ax, data.place)
        label = height_label(data.noun, data.window)
        colour_bar(ax, image, label + ", square-root colours" * steep)
        xlabel, ylabel = axis_label(data.window, 0), axis_label(data.window, 1)
        tidy(ax, title=self._title(), xlabel=xlabel, ylabel=ylabel)


def draw_dots(ax: Any, events: Floats) -> None:
    """A small white dot for each event (n, 2), fainter if there are many; its rim is dark."""
    size = float(np.clip(300.0 / np.sqrt(max(len(events), 1)), 1.5, 12.0))
    # the rim is seen where the rate is high and the colours are light
    alpha, edge = opacity(len(events)), 0.03 * size
    ax.scatter(*events.T, s=size, color="white", edgecolor=INK, linewidth=edge, alpha=alpha)


def plane_size(place: Window) -> tuple[float, float]:
    """Width and height in inches of a figure whose axes have the window's proportion."""
    ratio = proportion(place) if one_scale(place) else 0.8
    side = 5.0 / max(1.0, ratio)
    return max(side, 2.8) + 1.5, side * ratio + 0.9


def proportion(place: Window) -> float:
    """Height over width of the box around a window of the plane."""
    low, high = place.bounds()
    return float((high[1] - low[1]) / (high[0] - low[0]))


def one_scale(place: Window) -> bool:
    """Are both axes drawn to one scale? Those of one unit are, but for a very long window."""
    same = len(set(place.axis_units)) == 1
    return same and 1.0 / LONGEST <= proportion(place) <= LONGEST


def clip_to(ax: Any, artist: Any, place: Window) -> None:
    """Cut off what an artist draws outside the window."""
    from matplotlib.path import Path

    # a path winds around what it encloses: holes must run the other way
    rings = [oriented(ring, float(role)) for ring, role in outline(place)]
    artist.set_clip_path(Path.make_compound_path(*map(Path, rings)), ax.transData)


def oriented(ring: Floats, sign: float) -> Floats:
    """A closed ring (n + 1, 2), anticlockwise for sign 1 and clockwise for sign -1."""
    x, y = (ring - ring[0]).T
    # twice the signed area is Σ x_i y_{i+1} - x_{i+1} y_i
    area = x[:-1] @ y[1:] - x[1:] @ y[:-1]
    return ring if sign * area > 0.0 else ring[::-1]


def draw_plane(ax: Any, place: Window) -> None:
    """The outline of a window, instead of a frame; axes of one unit are drawn to one scale."""
    for ring, _ in outline(place):
        ax.plot(*ring.T, color=INK, lw=THIN, solid_joinstyle="round", clip_on=False)
    if one_scale(place):
        ax.set_aspect("equal")
    ax.spines[:].set_visible(False)
    ax.margins(0.0)
