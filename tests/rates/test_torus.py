"""Circulant covariances on a padded grid, against dense matrices and the kernels they stand for."""

import numpy as np
import pytest

from hplus import Constant, Gaussian, Laplace, Linear, Matern32, Matern52, Periodic, Polynomial
from hplus.grids import TensorGrid
from hplus.rates.prior import Field, KernelPrior, SumOfFields, circulant
from hplus.rates.torus import Circulant, Matrix, Torus, kernel_spectrum, matern_spectrum

TORI = [
    Torus((9,), (2.0,), (False,)),
    Torus((9,), (2.0,), (True,)),
    Torus((5, 6), (1.0, 3.0), (False, False)),
    Torus((5, 6), (1.0, 3.0), (True, False)),
    Torus((6, 5), (1.0, 3.0), (False, True)),
    Torus((5, 5), (1.0, 1.0), (True, True)),
    Torus((4, 3, 5), (1.0, 2.0, 1.0), (False, False, False)),
    Torus((4, 3, 5), (1.0, 2.0, 1.0), (False, True, True)),
]
every_torus = pytest.mark.parametrize("torus", TORI, ids=lambda t: f"{t.shape}-{t.closed}")


def whole(torus, spectrum):
    """The covariance on all nodes of the torus, from the definition of the Fourier basis."""
    nodes = np.stack(np.meshgrid(*map(np.arange, torus.padded), indexing="ij"), -1)
    nodes = nodes.reshape(-1, len(torus.shape))
    n = torus.padded[-1]
    last = np.minimum(np.arange(n), n - np.arange(n))
    full = spectrum[..., last].ravel()
    phases = np.exp(2j * np.pi * (nodes / torus.padded) @ nodes.T)
    return (phases * full @ phases.conj().T).real / len(nodes)


def dense(torus, spectrum):
    """The covariance on the grid: rows of the torus, those of closed ends twice."""
    axes = [np.arange(n) % m for n, m in zip(torus.shape, torus.padded, strict=True)]
    index = np.ravel_multi_index(np.meshgrid(*axes, indexing="ij"), torus.padded).ravel()
    return whole(torus, spectrum)[np.ix_(index, index)]


def some_spectrum(torus):
    """A spectrum that is not symmetric under an exchange of axes."""
    scales = 0.3 * np.arange(1.0, len(torus.shape) + 1.0)
    return 1.7 * matern_spectrum(torus, 1.0, scales, product=False)


def on_a_line(k, torus):
    """k(x, 0) at the nodes of a line."""
    x = np.linspace(0.0, torus.sides[0], torus.shape[0])[:, None]
    return k(x, np.zeros((1, 1)))[:, 0]


def first_column(torus, spectrum):
    unit = np.zeros((1, *torus.shape))
    unit.flat[0] = 1.0
    return torus.apply(spectrum, unit)[0]


@every_torus
def test_products_are_those_with_the_dense_covariance(torus, rng):
    spectrum = some_spectrum(torus)
    x = rng.normal(size=(3, *torus.shape))
    expected = (x.reshape(3, -1) @ dense(torus, spectrum)).reshape(x.shape)
    np.testing.assert_allclose(torus.apply(spectrum, x), expected, atol=1e-12)


@every_torus
def test_a_covariance_is_symmetric_and_positive_semidefinite(torus):
    G = int(np.prod(torus.shape))
    K = torus.apply(some_spectrum(torus), np.eye(G).reshape(G, *torus.shape)).reshape(G, G)
    np.testing.assert_allclose(K, K.T, atol=1e-13)
    assert np.linalg.eigvalsh(K).min() > -1e-12


@every_torus
def test_draws_have_the_covariance(torus):
    spectrum, k = some_spectrum(torus), 5_000
    y = torus.draw(spectrum, k, np.random.RandomState(0)).reshape(k, -1)
    K = dense(torus, spectrum)
    # an entry of the empirical covariance has a standard deviation of at most √2 · 1.7/√k
    assert np.abs(y.T @ y / k - K).max() < 5.0 * np.sqrt(2.0) * 1.7 / np.sqrt(k)
    assert np.abs(y.mean(axis=0)).max() < 5.0 * np.sqrt(1.7 / k)


@every_torus
@pytest.mark.parametrize("product", [False, True])
def test_matern_fields_have_variance_one_at_every_node(torus, product):
    spectrum = matern_spectrum(torus, 1.5, np.full(len(torus.shape), 0.4), product=product)
    np.testing.assert_allclose(np.diag(dense(torus, spectrum)), 1.0)


@pytest.mark.parametrize(
    ("smoothness", "kernel", "tolerance"),
    [(0.5, Laplace(0.07), 0.02), (1.5, Matern32(0.07), 1e-4), (2.5, Matern52(0.07), 1e-6)],
)
def test_matern_fields_on_a_line_are_the_kernels_of_the_same_scale(smoothness, kernel, tolerance):
    torus = Torus((401,), (2.0,), (False,))
    spectrum = matern_spectrum(torus, smoothness, np.array([0.07]), product=False)
    np.testing.assert_allclose(
        first_column(torus, spectrum), on_a_line(kernel, torus), atol=tolerance
    )


@pytest.mark.parametrize(
    ("smoothness", "kernel", "product", "tolerance"),
    [
        (0.5, Laplace((0.1, 0.2)), True, 0.07),
        (1.5, Matern32((0.1, 0.2)), False, 4e-3),
        (2.5, Matern52((0.1, 0.2)), False, 1e-4),
    ],
)
def test_matern_fields_in_the_plane_are_the_kernels(smoothness, kernel, product, tolerance):
    torus = Torus((61, 61), (1.0, 2.0), (False, False))
    spectrum = matern_spectrum(torus, smoothness, np.array([0.1, 0.2]), product=product)
    nodes = TensorGrid((0, 0), (1, 2), (61, 61)).nodes()
    expected = kernel(nodes, np.zeros((1, 2))).reshape(61, 61)
    near = np.s_[:30, :30]  # beyond half of the side the way round the torus counts
    column = first_column(torus, spectrum)
    np.testing.assert_allclose(column[near], expected[near], atol=tolerance)


@pytest.mark.parametrize("kernel", [Laplace(0.08), Gaussian(0.1), 2.0 * Matern32(0.08)], ids=repr)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_spectrum_of_a_kernel_gives_the_kernel_at_the_nodes(kernel, d):
    grid = TensorGrid((0,) * d, (1,) * d, (9,) * d)
    torus = Torus(grid.shape, (1.0,) * d, (False,) * d)
    spectrum = kernel_spectrum(torus, kernel)
    expected = kernel(grid.nodes(), np.zeros((1, d)))[:, 0].reshape(grid.shape)
    np.testing.assert_allclose(first_column(torus, spectrum), expected, atol=3e-3)


def test_a_kernel_that_does_not_fit_on_the_torus_has_no_spectrum():
    assert kernel_spectrum(Torus((33,), (1.0,), (False,)), Gaussian(2.0)) is None


def test_single_precision_agrees_with_double(rng):
    torus = TORI[3]
    covariance = Circulant(torus, some_spectrum(torus))
    x = rng.normal(size=(2, *torus.shape))
    single = covariance.single().apply(x.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, covariance.apply(x), atol=1e-5)


def test_several_spectra_act_each_on_its_own_problem(rng):
    torus = TORI[2]
    spectra = np.stack([some_spectrum(torus), 3.0 * some_spectrum(torus) ** 2])
    x = rng.normal(size=(2, *torus.shape))
    both = Circulant(torus, spectra).apply(x)
    for i in range(2):
        np.testing.assert_allclose(both[i], torus.apply(spectra[i], x[i : i + 1])[0])


KERNELS = [
    (Gaussian(0.3), ((0.0,), (1.0,)), (33,), Circulant),
    (Periodic(1.0, 0.7), ((3.0,), (4.0,)), (33,), Circulant),
    (Periodic(1.0) + Constant(0.5), ((0.0,), (1.0,)), (33,), Circulant),
    (Linear(), ((0.0,), (1.0,)), (33,), Matrix),
    (Polynomial(2), ((0.0, 1.0), (1.0, 2.0)), (5, 6), Matrix),
    (Gaussian(5.0), ((0.0,), (1.0,)), (33,), Matrix),
    (Laplace(0.08, columns=[0]) * Periodic(7.0, columns=[1]), ((0, 0), (1, 7)), (9, 8), Circulant),
    (
        Gaussian(0.1, columns=[0, 1]) * Periodic(24.0, columns=[2]),
        ((0, 0, 0), (1, 1, 24)),
        (5, 5, 7),
        Circulant,
    ),
]


@pytest.mark.parametrize(("kernel", "box", "shape", "kind"), KERNELS, ids=lambda k: repr(k)[:40])
def test_a_given_kernel_divided_by_its_penalty_is_the_covariance(kernel, box, shape, kind, rng):
    grid = TensorGrid(*box, shape)
    given = KernelPrior(kernel, 2.5)
    prior = given.covariance(grid)
    assert isinstance(prior, kind)
    assert (circulant(kernel, grid) is None) == (kind is Matrix)
    x = rng.normal(size=(2, *shape))
    expected = (x.reshape(2, -1) @ kernel(grid.nodes()) / 2.5).reshape(x.shape)
    np.testing.assert_allclose(prior.apply(x), expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("low", [0.0, 0.3, 1e6])
def test_a_period_that_fills_the_window_closes_the_axis_exactly(low):
    grid = TensorGrid((low,), (low + 4.0,), (17,))
    K = KernelPrior(Periodic(4.0, 0.5), 1.0).covariance(grid).apply(np.eye(17))
    np.testing.assert_allclose(K, Periodic(4.0, 0.5)(grid.nodes()), atol=1e-8)


def test_draws_of_a_kernel_that_is_not_stationary_have_its_covariance():
    grid, k = TensorGrid((0,), (1,), (6,)), 20_000
    y = KernelPrior(Polynomial(2), 1.0).covariance(grid).draw(k, np.random.RandomState(0))
    expected = Polynomial(2)(grid.nodes())
    np.testing.assert_allclose(y.T @ y / k, expected, rtol=0.1)


def test_a_prior_is_the_sum_of_its_fields(rng):
    grid = TensorGrid((0, 0), (1, 2), (9, 9))
    fields = Field(1.5, (0.3, 0.2), 2.0), Field(0.5, (0.1, 0.1), 0.5, product=True)
    x = rng.normal(size=(1, 9, 9))
    parts = [SumOfFields((field,)).covariance(grid).apply(x) for field in fields]
    np.testing.assert_allclose(SumOfFields(fields).covariance(grid).apply(x), sum(parts))
    assert SumOfFields(fields).kind == (0.5, True)


def test_the_deviation_of_a_field_is_that_of_its_draws():
    grid = TensorGrid((0,), (1,), (33,))
    y = (
        SumOfFields((Field(1.5, (0.05,), 3.0),))
        .covariance(grid)
        .draw(4000, np.random.RandomState(0))
    )
    np.testing.assert_allclose(y.std(), 3.0, rtol=0.03)
