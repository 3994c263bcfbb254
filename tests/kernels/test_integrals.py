"""Integrals of kernels: 200 boxes against an independent quadrature, and the laws they obey."""

from functools import cache, reduce

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hplus import double_integral, mean_embedding, product_integral
from hplus.kernels import (
    Constant,
    Custom,
    Finite,
    Gaussian,
    Laplace,
    Linear,
    Matern32,
    Matern52,
    Nugget,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Scalar,
)
from hplus.windows import Box, Interval, Polygon

FAMILIES = [
    (1, Gaussian(1.0)),
    (1, Laplace(1.0)),
    (1, 2.0 * Matern32(0.8) + Matern52(1.2) + Linear()),
    (1, Matern32(1.5) * Laplace(1.0)),
    (1, Gaussian(0.9) * Periodic(2.0, scale=0.7)),
    (1, RationalQuadratic(0.8, mixture=0.4) + Periodic(3.0)),
    (1, Polynomial(3, offset=0.5) * Gaussian(1.1) + Constant(0.3)),
    (1, Matern52(0.7) * RationalQuadratic(1.5) + Gaussian(1.3)),
    (2, Gaussian([0.6, 1.5])),
    (2, Laplace(1.2) + 0.5 * Gaussian(0.8, columns=[1])),
    (2, Matern32(1.0, columns=[0]) * Matern52(0.7, columns=[1])),
    (2, Matern32(1.0)),
    (2, Matern52([0.8, 1.3])),
    (2, RationalQuadratic(0.9, mixture=0.3)),
    (2, Matern32(0.9) + RationalQuadratic(1.1, mixture=3.0) + Linear()),
    (2, Matern52(1.0) + Laplace(1.1)),
    (2, Polynomial(2, offset=0.7) + Gaussian(1.0)),
    (2, Linear() * Matern32(1.3)),
    (3, Gaussian([0.8, 1.0], columns=[2, 0]) * Laplace(1.5, columns=[1])),
    (3, Matern52(1.0) + Constant(0.2)),
    (3, RationalQuadratic([0.9, 1.2, 1.4], mixture=1.5)),
    (3, Matern52(1.2, columns=[0, 2]) * Periodic(2.5, columns=[1])),
]
BOXES = [(d, k, case) for d, k in FAMILIES for case in range((12, 8, 6)[d - 1])]


legendre = cache(np.polynomial.legendre.leggauss)


def rule(low, high, centers, order):
    """Gauss-Legendre nodes and weights on an interval, cut at the centres and close to them."""
    near = np.add.outer(centers, [-0.2, 0.0, 0.2] if order > 10 else [0.0]).ravel()
    even = np.linspace(low, high, 2 + int((high - low) / 0.6))
    cuts = np.unique(np.clip([*even, *near], low, high))
    u, w = legendre(order)
    half = np.diff(cuts)[:, None] / 2
    return (cuts[:-1, None] + half * (1 + u)).ravel(), (half * w).ravel()


def quadrature(k, box, *centers):
    """∫ Π_c k(s, c) ds over a box, and ∫ of the modulus, from the Gram matrices of k alone."""
    ends, order = zip(*box.bounds(), np.transpose(centers), strict=True), (14, 12, 10)
    rules = [rule(low, high, near, order[box.dimension - 1]) for low, high, near in ends]
    nodes = np.stack(np.meshgrid(*(x for x, _ in rules), indexing="ij"), axis=-1)
    weights = reduce(np.multiply.outer, (w for _, w in rules)).ravel()
    values = k(nodes.reshape(-1, box.dimension), np.array(centers)).prod(axis=1)
    return weights @ values, weights @ np.abs(values)


def example(rng, dimension):
    """A box, and points inside it, 1e-9 apart, just outside it and up to 8 scales away."""
    low = rng.uniform(-2.0, 2.0, dimension)
    high = low + rng.uniform(0.3, 3.0 if dimension < 3 else 1.1, dimension)
    far = 8.0 if dimension < 3 else 5.0
    x, y = rng.uniform(low, high, (2, dimension))
    away = (
        rng.choice([-1.0, 1.0], dimension) * rng.dirichlet(np.ones(dimension)) * rng.uniform(0, far)
    )
    return Box(low, high), np.array([x, x + 1e-9, np.where(away > 0, high, low) + away, y])


def test_there_are_two_hundred_boxes():
    assert len(BOXES) == 200


@pytest.mark.parametrize(("dimension", "k", "case"), BOXES, ids=str)
def test_integrals_over_random_boxes_agree_with_quadrature(dimension, k, case):
    box, X = example(np.random.default_rng([case, len(repr(k))]), dimension)
    embedding, products = mean_embedding(k, box, X[1:]), product_integral(k, box, X[:3])
    for i in (1, 2, 3):
        truth, size = quadrature(k, box, X[i])
        assert abs(embedding[i - 1] - truth) <= 1e-10 * size
    for i, j in [(0, 1), (0, 2), (2, 2)]:
        truth, size = quadrature(k, box, X[i], X[j])
        assert abs(products[i, j] - truth) <= 1e-10 * size


WINDOW = Box([-0.5, 0.25], [1.0, 1.5])
PLANE = [k for dimension, k in FAMILIES if dimension == 2]
TEN_POINTS = np.random.default_rng(0).uniform(-2.0, 3.0, (10, 2))


@pytest.mark.parametrize("k", PLANE, ids=repr)
def test_integrals_over_the_two_parts_of_a_cut_box_add_up(k):
    parts = Box([-0.5, 0.25], [0.125, 1.5]), Box([0.125, 0.25], [1.0, 1.5])
    for integral in (mean_embedding, product_integral):
        left, right = (integral(k, part, TEN_POINTS[:5]) for part in parts)
        size = np.abs(left) + np.abs(right)
        assert np.all(np.abs(integral(k, WINDOW, TEN_POINTS[:5]) - left - right) <= 2e-11 * size)


@pytest.mark.parametrize("k", PLANE, ids=repr)
def test_product_integral_of_a_point_with_itself_is_the_embedding_of_the_squared_kernel(k):
    diagonal = np.diag(product_integral(k, WINDOW, TEN_POINTS[:4]))
    assert_allclose(diagonal, mean_embedding(k.squared(), WINDOW, TEN_POINTS[:4]), rtol=2e-11)


@pytest.mark.parametrize("k", PLANE, ids=repr)
def test_double_integral_is_the_integral_of_the_mean_embedding(k):
    nodes, weights = WINDOW.quadrature(40)
    assert_allclose(double_integral(k, WINDOW), weights @ mean_embedding(k, WINDOW, nodes), 2e-11)


@pytest.mark.parametrize("k", [*PLANE[:4], Polynomial(2, columns=[1]) + Gaussian(1.0)], ids=repr)
def test_product_integral_is_symmetric_positive_and_the_same_in_blocks(k):
    X = np.vstack([TEN_POINTS[:3]] + [TEN_POINTS[3:6] + 0.01 * i for i in range(11)])
    T = product_integral(k, WINDOW, X)
    assert_array_equal(T, T.T)
    assert_allclose(T[:3, 3:], product_integral(k, WINDOW, X[:3], X[3:]), rtol=2e-11)
    assert np.linalg.eigvalsh(T)[0] >= -1e-10 * np.abs(T).max()


def test_integrals_are_linear_in_the_kernel():
    a, b = Matern32(0.8), Gaussian(0.6) * Linear(columns=[1])
    k = 2.0 * a + 3.0 * b
    parts = 2.0 * mean_embedding(a, WINDOW, TEN_POINTS) + 3.0 * mean_embedding(
        b, WINDOW, TEN_POINTS
    )
    assert_allclose(mean_embedding(k, WINDOW, TEN_POINTS), parts, rtol=1e-12)
    assert_allclose(
        double_integral(k, WINDOW), 2 * double_integral(a, WINDOW) + 3 * double_integral(b, WINDOW)
    )
    # ∫ (a + b)² = ∫ a² + 2∫ ab + ∫ b² at a point, and ∫ ab is the embedding of a·b
    both, cross = (
        product_integral(a + b, WINDOW, TEN_POINTS),
        mean_embedding(a * b, WINDOW, TEN_POINTS),
    )
    squares = product_integral(a, WINDOW, TEN_POINTS) + product_integral(b, WINDOW, TEN_POINTS)
    assert_allclose(np.diag(both), np.diag(squares) + 2.0 * cross, rtol=1e-10)


@pytest.mark.parametrize(
    "k", [Gaussian([0.5, 1.0]), Laplace(0.7), Matern32(0.8), RationalQuadratic(0.5)], ids=repr
)
def test_integrals_of_stationary_kernels_move_with_the_window(k):
    X, shift = np.round(64.0 * TEN_POINTS) / 64.0, np.array([32.0, -128.0])
    moved = Box(np.array(WINDOW.low) + shift, np.array(WINDOW.high) + shift)
    for integral in (mean_embedding, product_integral):
        assert_allclose(integral(k, moved, X + shift), integral(k, WINDOW, X), rtol=1e-12)
    assert_allclose(double_integral(k, moved), double_integral(k, WINDOW), rtol=1e-13)


@pytest.mark.parametrize("k", [Gaussian(0.5), Matern32(0.8), Linear(), Periodic(2.0)], ids=repr)
def test_an_axis_that_the_kernel_does_not_see_contributes_its_length(k):
    box, line = Box([0.0, -1.0, 2.0], [3.0, 1.5, 2.5]), Interval(-1.0, 1.5)
    X = np.random.default_rng(1).normal(size=(4, 3))
    seen, free = k.replace(columns=[1]), 3.0 * 0.5
    assert_allclose(mean_embedding(seen, box, X), free * mean_embedding(k, line, X[:, [1]]))
    assert_allclose(product_integral(seen, box, X), free * product_integral(k, line, X[:, [1]]))
    assert_allclose(double_integral(seen, box), free**2 * double_integral(k, line))


def test_a_matern_kernel_is_integrated_the_same_way_by_far_and_by_near():
    """One more column that hardly matters turns the closed form into a sum of Gaussians."""
    box, X = Box([0.0, 0.0], [2.0, 1e-7]), np.array([[-16.0, 0.0], [-0.1, 0.0], [1.0, 0.0]])
    for k in (Matern32(0.8), Matern52(0.7)):
        line = 1e-7 * mean_embedding(k, Interval(0.0, 2.0), X[:, :1])
        assert_allclose(mean_embedding(k, box, X), line, rtol=1e-10)
        line = 1e-7 * product_integral(k, Interval(0.0, 2.0), X[1:, :1])
        assert_allclose(product_integral(k, box, X[1:]), line, rtol=1e-10)


def test_a_constant_integrates_to_the_volume_and_a_nugget_to_nothing():
    k, X = Constant(3.0) + Nugget() + Nugget() * Gaussian(1.0), TEN_POINTS
    assert_allclose(mean_embedding(k, WINDOW, X), 3.0 * WINDOW.volume)
    assert_allclose(product_integral(k, WINDOW, X), 9.0 * WINDOW.volume)
    assert_allclose(double_integral(k, WINDOW), 3.0 * WINDOW.volume**2)
    assert_array_equal(mean_embedding(Nugget(), WINDOW, X), 0.0)


def test_a_scalar_kernel_integrates_its_function():
    k, X = Scalar(lambda X: np.exp(X[:, 0]) * X[:, 1] - 0.5), TEN_POINTS
    nodes, weights = WINDOW.quadrature(20)
    f, values = k.values(X), k.values(nodes)
    assert_allclose(mean_embedding(k, WINDOW, X), f * (weights @ values))
    assert_allclose(product_integral(k, WINDOW, X), np.outer(f, f) * (weights @ values**2))
    assert_allclose(double_integral(k, WINDOW), (weights @ values) ** 2)


def test_a_custom_kernel_agrees_with_the_kernel_that_it_wraps():
    k = Gaussian([0.5, 0.9])
    wrapped = Custom(k.gram)
    assert_allclose(
        mean_embedding(wrapped, WINDOW, TEN_POINTS), mean_embedding(k, WINDOW, TEN_POINTS)
    )
    assert_allclose(
        product_integral(wrapped, WINDOW, TEN_POINTS), product_integral(k, WINDOW, TEN_POINTS)
    )
    assert_allclose(double_integral(wrapped, WINDOW), double_integral(k, WINDOW))


def test_a_rough_custom_kernel_warns_with_the_error_that_was_reached():
    k, X = Laplace(0.05), [[0.3, 0.7]]
    with pytest.warns(UserWarning, match=r"relative error of about \de-\d\d"):
        rough = mean_embedding(Custom(k.gram), WINDOW, X)
    assert_allclose(rough, mean_embedding(k, WINDOW, X), rtol=1e-3)


def test_a_polygon_that_is_a_box_gives_the_integrals_of_the_box():
    pytest.importorskip("shapely")
    square = Polygon([[-0.5, 0.25], [1.0, 0.25], [1.0, 1.5], [-0.5, 1.5]])
    k, X = Gaussian(0.6) + Linear() + Nugget(), TEN_POINTS[:4]
    assert_allclose(mean_embedding(k, square, X), mean_embedding(k, WINDOW, X), rtol=1e-9)
    assert_allclose(product_integral(k, square, X), product_integral(k, WINDOW, X), rtol=1e-9)
    assert_allclose(double_integral(k, square), double_integral(k, WINDOW), rtol=1e-9)
    T = product_integral(k, square, X)
    assert_array_equal(T, T.T)


def test_a_polygon_times_an_interval_is_a_window_too():
    pytest.importorskip("shapely")
    square = Polygon([[-0.5, 0.25], [1.0, 0.25], [1.0, 1.5], [-0.5, 1.5]])
    k, X = Gaussian(0.8), np.random.default_rng(2).normal(size=(3, 3))
    truth = mean_embedding(k, WINDOW * Interval(0.0, 1.0), X)
    assert_allclose(mean_embedding(k, square * Interval(0.0, 1.0), X), truth, rtol=1e-9)


def test_no_points_give_no_integrals():
    assert mean_embedding(Gaussian(1.0), WINDOW, np.zeros((0, 2))).shape == (0,)
    assert product_integral(Matern32(1.0), WINDOW, np.zeros((0, 2)), TEN_POINTS).shape == (0, 10)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: double_integral(Finite(np.eye(2)), WINDOW), ValueError, "Finite has no integral"),
        (lambda: mean_embedding(2.0, WINDOW, TEN_POINTS), TypeError, "kernel must be a kernel"),
        (lambda: double_integral(Gaussian(1.0), (0, 1)), TypeError, "window must be a Window"),
        (lambda: mean_embedding(Linear(), WINDOW, [[1.0]]), ValueError, "X must have 2 columns"),
        (lambda: product_integral(Linear(), WINDOW, [[1.0, np.nan]]), ValueError, "C must contain"),
        (lambda: double_integral(Gaussian(1.0, columns=[2]), WINDOW), ValueError, "below 2"),
        (lambda: double_integral(Matern32([1.0, 1.0, 1.0]), WINDOW), ValueError, "3 scales"),
        (
            lambda: double_integral(Custom(np.dot), Box([0.0] * 9, [1.0] * 9)),
            ValueError,
            "9 columns at once",
        ),
    ],
)
def test_what_cannot_be_integrated_is_refused_in_one_sentence(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert str(raised.value).count("\n") == 0


@pytest.mark.parametrize("offset", [2.0**20, -(2.0**31)])
@pytest.mark.parametrize(
    "k", [Matern32(1.0) + Laplace(0.7), Gaussian(1.0) * Periodic(4.0, scale=0.5), Gaussian(0.3)]
)
def test_integrals_far_from_the_origin_keep_their_digits(k, offset):
    # points that are exact at the offset too
    X = np.array([[-0.75], [0.5], [0.50390625], [2.25], [5.0]])
    near, far = Interval(0.0, 3.0), Interval(offset, offset + 3.0)
    for there, here in [
        (mean_embedding(k, far, X + offset), mean_embedding(k, near, X)),
        (product_integral(k, far, X + offset), product_integral(k, near, X)),
        (double_integral(k, far), double_integral(k, near)),
    ]:
        np.testing.assert_allclose(there, here, rtol=1e-12)
