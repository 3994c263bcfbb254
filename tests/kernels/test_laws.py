"""The laws that every kernel obeys."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp

from hplus import kernels
from hplus.kernels import (
    KERNELS,
    Constant,
    Custom,
    Finite,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern32,
    Matern52,
    Nugget,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Scalar,
    is_psd,
)


def wave(X):
    return np.sin(X).sum(axis=1) - 0.3


def inverse(X, Z):
    return 1.0 / (1.0 + cdist(X, Z, "sqeuclidean"))


ROOT = np.array([[1.0, 0.0], [0.5, -1.0], [0.3, 2.0], [0.0, 0.7]])
BOUNDED = [
    *(family(0.7) for family in (Gaussian, Laplace, Matern32, Matern52, RationalQuadratic)),
    *(family([0.5, 1.0, 2.0]) for family in (Gaussian, Laplace, Matern32, Matern52)),
    *(family((3.0, 0.4), columns=(2, 0)) for family in (Gaussian, Laplace, Matern32, Matern52)),
    RationalQuadratic([0.5, 1.0, 2.0], mixture=0.3),
    RationalQuadratic(1.5, mixture=7.0, columns=[1]),
    Periodic(2.0),
    Periodic(0.9, scale=0.4, columns=[1]),
    Constant(),
    Constant(2.5, columns=[0]),
    Nugget(),
    Nugget(columns=[2]),
]
LEAVES = [
    *BOUNDED,
    Linear(),
    Linear(columns=[2, 1]),
    Polynomial(1, offset=0.0),
    Polynomial(2),
    Polynomial(3, offset=0.5, columns=[0, 2]),
    Finite(ROOT @ ROOT.T, columns=[2]),
    Finite(np.ones((4, 4)) + np.eye(4), columns=[2]),
]
EXPRESSIONS = [
    2.0 * Gaussian(0.7),
    Gaussian(0.7) + Linear(),
    Gaussian(0.7) * Linear() + Constant(0.5),
    Linear() * (Matern32(1.0) + Nugget()),
    (Laplace(1.0) + Linear()) * (Periodic(1.5, columns=[0]) + Constant()),
    0.5 * (Polynomial(2, columns=[0]) + 3.0 * Linear(columns=[1])),
    Linear(columns=[0]) * Finite(ROOT @ ROOT.T, columns=[2]),
    Linear() * Linear(),
]
CALLABLES = [
    Scalar(wave),
    Custom(inverse, nonnegative=True, columns=[0, 1]),
    Custom(gp.RBF(0.8) + gp.Matern(1.2)),
    Scalar(wave, columns=[1]) * Gaussian(1.0) + 2.0 * Scalar(wave),
]
ALL = [*LEAVES, *EXPRESSIONS, *CALLABLES]
every_kernel = pytest.mark.parametrize("k", ALL, ids=lambda k: str(k).partition(" at 0x")[0])


@pytest.fixture(name="X")
def mixed_points(rng):
    """Read-only points with two real columns and one of the numbers 0, 1, 2, 3; two are equal."""
    points = np.column_stack([rng.normal(size=(24, 2)), np.arange(24.0) % 4])
    points[7] = points[3]
    points.flags.writeable = False
    return points


def test_every_class_of_the_family_is_under_these_laws():
    nested = [*ALL, *(part for k in ALL for part in k.get_params().values())]
    assert {type(k) for k in nested if isinstance(k, Kernel)} == set(KERNELS)
    assert {k.__name__ for k in KERNELS} <= set(kernels.__all__)


@every_kernel
def test_the_gram_matrix_is_exactly_symmetric_psd_and_has_the_stated_diagonal(k, X):
    K = k(X)
    assert K.shape == (24, 24)
    assert_array_equal(K, K.T)
    assert_array_equal(K, k(X, X))
    assert_allclose(k.diag(X), np.diag(K), rtol=1e-12, atol=1e-14)
    assert is_psd(k, X)


def test_what_is_not_positive_semi_definite_is_found_out(X):
    assert not is_psd(Custom(lambda X, Z: cdist(X, Z)), X)
    assert not is_psd(Custom(lambda X, Z: np.tanh(X @ Z.T - 1.0)), X)


@every_kernel
def test_any_part_of_the_gram_matrix_agrees_with_the_whole(k, X):
    K = k(X)
    assert_allclose(k(X[:5], X[3:]), K[:5, 3:], rtol=1e-12, atol=1e-14)
    rows, parts = zip(*k.blocks(X, X[2:], entries=110), strict=True)
    assert [(r.start, r.stop) for r in rows] == [(0, 5), (5, 10), (10, 15), (15, 20), (20, 24)]
    assert_allclose(np.vstack(parts), K[:, 2:], rtol=1e-12, atol=1e-14)


@every_kernel
@pytest.mark.parametrize("outputs", [(), (3,)])
def test_dot_is_the_product_with_the_gram_matrix(k, outputs, X, rng):
    W = rng.normal(size=(22, *outputs))
    assert_allclose(k.dot(X, X[2:], W), k(X, X[2:]) @ W, rtol=1e-11, atol=1e-12)


@every_kernel
def test_a_kernel_that_says_it_is_nonnegative_is(k, X):
    assert k.is_nonnegative() <= (k(X).min() >= 0.0)


@every_kernel
def test_squared_is_the_square_of_every_entry(k, X):
    assert_allclose(k.squared()(X), k(X) ** 2, rtol=1e-10, atol=1e-12)
    assert k.squared().is_nonnegative() or not k.is_nonnegative()


@every_kernel
def test_features_give_the_gram_matrix_and_are_as_many_as_stated(k, X):
    count = k.feature_count(3)
    if count is None:
        with pytest.raises(ValueError, match="no finite feature map: approximate it"):
            k.features(X)
    else:
        phi = k.features(X)
        assert phi.shape == (24, count)
        assert_allclose(phi @ phi.T, k(X), rtol=1e-10, atol=1e-10)


def test_which_kernels_have_finitely_many_features():
    finite = {type(k) for k in LEAVES + CALLABLES if k.feature_count(3) is not None}
    assert finite >= {Constant, Linear, Polynomial, Finite, Scalar}
    assert not finite & {Gaussian, Laplace, Matern32, Matern52, Periodic, Nugget, Custom}
    assert Finite(ROOT @ ROOT.T).feature_count(1) == 2


@pytest.mark.parametrize("k", [*LEAVES, *EXPRESSIONS], ids=str)
def test_the_printed_text_evaluates_back_to_an_equal_kernel(k):
    again = eval(repr(k), vars(kernels))
    assert again == k
    assert hash(again) == hash(k)
    assert repr(again) == repr(k)


def test_different_kernels_are_not_equal():
    assert len(set(ALL)) == len(ALL)
    assert all(k != other for k in ALL for other in ALL if other is not k)


@every_kernel
def test_parameters_go_out_and_come_back(k):
    assert k.replace(**k.get_params(deep=False)) == k
    assert k.replace(**k.get_params(deep=True)) == k
    assert clone(k) is k
    with pytest.raises(dataclasses.FrozenInstanceError):
        k.columns = None


@every_kernel
@pytest.mark.parametrize(
    "form",
    [np.float32, np.int64, np.asfortranarray, np.ndarray.tolist, pd.DataFrame],
    ids=["float32", "int", "fortran", "list", "frame"],
)
def test_points_may_come_in_any_form(k, form, X):
    whole = np.round(X)
    given = form(whole)
    assert_allclose(k(given), k(whole), rtol=1e-12, atol=1e-14)
    assert_allclose(k(given, whole[:3]), k(whole, whole[:3]), rtol=1e-12, atol=1e-14)
    assert_allclose(k.diag(given), k.diag(whole), rtol=1e-12, atol=1e-14)


@every_kernel
def test_points_may_be_a_view_with_strides_and_the_matrix_stays_symmetric(k, X):
    wide = np.repeat(X, 2, axis=1)[::-1, ::2]
    assert_array_equal(k(wide), k(wide).T)
    assert_allclose(k(wide), k(X[::-1]), rtol=1e-12, atol=1e-14)


@every_kernel
def test_no_points_give_an_empty_matrix(k, X):
    assert k(X[:0]).shape == (0, 0)
    assert k(X[:0], X).shape == (0, 24)
    assert k(X, X[:0]).shape == (24, 0)
    assert k.diag(X[:0]).shape == (0,)
    assert_array_equal(k.dot(X, X[:0], np.zeros(0)), np.zeros(24))


@pytest.mark.parametrize(
    "k", [Matern52(0.7), Linear() + Nugget(), Scalar(wave), 2.0 * Gaussian(3.0)]
)
@pytest.mark.parametrize("columns", [2, 10])
def test_a_large_gram_matrix_made_by_halves_is_symmetric_and_the_same(k, columns, rng):
    X = rng.normal(size=(900, columns))
    assert_array_equal(k(X), k(X).T)
    assert_allclose(k(X), np.vstack([block for _, block in k.blocks(X, X)]), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("distance", [1e12, 1e200])
@pytest.mark.parametrize("k", BOUNDED, ids=str)
def test_a_far_point_has_finite_values_and_changes_no_other(k, distance, X):
    K = k(np.vstack([[[distance, -distance, distance]], X]))
    assert np.isfinite(K).all()
    assert_allclose(K[1:, 1:], k(X), rtol=1e-9)


@pytest.mark.parametrize("distance", [1e12, 1e200])
@pytest.mark.parametrize("columns", [10, 123])
def test_a_far_point_changes_no_other_value_in_many_columns(columns, distance, rng):
    X = 0.1 * rng.normal(size=(30, columns))
    K = Gaussian(1.0)(np.vstack([np.full((1, columns), distance), X]))
    assert_allclose(K[1:, 1:], Gaussian(1.0)(X), rtol=1e-9)
    assert_array_equal(K[0, 1:], 0.0)


@pytest.mark.parametrize("family", [Gaussian, Matern32, Matern52, RationalQuadratic, Laplace])
@pytest.mark.parametrize("columns", [7, 10, 123])
def test_many_columns_keep_symmetry_unit_diagonal_and_the_parts(family, columns, rng):
    X = rng.normal(size=(200, columns))
    X[50:60] = X[:10] + 1e-7
    k = family(0.5 * np.sqrt(columns))
    K = k(X)
    assert_array_equal(K, K.T)
    assert_array_equal(np.diag(K), np.ones(200))
    assert_array_equal(np.diag(k(X, X.copy())), np.ones(200))
    assert_allclose(K[:60, 40:], k(X[:60], X[40:]), rtol=1e-9)
    assert is_psd(k, X)


TRUTH = {
    Gaussian: lambda u: np.exp(-0.5 * (u**2).sum()),
    Laplace: lambda u: np.exp(-abs(u).sum()),
    Matern32: lambda u: (1 + np.sqrt(3 * (u**2).sum())) * np.exp(-np.sqrt(3 * (u**2).sum())),
}


@pytest.mark.parametrize("family", TRUTH)
@pytest.mark.parametrize("columns", [1, 3, 10, 123])
@pytest.mark.parametrize("offset", [0.0, 0.3, -1e6, 1e6])
@pytest.mark.parametrize("count", [2, 40])
def test_points_a_billionth_apart_keep_their_digits(family, columns, offset, count, rng):
    X = offset + 1e-6 * rng.uniform(size=(count, columns))
    X[1] = X[0] + 1e-9 * rng.choice([-1.0, 1.0], size=columns)
    scale = 1e-9 * (columns if family is Laplace else np.sqrt(columns))
    exact = TRUTH[family]((X[0].astype(np.longdouble) - X[1]) / scale)
    assert 0.2 < exact < 0.9
    assert_allclose(family(scale)(X)[0, 1], float(exact), rtol=1e-8)
    assert_allclose(family(scale)(X, X[1:2])[0, 0], float(exact), rtol=1e-8)
    assert_allclose(family([scale] * columns)(X)[0, 1], float(exact), rtol=1e-8)


def test_one_minus_the_kernel_keeps_its_digits_too():
    X = np.array([[0.0] * 10, [1e-4] * 10])
    assert_allclose(1.0 - Gaussian(1.0)(X)[0, 1], -np.expm1(-0.5e-7), rtol=1e-8)
    assert_allclose(1.0 - Laplace(1.0)(X)[0, 1], -np.expm1(-1e-3), rtol=1e-11)


def test_minus_zero_is_zero_for_the_nugget():
    assert_array_equal(Nugget()([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0]])[0], [1.0, 1.0, 0.0])


def test_a_finite_kernel_accepts_a_matrix_that_is_symmetric_up_to_rounding():
    k = Finite([[2.0, 1.0], [1.0 + 1e-15, 3.0]])
    assert_array_equal(k.matrix, k.matrix.T)


@pytest.mark.parametrize("columns", [2, 9])
@pytest.mark.parametrize("k", [Gaussian(1.0), Matern32(1.0) + Nugget(), Linear()], ids=repr)
def test_a_gram_matrix_assembled_from_blocks_is_symmetric_and_the_same(k, columns, monkeypatch):
    monkeypatch.setattr("hplus.kernels.base.BLOCK_ENTRIES", 1000)
    X = np.random.default_rng(0).normal(size=(300, columns))
    K = k(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K, k.gram(X, X), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[:, ::2], np.s_[::3, 1:]], ids=repr)
@pytest.mark.parametrize("k", [Linear(), Polynomial(3), Gaussian(1.0), Linear(columns=[1, 0])])
def test_the_gram_matrix_of_a_view_is_exactly_symmetric(k, view, rng):
    X = rng.normal(size=(37, 20))[view]
    np.testing.assert_array_equal(k(X), k(X).T)
    assert is_psd(k, X)


def test_a_callable_that_is_not_symmetric_is_no_kernel():
    lopsided = Custom(lambda X, Z: np.exp(-((X - Z.T) ** 2)) + 5.0 * (X - Z.T))
    assert not is_psd(lopsided, np.linspace(0, 1, 5)[:, None])
