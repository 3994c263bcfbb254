"""The geometry of a kernel's Hilbert space."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hplus.kernels import Finite, Gaussian, Linear, Matern32, Nugget, Polynomial
from hplus.losses import LOSSES
from hplus.solvers.machines.representer import AllPoints, train
from hplus.solvers.machines.risk import Risk
from hplus.space import Function, evaluation_gradient, loss_gradient, norm_gradient
from hplus.windows import Box

KERNELS = [Gaussian(0.7), Matern32(1.3), Gaussian(1.0) + 0.5 * Linear(), Polynomial(2)]


def draw(kernel, rng, n=6, outputs=None):
    shape = (n,) if outputs is None else (n, outputs)
    return Function(kernel, rng.normal(size=(n, 2)), rng.normal(size=shape))


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_the_kernel_reproduces_values(k, rng):
    f, X = draw(k, rng), rng.normal(size=(5, 2))
    inner = [f @ evaluation_gradient(k, x) for x in X]
    np.testing.assert_allclose(inner, f(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_the_inner_product_is_symmetric_and_linear_and_obeys_cauchy_schwarz(k, rng):
    f, g, h = (draw(k, rng) for _ in range(3))
    assert f @ g == pytest.approx(g @ f, abs=1e-12)
    assert (f + 2.0 * g) @ h == pytest.approx(f @ h + 2.0 * (g @ h), abs=1e-10)
    assert abs(f @ g) <= f.norm() * g.norm() * (1 + 1e-12)
    assert f.norm() ** 2 == pytest.approx(f.weights @ k(f.centers) @ f.weights)
    assert (f + g).norm() <= f.norm() + g.norm() + 1e-12


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_sums_differences_and_multiples_are_pointwise(k, rng):
    f, g, X = draw(k, rng), draw(k, rng), rng.normal(size=(9, 2))
    np.testing.assert_allclose((f + 2 * g - f * 0.5)(X), 0.5 * f(X) + 2 * g(X), atol=1e-12)
    np.testing.assert_allclose((-f)(X), -f(X))


def test_values_are_bounded_by_the_norm_and_the_diagonal(rng):
    f, X = draw(Gaussian(0.5), rng), rng.normal(size=(100, 2))
    assert np.all(np.abs(f(X)) <= f.norm() * np.sqrt(f.kernel.diag(X)) + 1e-12)


def test_functions_with_several_outputs_are_evaluated_and_measured_together(rng):
    f = draw(Gaussian(1.0), rng, outputs=3)
    single = [Function(f.kernel, f.centers, f.weights[:, j]) for j in range(3)]
    X = rng.normal(size=(4, 2))
    np.testing.assert_allclose(f(X), np.stack([g(X) for g in single], axis=1), atol=1e-14)
    assert f @ f == pytest.approx(sum(g @ g for g in single))


def test_merging_equal_centers_keeps_the_function(rng):
    centers = rng.normal(size=(4, 2))[[0, 1, 0, 2, 1, 3]]
    f = Function(Gaussian(1.0), centers, rng.normal(size=6))
    g, X = f.merged(), rng.normal(size=(7, 2))
    assert len(g.centers) == 4
    np.testing.assert_allclose(g(X), f(X), atol=1e-14)
    assert f.distance(g) == pytest.approx(0.0, abs=1e-7)


def test_distance_is_the_norm_of_the_difference(rng):
    f, g = draw(Gaussian(1.0), rng), draw(Gaussian(1.0), rng)
    assert f.distance(g) ** 2 == pytest.approx(f @ f - 2 * (f @ g) + g @ g)


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_a_projection_agrees_on_the_centers_and_is_orthogonal_to_the_rest(k, rng):
    f = draw(k, rng)
    D = np.vstack([f.centers[:2], rng.normal(size=(3, 2)), f.centers[:1]])
    p = f.project(D)
    np.testing.assert_allclose(p(D), f(D), atol=1e-8)
    assert (f - p) @ p == pytest.approx(0.0, abs=1e-7)
    assert f.distance(p) <= f.distance(p + 0.1 * draw(k, rng).project(D)) + 1e-9
    np.testing.assert_allclose(f.project(f.centers)(D), f(D), atol=1e-7)


def test_the_integral_of_a_function_is_that_of_its_values(rng):
    f, window = draw(Gaussian(0.8), rng, outputs=2), Box((-1.0, 0.0), (2.0, 1.5))
    nodes, weights = window.quadrature(30)
    np.testing.assert_allclose(f.integral(window), weights @ f(nodes), rtol=1e-9)


def test_functions_of_different_kernels_do_not_mix(rng):
    with pytest.raises(ValueError, match="must share one kernel"):
        draw(Gaussian(1.0), rng) + draw(Gaussian(2.0), rng)
    with pytest.raises(ValueError, match="must share one kernel"):
        draw(Gaussian(1.0), rng) @ draw(Matern32(1.0), rng)


@pytest.mark.parametrize(
    ("centers", "weights", "message"),
    [
        ([[0.0], [1.0]], [1.0], "one row for each of the 2 centers, got shape"),
        ([0.0, 1.0], [1.0, 2.0], "centers must have two dimensions"),
        ([[np.nan]], [1.0], "centers must contain only finite numbers"),
        ([["a"]], [1.0], "centers must contain only real numbers"),
    ],
)
def test_malformed_functions_are_refused(centers, weights, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Function(Gaussian(1.0), centers, weights)


# A finite set [enee2017]: a kernel is a matrix, and the space has its rank as dimension.

SINGULAR = np.array([[2.0, 1.0, 3.0], [1.0, 1.0, 2.0], [3.0, 2.0, 5.0]])  # row 3 = row 1 + row 2


def test_on_a_finite_set_functions_are_rows_of_the_matrix_product():
    k, points = Finite(SINGULAR), np.arange(3.0)[:, None]
    a = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(Function(k, points, a)(points), a @ SINGULAR)


def test_the_dimension_of_the_space_is_the_rank_of_the_kernel_matrix():
    k, points = Finite(SINGULAR), np.arange(3.0)[:, None]
    values = np.stack([evaluation_gradient(k, p)(points) for p in points])
    assert np.linalg.matrix_rank(values) == np.linalg.matrix_rank(SINGULAR) == 2
    assert k.feature_count(1) == 2


def test_two_weight_vectors_may_be_one_function_and_only_zero_has_norm_zero():
    k, points = Finite(SINGULAR), np.arange(3.0)[:, None]
    null = np.array([1.0, 1.0, -1.0])
    f = Function(k, points, np.array([1.0, 2.0, 3.0]))
    g = Function(k, points, f.weights + null)
    np.testing.assert_allclose(f(points), g(points))
    assert f.distance(g) == pytest.approx(0.0, abs=1e-7)
    assert Function(k, points, null).norm() == pytest.approx(0.0, abs=1e-7)
    np.testing.assert_allclose(Function(k, points, null)(points), 0.0, atol=1e-15)


def test_a_nugget_is_seen_only_at_its_center():
    f = Function(Nugget(), np.array([[0.0], [1.0]]), np.array([2.0, 3.0]))
    np.testing.assert_array_equal(f(np.array([[0.0], [1.0], [1.0 + 1e-12]])), [2.0, 3.0, 0.0])


# Functional gradients: E[f + εg] = E[f] + ε <∇E, g> + O(ε²).


def numeric(functional, f, g, h=1e-5):
    return (functional(f + h * g) - functional(f - h * g)) / (2 * h)


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_the_gradient_of_the_squared_norm_is_twice_the_function(k, rng):
    f, g = draw(k, rng), draw(k, rng)
    assert norm_gradient(f) @ g == pytest.approx(numeric(lambda h: h @ h, f, g), rel=1e-6)


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "poisson"])
def test_the_gradient_of_a_loss_follows_the_chain_rule(name, rng):
    k, loss = Gaussian(0.8), LOSSES[name]()
    f, g, X, y = draw(k, rng), draw(k, rng), rng.normal(size=(8, 2)), rng.choice([-1.0, 1.0], 8)
    y = np.abs(y) if name == "poisson_log" else y
    gradient = loss_gradient(f, loss.slope(y, f(X)) / 8, X)
    expected = numeric(lambda h: loss.value(y, h(X)).mean(), f, g)
    assert gradient @ g == pytest.approx(expected, rel=1e-5, abs=1e-8)


def test_functional_gradient_descent_reaches_the_representers_fixed_point(rng):
    X = rng.normal(size=(25, 2))
    y = np.sin(X[:, 0])
    for name in ("squared", "huber", "logistic"):
        risk = Risk(LOSSES[name](), np.sign(y) if name == "logistic" else y, np.full(25, 0.04), 0.1)
        basis = AllPoints(Gaussian(1.0), X)
        exact = basis.function(train(basis, risk).coefficients)
        f = Function(Gaussian(1.0), X, np.zeros(25))
        for _ in range(400):
            slopes = risk.shares * risk.loss.slope(risk.y, f(X))
            gradient = loss_gradient(f, slopes, X) + risk.penalty * norm_gradient(f)
            f = (f - 0.5 * gradient).merged()
        assert exact.distance(f) < 1e-6 * exact.norm(), name


@given(st.integers(0, 2**32 - 1))
def test_norms_are_never_negative_whatever_the_weights(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 1)) * 10.0 ** rng.integers(-9, 9)
    f = Function(Gaussian(1.0), X, rng.normal(size=8) * 10.0 ** rng.integers(-9, 9))
    assert f.norm() >= 0.0
