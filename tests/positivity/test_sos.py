"""Sums of squares: never negative, and what the algebra says of them holds for their values."""

from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from hplus.kernels import (
    Constant,
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
from hplus.positivity import SumOfSquares
from hplus.positivity.sampling import resolved_envelope
from hplus.windows import Box, Interval, Polygon

KERNELS = [
    Gaussian([0.7, 1.4]),
    2.0 * Laplace(0.9),
    Matern32(1.3),
    RationalQuadratic(0.8, mixture=0.4),
    Gaussian(1.0) + 0.5 * Linear(),
    Matern52(1.0, columns=[0]) * Periodic(2.0, columns=[1]),
    Polynomial(2),
]
BOUNDED = [k for k in KERNELS if not any(word in repr(k) for word in ("Linear", "Polynomial"))]
GAUSSIANS = [
    Gaussian(0.8),
    3.0 * Gaussian([0.7, 1.4]),
    Gaussian(0.6, columns=[1]) * (0.5 * Gaussian(1.1, columns=[0])) * Constant(2.0),
]
WINDOW = Box((-1.0, -0.5), (1.5, 1.0))


def draw(kernel, rng, m=6, r=3, d=2):
    """A sum of r squares; with r = None a diagonal one."""
    factor = rng.normal(size=m if r is None else (m, r))
    return SumOfSquares(kernel, rng.normal(size=(m, d)), factor)


def matrix(f):
    """A with f = kᵀAk."""
    return np.diag(f.factor**2) if f.factor.ndim == 1 else f.factor @ f.factor.T


def by_quadrature(f, window, order=60):
    nodes, weights = window.quadrature(order)
    return weights @ f(nodes)


every_kernel = pytest.mark.parametrize("k", KERNELS, ids=repr)
every_gaussian = pytest.mark.parametrize("k", GAUSSIANS, ids=repr)
every_shape = pytest.mark.parametrize("r", [None, 1, 3, 9])


@every_kernel
@every_shape
def test_values_are_those_of_the_quadratic_form(k, r, rng):
    f, X = draw(k, rng, r=r), rng.normal(size=(50, 2))
    K = k(X, f.centers)
    assert_allclose(f(X), np.einsum("ij,jk,ik->i", K, matrix(f), K), rtol=1e-9, atol=1e-12)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(BOUNDED),
    st.sampled_from([0.0, 1.0, 1e6, 1e12]),
    st.sampled_from([None, 1, 4]),
    st.sampled_from([np.float32, np.float64]),
)
def test_no_value_is_negative_or_infinite_whatever_the_factor(seed, k, far, r, dtype):
    rng = np.random.default_rng(seed)
    f = draw(k, rng, r=r)
    f = SumOfSquares(k, f.centers, f.factor * 10.0 ** rng.uniform(-9, 9, f.factor.shape))
    X = np.vstack([f.centers, f.centers + far, rng.normal(size=(5, 2)) * far]).astype(dtype)
    assert np.all(f(X) >= 0.0)
    assert np.isfinite(f(X)).all()
    assert np.isfinite(f.gradient(X)).all()


@pytest.mark.parametrize("shape", [(0, 3), (4, 0), (0,)])
def test_without_centers_or_squares_it_is_the_zero_function(shape, rng):
    f, X = SumOfSquares(Gaussian(1.0), np.ones((shape[0], 2)), np.ones(shape)), np.ones((3, 2))
    g = draw(Gaussian(1.0), rng)
    assert_array_equal(f(X), np.zeros(3))
    assert_array_equal(f.gradient(X), np.zeros((3, 2)))
    assert f.integral(WINDOW) == f.integral() == 0.0
    for zero in (f + f, 2.0 * f, f * g, g * f, f.marginal([0]), f.slice([1], 0.0), f.compressed()):
        assert_array_equal(zero(X[:, : zero.centers.shape[1]]), np.zeros(3))
    assert_allclose((f + g)(X), g(X))


def test_values_and_gradients_are_those_of_blocks(rng):
    f, X = draw(Gaussian(1.0), rng, m=700, r=900), rng.normal(size=(1500, 2))
    assert_allclose(f(X)[::500], f(X[::500]), rtol=1e-10)
    assert_allclose(f.gradient(X)[::500], f.gradient(X[::500]), rtol=1e-8)


@every_kernel
@every_shape
def test_the_gradient_is_that_of_central_differences(k, r, rng):
    f, X, h = draw(k, rng, r=r), rng.normal(size=(8, 2)), 1e-5
    numeric = np.stack([(f(X + h * e) - f(X - h * e)) / (2 * h) for e in np.eye(2)], axis=1)
    assert_allclose(f.gradient(X), numeric, rtol=1e-6, atol=1e-7)


@every_kernel
@every_shape
def test_the_integral_is_that_of_the_values_and_parts_add_up(k, r, rng):
    f = draw(k, rng, r=r)
    whole, (left, right) = f.integral(WINDOW), WINDOW.bounds()
    parts = [Box(left, (0.25, right[1])), Box((0.25, left[1]), right)]
    assert whole == pytest.approx(sum(f.integral(part) for part in parts), rel=1e-10)
    if "Laplace" not in repr(k) and "Matern" not in repr(k):
        assert whole == pytest.approx(by_quadrature(f, WINDOW), rel=1e-9)


@every_shape
@pytest.mark.parametrize("k", [Gaussian(0.4), Laplace(0.7), Matern32(0.5) + Linear()], ids=repr)
def test_the_integral_over_an_interval_is_that_of_mpmath(k, r, rng):
    f = draw(k, rng, r=r, d=1)
    cuts = np.unique(np.clip([-1.0, 2.0, *f.centers[:, 0]], -1.0, 2.0)).tolist()
    truth = mpmath.quad(lambda x: f([[float(x)]])[0], cuts, maxdegree=5)
    assert f.integral(Interval(-1.0, 2.0)) == pytest.approx(float(truth), rel=1e-9)


def test_windows_that_are_no_boxes_are_integrated_over(rng):
    corner = Polygon([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    f, g = draw(Gaussian(0.8), rng), draw(Gaussian(0.8), rng, d=3)
    truth = integrate.dblquad(lambda y, x: f([[x, y]])[0], 0, 1, 0, lambda x: 1 - x, epsabs=1e-9)
    assert f.integral(corner) == pytest.approx(truth[0], rel=1e-7)
    prism = corner * Interval(-0.5, 0.5)
    assert g.integral(prism) == pytest.approx(by_quadrature(g, prism, 24), rel=1e-9)


@every_gaussian
@every_shape
def test_the_integral_over_all_of_space_is_that_over_a_large_box(k, r, rng):
    f = draw(k, rng, r=r)
    assert f.integral() == pytest.approx(f.integral(Box((-30.0, -30.0), (30.0, 30.0))), rel=1e-11)


SHAPES = [(2, 4), (None, None), (None, 2), (3, None)]


@every_kernel
@pytest.mark.parametrize("shapes", SHAPES)
def test_sums_and_multiples_are_pointwise(k, shapes, rng):
    f, g = (draw(k, rng, r=r) for r in shapes)
    X = rng.normal(size=(20, 2))
    assert_allclose((2.0 * f + g * 0.5)(X), 2.0 * f(X) + 0.5 * g(X), rtol=1e-10)
    assert_array_equal((0.0 * f)(X), np.zeros(20))


@pytest.mark.parametrize("shapes", SHAPES)
def test_equal_centers_are_merged_in_a_sum(shapes, rng):
    f, g = (draw(Gaussian(1.0), rng, r=r) for r in shapes)
    same = SumOfSquares(f.kernel, f.centers, g.factor)
    some = SumOfSquares(f.kernel, np.vstack([f.centers[2:], f.centers[4:]]), g.factor)
    X = rng.normal(size=(20, 2))
    for other in (same, some):
        assert len((f + other).centers) == len(f.centers)
        assert_allclose((f + other)(X), f(X) + other(X), rtol=1e-10)


@every_gaussian
@pytest.mark.parametrize("shapes", SHAPES)
def test_products_are_pointwise(k, shapes, rng):
    f, g = draw(k, rng, r=shapes[0]), draw(0.7 * Gaussian([1.5, 0.5]), rng, m=4, r=shapes[1])
    X = rng.normal(size=(20, 2))
    assert_allclose((f * g)(X), f(X) * g(X), rtol=1e-9)
    assert (f * g).factor.ndim == (1 if shapes == (None, None) else 2)


def test_products_of_functions_of_different_columns_are_pointwise(rng):
    f, g = (draw(Gaussian(0.7, columns=[j]), rng, d=3) for j in (0, 2))
    X = rng.normal(size=(20, 3)) * [1.0, 1e9, 1.0]
    assert_allclose((f * g)(X), f(X) * g(X), rtol=1e-9)


@every_gaussian
@every_shape
@pytest.mark.parametrize("axis", [0, 1])
def test_a_marginal_is_the_integral_over_the_other_axis(k, r, axis, rng):
    f = draw(k, rng, r=r)
    y, w = (part.ravel() for part in Interval(-12.0, 12.0).quadrature(300))
    for x in (-0.5, 0.0, 2.0):
        nodes = np.insert(y[:, None], axis, x, axis=1)
        assert f.marginal(axis)([[x]])[0] == pytest.approx(w @ f(nodes), rel=1e-9)
    assert f.marginal([axis]).integral() == pytest.approx(f.integral(), rel=1e-11)


def test_marginals_of_marginals_and_reordered_columns(rng):
    f, X = draw(Gaussian([0.5, 1.0, 2.0]), rng, d=3), rng.normal(size=(9, 3))
    twice, once = f.marginal([2, 0]).marginal([1]), f.marginal([0])
    assert_allclose(twice(X[:, :1]), once(X[:, :1]), rtol=1e-11)
    assert_allclose(f.marginal([2, 0, 1])(X[:, [2, 0, 1]]), f(X), rtol=1e-9)


SEPARABLE = [
    *GAUSSIANS,
    2.0 * (Laplace([0.5, 1.5]) * Periodic(3.0)) * Constant(0.3),
    Matern52(0.7, columns=[1]) * Linear(columns=[0]) * Gaussian(2.0),
    Polynomial(2, columns=[1]),
]


@pytest.mark.parametrize("k", SEPARABLE, ids=repr)
@every_shape
def test_a_slice_is_the_function_at_fixed_coordinates(k, r, rng):
    f, X = draw(k, rng, r=r), rng.normal(size=(9, 1))
    assert_allclose(f.slice([0], 0.3)(X), f(np.insert(X, 0, 0.3, axis=1)), rtol=1e-10)
    assert_allclose(f.slice(1, [-0.7])(X), f(np.insert(X, 1, -0.7, axis=1)), rtol=1e-10)


def test_a_slice_takes_its_values_in_the_order_of_the_axes(rng):
    k = Gaussian([2.0, 0.5, 1.0], columns=[2, 0, 1]) * Matern32(1.0, columns=[1])
    f, X = draw(k, rng, d=3), rng.normal(size=(9, 1))
    full = np.hstack([np.full((9, 1), 0.2), X, np.full((9, 1), -0.4)])
    assert_allclose(f.slice([2, 0], [-0.4, 0.2])(X), f(full), rtol=1e-10)
    assert_allclose(f.slice([0], [0.2])(full[:, 1:]), f(full), rtol=1e-10)


@every_kernel
def test_compression_finds_the_rank_and_the_centers_that_are_used(k, rng):
    thin, X = draw(k, rng, r=2), rng.normal(size=(30, 2))
    factor = np.vstack([thin.factor @ rng.normal(size=(2, 9)), np.zeros((3, 9))])
    f = SumOfSquares(k, np.vstack([thin.centers, np.ones((3, 2))]), factor)
    assert f.compressed().factor.shape == (6, 2)
    assert_allclose(f.compressed()(X), f(X), rtol=1e-9)


@every_shape
@pytest.mark.parametrize("tolerance", [1e-6, 0.1, 0.5])
def test_compression_leaves_out_no_more_than_it_says(r, tolerance, rng):
    f, X = draw(Gaussian(0.5), rng, m=12, r=r), rng.normal(size=(200, 2))
    g = f.compressed(tolerance)
    bound = tolerance * np.trace(matrix(f) @ f.kernel(f.centers))
    assert np.all(g(X) <= f(X) * (1 + 1e-9) + 1e-13)
    assert np.all(g(X) >= f(X) - bound)
    assert tolerance < 0.5 or r == 1 or g.factor.size < f.factor.size


def test_compression_keeps_as_few_squares_as_the_tolerance_allows():
    sizes, centers = np.array([1.0, 8.0, 4.0, 2.0]), 100.0 * np.arange(4.0)[:, None]
    for factor in (np.sqrt(sizes), np.diag(np.sqrt(sizes))):
        f = SumOfSquares(Gaussian(1.0), centers, factor)
        counts = [f.compressed(t).factor.shape[-1] for t in (0.06, 0.07, 0.19, 0.21, 0.47)]
        assert counts == [4, 3, 3, 2, 1]


def test_compression_sees_squares_that_vanish_though_their_weights_do_not():
    f = SumOfSquares(Gaussian(1.0), [[0.0], [0.0], [5.0]], [[10.0, 0.0], [-10.0, 0.0], [0.0, 1.0]])
    assert f.compressed().factor.shape == (3, 1)
    assert_allclose(f.compressed()([[4.0], [5.5]]), f([[4.0], [5.5]]), rtol=1e-12)


# Samples


def wave(X):
    return np.sin(40.0 * X[:, 0])


@pytest.mark.parametrize(
    ("k", "error"), [(Gaussian(0.6), 1e-7), (Laplace(0.6), 1e-3), (Scalar(wave), 1e-4)]
)
def test_cells_have_their_exact_masses_and_bounds(k, error, rng):
    f, window = draw(k, rng, d=1), Interval(-1.0, 2.0)
    cells = resolved_envelope(f, k, window.bounds())
    ends = zip(cells.corners[:, 0], cells.corners[:, 0] + cells.sides, strict=True)
    truth = np.array([f.integral(Interval(a, b)) for a, b in ends])
    assert np.abs(cells.masses - truth).sum() < error * truth.sum()
    inside = cells.corners[:, None, :] + cells.sides * np.linspace(0.0, 1.0, 50)[:, None]
    assert np.all(f(inside.reshape(-1, 1)).reshape(-1, 50).T <= cells.bounds)


@pytest.mark.parametrize(
    "k", [Gaussian(0.6), Laplace(0.7), Matern32(0.5), Polynomial(3), Periodic(1.0)], ids=repr
)
def test_points_on_a_line_follow_the_density(k, rng):
    f, window = draw(k, rng, d=1), Interval(-1.0, 2.0)
    x = f.sample(4000, window, random_state=0)
    edges = np.linspace(-1.0, 2.0, 200)
    shares = [f.integral(Interval(a, b)) for a, b in pairwise(edges)]
    law = np.concatenate([[0.0], np.cumsum(shares) / np.sum(shares)])
    assert x.shape == (4000, 1)
    assert window.contains(x).all()
    assert stats.kstest(x[:, 0], lambda t: np.interp(t, edges, law)).pvalue > 0.01


@pytest.mark.parametrize("r", [None, 2])
def test_points_in_a_plane_follow_the_density(r, rng):
    f = draw(Gaussian([0.5, 1.0]), rng, r=r)
    X = f.sample(10_000, WINDOW, random_state=1)
    x, y = np.linspace(-1.0, 1.5, 9), np.linspace(-0.5, 1.0, 7)
    cells = product(pairwise(x), pairwise(y))
    shares = np.array([f.integral(Box((a, c), (b, d))) for (a, b), (c, d) in cells])
    seen = np.histogram2d(*X.T, bins=(x, y))[0].ravel()
    assert stats.chisquare(seen, 10_000 * shares / shares.sum()).pvalue > 0.01


def test_a_narrow_peak_in_a_wide_window_is_found(rng):
    f = SumOfSquares(Gaussian(1e-3), [[0.123456]], [2.0])
    x = f.sample(2000, Interval(-10.0, 10.0), random_state=0)[:, 0]
    assert stats.kstest((x - 0.123456) / 1e-3, stats.norm(scale=np.sqrt(0.5)).cdf).pvalue > 0.01


def test_samples_are_independent_in_their_order_and_repeat_with_the_seed(rng):
    f = draw(Gaussian(0.5), rng, d=1)
    x = f.sample(3000, Interval(-2.0, 2.0), random_state=3)
    assert_array_equal(x, f.sample(3000, Interval(-2.0, 2.0), random_state=3))
    assert abs(np.corrcoef(x[1:, 0], x[:-1, 0])[0, 1]) < 0.06
    assert f.sample(0, Interval(-2.0, 2.0)).shape == (0, 1)


# Values, and what is refused


def test_it_is_a_frozen_value(rng):
    f = SumOfSquares(Gaussian(1.0), [[0.0], [1.0]], [[1.0], [-2.0]])
    assert f == SumOfSquares(Gaussian(1.0), np.array([[0], [1]]), [[1.0], [-2.0]])
    assert f != SumOfSquares(Gaussian(1.0), f.centers, [1.0, -2.0])
    assert hash(f) == hash(f.replace(kernel=Gaussian(1.0)))
    assert eval(repr(f)) == f
    with pytest.raises(ValueError, match="read-only"):
        f.factor[0] = 1.0


def line(kernel=None, columns=1):
    return SumOfSquares(kernel or Gaussian(1.0), np.zeros((2, columns)), np.ones((2, 1)))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: SumOfSquares("rbf", [[0.0]], [1.0]), "kernel must be a kernel such as"),
        (lambda: SumOfSquares(Gaussian(1.0), [0.0], [1.0]), "centers must have two dimensions"),
        (lambda: SumOfSquares(Gaussian(1.0), [[0.0]], [1.0, 2.0]), "one row for each of the 1 cen"),
        (lambda: SumOfSquares(Gaussian(1.0), [[0.0]], 1.0), "factor must have one row"),
        (lambda: SumOfSquares(Gaussian(1.0), [[0.0]], [[[1.0]]]), "factor must have one row"),
        (lambda: SumOfSquares(Gaussian(1.0), [[0.0]], [np.nan]), "factor must contain only finite"),
        (
            lambda: SumOfSquares(Gaussian(1.0), [["a"]], [1.0]),
            "centers must contain only real numbers",
        ),
        (lambda: line()([[np.inf]]), "X must contain only finite numbers"),
        (lambda: line()([[1.0, 2.0]]), "X must have 1 column, got 2"),
        (lambda: line().gradient([1.0]), "X must have two dimensions"),
        (lambda: line(Scalar(np.ravel)).gradient([[1.0]]), "kernel must have a gradient"),
        (lambda: line().integral(3.0), "window must be a Window such as"),
        (lambda: line().integral(WINDOW), "window must have 1 axis, got"),
        (lambda: line(Finite(np.eye(1))).integral(Interval(0, 1)), "Finite has no integral"),
        (lambda: line(Laplace(1.0)).integral(), "kernel must be a Gaussian, or a multiple or"),
        (lambda: line(Constant()).integral(), "must depend on every column .* column 0"),
        (lambda: line(Gaussian(1e-200)).integral(), "overflows: rescale the columns"),
        (
            lambda: line() + 1.0,
            "SumOfSquares can only be combined with another SumOfSquares, got 1.0",
        ),
        (lambda: line() + line(Gaussian(2.0)), "must share one kernel to be combined"),
        (lambda: line() + line(columns=2), "must have equal numbers of columns"),
        (lambda: line() * line(columns=2), "must have equal numbers of columns"),
        (lambda: line() * line(Matern32(1.0)), "kernel must be a Gaussian, or a multiple or"),
        (lambda: -1.0 * line(), "must be a finite number of at least 0, got -1.0"),
        (lambda: line() * "2", "must be a finite number of at least 0, got '2'"),
        (lambda: np.ones(2) * line(), "must be a finite number of at least 0, got array"),
        (lambda: line(columns=2).marginal([2]), "axes must be column numbers below 2, got"),
        (lambda: line(columns=2).marginal(None), "axes must be column numbers below 2, got None"),
        (lambda: line(columns=2).marginal([]), "columns must be distinct column numbers"),
        (lambda: line(Gaussian(1.0, columns=[0]), 2).marginal([0]), "ignores column 1"),
        (lambda: line(Nugget()).marginal([0]), "kernel must be a Gaussian, or a multiple or"),
        (lambda: line(columns=2).slice([0], [1.0, 2.0]), "one number for each of the 1 axes"),
        (
            lambda: line(columns=2).slice([0, 1], [1.0, 2.0]),
            "axes must leave at least one column free",
        ),
        (lambda: line(columns=2).slice([0], np.nan), "values must contain only finite numbers"),
        (lambda: line(Matern32(1.0), 2).slice([0], 1.0), "must be a product over columns"),
        (lambda: line(Linear() + Constant(), 2).slice([0], 1.0), "must be a product over columns"),
        (lambda: line().compressed(0.0), "tolerance must be a number between 0 and 1, got 0.0"),
        (lambda: line().sample(-1, Interval(0, 1)), "n must be a whole number of at least 0"),
        (lambda: line().sample(1, None), "window must be a Window such as"),
        (lambda: line().sample(1, Interval(50, 51)), "positive and finite to draw from f, got 0"),
        (lambda: (0.0 * line()).sample(1, Interval(0, 1)), "to draw from f, got 0"),
        (lambda: line(Gaussian(1e-9)).sample(1, Interval(0, 1)), "more than 4194304:"),
        (
            lambda: line(columns=2).sample(1, Polygon([[0, 0], [1, 0], [0, 1]])),
            "window must be a box to draw points in",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_one_sentence(act, message):
    with pytest.raises((ValueError, TypeError, OverflowError), match=message) as error:
        act()
    assert str(error.value).count(". ") == 0
    assert str(error.value).endswith(".")


def test_a_product_that_would_not_fit_in_memory_is_refused_before_it_is_made():
    f = SumOfSquares(Gaussian(1.0), np.zeros((3000, 1)), np.ones((3000, 50)))
    with pytest.raises(MemoryError, match=r"compressed\(\)"):
        f * f


def test_sums_and_fractions_are_written_as_usual(rng):
    f = SumOfSquares(Gaussian(1.0), [[0.0], [1.0]], rng.normal(size=(2, 2)))
    X = rng.normal(size=(5, 1))
    np.testing.assert_allclose((f / 2)(X), 0.5 * f(X))
    np.testing.assert_allclose(sum([f, f, f])(X), 3.0 * f(X))
    with pytest.raises(ValueError, match="the divisor of a sum of squares must be a positive"):
        f / 0
