"""Windows: oracles are the shoelace formula, a ray count and closed-form moments."""

import itertools
import pickle
import sys
import time
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hplus import windows
from hplus.windows import WINDOWS, Box, Cycle, Interval, Polygon, Polygons, Product, Window

SQUARE = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])
HOLE = np.array([[1.0, 1.0], [1.0, 2.0], [2.5, 2.0]])
LAND = Polygon(SQUARE, holes=(HOLE,), unit="km")
BENT = Polygon([[0, 0], [3, 1], [1, 1.5], [2, 4], [-1, 2]])
YEAR = Interval(0, 365, unit="day")
ISLET = Polygon([[1.2, 1.85], [1.6, 1.95], [1.1, 1.95]], unit="km")
COAST = Polygon([[4, 1], [6, 0.5], [5, 2], [6, 3.3], [4, 2.7]], unit="km")
ISLANDS = Polygons((LAND, ISLET, COAST))

FAMILY = [
    Interval(-1.5, 2.0),
    YEAR,
    Cycle(24, unit="h"),
    Box([0.5], [0.75]),
    Box((-1, 2, 0), (1, 5, 0.25), unit="m"),
    LAND,
    BENT,
    ISLANDS,
    LAND * YEAR,
    YEAR * ISLANDS,
    LAND * Cycle(7),
    YEAR * BENT,
    Interval(0, 1) * Box((0, 0), (1, 2)) * Interval(3, 4),
    Interval(0, 1) * (BENT * Interval(-1, 0)),
]
family = pytest.mark.parametrize("window", FAMILY, ids=repr)


# oracles


def shoelace(ring):
    x, y = np.asarray(ring, dtype=float).T
    return 0.5 * abs(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def ray_count(rings, X):
    """Even-odd rule: is the number of edges met by the ray to the right of each point odd?"""
    inside = np.zeros(len(X), dtype=bool)
    for ring in rings:
        for a, b in zip(ring, np.roll(ring, -1, axis=0), strict=True):
            spans = (a[1] > X[:, 1]) != (b[1] > X[:, 1])
            slope = (b[0] - a[0]) / (b[1] - a[1]) if a[1] != b[1] else 0.0
            inside ^= spans & (X[:, 0] < a[0] + slope * (X[:, 1] - a[1]))
    return inside


def ring_moment(ring, p, q):
    """∫ x^p y^q inside a ring, by Green's theorem: one polynomial in the vertices an edge."""
    x, y = ring.T
    u, v = np.roll(ring, -1, axis=0).T
    terms = sum(
        comb(k + m, m) * comb(p + q - k - m, q - m) * u**k * x ** (p - k) * v**m * y ** (q - m)
        for k, m in itertools.product(range(p + 1), range(q + 1))
    )
    area = x * v - u * y
    return np.sign(area.sum()) * (area @ terms) / ((p + q + 2) * (p + q + 1) * comb(p + q, p))


def polygon_moment(polygon, p, q):
    outer, *holes = (ring_moment(ring, p, q) for ring in (polygon.outer, *polygon.holes))
    return outer - sum(holes)


def box_moment(low, high, powers):
    low, high, k = np.asarray(low), np.asarray(high), np.add(powers, 1)
    return np.prod((high**k - low**k) / k)


def moment(window, powers):
    if isinstance(window, Polygon | Polygons):
        return sum(polygon_moment(polygon, *powers) for polygon in window.polygons())
    if isinstance(window, Product):
        split = window.left.dimension
        return moment(window.left, powers[:split]) * moment(window.right, powers[split:])
    return box_moment(*window.bounds(), powers)


def wiggly(n, rng):
    angle = np.linspace(0.0, 2.0 * np.pi, n, endpoint=False)
    radius = 200.0 * (1.0 + 0.2 * np.sin(9 * angle) + 0.05 * np.sin(57 * angle))
    radius *= rng.uniform(0.97, 1.0, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]) + 300.0


@st.composite
def boxes(draw):
    edges = st.tuples(st.floats(-10, 10), st.floats(0.01, 10))
    low, side = np.transpose(draw(st.lists(edges, min_size=1, max_size=3)))
    return Box(low, low + side)


@st.composite
def rings(draw, radii):
    """A ring that is star-shaped around 0, in either direction."""
    radius = np.array(draw(st.lists(radii, min_size=5, max_size=12)))
    angle = draw(st.sampled_from([-2.0, 2.0])) * np.pi * np.arange(len(radius)) / len(radius)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


@st.composite
def polygons(draw):
    """A star-shaped polygon with a star-shaped hole, anywhere in the plane."""
    shift = np.array(draw(st.tuples(st.floats(-20, 20), st.floats(-20, 20))))
    outer, hole = draw(rings(st.floats(1.0, 3.0))), draw(rings(st.floats(0.1, 0.7)))
    return Polygon(outer + shift, holes=(hole + shift,))


# laws of the whole family


def test_every_class_is_in_the_family():
    assert {type(window) for window in FAMILY} == set(WINDOWS)


@family
def test_quadrature_has_positive_weights_that_sum_to_the_volume_at_nodes_inside(window):
    for order in (1, 2, 5):
        nodes, weights = window.quadrature(order)
        assert nodes.shape == (len(weights), window.dimension)
        assert weights.min() > 0.0
        assert window.contains(nodes).all()
        np.testing.assert_allclose(weights.sum(), window.volume, rtol=1e-13)


@family
def test_volume_is_the_closed_form(window):
    np.testing.assert_allclose(window.volume, moment(window, (0,) * window.dimension), rtol=1e-14)


@family
def test_samples_lie_inside_and_have_the_moments_of_the_uniform_distribution(window):
    n, d = 4000, window.dimension
    X = window.sample(n, random_state=0)
    assert window.require("X", X).shape == (n, d)
    for powers in itertools.product(range(3), repeat=d):
        if sum(powers) <= 2:
            values = np.prod(X**powers, axis=1)
            exact = moment(window, powers) / window.volume
            assert abs(values.mean() - exact) <= 4.0 * values.std() / np.sqrt(n)


@family
def test_the_same_random_state_gives_the_same_points(window):
    first, again = window.sample(9, random_state=3), window.sample(9, random_state=3)
    np.testing.assert_array_equal(first, again)
    rng = np.random.RandomState(3)
    assert not np.array_equal(window.sample(9, rng), window.sample(9, rng))
    assert window.sample(0).shape == (0, window.dimension)


@family
def test_bounds_are_those_of_the_window_and_tight(window):
    low, high = window.bounds()
    X = window.sample(20_000, random_state=1)
    assert np.all(low <= X)
    assert np.all(high >= X)
    np.testing.assert_allclose(X.min(axis=0), low, atol=0.1 * (high - low).max())
    np.testing.assert_allclose(X.max(axis=0), high, atol=0.1 * (high - low).max())


@family
def test_only_windows_that_are_boxes_have_box_bounds(window):
    low, high = window.bounds()
    full = np.isclose(np.prod(high - low), window.volume)
    assert (window.box_bounds() is not None) == full
    if full:
        np.testing.assert_array_equal(window.box_bounds(), (low, high))


@family
def test_points_that_are_not_finite_or_far_away_are_outside(window):
    X = window.sample(5, random_state=0)
    X[0, -1], X[1, 0], X[2, 0], X[3, -1] = np.nan, np.inf, -1e9, 1e300
    assert window.contains(X).tolist() == [False, False, False, False, True]
    assert window.contains(X[:0]).shape == (0,)


@family
def test_a_window_is_a_value(window):
    again = eval(repr(window), vars(windows))
    assert again == window
    assert hash(again) == hash(window)
    assert window.replace() == window
    assert all(window != other for other in FAMILY if other is not window)


@family
def test_a_pickled_window_is_equal_and_works(window):
    X = window.sample(5, random_state=0)
    again = pickle.loads(pickle.dumps(window))
    assert again == window
    assert again.contains(X).all()


@family
def test_one_unit_an_axis(window):
    assert len(window.axis_units) == window.dimension == len(window.bounds()[0])
    assert window.unit == (window.axis_units[0] if len(set(window.axis_units)) == 1 else "")


# boxes


@given(boxes(), st.integers(1, 4))
def test_box_quadrature_is_exact_to_degree_2_order_minus_1_on_every_axis(box, order):
    nodes, weights = box.quadrature(order)
    assert len(weights) == order**box.dimension
    for powers in itertools.product((0, 1, 2 * order - 1), repeat=box.dimension):
        scale = weights @ np.prod(np.abs(nodes) ** powers, axis=1)
        found = weights @ np.prod(nodes**powers, axis=1)
        assert abs(found - box_moment(box.low, box.high, powers)) <= 1e-11 * scale + 1e-13


@given(boxes())
def test_corners_belong_to_a_box_and_points_just_beyond_do_not(box):
    low, high = box.bounds()
    assert box.contains([low, high, 0.5 * (low + high)]).all()
    assert not box.contains([np.nextafter(low, -np.inf), np.nextafter(high, np.inf)]).any()


@given(boxes())
def test_a_box_is_the_product_of_its_intervals(box):
    first, *rest = (Interval(a, b) for a, b in zip(box.low, box.high, strict=True))
    product = first
    for interval in rest:
        product = product * interval
    np.testing.assert_allclose(product.volume, box.volume)
    np.testing.assert_array_equal(product.box_bounds(), box.box_bounds())
    for found, expected in zip(product.quadrature(3), box.quadrature(3), strict=True):
        np.testing.assert_allclose(found, expected)


@given(boxes())
def test_the_largest_random_number_does_not_carry_a_sample_past_the_edge(box):
    class Largest(np.random.RandomState):
        def random_sample(self, size):
            return np.full(size, np.nextafter(1.0, 0.0))

    assert box.contains(box.sample(1, Largest())).all()


# polygons


@given(polygons())
def test_polygon_area_is_the_shoelace_formula(polygon):
    area = shoelace(polygon.outer) - sum(shoelace(hole) for hole in polygon.holes)
    np.testing.assert_allclose(polygon.volume, area, rtol=1e-10)


@given(polygons(), st.integers(0, 100))
def test_polygon_contains_what_a_ray_count_says(polygon, seed):
    low, high = polygon.bounds()
    X = Box(low - 0.1, high + 0.1).sample(300, random_state=seed)
    expected = ray_count((polygon.outer, *polygon.holes), X)
    np.testing.assert_array_equal(polygon.contains(X), expected)


@given(polygons(), st.integers(1, 4))
def test_polygon_quadrature_is_exact_to_total_degree_2_order_minus_1(polygon, order):
    nodes, weights = polygon.quadrature(order)
    top = 2 * order - 1
    for p in range(top + 1):
        q = top - p
        found = weights @ (nodes[:, 0] ** p * nodes[:, 1] ** q)
        # the closed form cancels like |x|^p |y|^q over the box around 0
        reach = np.abs(polygon.outer).max()
        assert abs(found - polygon_moment(polygon, p, q)) <= 1e-11 * reach ** (top + 2)


@given(polygons(), st.integers(0, 100))
def test_polygon_samples_lie_inside_and_average_to_the_centroid(polygon, seed):
    X = polygon.sample(500, random_state=seed)
    assert polygon.contains(X).all()
    centroid = np.array([polygon_moment(polygon, 1, 0), polygon_moment(polygon, 0, 1)])
    error = X.mean(axis=0) - centroid / polygon.volume
    assert np.all(np.abs(error) <= 5.0 * X.std(axis=0) / np.sqrt(len(X)))


def test_boundaries_of_outer_and_hole_belong_to_a_polygon():
    for ring in (SQUARE, HOLE):
        assert LAND.contains(ring).all()
        assert LAND.contains(0.5 * (ring + np.roll(ring, 1, axis=0))).all()
    assert not LAND.contains([HOLE.mean(axis=0), [4.0 + 1e-12, 2.0]]).any()


def test_closed_and_open_rings_are_the_same_polygon_and_arrays_are_read_only():
    closed = Polygon(np.vstack([SQUARE, SQUARE[:1]]), holes=[np.vstack([HOLE, HOLE[:1]])])
    assert closed == Polygon(SQUARE.tolist(), holes=(HOLE.tolist(),))
    assert not any(ring.flags.writeable for ring in (closed.outer, *closed.holes))


def test_a_polygon_does_not_change_with_the_array_it_was_made_of():
    vertices = SQUARE.copy()
    polygon = Polygon(vertices)
    vertices[:] = 0.0
    assert polygon == Polygon(SQUARE)


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e8])
def test_nodes_of_flat_triangles_stay_inside_and_weigh_nothing_extra(shift, rng):
    # duplicated vertices, and corners on a coarse grid, make triangles without a height
    for _ in range(40):
        angle = np.sort(rng.uniform(0.0, 2.0 * np.pi, 30))
        radius = rng.uniform(0.2, 3.0, 30)
        ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).round(1)
        try:
            polygon = Polygon(np.repeat(ring, 2, axis=0) + shift)
        except ValueError:
            continue  # rounding made it cross itself
        nodes, weights = polygon.quadrature(3)
        assert weights.min() > 0.0
        assert polygon.contains(nodes).all()
        np.testing.assert_allclose(weights.sum(), polygon.volume, rtol=1e-9)


def test_axes_of_very_different_size_are_no_reason_to_drop_triangles():
    start = 1.7e18
    polygon = Polygon([[start, 0], [start + 1e15, 0], [start + 1e15, 1], [start, 0.5]])
    np.testing.assert_allclose(polygon.quadrature(1)[1].sum(), 0.75e15, rtol=1e-12)


def test_2325_vertices_are_quick(rng):
    ring = wiggly(2325, rng)
    start = time.process_time()
    polygon = Polygon(ring)
    X = polygon.sample(10_000, random_state=0)
    nodes, weights = polygon.quadrature(3)
    assert polygon.contains(X).all()
    assert time.process_time() - start < 1.0
    np.testing.assert_allclose([polygon.volume, weights.sum()], shoelace(ring), rtol=1e-12)
    np.testing.assert_allclose(weights @ nodes[:, 0] ** 5, ring_moment(ring, 5, 0), rtol=1e-11)


# several polygons


def test_polygons_hold_what_one_of_the_parts_holds_seams_included(rng):
    X = Box((-0.5, -0.5), (6.5, 4.5)).sample(20_000, random_state=0)
    seam = np.column_stack([np.full(50, 4.0), np.linspace(1.0, 2.7, 50)])
    for points in (X, seam, ISLET.outer, COAST.outer):
        oracle = np.any([part.contains(points) for part in ISLANDS.parts], axis=0)
        np.testing.assert_array_equal(ISLANDS.contains(points), oracle)
    assert ISLANDS.contains(seam).all()


def test_polygons_are_drawn_from_in_proportion_to_their_areas():
    X = ISLANDS.sample(20_000, random_state=0)
    counts = np.array([part.contains(X).sum() for part in ISLANDS.parts])
    expected = len(X) * np.array([part.volume for part in ISLANDS.parts]) / ISLANDS.volume
    assert np.all(np.abs(counts - expected) <= 4.0 * np.sqrt(expected))


def test_polygons_take_their_unit_from_the_parts_or_give_it_to_them():
    bare = tuple(part.replace(unit="") for part in ISLANDS.parts)
    assert (ISLANDS.unit, ISLANDS.volume_unit) == ("km", "km²")
    assert Polygons(list(bare), unit="km") == Polygons((bare[0], *ISLANDS.parts[1:])) == ISLANDS
    assert Polygons(bare).unit == ""


def test_a_seam_that_was_rounded_is_a_seam_and_an_overlap_is_not():
    start, end = np.array([1e5 + 0.1, 0.3]), np.array([1e5 + 1.3, 7.7])
    seam = [start + t * (end - start) for t in np.linspace(0.0, 1.0, 8)]
    left, right = Polygon([start, end, [1e5 - 3.0, 5.0]]), np.array([*seam, [1e5 + 9.0, 2.0]])
    both = Polygons((left, Polygon(right)))
    assert both.volume == pytest.approx(left.volume + Polygon(right).volume)
    with pytest.raises(ValueError, match="in both part 0 and part 1"):
        Polygons((left, Polygon(right - (0.01, 0.0))))


# products


@given(boxes(), polygons(), st.integers(0, 100))
def test_a_product_multiplies_volumes_and_contains_is_and(box, polygon, seed):
    product = polygon * box
    np.testing.assert_allclose(product.volume, polygon.volume * box.volume)
    low, high = product.bounds()
    X = Box(low, high + 0.5).sample(200, random_state=seed)
    both = polygon.contains(X[:, :2]) & box.contains(X[:, 2:])
    np.testing.assert_array_equal(product.contains(X), both)


@pytest.mark.parametrize("window", [w for w in FAMILY if isinstance(w, Product)], ids=repr)
def test_product_quadrature_integrates_products_of_powers(window):
    nodes, weights = window.quadrature(3)
    for powers in itertools.product((0, 1, 2), repeat=window.dimension):
        found = weights @ np.prod(nodes**powers, axis=1)
        np.testing.assert_allclose(found, moment(window, powers), rtol=1e-12)


def test_a_window_times_a_number_is_refused():
    with pytest.raises(TypeError):
        YEAR * 2
    with pytest.raises(
        TypeError, match=r"right must be a Window such as Interval\(0, 1\), got 2\."
    ):
        Product(YEAR, 2)


# units


@pytest.mark.parametrize(
    ("window", "volume_unit", "axis_units", "unit"),
    [
        (Interval(0, 1), "", ("",), ""),
        (YEAR, "day", ("day",), "day"),
        (Box((0, 0, 0), (1, 1, 1), unit="m"), "m³", ("m",) * 3, "m"),
        (LAND, "km²", ("km", "km"), "km"),
        (ISLANDS * YEAR, "km² day", ("km", "km", "day"), ""),
        (LAND * YEAR, "km² day", ("km", "km", "day"), ""),
        (YEAR * LAND * YEAR, "day² km²", ("day", "km", "km", "day"), ""),
        (YEAR * Interval(0, 1), "day", ("day", ""), ""),
        (YEAR * YEAR, "day²", ("day", "day"), "day"),
        (Interval(0, 1, unit="m/s"), "m/s", ("m/s",), "m/s"),
        (Interval(0, 1, unit="m/s") * YEAR, "(m/s) day", ("m/s", "day"), ""),
        (Box((0,) * 12, (1,) * 12, unit="m/s"), "(m/s)¹²", ("m/s",) * 12, "m/s"),
    ],
)
def test_units_of_axes_and_volume(window, volume_unit, axis_units, unit):
    assert (window.volume_unit, window.axis_units, window.unit) == (volume_unit, axis_units, unit)


# the door


def test_require_says_how_many_points_are_outside_and_where_the_first_is():
    X = np.zeros((200, 2))
    X[[17, 30, 199], 1] = -2.0
    with pytest.raises(ValueError, match="window") as error:
        Box((-1, -1), (1, 1)).require("X", X)
    assert str(error.value) == (
        "X must lie in the window, got 3 of 200 points outside Box((-1.0, -1.0), high=(1.0, 1.0)), "
        "the first in row 17: drop them or widen the window."
    )


def test_require_keeps_the_message_short_when_the_window_has_many_vertices(rng):
    with pytest.raises(ValueError, match=r"outside Polygon\(.*…, the first in row 0") as error:
        Polygon(wiggly(500, rng)).require("X", [[1e4, 0.0]])
    assert len(str(error.value)) < 250


@family
def test_require_returns_points_inside_and_refuses_nan_and_the_wrong_shape(window):
    X = window.sample(4, random_state=0)
    np.testing.assert_array_equal(window.require("X", X.tolist()), X)
    with pytest.raises(ValueError, match="events must have two dimensions"):
        window.require("events", X[0])
    with pytest.raises(ValueError, match=r"events must have \d columns?, got \d"):
        window.require("events", np.zeros((2, window.dimension + 1)))
    X[2, 0] = np.nan
    with pytest.raises(
        ValueError, match="events must contain only finite numbers, got 1 NaN or inf"
    ):
        window.require("events", X)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Interval(1, 1), "low must be below high on every axis, got 1 and 1."),
        (lambda: Interval(0, np.nan), "high must be a number, got nan."),
        (lambda: Interval(0, np.inf).quadrature(3), "window must have finite ends, got Interval("),
        (lambda: Interval([0], [1]), "low must be a number, got [0]."),
        (lambda: Interval("a", 1), "low must contain only real numbers, got str."),
        (lambda: Interval(0, 1, unit=3), "unit must be a string, for example 'km', got 3."),
        (
            lambda: Box((0, 2), (1, 1)),
            "low must be below high on every axis, got (0, 2) and (1, 1)",
        ),
        (lambda: Cycle(0), "length must be a positive finite number, got 0."),
        (lambda: Cycle(24, unit=1), "unit must be a string, for example 'km', got 1."),
        (lambda: Box((0, 0), (1,)), "low must be below high on every axis, got (0, 0) and (1,)."),
        (lambda: Box((0, 0), (1, np.inf)), "high must be one finite number for each axis, got"),
        (lambda: Box(0, 1), "low must be one finite number for each axis, got 0."),
        (lambda: Box((), ()), "low must be one finite number for each axis, got ()."),
        (lambda: Box((-1e308,), (1e308,)), "must be positive and finite, got inf: rescale"),
        (lambda: Box((0,) * 3, (1e-200,) * 3), "must be positive and finite, got 0.0: rescale"),
        (lambda: Polygon([[0, 0], [1, 1]]), "outer must have at least 3 vertices, got 2."),
        (lambda: Polygon([[0, 0], [1, 1], [0, 0]]), "outer must have at least 3 vertices, got 2."),
        (lambda: Polygon([]), "outer must have one vertex per row, shape (n, 2), got (0,)."),
        (
            lambda: Polygon(np.eye(3)),
            "outer must have one vertex per row, shape (n, 2), got (3, 3).",
        ),
        (lambda: Polygon([[0, 0], [1, 2], [3, 6]]), "outer must enclose an area, got 3 vertices"),
        (
            lambda: Polygon([[1e9, 0], [1e9, 1], [1e9 + 1e-6, 2]]),
            "outer must enclose an area, got 3",
        ),
        (
            lambda: Polygon([[0, 0], [1, 0], [0, np.nan]]),
            "outer must contain only finite numbers, got 1",
        ),
        (lambda: Polygon(SQUARE[[0, 2, 1, 3]]), "got self-intersection near (2, 2)"),
        (lambda: Polygon(SQUARE, holes=[HOLE + 9.0]), "got hole lies outside outer near (10, 10)"),
        (lambda: Polygon(SQUARE, holes=[3 * SQUARE - 4]), "got hole lies outside outer"),
        (lambda: Polygon(SQUARE, holes=[SQUARE]), "got self-intersection near"),
        (
            lambda: Polygon(SQUARE, holes=[HOLE, HOLE * 1.1]),
            "the holes apart and inside outer, got",
        ),
        (lambda: Polygon(SQUARE, holes=HOLE), "hole 0 must have one vertex per row"),
        (lambda: Polygon(SQUARE, holes=3), "holes must be a sequence of rings, got 3."),
        (lambda: Polygon(SQUARE, unit=None), "unit must be a string, for example 'km', got None."),
        (lambda: Polygon(SQUARE * 1e160), "must be positive and finite, got inf: rescale"),
        (lambda: Polygons(()), "parts must contain at least one Polygon, got none."),
        (lambda: Polygons(LAND), "parts must be a tuple of Polygons, got Polygon("),
        (lambda: Polygons((LAND, YEAR)), "parts must be a tuple of Polygons, got (Polygon("),
        (
            lambda: Polygons((COAST, LAND, BENT)),
            "in both part 1 and part 2: merge them or cut one.",
        ),
        (lambda: Polygons((LAND,), unit="m"), "parts must share one unit, got ['km', 'm']"),
        (lambda: Polygons((BENT,), unit=3), "unit must be a string, for example 'km', got 3."),
        (lambda: YEAR.sample(-1), "n must be a whole number of at least 0, got -1."),
        (lambda: BENT.sample(1.5), "n must be a whole number of at least 0, got 1.5."),
        (lambda: YEAR.quadrature(0), "order must be a whole number of at least 1, got 0."),
        (lambda: BENT.quadrature(2.0), "order must be a whole number of at least 1, got 2.0."),
        (lambda: BENT.contains([1.0, 2.0]), "X must have two dimensions, one point per row"),
        (lambda: YEAR.contains([[1.0, 2.0]]), "X must have 1 column, got 2."),
    ],
)
def test_bad_input_gets_one_clear_sentence(make, message):
    with pytest.raises((TypeError, ValueError)) as error:
        make()
    assert message in str(error.value)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("window", "count"), [(Box((0,) * 9, (1,) * 9), 3**9), (LAND, 7 * 9), (BENT * BENT, 27**2)]
)
def test_a_quadrature_that_does_not_fit_in_memory_is_refused(window, count, monkeypatch):
    monkeypatch.setattr("hplus._checks.FITS_ANYWHERE", 0.0)
    monkeypatch.setattr("hplus._checks.memory_limit", lambda: 1e3)
    with pytest.raises(
        MemoryError, match=f"A quadrature of {count} nodes needs .*: lower the order"
    ):
        window.quadrature(3)


def test_windows_overlap_if_they_have_more_than_a_border_in_common():
    inside, cut, beside, far = (
        Box((a, 1.2), (b, 1.8)) for a, b in ((2.6, 2.8), (3, 9), (-3, 0), (7, 8))
    )
    in_hole = Box((1.1, 1.7), (1.3, 1.9))
    around = Polygon([[-9, -9], [9, -9], [9, 9], [-9, 9]])
    parts = [inside, cut, beside, far, in_hole, around, Polygon(HOLE), LAND, COAST]
    found = windows.overlapping(LAND, parts).tolist()
    assert found == [True, True, False, False, False, True, False, True, False]
    assert windows.overlapping(cut, [LAND, around, beside]).tolist() == [True, True, False]
    assert windows.overlapping(far, [LAND]).tolist() == [False]
    line = [Interval(-1, 0), Interval(364, 370), Interval(400, 500)]
    assert windows.overlapping(YEAR, line).tolist() == [False, True, False]


def test_without_shapely_a_polygon_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "shapely", None)
    with pytest.raises(ImportError, match=r"^Polygon needs shapely: pip install 'hplus\[geo\]'\.$"):
        Polygon(SQUARE)
    assert Interval(0, 1).volume == 1.0


def test_windows_are_abstract_or_final():
    with pytest.raises(TypeError, match="abstract"):
        Window()
    assert all(getattr(cls, "__final__", False) for cls in WINDOWS)
