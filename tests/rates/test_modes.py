"""Poisson counts on a grid under a Gaussian prior, against dense algebra and scipy's optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from hplus import Box, Interval, Statistic
from hplus.grids import TensorGrid
from hplus.rates.binned import BinnedStatistic
from hplus.rates.exposure import coefficient_covariance, fit_effects, poisson_regression
from hplus.rates.levels import Level, descend
from hplus.rates.modes import (
    Optimum,
    System,
    certify,
    conjugate_gradients,
    newton,
    normalised,
    objective,
)
from hplus.rates.posterior import deviations, log_determinant, shifted_means
from hplus.rates.prior import Field, SumOfFields
from hplus.rates.torus import Matrix, stacked

GRID = TensorGrid((0,), (1,), (12,))
PLANE = TensorGrid((0, 0), (1, 1), (4, 3))


def prior_on(grid, deviation=1.3, scale=0.3):
    return SumOfFields((Field(1.5, (scale,) * grid.dimension, deviation),)).covariance(grid)


def matrix(prior, shape):
    """The prior covariance as a dense matrix."""
    G = int(np.prod(shape))
    return prior.apply(np.eye(G).reshape(G, *shape)).reshape(G, G)


def counts(rng, shape, k=1):
    """Binned weights (k, *shape) and exposures (1, *shape)."""
    return rng.poisson(4.0, (k, *shape)).astype(float), rng.uniform(0.5, 1.5, (1, *shape))


def solved(prior, s, nu, **options):
    options = {"tolerance": 1e-14, "accuracy": 1e-6} | options
    return newton(prior, s, nu, np.zeros_like(s), **options)


def hessian(W):
    """RQR = diag(W) - WWᵀ/n."""
    return np.diag(W) - np.outer(W, W) / W.sum()


def posterior_covariance(K, W):
    """(K⁻¹ + RQR)⁻¹ with the constant free: its mean under W has variance 1/n on its own."""
    C = np.linalg.inv(np.linalg.inv(K) + hessian(W))
    center = np.eye(len(W)) - np.outer(np.ones(len(W)), W) / W.sum()
    return center @ C @ center.T + 1.0 / W.sum()


# Modes


@pytest.mark.parametrize("grid", [GRID, PLANE], ids=["line", "plane"])
def test_the_mode_is_the_minimum_that_scipy_finds(grid, rng):
    prior, (s, nu) = prior_on(grid), counts(rng, grid.shape)
    K = matrix(prior, grid.shape)

    def penalised(t):
        z = K @ t[1:] + t[0]
        slope = nu.ravel() * np.exp(z) - s.ravel()
        value = np.sum(nu.ravel() * np.exp(z) - s.ravel() * z) + 0.5 * t[1:] @ K @ t[1:]
        return value, np.append(slope.sum(), K @ (slope + t[1:]))

    found = minimize(penalised, np.zeros(13), jac=True, method="BFGS", options={"gtol": 1e-9})
    expected = (K @ found.x[1:] + found.x[0]).reshape(grid.shape)
    mode = solved(prior, s, nu)
    assert mode.converged
    np.testing.assert_allclose(mode.z[0], expected, atol=1e-5)
    np.testing.assert_allclose(objective(s, nu, mode.z, mode.a), found.fun, rtol=1e-9)


def test_charges_are_what_the_counts_exceed_their_expectation_by(rng):
    s, nu = counts(rng, PLANE.shape)
    mode = solved(prior_on(PLANE), s, nu)
    np.testing.assert_allclose(mode.a, s - nu * np.exp(mode.z), atol=1e-5)


def test_a_batch_gives_what_its_problems_give_one_by_one(rng):
    priors = [prior_on(GRID, 0.5), prior_on(GRID, 2.0), prior_on(GRID, 1.0, 0.1)]
    s, nu = counts(rng, GRID.shape, k=3)
    batch = solved(stacked(priors), s, nu)
    for i, prior in enumerate(priors):
        alone = solved(prior, s[i : i + 1], nu)
        np.testing.assert_allclose(batch.z[i], alone.z[0], atol=1e-6)


def test_problems_that_share_their_counts_need_not_repeat_them(rng):
    priors, (s, nu) = [prior_on(GRID, 0.5), prior_on(GRID, 2.0)], counts(rng, GRID.shape)
    z = newton(stacked(priors), s, nu, np.zeros((2, 12)), tolerance=1e-14, accuracy=1e-6).z
    np.testing.assert_allclose(z[1:], solved(priors[1], s, nu).z, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_expected_total_is_the_total_of_the_counts(dtype, rng):
    s, nu = (x.astype(dtype) for x in counts(rng, PLANE.shape, k=2))
    mode = newton(prior_on(PLANE).single(), s, nu, np.zeros_like(s), tolerance=1e-3)
    totals = np.sum(nu * np.exp(mode.z), axis=(1, 2))
    np.testing.assert_allclose(totals, s.sum(axis=(1, 2)), rtol=10 * np.finfo(dtype).eps)


def test_single_precision_finds_the_same_mode(rng):
    prior, (s, nu) = prior_on(PLANE), counts(rng, PLANE.shape)
    single = newton(
        prior.single(), s.astype("f4"), nu.astype("f4"), np.zeros_like(s, "f4"), tolerance=1e-4
    )
    assert single.z.dtype == np.float32
    np.testing.assert_allclose(single.z, solved(prior, s, nu).z, atol=5e-3)


@pytest.mark.parametrize("start", [-30.0, 0.0, 30.0])
def test_the_mode_does_not_depend_on_where_the_search_starts(start, rng):
    prior, (s, nu) = prior_on(GRID, 3.0), counts(rng, GRID.shape)
    far = start * rng.normal(size=s.shape)
    mode = newton(prior, s, nu, far, tolerance=1e-12, accuracy=1e-4)
    assert mode.converged
    np.testing.assert_allclose(mode.z, solved(prior, s, nu).z, atol=1e-4)


EXTREMES = [("a million in one node", 1e6), ("one event", 1.0), ("a millionth", 1e-6)]


@pytest.mark.parametrize(("what", "count"), EXTREMES, ids=[e[0] for e in EXTREMES])
def test_extreme_counts_are_fitted_with_a_small_gap(what, count):
    prior, s, nu = prior_on(GRID, 2.5), np.zeros((1, 12)), np.full((1, 12), 1.0 / 12)
    s[0, 4] = count
    mode = newton(prior, s, nu, np.zeros((1, 12)), tolerance=1e-9 * count, accuracy=1e-3)
    result = certify(prior, s, nu, mode)
    assert mode.converged
    assert np.isfinite(mode.z).all()
    assert result.relative_gap < 1e-7


def test_nodes_without_exposure_change_nothing_elsewhere(rng):
    prior, (s, nu) = prior_on(GRID), counts(rng, GRID.shape)
    s[0, 8:], nu[0, 8:] = 0.0, 0.0
    mode = solved(prior, s, nu)
    K = matrix(prior, (12,))
    inside = newton(
        Matrix(K[:8, :8]),
        s[:, :8],
        nu[:, :8],
        np.zeros((1, 8)),
        tolerance=1e-14,
        accuracy=1e-6,
    )
    np.testing.assert_allclose(mode.z[:, :8], inside.z, atol=1e-5)
    outside = K[8:, :8] @ mode.a[0, :8] + np.mean(mode.z[0, :8] - K[:8, :8] @ mode.a[0, :8])
    np.testing.assert_allclose(mode.z[0, 8:], outside, atol=1e-5)


# Certificates


def test_the_gap_is_nothing_at_the_optimum_and_grows_away_from_it(rng):
    prior, (s, nu) = prior_on(PLANE), counts(rng, PLANE.shape)
    mode = solved(prior, s, nu)
    noise = rng.normal(size=s.shape)
    gaps = []
    for size in (0.0, 0.1, 1.0):
        a = mode.a + size * (noise - noise.mean())
        gaps.append(certify(prior, s, nu, Optimum(mode.z, a, 1, True)).gap)
    assert 0.0 <= gaps[0] < 1e-8
    assert 1e-4 < gaps[1] < gaps[2]


def test_the_gap_bounds_how_far_the_objective_is_from_its_minimum(rng):
    prior, (s, nu) = prior_on(GRID), counts(rng, GRID.shape)
    mode = solved(prior, s, nu)
    a = mode.a + rng.normal(size=s.shape)
    a -= a.mean()
    result = certify(prior, s, nu, Optimum(mode.z, a, 1, True))
    lowest = float(objective(s, nu, mode.z, mode.a)[0])
    assert result.objective - result.gap <= lowest <= result.objective


# Linear algebra


def test_conjugate_gradients_solve_each_system_of_a_batch(rng):
    A = rng.normal(size=(3, 10, 10))
    B = A @ A.transpose(0, 2, 1) + np.eye(10)
    b = rng.normal(size=(3, 10))
    x = conjugate_gradients(lambda v: np.einsum("kij,kj->ki", B, v), b, np.zeros((3, 10)), 1e-12)
    np.testing.assert_allclose(x, np.linalg.solve(B, b[..., None])[..., 0], rtol=1e-7, atol=1e-8)


def test_conjugate_gradients_stop_where_what_is_left_is_rounding(rng):
    """A residual that the system cannot remove, as rounding leaves it, does not keep it busy."""
    weights, calls = np.linspace(1.0, 1e4, 60)[None], []

    def centered(v):
        return v - v.mean(axis=1, keepdims=True)

    def apply(v):
        calls.append(1)
        return centered(weights * centered(v))

    b = centered(rng.standard_normal((1, 60)))
    x = conjugate_gradients(
        apply,
        b + 0.5,
        np.zeros((1, 60)),
        1e-2,
        precondition=lambda r: centered(centered(r) / weights),
    )
    assert len(calls) < 30
    assert np.linalg.norm(apply(x) - b) < 1e-2 * np.linalg.norm(b)


def test_conjugate_gradients_stop_where_enough_is_reached(rng):
    calls = []
    d, b = np.linspace(1.0, 100.0, 50), rng.normal(size=(1, 50))

    def apply(v):
        calls.append(v)
        return d * v

    x = conjugate_gradients(apply, b, np.zeros((1, 50)), 1e-12, 0.01)
    assert np.sum((b - d * x) ** 2) <= 0.01 + 1e-12
    assert len(calls) < 30


@pytest.mark.parametrize("scale", [0.05, 0.3])
def test_log_determinants_are_those_of_the_dense_matrix(scale, rng):
    grid = TensorGrid((0,), (1,), (60,))
    prior, W = prior_on(grid, 1.0, scale), rng.uniform(0.5, 4.0, (1, 60))
    estimate = log_determinant(prior, W, np.random.RandomState(0), probes=200)
    K, Q = matrix(prior, (60,)), np.eye(60) - np.outer(np.sqrt(W), np.sqrt(W)) / W.sum()
    expected = np.linalg.slogdet(np.eye(60) + Q @ (np.sqrt(W).T * K * np.sqrt(W)) @ Q)[1]
    np.testing.assert_allclose(estimate, expected, rtol=0.05)


def test_common_probes_make_differences_of_log_determinants_exact_to_a_nat(rng):
    grid = TensorGrid((0,), (1,), (60,))
    W = rng.uniform(0.5, 4.0, (1, 60))
    Q = np.eye(60) - np.outer(np.sqrt(W), np.sqrt(W)) / W.sum()
    estimates, expected = [], []
    for deviation in (1.0, 1.2):
        prior = prior_on(grid, deviation)
        estimates.append(log_determinant(prior, W, np.random.RandomState(0)))
        K = matrix(prior, (60,))
        expected.append(np.linalg.slogdet(np.eye(60) + Q @ (np.sqrt(W).T * K * np.sqrt(W)) @ Q)[1])
    assert abs(np.diff(estimates)[0] - np.diff(expected)[0]) < 1.0


def test_draws_around_the_mode_have_the_dense_posterior_covariance(rng):
    prior, W, k = prior_on(GRID), rng.uniform(1.0, 6.0, (1, 12)), 20_000
    y = deviations(prior, W, k, np.random.RandomState(0), accuracy=1e-6)
    expected = posterior_covariance(matrix(prior, (12,)), W[0])
    sizes = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs((y.T @ y / k - expected) / sizes).max() < 0.04


def test_means_lie_below_modes_by_half_the_variance_seen_through_the_covariance(rng):
    prior, W = prior_on(GRID), rng.uniform(1.0, 6.0, (1, 12))
    v = rng.uniform(0.1, 0.5, (1, 12))
    C = posterior_covariance(matrix(prior, (12,)), W[0])
    expected = -0.5 * C @ (W[0] * v[0])
    np.testing.assert_allclose(shifted_means(prior, W, v)[0], expected, atol=5e-3)


def test_the_system_matrix_is_that_of_its_docstring(rng):
    prior, W = prior_on(GRID), rng.uniform(1.0, 6.0, (1, 12))
    system = System(prior, W)
    R, u = np.sqrt(W[0]), np.sqrt(W[0] / W.sum())
    Q = np.eye(12) - np.outer(u, u)
    x = rng.normal(size=(1, 12)) @ Q
    expected = x @ (np.eye(12) + Q @ (R[:, None] * matrix(prior, (12,)) * R) @ Q)
    np.testing.assert_allclose(system.apply(x), expected)


def test_a_stiff_system_is_solved_as_exactly_with_its_preconditioner(rng, monkeypatch):
    grid = TensorGrid((0.0,), (30.0,), (200,))
    prior, W = prior_on(grid, deviation=3.0), np.exp(rng.uniform(-4.0, 6.0, (1, 200)))
    system, steps = System(prior, W), []
    b = system.project(rng.normal(size=(1, 200)))
    monkeypatch.setattr(System, "apply", _counted(System.apply, steps))
    monkeypatch.setattr("hplus.rates.modes.STIFF_EIGENVALUE", np.inf)
    plain = system.solve(b, 0.0 * b, 1e-10)
    without = len(steps)
    monkeypatch.setattr("hplus.rates.modes.STIFF_EIGENVALUE", 0.0)
    np.testing.assert_allclose(system.solve(b, 0.0 * b, 1e-10), plain, atol=1e-4)
    assert len(steps) - without < 0.7 * without
    with_one = system.solve(b, 0.0 * b, 1e-10)
    monkeypatch.setattr("hplus._threads.MANY_ELEMENTS", 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2})
    np.testing.assert_array_equal(system.solve(b, 0.0 * b, 1e-10), with_one)


def test_the_preconditioner_is_symmetric_and_positive(rng):
    prior, W = prior_on(GRID, deviation=3.0), np.exp(rng.uniform(-2.0, 4.0, (1, 12)))
    system = System(prior, W)
    ease = system._preconditioner(prior.centered(), 1e4, map)
    x, y = (system.project(rng.normal(size=(1, 12))) for _ in range(2))
    np.testing.assert_allclose(np.sum(x * ease(y)), np.sum(y * ease(x)))
    assert np.sum(x * ease(x)) > 0.0


def _counted(function, calls):
    def counted(*args):
        calls.append(1)
        return function(*args)

    return counted


# Covariates


def test_coefficients_are_those_of_a_poisson_regression(rng):
    C, nu = rng.normal(size=(2, 12)), rng.uniform(0.5, 1.5, 12)
    s = rng.poisson(20.0 * nu * np.exp([0.5, -0.3] @ C)).astype(float)

    def loss(t):
        log_rate = t[0] + t[1:] @ C
        return np.sum(nu * np.exp(log_rate) - s * log_rate)

    expected = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(poisson_regression(C, s, nu), expected[1:], atol=1e-5)


def test_the_factor_of_a_rate_is_e_to_the_sum_of_its_covariates(rng):
    events = BinnedStatistic.of(Statistic.of(Interval(0, 1), rng.beta(2, 3, (50, 1))), 0)
    given = {"a": lambda x: x[:, 0], "b": lambda x: np.sin(9 * x[:, 0])}
    effects = fit_effects(given, events, np.ones(events.grid.shape))
    linear = effects.values @ effects.columns
    np.testing.assert_allclose(effects.factor, np.exp(linear))


def test_errors_of_coefficients_grow_with_the_field_from_those_of_poisson_counts(rng):
    C, W = rng.normal(size=(2, 12)), rng.uniform(1.0, 6.0, 12)
    design = np.vstack([np.ones(12), C])
    none = coefficient_covariance(C, W, Matrix(np.zeros((12, 12))))
    np.testing.assert_allclose(none, np.linalg.inv(design * W @ design.T)[1:, 1:])
    K = matrix(prior_on(GRID), (12,))
    # estimates of simulated counts: β - β̂ = A⁻¹ C'(s - W), to first order
    y = rng.multivariate_normal(np.zeros(12), K, size=40_000)
    scores = (y * W + rng.normal(size=y.shape) * np.sqrt(W)) @ design.T
    beta = scores @ np.linalg.inv(design * W @ design.T)
    np.testing.assert_allclose(
        coefficient_covariance(C, W, Matrix(K)), np.cov(beta.T)[1:, 1:], rtol=0.05, atol=1e-3
    )


# Levels


def test_coarser_levels_keep_all_events_and_all_exposure(rng):
    grid = TensorGrid((0, 0), (1, 2), (17, 9))
    window = Box((0, 0), (1, 2))
    level = Level(window, grid, rng.random((5, *grid.shape)), grid.integrals(window))
    for lower in descend(level):
        np.testing.assert_allclose(lower.folds.sum(axis=(1, 2)), level.folds.sum(axis=(1, 2)))
        np.testing.assert_allclose(lower.exposure.sum(), 2.0)


def test_the_first_guess_follows_the_events(rng):
    grid = TensorGrid((0,), (1,), (65,))
    exposure = np.full(65, 1.0 / 65)
    folds = np.zeros((5, 65))
    folds[0, 10] = 100.0
    start = Level(Interval(0, 1), grid, folds, exposure).start()[0]
    assert np.argmax(start) in (9, 10, 11)
    assert np.isfinite(start).all()
    np.testing.assert_allclose(normalised(start[None], folds[:1], exposure[None])[0].argmax(), 10)
