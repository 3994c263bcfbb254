"""Tensor grids: oracles are scipy's interpolator, its quadrature, and cells cut out by shapely."""

import itertools
from functools import reduce

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate
from scipy.interpolate import RegularGridInterpolator

from hplus.grids import TensorGrid, integrals_within
from hplus.windows import Box, Interval, Polygon, Polygons

GRIDS = [
    TensorGrid((-1.0,), (2.0,), (9,)),
    TensorGrid((0.0, -2.0), (3.0, 5.0), (7, 5)),
    TensorGrid((5e6, 0.1), (5e6 + 0.7, 0.2), (5, 4)),
    TensorGrid((0.0, 1.0, -1.0), (0.3, 2.0, 3.0), (3, 5, 2)),
]
every_grid = pytest.mark.parametrize("grid", GRIDS, ids=repr)

SQUARE = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])
LAND = Polygon(SQUARE, holes=([[1.0, 1.0], [1.0, 2.0], [2.5, 2.0]], [[3, 3], [3.5, 3], [3, 3.5]]))
BENT = Polygon([[0, 0], [3, 1], [1, 1.5], [2, 4], [-1, 2]])
SPECK = Polygon([[1.01, 1.01], [1.02, 1.01], [1.015, 1.02]])
POLYGONS = [LAND, BENT, SPECK, Polygon(BENT.outer[::-1]), Polygon(SQUARE + 0.3)]
every_polygon = pytest.mark.parametrize("polygon", POLYGONS, ids=lambda p: f"{p!r:.40}")
PLANE = TensorGrid((-1.0, 0.0), (4.0, 4.0), (11, 6))
INNER = TensorGrid((0.4, 0.7), (2.6, 3.1), (4, 9))
every_plane = pytest.mark.parametrize("grid", [PLANE, INNER], ids=repr)
YEAR = Interval(0, 365)


def points(grid, rng, n=200):
    return rng.uniform(grid.low, grid.high, (n, grid.dimension))


def hat(grid, node, X):
    """Π_j (1 - |x_j - node_j|/h_j)₊."""
    return np.prod(np.maximum(0.0, 1.0 - np.abs(X - node) / grid.spacing), axis=1)


def cell_by_cell(grid, shape):
    """∫ of each hat over a shapely polygon: every cell cut out, then an exact rule on triangles."""
    total = np.zeros(grid.size)
    for (a, b), (c, d) in itertools.product(*(itertools.pairwise(axis) for axis in grid.axes)):
        for part in shapely.get_parts(shapely.intersection(shape, shapely.box(a, c, b, d))):
            if part.area > 1e-13:
                holes = [shapely.get_coordinates(hole) for hole in part.interiors]
                nodes, weights = Polygon(part.exterior.coords, holes).quadrature(2)
                total += [weights @ hat(grid, node, nodes) for node in grid.nodes()]
    return total.reshape(grid.shape)


def outline(polygon):
    return shapely.Polygon(polygon.outer, polygon.holes)


def wiggly(n):
    angle = np.linspace(0.0, 2.0 * np.pi, n, endpoint=False)
    radius = 1.0 + 0.2 * np.sin(9 * angle) + 0.05 * np.sin(57 * angle)
    return Polygon(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))


# hats


@every_grid
def test_a_hat_is_a_product_of_triangles_and_all_of_them_add_up_to_one(grid, rng):
    X = points(grid, rng)
    hats = [grid.interpolate(row.reshape(grid.shape), X) for row in np.eye(grid.size)]
    assert_allclose(hats, [hat(grid, node, X) for node in grid.nodes()], atol=1e-8)
    assert np.min(hats) >= 0.0
    assert_allclose(np.sum(hats, axis=0), 1.0, rtol=1e-15)


@every_grid
def test_interpolation_is_scipys(grid, rng):
    X, values = points(grid, rng), rng.normal(size=grid.shape)
    oracle = RegularGridInterpolator(grid.axes, values)
    assert_allclose(grid.interpolate(values, X), oracle(X), rtol=1e-8, atol=1e-8)
    assert_allclose(grid.interpolate(values, grid.nodes()), values.ravel(), atol=1e-8)


@every_grid
def test_binning_is_the_adjoint_of_interpolation(grid, rng):
    X, w, values = points(grid, rng), rng.normal(size=200), rng.normal(size=grid.shape)
    assert_allclose(np.vdot(grid.bin(X, w), values), w @ grid.interpolate(values, X), rtol=1e-10)


@every_grid
def test_weights_binned_from_parts_add_up(grid, rng):
    X, w = points(grid, rng), rng.uniform(size=200)
    parts = grid.bin(X[:70], w[:70]) + grid.bin(X[70:], w[70:])
    assert_allclose(grid.bin(X, w), parts, rtol=1e-12, atol=1e-13)
    assert_allclose(parts.sum(), w.sum(), rtol=1e-13)
    assert_array_equal(grid.bin(X[:0], w[:0]), np.zeros(grid.shape))


@every_grid
def test_slopes_are_finite_differences_inside_a_cell(grid, rng):
    cells = rng.integers(0, np.subtract(grid.shape, 1), (50, grid.dimension))
    X = grid.low + grid.spacing * (cells + rng.uniform(0.2, 0.8, cells.shape))
    values = rng.normal(size=grid.shape)
    for axis, step in enumerate(0.1 * np.diag(grid.spacing)):
        change = grid.interpolate(values, X + step) - grid.interpolate(values, X - step)
        numeric = change / (2.0 * step[axis])
        assert_allclose(grid.slopes(values, X)[:, axis], numeric, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("count", [2, 3, 10, 50, 99])
def test_slopes_on_a_line_are_those_of_the_right_cell_and_at_the_high_end_of_the_left(count):
    grid, values = TensorGrid((0.1,), (0.7,), (count,)), np.arange(count) ** 2.0
    right = np.diff(values) / grid.spacing
    slopes = grid.slopes(values, grid.nodes())[:, 0]
    assert_allclose(slopes, np.append(right, right[-1]), rtol=1e-12)


@pytest.mark.parametrize("count", [10, 50, 99])
def test_hats_are_not_negative_even_by_rounding_on_a_line(count):
    grid = TensorGrid((0.1,), (0.7,), (count,))
    hats = [grid.interpolate(row, grid.nodes()) for row in np.eye(count)]
    assert_allclose(hats, np.eye(count), atol=1e-12)
    assert np.min(hats) >= 0.0


@every_grid
def test_a_point_beyond_the_box_counts_as_the_nearest_of_the_box(grid, rng):
    X = rng.normal(grid.low, 1e3 * grid.spacing, (50, grid.dimension))
    X[0], X[1] = -1e308, 1e308
    inside, values = np.clip(X, grid.low, grid.high), rng.uniform(size=grid.shape)
    assert_array_equal(grid.interpolate(values, X), grid.interpolate(values, inside))
    assert_array_equal(grid.bin(X, np.ones(50)), grid.bin(inside, np.ones(50)))
    assert np.isfinite(grid.slopes(values, X)).all()


@every_grid
def test_arrays_in_any_layout_give_the_same_numbers(grid, rng):
    X, values, w = points(grid, rng), rng.normal(size=grid.shape), rng.normal(size=400)
    for array in (X, values):
        array.flags.writeable = False
    columns, fortran = np.asfortranarray(X), np.asfortranarray(values)
    assert_array_equal(grid.interpolate(values, X), grid.interpolate(fortran, columns))
    assert_array_equal(grid.bin(X, w[::2].copy()), grid.bin(columns, w[::2]))


# coarser grids

HALVED = [
    (TensorGrid((0,), (1,), (9,)), (5,)),
    (TensorGrid((0,), (1,), (3,)), (3,)),
    (TensorGrid((0, 0), (1, 2), (5, 6)), (3, 6)),
    (TensorGrid((0, 0, 0), (1, 2, 3), (4, 7, 5)), (4, 4, 3)),
]
every_halved = pytest.mark.parametrize(("fine", "shape"), HALVED, ids=repr)


@every_halved
def test_a_coarser_grid_has_every_second_node_of_odd_axes(fine, shape):
    coarse = fine.coarser()
    assert (coarse.low, coarse.high, coarse.shape) == (fine.low, fine.high, shape)
    for few, many in zip(coarse.axes, fine.axes, strict=True):
        assert_allclose(few, many[:: 2 if len(few) < len(many) else 1], rtol=1e-15)


@every_halved
def test_restricted_weights_are_those_binned_on_the_coarser_grid(fine, shape, rng):
    X, w = points(fine, rng), rng.normal(size=200)
    assert_allclose(fine.restrict(fine.bin(X, w)), fine.coarser().bin(X, w), atol=1e-12)


@every_halved
def test_prolonged_values_are_interpolated(fine, shape, rng):
    values = rng.normal(size=shape)
    oracle = fine.coarser().interpolate(values, fine.nodes()).reshape(fine.shape)
    assert_allclose(fine.prolong(values), oracle, atol=1e-14)


# integrals over boxes


@pytest.mark.parametrize("region", [(-1.0, 2.0), (-0.3, 1.1), (0.4, 0.41), (-9.0, 0.0), (3.0, 4.0)])
def test_integrals_over_an_interval_are_scipys(region):
    grid = GRIDS[0]
    a, b = np.clip(region, grid.low, grid.high)
    oracle = [
        integrate.quad(lambda x, g=g: hat(grid, g, np.array([[x]]))[0], a, b, points=grid.axes[0])
        for g in grid.nodes()
    ]
    assert_allclose(grid.integrals(Interval(*region)), np.array(oracle)[:, 0], atol=1e-12)


@given(st.lists(st.floats(-2.0, 3.0), min_size=2, max_size=6, unique=True))
def test_integrals_over_the_parts_of_an_interval_add_up_and_are_never_negative(ends):
    grid, ends = GRIDS[0], sorted(ends)
    parts = [grid.integrals(Interval(a, b)) for a, b in itertools.pairwise(ends) if b - a > 1e-300]
    whole = grid.integrals(Interval(ends[0], ends[-1]))
    assert_allclose(np.sum(parts, axis=0), whole, atol=1e-14)
    assert np.min(parts) >= 0.0
    assert_allclose(whole.sum(), np.ptp(np.clip(ends, -1.0, 2.0)), atol=1e-14)


@every_grid
def test_integrals_over_a_box_are_the_products_of_those_on_its_axes(grid):
    low, high = np.array(grid.low) + 0.3 * grid.spacing, np.array(grid.high) - 0.7 * grid.spacing
    axes = zip(grid.low, grid.high, grid.shape, low, high, strict=True)
    sides = [TensorGrid([a], [b], [n]).integrals(Interval(c, d)) for a, b, n, c, d in axes]
    got = grid.integrals(Box(low, high))
    assert_allclose(got, reduce(np.multiply.outer, sides), rtol=1e-12)
    assert_allclose(got.sum(), np.prod(high - low), rtol=1e-12)


@every_grid
def test_integrals_over_the_quarters_of_a_box_add_up(grid, rng):
    middle = points(grid, rng, 1)[0]
    ends = [((a, m), (m, b)) for a, m, b in zip(grid.low, middle, grid.high, strict=True)]
    parts = [Box(*zip(*quarter, strict=True)) for quarter in itertools.product(*ends)]
    whole = grid.integrals(Box(grid.low, grid.high))
    assert_allclose(sum(map(grid.integrals, parts)), whole, rtol=1e-12, atol=1e-12 * whole.max())


# integrals over polygons


@every_polygon
@every_plane
def test_integrals_over_a_polygon_are_those_of_the_cells_cut_out(polygon, grid):
    got = grid.integrals(polygon)
    assert_allclose(got, cell_by_cell(grid, outline(polygon)), atol=1e-13)
    inside = shapely.intersection(outline(polygon), shapely.box(*grid.low, *grid.high))
    assert_allclose(got.sum(), inside.area, rtol=1e-12)


@every_polygon
@every_plane
def test_integrals_over_a_polygon_are_zero_for_hats_that_stay_outside(polygon, grid):
    h = grid.spacing
    supports = shapely.box(*(grid.nodes() - h).T, *(grid.nodes() + h).T)
    box = shapely.box(*grid.low, *grid.high)
    reached = shapely.area(shapely.intersection(supports, outline(polygon) & box)) > 1e-12
    assert_array_equal(grid.integrals(polygon).ravel() > 0.0, reached)
    assert grid.integrals(polygon).min() >= 0.0


def test_a_rectangle_of_vertices_is_a_box(rng):
    for low, side in rng.uniform(0.0, 4.0, (30, 2, 2)) - [[1.5, 0.5], [0.0, 0.0]]:
        x, y = np.transpose([low, low + side])
        ring = [[x[0], y[0]], [x[1], y[0]], [x[1], y[1]], [x[0], y[1]]]
        box = PLANE.integrals(Box(low, low + side))
        assert_allclose(PLANE.integrals(Polygon(ring)), box, atol=1e-13)


@pytest.mark.parametrize("shift", [0.0, 5e6])
def test_a_border_of_thousands_of_vertices_gives_the_area_and_the_moments(shift):
    polygon = Polygon(wiggly(3000).outer + shift)
    grid = TensorGrid(*polygon.bounds(), (65, 50))
    got, (nodes, weights) = grid.integrals(polygon), polygon.quadrature(2)
    assert_allclose(got.sum(), polygon.volume, rtol=1e-9)
    for power in ((1, 0), (0, 1), (1, 1)):
        # the hats reproduce 1, x, y and xy
        f = [np.prod((X - shift) ** power, axis=1) for X in (grid.nodes(), nodes)]
        assert_allclose(got.ravel() @ f[0], weights @ f[1], atol=1e-8)


@every_polygon
def test_integrals_over_the_parts_of_a_polygon_add_up(polygon):
    whole = PLANE.integrals(polygon)
    cuts = [Box((-1, 0), (0.77, 4.5)), Box((0.77, 0), (5, 1.3)), Box((0.77, 1.3), (5, 4.5))]
    parts = [integrals_within(PLANE, cut, polygon) for cut in cuts]
    assert_allclose(sum(parts), whole, atol=1e-12)
    triangles = [PLANE.integrals(Polygon(ring)) for ring in polygon._triangles]
    assert_allclose(sum(triangles), whole, atol=1e-12)


# closed axes


def test_the_end_of_a_closed_axis_is_its_beginning_on_every_grid(rng):
    grid = TensorGrid((0.0, 5.0), (1.0, 7.0), (4, 9), closed=(1,))
    values, x = rng.normal(size=grid.shape), rng.uniform(size=20)
    low, high = (np.column_stack([x, np.full(20, end)]) for end in (5.0, 7.0))
    assert_array_equal(grid.interpolate(values, high), grid.interpolate(values, low))
    assert_array_equal(grid.slopes(values, high), grid.slopes(values, low))
    assert_array_equal(grid.bin(high, x), grid.bin(low, x))
    assert grid.coarser().closed == (1,)
    assert grid != TensorGrid(grid.low, grid.high, grid.shape)
    round_trip = grid.coarser().bin(low, x)
    assert_allclose(grid.restrict(grid.bin(low, x)), round_trip, atol=1e-15)
    with pytest.raises(ValueError, match=r"closed must be axes from 0 to 1, got \(2,\)\."):
        grid.replace(closed=(2,))


# regions within windows


@every_polygon
@pytest.mark.parametrize("window", [LAND, BENT], ids=["land", "bent"])
def test_integrals_within_a_polygon_are_those_over_the_intersection(polygon, window):
    common = shapely.intersection(outline(polygon), outline(window))
    got = integrals_within(PLANE, polygon, window)
    assert_allclose(got, cell_by_cell(PLANE, common), atol=1e-13)
    assert_allclose(got, integrals_within(PLANE, window, polygon), atol=1e-13)


@pytest.mark.parametrize("region", [Box((0.3, 0.2), (1.5, 3.3)), Box((-5, 1.2), (2, 9))], ids=repr)
@pytest.mark.parametrize("window", [LAND, BENT, Box((0, 0), (1, 2))], ids=lambda w: f"{w!r:.20}")
def test_integrals_of_a_box_within_a_window_are_those_over_the_intersection(region, window):
    box = window.box_bounds()
    shape = outline(window) if box is None else shapely.box(*box[0], *box[1])
    common = shapely.intersection(shape, shapely.box(*region.low, *region.high))
    oracle = cell_by_cell(PLANE, common)
    assert_allclose(integrals_within(PLANE, region, window), oracle, atol=1e-13)
    assert_allclose(integrals_within(PLANE, window, region), oracle, atol=1e-13)


@pytest.mark.parametrize(
    ("region", "window"),
    [
        (Box((0, 0), (1, 1)), Box((1, 0), (2, 1))),
        (Box((0, 0), (0.6, 1)), Box((1.3, 0), (2, 1))),
        (Box((5, 5), (6, 6)), LAND),
        (Box((4, 0), (5, 4)), LAND),
        (Polygon(np.add(SQUARE, 4.0)), LAND),
        (Polygon(np.add(SQUARE, (9.0, 0.0))), BENT),
    ],
    ids=lambda w: f"{w!r:.30}",
)
def test_windows_that_at_most_touch_have_nothing_in_common(region, window):
    assert_array_equal(integrals_within(PLANE, region, window), np.zeros(PLANE.shape))


ISLANDS = Polygons((LAND, Polygon([[1.2, 1.85], [1.6, 1.95], [1.1, 1.95]])))
SHORE = Polygons(
    (Polygon([[-0.5, 0.2], [1.3, 1.9], [0, 3]]), Polygon([[2, 0.1], [5, 2], [1.5, 3]]))
)


@pytest.mark.parametrize("region", [Box((0.3, 0.2), (1.5, 3.3)), BENT, SHORE, ISLANDS], ids=repr)
def test_integrals_within_polygons_are_added_over_their_parts(region):
    parts = sum(integrals_within(PLANE, region, part) for part in ISLANDS.parts)
    assert_allclose(integrals_within(PLANE, region, ISLANDS), parts, atol=1e-14)
    assert_allclose(integrals_within(PLANE, ISLANDS, region), parts, atol=1e-14)
    assert parts.sum() > 0.5


TIME = TensorGrid((0.0,), (365.0,), (4,))
CUBE = TensorGrid((-1, 0, 0), (4, 4, 365), (11, 6, 4))


SPRING, CORNER = Interval(30, 70), Box((0, 0), (2, 2))


@pytest.mark.parametrize(
    ("region", "window", "place", "city"),
    [
        (LAND * SPRING, LAND * YEAR, LAND, LAND),
        (BENT * SPRING, LAND * YEAR, BENT, LAND),
        (SHORE * SPRING, ISLANDS * YEAR, SHORE, ISLANDS),
        (CORNER * SPRING, LAND * YEAR, CORNER, LAND),
        (Interval(0, 2) * Box((0, 30), (2, 70)), LAND * YEAR, CORNER, LAND),
        (LAND * YEAR, Box((0, 0, 30), (2, 2, 70)), CORNER, LAND),
        (
            Box((0, 0, 30), (2, 2, 70)),
            Interval(0, 1) * (Interval(0, 3) * YEAR),
            CORNER,
            Box((0, 0), (1, 3)),
        ),
    ],
    ids=lambda w: f"{w!r:.30}",
)
def test_integrals_over_space_and_time_are_products(region, window, place, city):
    oracle = np.multiply.outer(integrals_within(PLANE, place, city), TIME.integrals(SPRING))
    assert_allclose(integrals_within(CUBE, region, window), oracle, atol=1e-12)


def test_products_with_polygons_on_other_axes_are_refused():
    with pytest.raises(ValueError, match="polygons on the same axes"):
        integrals_within(CUBE, YEAR * LAND, LAND * YEAR)


def test_time_may_come_before_space():
    flipped = TensorGrid((0, -1, 0), (365, 4, 4), (4, 11, 6))
    oracle = np.moveaxis(CUBE.integrals(LAND * Interval(9, 200)), -1, 0)
    assert_allclose(flipped.integrals(Interval(9, 200) * LAND), oracle, rtol=1e-12)


# a value like any other


def test_a_grid_is_compared_and_printed_by_its_content():
    grid = TensorGrid([0, 1], np.array([1.0, 3.0]), [np.int64(2), 5])
    assert repr(grid) == "TensorGrid((0.0, 1.0), high=(1.0, 3.0), shape=(2, 5))"
    assert grid == eval(repr(grid)) == grid.replace(shape=(2, 5)) != grid.replace(shape=(2, 4))
    assert hash(grid) == hash(eval(repr(grid)))
    assert (grid.dimension, grid.size, grid.spacing.tolist()) == (2, 10, [1.0, 0.5])
    assert_array_equal(grid.nodes()[:3], [[0.0, 1.0], [0.0, 1.5], [0.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TensorGrid((0,), (0,), (3,)), "low must be below high"),
        (lambda: TensorGrid((0,), (1,), (1,)), "every entry of shape must be a whole number"),
        (lambda: TensorGrid((0,), (1,), (2.5,)), "every entry of shape must be a whole number"),
        (lambda: TensorGrid((0,), (1,), (3, 3)), "shape must have one entry for each of the 1"),
        (lambda: TensorGrid((1e9,), (1e9 + 1e-6,), (99,)), "nodes that differ in double"),
        (lambda: PLANE.bin([[0.0, 0.0]], [1.0, 2.0]), "weights must have one number for each"),
        (lambda: PLANE.bin([[0.0, np.nan]], [1.0]), "X must contain only finite numbers"),
        (lambda: PLANE.bin([[0.0, 0.0]], [np.inf]), "weights must contain only finite numbers"),
        (lambda: PLANE.bin([[0.0]], [1.0]), "X must have 2 columns"),
        (lambda: PLANE.interpolate(np.ones(66), [[0.0, 0.0]]), "values must have one number for"),
        (lambda: PLANE.prolong(np.ones(PLANE.shape)), "values must have one number for each"),
        (lambda: PLANE.integrals(YEAR), "region must have 2 axes, got 1"),
        (lambda: integrals_within(PLANE, LAND, YEAR), "window must have 2 axes, got 1"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_region_that_is_no_window_is_refused():
    with pytest.raises(TypeError, match="region must be a Window"):
        PLANE.integrals((0, 1))
