"""Functions on the nodes of a grid: non-negative, exact integrals, samples that follow them."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from scipy.interpolate import RegularGridInterpolator

from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.storage.documents import build, pack
from hplus.windows import Box, Interval, Polygon

SQUARE = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])
LAND = Polygon(SQUARE, holes=([[1.0, 1.0], [1.0, 2.0], [2.5, 2.0]],), unit="km")
BENT = Polygon([[0, 0], [3, 1], [1, 1.5], [2, 4], [-1, 2]])

WINDOWS = [
    (Interval(-1.0, 2.0), (9,)),
    (Box((0.0, -2.0), (3.0, 5.0)), (7, 5)),
    (LAND, (8, 6)),
    (BENT, (9, 12)),
    (BENT * Interval(0, 365, unit="day"), (6, 5, 4)),
]
every_window = pytest.mark.parametrize(("window", "shape"), WINDOWS, ids=lambda w: f"{w!r:.30}")


def draw(window, shape, rng, margin=0.0):
    """exp(z) for a rough z, on a grid that may reach beyond the window."""
    low, high = window.bounds()
    side = margin * (high - low)
    return GridFunction(
        window, TensorGrid(low - side, high + side, shape), np.exp(rng.normal(size=shape))
    )


def quarters(window):
    """Boxes that tile the smallest box around a window, two on each axis."""
    axes = [
        ((a, 0.6 * a + 0.4 * b), (0.6 * a + 0.4 * b, b))
        for a, b in zip(*window.bounds(), strict=True)
    ]
    return [Box(*zip(*sides, strict=True)) for sides in itertools.product(*axes)]


@every_window
def test_values_are_interpolated_and_never_negative(window, shape, rng):
    f, X = draw(window, shape, rng), window.sample(300, 0)
    assert_allclose(f(X), RegularGridInterpolator(f.grid.axes, f.values)(X), rtol=1e-12)
    rough = GridFunction(window, f.grid, np.where(f.values < 1.0, 0.0, 1e300))
    assert rough(X).min() >= 0.0


@every_window
def test_the_gradient_is_a_finite_difference(window, shape, rng):
    f, h = draw(window, shape, rng), 1e-6
    X = window.sample(100, 0)
    t = np.mod((X - f.grid.low) / f.grid.spacing, 1.0)
    X = X[np.all((t > 0.01) & (t < 0.99), axis=1)]
    for axis, step in enumerate(h * np.eye(X.shape[1])):
        numeric = (f(X + step) - f(X - step)) / (2.0 * h)
        assert_allclose(f.gradient(X)[:, axis], numeric, rtol=1e-5, atol=1e-7)


def test_the_integral_over_an_interval_is_scipys(rng):
    f = draw(*WINDOWS[0], rng)
    for a, b in [(-1.0, 2.0), (-0.2, 0.9), (1.0, 1.01)]:
        oracle, _ = integrate.quad(lambda x: f([[x]])[0], a, b, points=f.grid.axes[0], limit=100)
        assert_allclose(f.integral(Interval(a, b)), oracle, rtol=1e-9)


@every_window
def test_the_integral_of_a_multilinear_function_is_that_of_a_quadrature(window, shape):
    low, high = window.bounds()
    grid = TensorGrid(low, high, shape)

    def g(X):
        return np.prod(1.0 + (X - low) / (high - low), axis=1)

    nodes, weights = window.quadrature(2)
    f = GridFunction(window, grid, g(grid.nodes()).reshape(shape))
    assert_allclose(f.integral(), weights @ g(nodes), rtol=1e-12)


@every_window
def test_integrals_over_parts_add_up_to_the_whole(window, shape, rng):
    f = draw(window, shape, rng, margin=0.1)
    parts = [f.integral(part) for part in quarters(window)]
    assert_allclose(sum(parts), f.integral(), rtol=1e-12)
    assert_allclose(f.integral(window), f.integral(), rtol=1e-13)
    assert min(parts) > 0.0


@every_window
def test_samples_fall_into_regions_by_their_integrals(window, shape, rng):
    f, regions = draw(window, shape, rng, margin=0.1), quarters(window)
    X = f.sample(4000, 0)
    counts = [region.contains(X).sum() for region in regions]
    shares = np.array([f.integral(region) for region in regions]) / f.integral()
    assert X.shape == (4000, window.dimension)
    assert window.contains(X).all()
    assert stats.chisquare(counts, 4000 * shares).pvalue > 0.01


@pytest.mark.parametrize("axis", [0, 1])
def test_samples_follow_the_function_between_the_nodes(axis, rng):
    window = Box((0.0, -2.0), (3.0, 5.0))
    f = draw(window, (3, 3), rng)

    def share(x):
        high = np.array(window.high)
        high[axis] = x
        return f.integral(Box(window.low, high)) / f.integral()

    x = f.sample(1000, 1)[:, axis]
    assert stats.kstest(x, np.vectorize(share)).pvalue > 0.01


def test_samples_depend_on_the_random_state_alone(rng):
    f = draw(LAND, (8, 6), rng)
    assert_array_equal(f.sample(50, 3), f.sample(50, np.random.RandomState(3)))
    assert not np.array_equal(f.sample(50, 3), f.sample(50, 4))
    assert f.sample(0, 3).shape == (0, 2)


def test_samples_of_a_hat_stay_where_it_is_positive():
    f = GridFunction(
        Box((0, 0), (4, 4)), TensorGrid((0, 0), (4, 4), (5, 5)), np.eye(25)[6].reshape(5, 5)
    )
    X = f.sample(2000, 0)
    assert np.all((X > 0.0) & (X < 2.0))
    assert f(X).min() > 0.0


def test_samples_do_not_wait_for_nodes_far_from_the_window():
    values = np.ones((41, 41))
    values[20:], values[:, 20:] = 1e30, 1e30
    corner = Polygon([[0, 0], [1, 0], [0, 1]])
    X = GridFunction(corner, TensorGrid((0, 0), (40, 40), (41, 41)), values).sample(1000, 0)
    assert corner.contains(X).all()


@every_window
@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_the_peak_is_where_no_node_of_the_window_has_more(window, shape, margin, rng):
    f = draw(window, shape, rng, margin)
    point, value = f.peak()
    nodes = f.grid.nodes()[window.contains(f.grid.nodes())]
    assert window.contains(point[None]).all()
    assert_allclose(f(point[None]), value, rtol=1e-15)
    assert value >= f(nodes).max()
    if window.box_bounds() is not None:
        assert value >= f(window.sample(5000, 0)).max() * (1.0 - 1e-12)


def test_the_peak_of_a_box_may_lie_on_its_border_between_nodes():
    grid = TensorGrid((0, 0), (4, 4), (3, 3))
    f = GridFunction(Box((0.3, 0.5), (1.5, 3.0)), grid, np.add.outer([0, 2, 4], [4, 2, 0]))
    point, value = f.peak()
    assert_allclose([*point, value], [1.5, 0.5, 5.0], rtol=1e-15)


def test_the_peak_of_a_polygon_without_nodes_is_at_a_point_inside():
    speck = Polygon([[1.1, 1.1], [1.3, 1.1], [1.2, 1.3]])
    f = GridFunction(speck, TensorGrid((0, 0), (4, 4), (5, 5)), np.ones((5, 5)))
    point, value = f.peak()
    assert speck.contains(point[None]).all()
    assert_allclose(value, 1.0)


def test_a_multiple_has_multiples_of_values_and_integral(rng):
    f, X = draw(LAND, (8, 6), rng), LAND.sample(20, 0)
    assert_allclose((2.5 * f)(X), 2.5 * f(X), rtol=1e-14)
    assert_allclose((f * 2.5).integral(), 2.5 * f.integral(), rtol=1e-14)
    assert (0 * f).integral() == 0.0


def test_a_function_is_compared_and_printed_by_its_content():
    f = GridFunction(Interval(0, 1), TensorGrid((0,), (1,), (2,)), [1, 2])
    assert repr(f) == (
        "GridFunction(Interval(0.0, high=1.0), grid=TensorGrid((0.0,), high=(1.0,), shape=(2,)), "
        "values=[1.0, 2.0])"
    )
    assert f == eval(repr(f)) == 1 * f != 2 * f
    assert hash(f) == hash(1 * f)
    with pytest.raises(ValueError, match="read-only"):
        f.values[0] = 3.0


@every_window
def test_a_function_comes_back_from_a_document(window, shape, rng):
    f, arrays = draw(window, shape, rng), {}
    document = pack(f, "", "", arrays)
    again = build(document, dict(arrays.values()))
    assert again == f
    assert_array_equal(again(window.sample(9, 0)), f(window.sample(9, 0)))


UNIT, PAIR = Interval(0, 1), TensorGrid((0,), (1,), (2,))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: GridFunction((0, 1), PAIR, [1, 1]), TypeError, "window must be a Window"),
        (lambda: GridFunction(UNIT, (2,), [1, 1]), TypeError, "grid must be a TensorGrid"),
        (lambda: GridFunction(Interval(0, 2), PAIR, [1, 1]), ValueError, "grid must cover"),
        (lambda: GridFunction(LAND, PAIR, [1, 1]), ValueError, "grid must cover the window"),
        (lambda: GridFunction(UNIT, PAIR, [1, -1]), ValueError, "at least 0 .*got -1.0"),
        (lambda: GridFunction(UNIT, PAIR, [1]), ValueError, r"shape \(2,\), got shape \(1,\)"),
        (
            lambda: GridFunction(UNIT, PAIR, [1, np.nan]),
            ValueError,
            "values must contain only finite",
        ),
        (lambda: GridFunction(UNIT, PAIR, [0, 0]).sample(1), ValueError, "positive integral"),
        (lambda: GridFunction(UNIT, PAIR, [1, 1]).sample(-1), ValueError, "n must be a whole"),
        (lambda: -1 * GridFunction(UNIT, PAIR, [1, 1]), ValueError, "factor of a grid function"),
        (lambda: 1e300 * GridFunction(UNIT, PAIR, [1, 1e300]), ValueError, "values must contain"),
        (lambda: np.ones(2) * GridFunction(UNIT, PAIR, [1, 1]), TypeError, "factor of a grid"),
        (
            lambda: GridFunction(UNIT, PAIR, [1, 1])([[np.nan]]),
            ValueError,
            "X must contain only finite",
        ),
        (lambda: GridFunction(UNIT, PAIR, [1, 1]).integral(LAND), ValueError, "region must have"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_an_integral_too_large_for_a_number_is_refused():
    f = GridFunction(Interval(0, 100), TensorGrid((0,), (100,), (2,)), [1e308, 1e308])
    with pytest.raises(OverflowError, match="finite integral"):
        f.integral()
    assert 0.0 <= f.sample(5, 0).min()
