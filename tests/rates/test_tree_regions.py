"""Trees on every kind of window: base measures, expected counts of regions, and their moments."""

from functools import cache

import numpy as np
import pytest
import shapely

from hplus import Box, Interval, Polygon, Statistic
from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.rates.binned import finest_grid
from hplus.rates.trees.concentrations import Clustering
from hplus.rates.trees.paths import cell_mass
from hplus.rates.trees.planting import BaseDensity, draw_offsets, prepare, uniform_base
from hplus.rates.trees.tree_rate import TreeBase, TreeRate
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
every_window = pytest.mark.parametrize("name", WINDOWS)
TREES = 4


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


@cache
def rate(name: str, based: bool) -> TreeRate:
    """Trees with structure of most sizes."""
    statistic = Statistic.of(WINDOWS[name], events(name))
    A = np.full(statistic.depth + 2, np.inf)
    A[1:9] = 3.0, 8.0, np.inf, 2.0, 5.0, 20.0, np.inf, 4.0
    base = TreeBase(smooth(WINDOWS[name])) if based else None
    return TreeRate(statistic, Clustering(A, np.zeros(len(A))), base, np.array(2.0), TREES, 3)


def mass(ground, k, level, index):
    return cell_mass(ground, k, level, np.array(index), np.zeros(3), np.ones(3))


def children(index, dimension):
    """Indices of the children of a cell."""
    bits = np.indices((2,) * dimension).reshape(dimension, -1).T
    return [[*(2 * np.array(index[:dimension]) + b), *index[dimension:]] for b in bits]


@pytest.mark.parametrize("based", [False, True])
@every_window
def test_the_masses_of_children_add_up(name, based):
    forest, d = rate(name, based).forest, WINDOWS[name].dimension
    ground, rng = forest.ground, np.random.default_rng(4)
    for k in range(TREES):
        cells = [[0, 0, 0]]
        for level in range(min(ground.roots.bits, 14)):
            parent = mass(ground, k, level, cells[0])
            cells = children(cells[0], d)
            masses = np.array([mass(ground, k, level + 1, cell) for cell in cells])
            if level == 0 and any(ground.roots.cyclic):
                first = np.array(cells)[:, ground.roots.cyclic[:3] > 0].max(axis=1) == 0
                masses = masses * first
            assert masses.sum() == pytest.approx(parent, rel=1e-9, abs=1e-18)
            assert np.all(masses >= 0.0)
            cells = [cells[rng.choice(len(cells), p=masses / masses.sum())]]


@every_window
def test_the_mass_of_a_root_is_the_volume_of_the_window(name):
    window, forest = WINDOWS[name], rate(name, based=False).forest
    volume = mass(forest.ground, 1, 0, [0, 0, 0])
    volume *= np.prod(rate(name, based=False).density.grid.spacing)
    assert volume == pytest.approx(window.volume, rel=1e-10)


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


@pytest.mark.parametrize("based", [False, True])
@every_window
def test_expected_counts_of_random_boxes_add_up(name, based):
    window, trees = WINDOWS[name], rate(name, based)
    total = trees.statistic.total / 2.0
    assert trees.integral() == pytest.approx(total, rel=1e-8)
    boxes = random_boxes(window, np.random.default_rng(5))
    assert trees.integrals(boxes).sum() == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("name", [n for n, w in WINDOWS.items() if w.dimension > 1])
def test_expected_counts_of_polygons_add_up(name, based):
    window, trees = WINDOWS[name], rate(name, based)
    parts = random_polygons(window, np.random.default_rng(6))
    assert trees.integrals(parts).sum() == pytest.approx(trees.statistic.total / 2.0, rel=1e-6)
