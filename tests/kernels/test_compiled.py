"""Laws of compiled kernels: the same numbers as the kernels themselves, from data alone."""

import subprocess
import sys

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from hplus.kernels.compiled import exp_nonpositive, kernel_row
from hplus.kernels.programs import program

TABLE = np.array([[2.0, 1.0, -0.5], [1.0, 3.0, 0.25], [-0.5, 0.25, 1.0]])

BOUNDED = [
    Gaussian(0.7),
    Gaussian((0.5, 2.0, 3.0)),
    Gaussian((2.0, 0.6), columns=[2, 0]),
    Laplace(1.3),
    Laplace((0.8, 1.5), columns=[0, 1]),
    Matern32(0.9),
    Matern32((1.0, 2.0, 0.7)),
    Matern52(1.1),
    Matern52(0.8, columns=[1]),
    RationalQuadratic(0.7, mixture=0.4),
    RationalQuadratic((1.0, 2.0, 1.0), mixture=50.0),
    Periodic(1.7, scale=0.8),
    Periodic(0.6, scale=2.0, columns=[1]),
]
LEAVES = [
    *BOUNDED,
    Constant(2.5),
    Linear(),
    Linear(columns=[1, 2]),
    Polynomial(1),
    Polynomial(3, offset=0.5),
    Polynomial(4, offset=0.0, columns=[0]),
    Nugget(),
    Nugget(columns=[2]),
    Finite(TABLE, columns=[2]),
]
a, b, c = Gaussian(0.7), Matern32(1.3, columns=[0]), Polynomial(2)
EXPRESSIONS = [
    2.0 * a,
    a + b,
    a * b + c,
    (a + b) * c,
    a * (b + c) * a,
    a + (b + (c + (a + Nugget()))),
    2.0 * (a + 3.0 * Linear()) * Periodic(0.9, columns=[1]),
    Gaussian(2.0, columns=[0, 1]) * Periodic(24.0, columns=[2]) + 0.1 * Constant(),
    Finite(TABLE, columns=[2]) * Gaussian(1.0, columns=[0, 1]) + 0.5 * Laplace(1.0),
]


def compiled_gram(kernel, X, Z):
    p = program(kernel, X.shape[1])
    stack, columns = p.stack(len(X)), []
    for z in Z:
        kernel_row(p.ops, p.params, X, len(X), z, stack)
        columns.append(stack[0].copy())
    return np.stack(columns, axis=1)


def points(rng, n, low=0.2):
    """Two columns of numbers, a third of whole numbers below 3."""
    return np.column_stack([rng.uniform(low, 3.0, size=(n, 2)), rng.integers(3, size=n)])


@pytest.mark.parametrize("kernel", LEAVES + EXPRESSIONS, ids=repr)
def test_compiled_rows_are_the_gram_matrix(kernel, rng):
    X, Z = points(rng, 23), points(rng, 9)
    Z[:3] = X[:3]
    np.testing.assert_allclose(compiled_gram(kernel, X, Z), kernel(X, Z), rtol=1e-13)


@pytest.mark.parametrize("kernel", LEAVES + EXPRESSIONS, ids=repr)
def test_points_of_both_signs_give_the_gram_matrix_up_to_the_size_of_its_terms(kernel, rng):
    X, Z = points(rng, 23, low=-3.0), points(rng, 9, low=-3.0)
    size = (1.0 + np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(Z, axis=1)) ** 4
    assert np.all(np.abs(compiled_gram(kernel, X, Z) - kernel(X, Z)) <= 1e-13 * size)


MANY = [
    (a + Constant(0.5)) * (b + Constant(0.1)) * (2.0 * Laplace(1.0) + Constant(0.2)) * (a + b),
    a + b + c + Linear() + Matern52(0.8, columns=[1]) + Periodic(0.9, columns=[1]) + b + a * b,
]


@pytest.mark.parametrize("kernel", MANY)
def test_large_gram_matrices_of_many_parts_are_those_of_small_ones(kernel, rng):
    X, Z = points(rng, 300), points(rng, 256)
    rows = np.vstack([kernel(X[i : i + 100], Z) for i in range(0, 300, 100)])  # not compiled
    np.testing.assert_allclose(kernel(X, Z), rows, rtol=1e-12)
    np.testing.assert_allclose(kernel.dot(X, Z, np.ones(256)), rows.sum(axis=1), rtol=1e-12)
    own = kernel(X)
    np.testing.assert_array_equal(own, own.T)


def test_large_gram_matrices_may_have_parts_in_python_and_refuse_points_off_a_table(rng):
    mine = Custom(lambda X, Z: np.exp(-np.abs(X[:, :1] - Z[:, 0])))
    X, Z = points(rng, 300), points(rng, 256)
    others = MANY[0](X, Z)
    X[7, 2] = 3.0
    with pytest.raises(ValueError, match="got 3 in row 7"):
        (MANY[0] * Finite(TABLE, columns=[2]))(X, Z)
    X[7, 2] = 0.0
    others[7] = MANY[0](X[7:8], Z)
    np.testing.assert_allclose((MANY[0] * mine)(X, Z), others * mine(X, Z), rtol=1e-12)


SCALES = st.floats(0.5, 5.0)
COLUMNS = st.sampled_from([None, [0], [1], [2], [1, 0], [0, 1, 2]])
LEAF = st.one_of(
    st.builds(Gaussian, SCALES, columns=COLUMNS),
    st.builds(Laplace, SCALES, columns=COLUMNS),
    st.builds(Matern32, SCALES, columns=COLUMNS),
    st.builds(Matern52, st.tuples(SCALES, SCALES), columns=st.just([2, 0])),
    st.builds(RationalQuadratic, SCALES, SCALES, columns=COLUMNS),
    st.builds(Periodic, SCALES, SCALES, columns=COLUMNS),
    st.builds(Polynomial, st.integers(1, 4), SCALES, columns=COLUMNS),
    st.sampled_from([Linear(), Constant(0.3), Nugget(), Finite(np.abs(TABLE), columns=[2])]),
)
EXPRESSION = st.recursive(
    LEAF,
    lambda parts: st.one_of(
        st.builds(lambda left, right: left + right, parts, parts),
        st.builds(lambda left, right: left * right, parts, parts),
        st.builds(lambda factor, kernel: factor * kernel, st.floats(0.1, 10.0), parts),
    ),
    max_leaves=8,
)


@given(kernel=EXPRESSION)
def test_any_expression_gives_its_gram_matrix(kernel):
    rng = np.random.default_rng(1)
    X, Z = points(rng, 7), points(rng, 5)
    np.testing.assert_allclose(compiled_gram(kernel, X, Z), kernel(X, Z), rtol=1e-13)


@given(kernel=EXPRESSION)
def test_a_program_reads_the_first_atoms_only_and_stays_inside_its_stack(kernel):
    rng = np.random.default_rng(2)
    X, p = points(rng, 8), program(kernel, 3)
    rows = np.full((p.depth + 1, 8), -7.0)
    stack = rows[: p.depth]
    kernel_row(p.ops, p.params, np.where(np.arange(8)[:, None] < 5, X, np.nan), 5, X[6], stack)
    np.testing.assert_allclose(stack[0, :5], kernel(X[:5], X[6:7])[:, 0], rtol=1e-13)
    assert np.all(rows[p.depth] == -7.0)
    assert np.all(rows[:, 5:] == -7.0)


def test_the_stack_is_as_deep_as_the_brackets_are():
    assert program(a + a + a + a, 1).depth == 2
    assert program(a + (a + (a + a)), 1).depth == 4
    assert program(a, 3).depth == 2
    assert program(a, 3).stack(10).shape == (2, 10)


@pytest.mark.parametrize("kernel", LEAVES + EXPRESSIONS, ids=repr)
def test_the_value_at_two_points_is_symmetric(kernel, rng):
    x, z = points(rng, 2)[:, None]
    assert compiled_gram(kernel, x, z)[0, 0] == compiled_gram(kernel, z, x)[0, 0]


@pytest.mark.parametrize("kernel", [*BOUNDED, Nugget()], ids=repr)
@pytest.mark.parametrize("far", [0.0, -1.7e9, 3.3e17, 1e200])
def test_a_repeated_point_has_the_value_one_exactly_however_far_it_is(kernel, far, rng):
    X = far + points(rng, 6)
    assert np.all(np.diag(compiled_gram(kernel, X, X)) == 1.0)


@pytest.mark.parametrize("kernel", BOUNDED, ids=repr)
def test_far_points_have_the_values_of_the_kernel_and_no_nan(kernel, rng):
    X = points(rng, 8) * np.array([1, 1, 1, -1, 1e3, -1e160, 1e200, -1e200])[:, None]
    K = compiled_gram(kernel, X, X)
    np.testing.assert_allclose(K, kernel(X), rtol=1e-13, atol=1e-300)
    assert np.all(K >= 0.0)


@pytest.mark.parametrize("kernel", BOUNDED[:9], ids=repr)
def test_kernels_that_decay_are_zero_at_distances_that_overflow(kernel):
    X = np.array([[1.5e308] * 3, [-1.5e308] * 3])
    np.testing.assert_array_equal(compiled_gram(kernel, X, X), np.eye(2))


@pytest.mark.parametrize("far", [0.0, 1.7e9, -4e15])
def test_a_periodic_kernel_keeps_its_phase_at_time_stamps(far, rng):
    X = far + np.round(rng.uniform(0.0, 1e6, size=(40, 1)))
    kernel = Periodic(86400.0, scale=0.7)
    np.testing.assert_allclose(compiled_gram(kernel, X, X % 86400.0), kernel(X), rtol=1e-13)


def test_exp_has_an_error_below_four_units_of_1e_16_down_to_the_subnormal_numbers(rng):
    x = -np.concatenate([rng.uniform(0.0, 708.0, 50_000), np.geomspace(1e-300, 1.0, 999), [0.0]])
    # the Laplace row at distance -x is exp(x), in vector instructions
    np.testing.assert_allclose(_laplace_row(-x), np.exp(x), rtol=4e-16, atol=0.0)
    deep = np.linspace(-745.0, -708.0, 5000)
    np.testing.assert_allclose(_laplace_row(-deep), np.exp(deep), rtol=4e-16, atol=5e-324)


def test_exp_is_within_its_stated_error_where_its_series_is_longest():
    # the remainder after whole multiples of log 2 is largest halfway between them
    x = -(np.arange(0.5, 1000.0, 3.0) * np.log(2.0)) * (1.0 - 1e-9)
    with mpmath.workprec(120):
        errors = [y / mpmath.exp(float(t)) - 1 for y, t in zip(_laplace_row(-x), x, strict=True)]
    assert max(abs(error) for error in errors) <= 2e-16


def test_exp_of_minus_infinity_is_zero_and_of_nan_nan():
    assert exp_nonpositive(0.0) == 1.0
    assert [exp_nonpositive(x) for x in (-746.0, -1e300, -np.inf)] == [0.0, 0.0, 0.0]
    assert np.isnan(exp_nonpositive(np.nan))


def _laplace_row(distances):
    return compiled_gram(Laplace(1.0), distances[:, None], np.zeros((1, 1)))[:, 0]


def test_a_point_outside_a_finite_set_is_nan_and_never_read_out_of_bounds():
    Z = np.array([[3.0], [-1.0], [1e300], [np.nan]])
    K = compiled_gram(Finite(TABLE), np.array([[0.0], [2.0]]), Z)
    assert np.isnan(K).all()
    assert np.isnan(compiled_gram(Finite(TABLE), Z, np.array([[0.0]]))).all()


@pytest.mark.parametrize("kernel", [Scalar(np.sin), Custom(np.dot)], ids=["Scalar", "Custom"])
def test_kernels_that_hold_a_python_callable_are_refused(kernel):
    for expression in (kernel, 2.0 * kernel, a + kernel, kernel * a):
        with pytest.raises(ValueError, match="kernel must not contain a Python callable"):
            program(expression, 1)


@pytest.mark.parametrize(
    ("kernel", "dimension", "error", "message"),
    [
        (Gaussian(1.0), 0, ValueError, "dimension must be a whole number of at least 1, got 0"),
        (Gaussian(1.0, columns=[2]), 2, ValueError, "columns of .* must be below 2"),
        (Constant(1.0, columns=[2]), 2, ValueError, "columns of .* must be below 2"),
        (Gaussian((1.0, 2.0)), 3, ValueError, "got 2 scales for 3 columns"),
        (Finite(TABLE), 2, ValueError, "X must be one column"),
        (Gaussian(1e-310), 1, OverflowError, "kernel must have scales above 1e-307"),
    ],
)
def test_a_kernel_that_does_not_fit_the_points_is_refused_before_the_compiled_loop(
    kernel, dimension, error, message
):
    with pytest.raises(error, match=message):
        program(kernel, dimension)


FRESH_PROCESS = """
import numpy as np
from hplus.kernels import Gaussian, Linear
from hplus.kernels.compiled import kernel_row
from hplus.kernels.programs import program
for kernel in (Gaussian(1.0), 2.0 * Linear() + Gaussian(2.0)):
    p = program(kernel, 1)
    kernel_row(p.ops, p.params, np.zeros((3, 1)), 3, np.zeros(1), p.stack(3))
print(sum(kernel_row.stats.cache_hits.values()), sum(kernel_row.stats.cache_misses.values()))
"""


def test_the_next_process_takes_the_machine_code_from_disk_whatever_the_kernel():
    p = program(Laplace(1.0), 1)
    kernel_row(p.ops, p.params, np.zeros((3, 1)), 3, np.zeros(1), p.stack(3))
    counts = subprocess.check_output([sys.executable, "-c", FRESH_PROCESS], text=True)
    assert counts.split() == ["1", "0"]
