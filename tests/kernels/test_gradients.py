"""Gradients of kernels: against central differences, where two points meet, and far out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

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
from hplus.kernels.gradients import MAX_EXPANDED_REACH, gradient_sum

SMOOTH = [
    *(family(0.7) for family in (Gaussian, Matern32, Matern52, RationalQuadratic)),
    *(family([0.5, 1.0, 2.0]) for family in (Gaussian, Matern32, Matern52)),
    *(family((3.0, 0.4), columns=(2, 0)) for family in (Gaussian, Matern32, Matern52)),
    RationalQuadratic([0.5, 1.0, 2.0], mixture=0.3),
    RationalQuadratic(1.5, mixture=7.0, columns=[1]),
    Periodic(2.0),
    Periodic(0.9, scale=0.4, columns=[1]),
]
BOUNDED = [*SMOOTH, Laplace(0.7), Laplace((3.0, 0.4), columns=(2, 0)), Constant(2.5), Nugget()]
KERNELS = [
    *BOUNDED,
    Linear(),
    Linear(columns=[2, 1]),
    Polynomial(1, offset=0.0),
    Polynomial(3, offset=0.5, columns=[0, 2]),
    2.0 * Gaussian(0.7) + Linear(),
    Gaussian(0.7) * Linear() * Matern32(2.0) + Constant(0.5),
    (Laplace(1.0) + Linear()) * (0.3 * Periodic(1.5, columns=[0]) + Constant()),
]


def summed_differences(kernel, X, Z, C, h=1e-5):
    """Σ_j C[i, j] (k(x + he, z_j) - k(x - he, z_j))/2h on each axis."""
    steps = h * np.eye(X.shape[1])
    columns = [(C * (kernel(X + e, Z) - kernel(X - e, Z))).sum(axis=1) for e in steps]
    return np.stack(columns, axis=1) / (2 * h)


@pytest.mark.parametrize("k", KERNELS, ids=repr)
def test_a_sum_of_gradients_is_that_of_central_differences(k, rng):
    X, Z, C = rng.normal(size=(6, 3)), rng.normal(size=(9, 3)), rng.normal(size=(6, 9))
    assert_allclose(gradient_sum(k, X, Z, C), summed_differences(k, X, Z, C), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("k", [Gaussian(0.7), Matern32([1.0] * 9), Linear(), Periodic(3.0)])
def test_so_it_is_in_many_columns(k, rng):
    X, Z, C = rng.normal(size=(4, 9)), rng.normal(size=(5, 9)), rng.normal(size=(4, 5))
    assert_allclose(gradient_sum(k, X, Z, C), summed_differences(k, X, Z, C), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("k", [*BOUNDED, Gaussian(0.7) * Laplace(1.0)], ids=repr)
def test_where_two_points_meet_a_bounded_kernel_is_flat(k, rng):
    X = np.repeat(rng.normal(size=(3, 3)) * 1e6, 2, axis=0)
    assert_allclose(gradient_sum(k, X, X, np.eye(6)), 0.0, atol=1e-13)


@pytest.mark.parametrize("k", [*BOUNDED, Matern52(1e-3) * RationalQuadratic(1.0)], ids=repr)
@pytest.mark.parametrize("distance", [1e3, 1e8, 1e12, 1e200])
def test_gradients_of_bounded_kernels_are_finite_and_vanish_far_away(k, distance, rng):
    Z = np.vstack([rng.normal(size=(5, 3)), rng.normal(size=(2, 3)) + distance])
    X = np.vstack([Z, Z + distance, Z - distance, rng.normal(size=(5, 3)) * distance])
    G = gradient_sum(k, X, Z, np.ones((len(X), len(Z))))
    assert np.isfinite(G).all()
    if "Periodic" not in repr(k):
        assert np.abs(G[-5:]).max() < 1e-3


@pytest.mark.parametrize("k", [Gaussian(0.5), Matern52(0.5), RationalQuadratic(0.5), Laplace(0.5)])
@pytest.mark.parametrize("both_signs", [False, True])
def test_no_digit_is_lost_far_from_the_origin(k, both_signs):
    X, Z = np.array([[0.25, 0.5], [1.0, 0.0]]), np.array([[0.0, 0.75], [0.5, 0.125]])
    C, far = np.array([[1.0, -2.0], [0.5, 3.0]]), 2.0**40
    near = gradient_sum(k, X, Z, C)
    if both_signs:
        C, Z = np.hstack([C, C]), np.vstack([Z + far, Z - far])
    assert_allclose(gradient_sum(k, X + far, Z + far * (not both_signs), C), near, rtol=1e-13)


def test_a_common_shift_changes_nothing(rng):
    X, Z, C = rng.integers(0, 9, (6, 2)) / 8, rng.integers(0, 9, (7, 2)) / 8, np.ones((6, 7))
    for k in (Gaussian(0.3), Matern32([0.3, 0.7]), Laplace(0.3)):
        moved = gradient_sum(k, X - 2.0**40, Z - 2.0**40, C)
        assert_allclose(moved, gradient_sum(k, X, Z, C), rtol=1e-11, atol=1e-12)


def test_the_two_ways_to_sum_differences_agree(rng):
    X, Z, C = rng.normal(size=(6, 2)), rng.normal(size=(9, 2)), rng.normal(size=(6, 9))
    outlier = np.vstack([Z, np.full((1, 2), 2.0 * MAX_EXPANDED_REACH)])
    near, wide = gradient_sum(Gaussian(1.0), X, Z, C), np.hstack([C, np.ones((6, 1))])
    assert_allclose(gradient_sum(Gaussian(1.0), X, outlier, wide), near, rtol=1e-12, atol=1e-13)


def test_kernels_that_are_constant_in_pieces_have_gradient_zero(rng):
    X, C = np.column_stack([rng.normal(size=4), [0.0, 1.0, 1.0, 0.0]]), rng.normal(size=(4, 4))
    steps = Finite([[2.0, 1.0], [1.0, 3.0]], columns=[1])
    for k in (Constant(3.0), Nugget(), steps):
        assert_array_equal(gradient_sum(k, X, X, C), np.zeros((4, 2)))
    product = gradient_sum(Gaussian(1.0, columns=[0]) * steps, X, X, C)
    assert_array_equal(product[:, 1], 0.0)
    alone = gradient_sum(Gaussian(1.0, columns=[0]), X, X, C * steps(X))
    assert_allclose(product, alone)


@pytest.mark.parametrize("k", [Scalar(np.ravel), Gaussian(1.0) + Custom(lambda X, Z: X @ Z.T)])
def test_a_callable_has_no_gradient_and_says_so(k):
    with pytest.raises(ValueError, match=r"must have a gradient, so it must not contain"):
        gradient_sum(k, np.ones((2, 1)), np.ones((2, 1)), np.ones((2, 2)))


def test_columns_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="must be below 1"):
        gradient_sum(Gaussian(1.0, columns=[1]), np.ones((2, 1)), np.ones((2, 1)), np.ones((2, 2)))
