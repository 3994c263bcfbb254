"""The algebra of kernels on random expressions, and other libraries' values of the same kernels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from hplus import kernels
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
    Product,
    RationalQuadratic,
    Scalar,
    Scaled,
    Sum,
    is_psd,
)

X = np.column_stack([np.random.default_rng(1).normal(size=(8, 2)), np.arange(8.0) % 3])
Z = np.column_stack([np.random.default_rng(2).normal(size=(5, 2)), np.arange(5.0) % 3])
a, b, c = Gaussian(0.7), Linear(), Matern32(1.3)

numbers = st.floats(0.1, 5.0)
columns = st.none() | st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True)
leaves = st.one_of(
    st.builds(Gaussian, numbers, columns=columns),
    st.builds(Gaussian, st.lists(numbers, min_size=3, max_size=3)),
    st.builds(Laplace, numbers, columns=columns),
    st.builds(Matern52, numbers, columns=columns),
    st.builds(RationalQuadratic, numbers, numbers, columns=columns),
    st.builds(Periodic, numbers, numbers, columns=columns),
    st.builds(Constant, numbers),
    st.builds(Linear, columns=columns),
    st.builds(Polynomial, st.integers(1, 3), numbers, columns=columns),
    st.builds(Nugget, columns=columns),
    st.just(Finite([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]], columns=[2])),
)
# pairs: an expression, and its Gram matrix made from those of the leaves by NumPy
expressions = st.recursive(
    leaves.map(lambda k: (k, k(X, Z))),
    lambda parts: st.one_of(
        st.tuples(parts, parts).map(lambda p: (p[0][0] + p[1][0], p[0][1] + p[1][1])),
        st.tuples(parts, parts).map(lambda p: (p[0][0] * p[1][0], p[0][1] * p[1][1])),
        st.tuples(numbers, parts).map(lambda p: (p[0] * p[1][0], p[0] * p[1][1])),
        st.tuples(parts, numbers).map(lambda p: (p[0][0] * p[1], p[0][1] * p[1])),
    ),
    max_leaves=6,
)


@given(expressions)
def test_an_expression_is_evaluated_with_its_brackets(pair):
    k, expected = pair
    assert_allclose(k(X, Z), expected, rtol=1e-12, atol=1e-14)


@given(expressions)
def test_an_expression_is_a_kernel_with_the_stated_diagonal_and_sign(pair):
    k, expected = pair
    K = k(X)
    assert_array_equal(K, K.T)
    assert_allclose(k.diag(X), np.diag(K), rtol=1e-12)
    assert is_psd(k, X)
    assert k.is_nonnegative() <= bool(expected.min() >= 0.0)


@given(expressions)
def test_the_text_of_an_expression_evaluates_back_to_it(pair):
    again = eval(repr(pair[0]), vars(kernels))
    assert again == pair[0]
    assert hash(again) == hash(pair[0])


@given(expressions)
def test_the_square_of_an_expression_is_the_square_of_every_entry(pair):
    assert_allclose(pair[0].squared()(X, Z), pair[1] ** 2, rtol=1e-9, atol=1e-12)


@given(expressions)
def test_features_of_an_expression_give_its_gram_matrix(pair):
    k, expected = pair
    if (count := k.feature_count(3)) is not None and count < 10_000:
        assert k.features(X).shape == (8, count)
        error = k.features(X) @ k.features(Z).T - expected
        assert abs(error).max() <= 1e-11 * np.sqrt(k.diag(X).max() * k.diag(Z).max())


def test_mixed_expressions_keep_their_brackets():
    A, B, C = a(X, Z), b(X, Z), c(X, Z)
    assert_allclose((a * b + c)(X, Z), A * B + C, rtol=1e-14)
    assert_allclose((a * (b + c))(X, Z), A * (B + C), rtol=1e-14)
    assert_allclose((a + b * c)(X, Z), A + B * C, rtol=1e-14)
    assert_allclose((2.0 * a + c)(X, Z), 2.0 * A + C, rtol=1e-14)
    assert_allclose((2.0 * (a + c))(X, Z), 2.0 * (A + C), rtol=1e-14)
    assert (type(a * b + c), type(a * (b + c)), type(a * 2.0)) == (Sum, Product, Scaled)


def test_the_algebra_is_associative_commutative_and_distributive_in_value():
    assert_allclose(((a + b) + c)(X), (a + (b + c))(X), rtol=1e-13)
    assert_allclose(((a * b) * c)(X), (a * (b * c))(X), rtol=1e-13)
    assert_allclose((a + b)(X), (b + a)(X), rtol=1e-15)
    assert_allclose((a * b)(X), (b * a)(X), rtol=1e-15)
    assert_allclose((a * (b + c))(X), (a * b + a * c)(X), rtol=1e-13, atol=1e-15)
    assert_allclose((3.0 * (2.0 * a))(X), (6.0 * a)(X), rtol=1e-15)


def test_the_printed_brackets_are_those_that_are_needed():
    assert repr(a * b + c) == "Gaussian(0.7) * Linear() + Matern32(1.3)"
    assert repr(a * (b + c)) == "Gaussian(0.7) * (Linear() + Matern32(1.3))"
    assert repr(a + (b + c)) == "Gaussian(0.7) + (Linear() + Matern32(1.3))"
    assert repr(2 * a * b) == "2.0 * Gaussian(0.7) * Linear()"
    assert repr(2 * (a * b)) == "2.0 * (Gaussian(0.7) * Linear())"


def test_the_builtin_sum_adds_kernels():
    assert sum([a, b, c]) == a + b + c


def test_a_product_of_a_kernel_with_itself_is_nonnegative_and_no_other_sign_is_invented():
    assert (b * b).is_nonnegative()
    assert not (a * b).is_nonnegative()
    assert not (a + b).is_nonnegative()
    assert (a * c + 2.0 * a).is_nonnegative()


def test_one_parameter_deep_inside_is_replaced_and_the_rest_is_kept():
    k = 2.0 * a + b * c
    assert k.replace(left__kernel__scale=5.0) == 2.0 * Gaussian(5.0) + b * c
    assert k.replace(right__right=a, right__right__scale=9.0) == 2.0 * a + b * Gaussian(9.0)
    assert k.replace(right__right__scale=9.0, right__right=a) == 2.0 * a + b * Gaussian(9.0)
    assert k == 2.0 * a + b * c


PAIR = [[0.0, 1.0], [2.0, 3.0]]
FACTOR = "the factor of a kernel must be a positive finite number"


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: a + 1.0, TypeError, "unsupported operand"),
        (lambda: 1.0 + a, TypeError, "unsupported operand"),
        (lambda: a - b, TypeError, "unsupported operand"),
        (lambda: "a" * a, TypeError, f"{FACTOR}, got 'a'."),
        (lambda: a * None, TypeError, f"{FACTOR}, got None."),
        (lambda: np.array([1.0, 2.0]) * a, TypeError, f"{FACTOR}, got array"),
        (lambda: -1 * a, ValueError, f"{FACTOR}, got -1."),
        (lambda: 0 * a, ValueError, f"{FACTOR}, got 0."),
        (lambda: a * np.inf, ValueError, f"{FACTOR}, got inf."),
        (lambda: Sum(a, 1.0), TypeError, "right must be a kernel such as Gaussian(1.0), got 1.0."),
        (
            lambda: (a * b).replace(left="x"),
            TypeError,
            "left must be a kernel such as Gaussian(1.0), got 'x'.",
        ),
        (lambda: (a * b).replace(left__width=1.0), ValueError, "Gaussian has no parameter 'width'"),
    ],
)
def test_what_is_not_a_kernel_is_refused(build, error, message):
    with pytest.raises(error) as caught:
        build()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: Gaussian(1.0)([[1.0], [np.nan]]), "X must contain only finite numbers, got 1 NaN"),
        (lambda: Linear()(PAIR, [[np.inf, 1.0]]), "Z must contain only finite numbers, got 1 NaN"),
        (lambda: Linear()(PAIR, [[1.0]]), "Z must have 2 columns, got 1."),
        (lambda: Gaussian([1.0] * 3)(PAIR), "got 3 scales for 2 columns in"),
        (lambda: Linear(columns=[2])(PAIR), "columns of Linear(columns=(2,)) must be below 2"),
        (lambda: Gaussian(1e-200)([[1e200]] * 2 + [[0.0]]), "overflow: rescale the points."),
        (lambda: Finite([[1.0, 2.0], [2.0, 1.0]]), "got a symmetric matrix; the smallest"),
        (lambda: Finite([[1.0, 0.5], [0.0, 1.0]]), "got an asymmetric matrix; the smallest"),
        (lambda: Finite(np.ones((2, 3))), "matrix must be square and not empty, got shape (2, 3)."),
        *((lambda x=x: Finite(np.eye(2))([[x]]), "1 for Finite, got") for x in (0.5, -1, 2, 1e99)),
        (lambda: Finite(np.eye(2))(PAIR), "X must be one column of whole numbers from 0 to 1"),
        (lambda: Scalar(np.sin)(PAIR), "function must return one number per point, got shape"),
        (lambda: Custom(np.add)(np.ones((3, 1))), "an array of shape (3, 3), got shape (3, 1)."),
        (lambda: Scalar(3), "function must be callable, got 3."),
    ],
)  # fmt: skip
def test_what_a_kernel_cannot_take_is_refused_in_one_sentence(attempt, message):
    with pytest.raises((ValueError, TypeError, OverflowError)) as caught:
        attempt()
    assert message in str(caught.value)


def test_a_numpy_scalar_is_a_factor_like_any_other():
    assert np.float64(2.0) * a == a * np.float32(2.0) == 2 * a


SKLEARN = [
    (Gaussian(0.6), gp.RBF(0.6)),
    (Gaussian([0.5, 1.0, 2.0]), gp.RBF([0.5, 1.0, 2.0])),
    (Laplace(0.8, columns=[1]), lambda X, Z: gp.Matern(0.8, nu=0.5)(X[:, [1]], Z[:, [1]])),
    (Matern32([0.5, 1.0, 2.0]), gp.Matern([0.5, 1.0, 2.0], nu=1.5)),
    (Matern52(0.7), gp.Matern(0.7, nu=2.5)),
    (RationalQuadratic(0.6, mixture=0.4), gp.RationalQuadratic(0.6, alpha=0.4)),
    (Constant(1.7), gp.ConstantKernel(1.7)),
    (
        Periodic(1.3, scale=0.8, columns=[0]),
        lambda X, Z: gp.ExpSineSquared(0.8, periodicity=1.3)(X[:, [0]], Z[:, [0]]),
    ),
    (Linear(), pairwise.linear_kernel),
    (Gaussian(0.6), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.5 / 0.6**2)),
    (Laplace(0.6), lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=1.0 / 0.6)),
    (Polynomial(3, 0.7), lambda X, Z: pairwise.polynomial_kernel(X, Z, 3, gamma=1.0, coef0=0.7)),
]


@pytest.mark.parametrize(
    ("ours", "theirs"), SKLEARN, ids=lambda part: str(part).split(" at ")[0][:30]
)
def test_scikit_learn_has_the_same_kernel(ours, theirs):
    assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-10, atol=1e-14)
    assert_allclose(Custom(theirs)(X), ours(X), rtol=1e-10, atol=1e-13)
    assert_allclose(Custom(theirs).diag(X), ours.diag(X), rtol=1e-12)


def test_scikit_learns_kernels_join_the_algebra_from_outside_and_from_inside():
    outside = Custom(gp.RBF(0.6)) * Custom(gp.Matern(1.1)) + 3.0 * Custom(gp.RBF(0.6))
    inside = Custom(gp.RBF(0.6) * gp.Matern(1.1) + 3.0 * gp.RBF(0.6))
    ours = Gaussian(0.6) * Matern32(1.1) + 3.0 * Gaussian(0.6)
    assert_allclose(outside(X, Z), inside(X, Z), rtol=1e-13)
    assert_allclose(outside(X, Z), ours(X, Z), rtol=1e-10)


def test_a_custom_kernel_is_compared_by_its_function_and_its_sign_is_a_promise():
    theirs = Custom(gp.RBF(0.6), nonnegative=True)
    assert theirs == Custom(gp.RBF(0.6), nonnegative=True) != Custom(gp.RBF(0.7), nonnegative=True)
    assert hash(theirs) == hash(Custom(gp.RBF(0.6), nonnegative=True))
    assert theirs.is_nonnegative()
    assert not Custom(gp.RBF(0.6)).is_nonnegative()


def test_periodic_over_two_columns_is_the_product_of_both():
    both, first, second = (Periodic(1.3, 0.8, columns=j) for j in ([0, 1], 0, 1))
    assert_allclose(both(X), (first * second)(X), rtol=1e-12)
    assert_allclose(both(X + np.array([1.3, -2.6, 0.0]), X), both(X), rtol=1e-12)


def test_a_custom_gram_matrix_is_made_exactly_symmetric_and_its_diagonal_needs_no_whole_matrix():
    many = np.random.default_rng(3).normal(size=(70, 2))
    k = Custom(lambda X, Z: np.exp(-abs(X[:, :1] - Z[:, 0] + 1e-3)))
    assert_array_equal(k(many), k(many).T)
    assert_allclose(k(many)[0, 1], (k(many[:1], many[1:2]) + k(many[1:2], many[:1]))[0, 0] / 2.0)
    assert_allclose(k.diag(many), np.diag(k(many)), rtol=1e-15)
