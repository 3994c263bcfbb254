"""Windows of all kinds with events, smooth rates and partitions, for the laws of trees."""

from functools import cache

import numpy as np
import shapely

from hplus import Box, Interval, Polygon
from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.rates.binned import finest_grid
from hplus.rates.trees.paths import cell_mass
from hplus.windows import Cycle, Polygons, Window

HOLE = Polygon([[0, 0], [5, 0.5], [6, 4], [2, 5], [2.5, 2]], holes=([[3, 2], [4, 3.5], [4.2, 2]],))
ISLANDS = Polygons((Polygon([[0, 0], [3, 0], [1, 2]]), Polygon([[4, 1], [6, 1], [6, 2], [4, 3]])))
WINDOWS = {
    "interval": Interval(-3, 5),
    "cycle": Cycle(24.0),
    "box": Box((0, 0), (3, 2)),
    "far and narrow": Box((1e6, -2e6), (1e6 + 3000, -2e6 + 100)),
    "polygon": HOLE,
    "islands": ISLANDS,
    "box x cycle": Box((0, 0), (3, 2)) * Cycle(24.0),
    "polygon x interval": HOLE * Interval(0, 7),
    "interval x polygon": Interval(0, 7) * ISLANDS,
    "3-d box": Box((0, 0, 0), (2, 3, 1)),
}


@cache
def events(name: str) -> np.ndarray:
    """Events in clusters and everywhere."""
    window, rng = WINDOWS[name], np.random.default_rng(1)
    X, centers = window.sample(60, random_state=0), window.sample(6, random_state=1)
    low, high = window.bounds()
    near = np.repeat(centers, 40, axis=0) + 0.02 * (high - low) * rng.normal(size=(240, len(low)))
    return np.concatenate([X, near[window.contains(near)]])


def smooth(window: Window) -> GridFunction:
    """A rate that differs over a window, on a coarse grid."""
    grid = finest_grid(window)
    shape = tuple(min(n, 9) for n in grid.shape)
    grid = TensorGrid(grid.low, grid.high, shape, grid.closed)
    values = np.random.default_rng(2).uniform(0.5, 2.0, shape)
    for axis in grid.closed:
        first = np.take(values, [0], axis=axis)
        values = np.concatenate([np.delete(values, -1, axis=axis), first], axis=axis)
    return GridFunction(window, grid, values)


def mass(ground, k, level, index):
    return cell_mass(ground, k, level, np.array(index), np.zeros(3), np.ones(3))


def children(index, dimension):
    """Indices of the children of a cell."""
    bits = np.indices((2,) * dimension).reshape(dimension, -1).T
    return [[*(2 * np.array(index[:dimension]) + b), *index[dimension:]] for b in bits]


def law(clustering, level, rough, f, counts):
    """The concentration of the children of a cell, and the roughness of each of them."""
    n, f, counts = np.sum(counts), np.array(f), np.array(counts)
    A = clustering.concentrations[level + 1] * max(n, 1.0) ** clustering.crowding
    expected = (n + 0.5) * np.where(f > 0.0, f, 1.0)
    inner = 0.5 * rough + 0.5 * np.abs(np.log((counts + 0.5 * np.maximum(f, 1e-9)) / expected))
    return A / (0.2 + rough) ** clustering.persistence, inner


def random_boxes(window, rng):
    """A partition of the bounding box by random cuts."""
    boxes = [tuple(map(np.array, window.bounds()))]
    for _ in range(30):
        low, high = boxes.pop(rng.integers(len(boxes)))
        axis, share = rng.integers(len(low)), rng.uniform(0.1, 0.9)
        cut = (1 - share) * low[axis] + share * high[axis]
        below, above = high.copy(), low.copy()
        below[axis] = above[axis] = cut
        boxes += [(low, below), (above, high)]
    return [Box(low, high) if len(low) > 1 else Interval(low[0], high[0]) for low, high in boxes]


def planar_axis(window):
    """The first of the two axes on which regions may be polygons; None if there are none."""
    return {1: None, 2: 0, 3: int(isinstance(getattr(window, "left", None), Interval))}[
        window.dimension
    ]


def random_polygons(window, rng):
    """A partition of the bounding box, on two axes, by triangles; times halves of a third."""
    low, high = window.bounds()
    axis = planar_axis(window)
    plane = slice(axis, axis + 2)
    points = low[plane] + rng.random((25, 2)) * (high - low)[plane]
    corners = np.array([[low[axis], low[axis + 1]], [high[axis], low[axis + 1]]])
    corners = np.vstack([corners, np.column_stack([corners[::-1, 0], [high[axis + 1]] * 2])])
    cloud = shapely.MultiPoint(np.vstack([points, corners]))
    found = shapely.get_parts(shapely.delaunay_triangles(cloud))
    parts = [Polygon(shapely.get_coordinates(part)[:-1]) for part in found]
    if window.dimension == 2:
        return parts
    j = 2 - 2 * axis
    cut = low[j] + 0.3 * (high[j] - low[j])
    halves = [Interval(low[j], cut), Interval(cut, high[j])]
    return [p * half if axis == 0 else half * p for p in parts for half in halves]
