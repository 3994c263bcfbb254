"""Refit: the batch problem on a dictionary, against scipy's optimum and known densities."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from hplus import KOMP, Box, Gaussian, Interval, Matern32, Refit, StreamingIntensity
from hplus.streaming.refit import solve

UNIT = Interval(0, 1)


def problem(rng, atoms=6, n=80):
    """K, atoms at nodes, shares, weights of μ on the atoms, and the number of events."""
    kernel, D = Gaussian(0.2), rng.uniform(size=(atoms, 1))
    nodes = np.linspace(0.0, 1.0, 101)[:, None]
    shares = rng.uniform(0.5, 1.0, 101)
    K = kernel(D) + 1e-6 * np.eye(atoms)
    return K, kernel(nodes, D), shares / shares.sum(), rng.uniform(0.0, n / atoms, atoms), float(n)


def objective(K, at_nodes, shares, m, n, penalty):
    """(5.7) in the weights of z: -<μ, z>/n + log ⨍e^z + (penalty/2n)‖z‖²."""
    return lambda w: (
        -m @ K @ w / n + logsumexp(at_nodes @ w, b=shares) + 0.5 * penalty / n * w @ K @ w
    )


@pytest.mark.parametrize("penalty", [0.03, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_weights_minimise_the_batch_problem(seed, penalty):
    K, at_nodes, shares, m, n = problem(np.random.default_rng(seed))
    f = objective(K, at_nodes, shares, m, n, penalty)
    found = solve(K, at_nodes, shares, m, n, penalty)
    theirs = minimize(f, np.zeros(len(m)), method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    assert f(found) <= theirs.fun + 1e-10
    np.testing.assert_allclose(at_nodes @ found, at_nodes @ theirs.x, atol=2e-4)


@pytest.mark.parametrize("penalty", [1e-6, 1.0, 1e6])
def test_the_slope_is_zero_at_the_weights(penalty, rng):
    K, at_nodes, shares, m, n = problem(rng)
    w = solve(K, at_nodes, shares, m, n, penalty)
    logs = at_nodes @ w
    p = shares * np.exp(logs - logsumexp(logs, b=shares))
    # ∂/∂w of (5.7)
    slope = -K @ m / n + at_nodes.T @ p + penalty / n * K @ w
    assert np.abs(slope).max() < 1e-6


def evidence(K, at_nodes, shares, m, n, penalty):
    """(5.8), with H in the orthonormal coordinates of the eigenvectors of K."""
    w = solve(K, at_nodes, shares, m, n, penalty)
    logs = at_nodes @ w
    p = shares * np.exp(logs - logsumexp(logs, b=shares))
    levels, U = np.linalg.eigh(K)
    psi = at_nodes @ U / np.sqrt(levels)
    H = (psi.T * p) @ psi - np.outer(p @ psi, p @ psi)
    curvature = np.linalg.slogdet(n * H + penalty * np.eye(len(m)))[1]
    value = objective(K, at_nodes, shares, m, n, penalty)(w)
    return -n * value + 0.5 * (len(m) * np.log(penalty) - curvature)


@pytest.mark.parametrize("seed", range(3))
def test_the_penalty_that_is_chosen_has_the_largest_evidence(seed):
    parts = problem(np.random.default_rng(seed), n=300)
    tried = np.geomspace(1e3, 1e-4, 15)
    best = tried[np.argmax([evidence(*parts, penalty) for penalty in tried])]
    np.testing.assert_allclose(solve(*parts, None), solve(*parts, best), rtol=1e-3, atol=1e-4)


def test_events_without_shape_give_a_constant_rate(rng):
    X = rng.uniform(size=(3000, 1))
    model = StreamingIntensity(UNIT, Gaussian(0.1), Refit()).partial_fit(X)
    density = model.predict(np.linspace(0.0, 1.0, 101)[:, None]) / 3000
    np.testing.assert_allclose(density, 1.0, atol=0.15)


def test_a_known_density_is_recovered(rng):
    X = rng.beta(2.0, 5.0, size=(8000, 1))
    model = StreamingIntensity(UNIT, Gaussian(0.1), Refit()).partial_fit(X)
    x = np.linspace(0.05, 0.8, 40)
    truth = 30.0 * x * (1.0 - x) ** 4
    np.testing.assert_allclose(model.predict(x[:, None]) / 8000, truth, atol=0.12)


def whole_problem(kernel, window, X, penalty):
    """log f up to a constant, at every event, from (5.7) on all events and no dictionary."""
    low, high = window.bounds()
    cells = 200 if len(low) == 1 else 40
    axes = [a + (b - a) * (np.arange(cells) + 0.5) / cells for a, b in zip(low, high, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(low))
    background = kernel(X, nodes).mean(axis=1)
    K = np.block([
        [np.full((1, 1), kernel(nodes).mean()), background[None]],
        [background[:, None], kernel(X)],
    ])  # fmt: skip
    at_nodes = np.column_stack([kernel(nodes).mean(axis=1), kernel(nodes, X)])
    m, n = np.r_[0.0, np.ones(len(X))], len(X)
    L = np.linalg.cholesky(K + 1e-8 * np.eye(n + 1))
    shares = np.full(len(nodes), 1.0 / len(nodes))
    A, target = np.linalg.solve(L, at_nodes.T).T, np.linalg.solve(L, K @ m) / n

    def value_and_slope(u):
        logs = A @ u
        total = logsumexp(logs, b=shares)
        p = shares * np.exp(logs - total)
        value = total - target @ u + 0.5 * penalty / n * u @ u
        return value, A.T @ p - target + penalty / n * u

    u = minimize(value_and_slope, np.zeros(n + 1), jac=True, method="L-BFGS-B").x
    return np.linalg.solve(L, K).T @ u


@pytest.mark.parametrize(
    ("window", "kernel"),
    [(UNIT, Matern32(0.3)), (Box((0, 0), (1, 1)), Gaussian(0.4))],
    ids=["interval", "box"],
)
def test_a_stream_is_the_batch_optimum_on_all_events(window, kernel, rng):
    X = rng.beta(2.0, 4.0, size=(120, window.dimension))
    # predictions are those of the last multiple of `every`, here of all events
    model = StreamingIntensity(window, kernel, Refit(every=60, penalty=2.0), budget=KOMP(1e-3))
    model.partial_fit(X)
    z = whole_problem(kernel, window, X, 2.0)[1:]
    log_rate = np.log(model.predict(X))
    np.testing.assert_allclose(log_rate - log_rate.mean(), z - z.mean(), atol=0.02)
    assert np.std(z) > 0.2


def test_predictions_are_those_of_the_last_multiple_of_every(rng):
    X = rng.beta(2.0, 4.0, size=(100, 1))
    options = {"kernel": Gaussian(0.2), "method": Refit(every=40, penalty=1.0)}
    early = StreamingIntensity(UNIT, **options).partial_fit(X[:80])
    late = StreamingIntensity(UNIT, **options).partial_fit(X)
    x = np.linspace(0.0, 1.0, 11)[:, None]
    np.testing.assert_allclose(late.predict(x) / 100, early.predict(x) / 80, rtol=1e-9)


def test_a_rate_is_learned_before_the_first_multiple_of_every(rng):
    X = rng.beta(2.0, 8.0, size=(30, 1))
    model = StreamingIntensity(UNIT, Gaussian(0.2), Refit(every=1000, penalty=0.1))
    first = model.partial_fit(X[:10]).predict([[0.1]])[0]
    second = model.partial_fit(X[10:]).predict([[0.1]])[0]
    assert second > first > 10.0
    assert model.expected_count(UNIT) == pytest.approx(30.0, rel=1e-9)


def test_half_life_weighs_events_in_the_refit(rng):
    X, ages = rng.beta(2.0, 4.0, size=(60, 1)), np.arange(60)[::-1]
    kernel, options = Gaussian(0.3), {"method": Refit(every=60, penalty=1.0), "budget": KOMP(0.0)}
    model = StreamingIntensity(UNIT, kernel, forget=15.0, **options).partial_fit(X)
    weights = 2.0 ** (-ages / 15.0)
    nodes = np.linspace(0.0, 1.0, 400)[:, None]

    def f(w):
        z, zx = kernel(nodes, X) @ w, kernel(X) @ w
        return (
            -weights @ zx / weights.sum() + logsumexp(z, b=1.0 / 400) + 0.5 / weights.sum() * w @ zx
        )

    best = minimize(f, np.zeros(60), method="L-BFGS-B", options={"maxfun": 10**6}).fun
    z = np.log(model.predict(nodes))
    scale = logsumexp(z, b=1.0 / 400)
    fit = -weights @ np.log(model.predict(X)) / weights.sum() + scale
    w = np.linalg.lstsq(kernel(nodes, X), z - z.mean(), rcond=1e-8)[0]
    assert fit <= best + 1e-2
    assert np.isfinite(w).all()
