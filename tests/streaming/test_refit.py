"""Refit: the batch problem on a dictionary, against scipy's optimum and known densities."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from hplus import KOMP, Box, Gaussian, Interval, Matern32, Refit, StreamingIntensity
from hplus.streaming.refit import solve

UNIT = Interval(0, 1)


def problem(rng, atoms=6, n=80):
    """K, atoms at nodes, shares, events counted on the nodes, and their number."""
    kernel, D = Gaussian(0.2), rng.uniform(size=(atoms, 1))
    nodes = np.linspace(0.0, 1.0, 101)[:, None]
    shares = rng.uniform(0.5, 1.0, 101)
    K = kernel(D) + 1e-6 * np.eye(atoms)
    counts = np.bincount((100 * rng.beta(2.0, 4.0, size=n)).astype(int), minlength=101) * 1.0
    return K, kernel(nodes, D), shares / shares.sum(), counts, float(n)


def objective(K, at_nodes, shares, counts, n, penalty):
    """(5.7) in the weights of z: -Σ_g s_g z_g/n + log ⨍e^z + (penalty/2n)‖z‖²."""

    def value(w):
        z = at_nodes @ w
        return -counts @ z / n + logsumexp(z, b=shares) + 0.5 * penalty / n * w @ K @ w

    return value


@pytest.mark.parametrize("penalty", [0.03, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_weights_minimise_the_batch_problem(seed, penalty):
    K, at_nodes, shares, counts, n = problem(np.random.default_rng(seed))
    f = objective(K, at_nodes, shares, counts, n, penalty)
    found = solve(K, at_nodes, shares, counts, n, penalty)
    W = np.linalg.inv(np.linalg.cholesky(K)).T  # coordinates in which the norm is that of u
    theirs = minimize(lambda u: f(W @ u), np.zeros(len(K)), method="BFGS", options={"gtol": 1e-8})
    assert f(found) <= theirs.fun + 1e-10
    np.testing.assert_allclose(at_nodes @ found, at_nodes @ W @ theirs.x, atol=1e-3)


@pytest.mark.parametrize("penalty", [1e-6, 1.0, 1e6])
def test_the_slope_is_zero_at_the_weights(penalty, rng):
    K, at_nodes, shares, counts, n = problem(rng)
    w = solve(K, at_nodes, shares, counts, n, penalty)
    logs = at_nodes @ w
    p = shares * np.exp(logs - logsumexp(logs, b=shares))
    # ∂/∂w of (5.7)
    slope = at_nodes.T @ (p - counts / n) + penalty / n * K @ w
    assert np.abs(slope).max() < 1e-6


def evidence(K, at_nodes, shares, counts, n, penalty):
    """(5.8), with H in the orthonormal coordinates of the eigenvectors of K."""
    w = solve(K, at_nodes, shares, counts, n, penalty)
    logs = at_nodes @ w
    p = shares * np.exp(logs - logsumexp(logs, b=shares))
    levels, U = np.linalg.eigh(K)
    psi = at_nodes @ U / np.sqrt(levels)
    H = (psi.T * p) @ psi - np.outer(p @ psi, p @ psi)
    curvature = np.linalg.slogdet(n * H + penalty * np.eye(len(K)))[1]
    value = objective(K, at_nodes, shares, counts, n, penalty)(w)
    return -n * value + 0.5 * (len(K) * np.log(penalty) - curvature)


@pytest.mark.parametrize("seed", range(3))
def test_the_penalty_that_is_chosen_has_the_largest_evidence(seed):
    parts = problem(np.random.default_rng(seed), n=300)
    tried = np.geomspace(1e3, 1e-4, 15)
    rises = np.diff([evidence(*parts, penalty) for penalty in tried]) >= 0.0
    # the first maximum from above
    best = tried[np.argmin(np.append(rises, False))]
    at_nodes = parts[1]
    found, expected = (at_nodes @ solve(*parts, penalty) for penalty in (None, best))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert tried[-1] < best < tried[0]


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
    np.testing.assert_allclose(model.predict(x[:, None]) / 8000, truth, atol=0.15)


def whole_problem(kernel, window, X, weights, penalty):
    """log f up to a constant, at every event, from (5.7) on all events and no dictionary."""
    low, high = window.bounds()
    cells = 200 if len(low) == 1 else 30
    axes = [a + (b - a) * (np.arange(cells) + 0.5) / cells for a, b in zip(low, high, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(low))
    background = kernel(X, nodes).mean(axis=1)[:, None]
    K = np.block([[kernel(nodes).mean(), background.T], [background, kernel(X)]])
    L = np.linalg.cholesky(K + 1e-8 * np.eye(len(K)))
    at_nodes = np.column_stack([kernel(nodes).mean(axis=1), kernel(nodes, X)])
    A, n, share = np.linalg.solve(L, at_nodes.T).T, weights.sum(), 1.0 / len(nodes)
    target = np.linalg.solve(L, K[:, 1:] @ weights) / n

    def value_and_slope(u):
        logs = A @ u
        total = logsumexp(logs, b=share)
        p = share * np.exp(logs - total)
        value = total - target @ u + 0.5 * penalty / n * u @ u
        return value, A.T @ p - target + penalty / n * u

    options = {"maxiter": 3000, "ftol": 1e-14, "gtol": 1e-8}
    u = minimize(value_and_slope, np.zeros(len(K)), jac=True, method="L-BFGS-B", options=options).x
    return (np.linalg.solve(L, K).T @ u)[1:]


# the last number is how near: events are counted on nodes, and a rough kernel loses more by that
BATCHES = {
    "smooth": (UNIT, Gaussian(0.15), np.inf, 0.03),
    "rough": (UNIT, Matern32(0.3), np.inf, 0.12),
    "box": (Box((0, 0), (1, 1)), Gaussian(0.4), np.inf, 0.04),
    "half-life": (UNIT, Gaussian(0.15), 30.0, 0.03),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_stream_is_the_batch_optimum_on_all_events(name, rng):
    window, kernel, half_life, near = BATCHES[name]
    X = rng.beta(2.0, 4.0, size=(120, window.dimension))
    forget = None if half_life == np.inf else half_life
    model = StreamingIntensity(window, kernel, Refit(1, penalty=2.0), KOMP(1e-3), forget)
    log_rate = np.log(model.partial_fit(X).predict(X))
    z = whole_problem(kernel, window, X, 2.0 ** (-np.arange(120)[::-1] / half_life), 2.0)
    np.testing.assert_allclose(log_rate - log_rate.mean(), z - z.mean(), atol=near)
    assert np.std(z) > 0.2


@pytest.mark.parametrize("n", [1, 10, 33, 100, 150])
def test_predictions_leave_out_few_of_the_last_events(n, rng):
    X, x = rng.beta(2.0, 4.0, size=(n, 1)), np.linspace(0.0, 1.0, 11)[:, None]
    kernel, late = Gaussian(0.2), Refit(every=40, penalty=1.0)
    found = StreamingIntensity(UNIT, kernel, late).partial_fit(X).predict(x) / n
    left_out = []
    for m in range(n - min(40, n // 32), n + 1):
        exact = StreamingIntensity(UNIT, kernel, Refit(1, penalty=1.0)).partial_fit(X[:m])
        left_out.append(np.abs(exact.predict(x) / m - found).max() < 1e-9)
    assert any(left_out)


def test_a_rate_is_learned_from_the_first_event_on(rng):
    X = rng.beta(2.0, 8.0, size=(30, 1))
    model = StreamingIntensity(UNIT, Gaussian(0.2), Refit(every=1000, penalty=0.1))
    first = model.partial_fit(X[:10]).predict([[0.1]])[0]
    second = model.partial_fit(X[10:]).predict([[0.1]])[0]
    assert second > first > 10.0
    assert model.expected_count(UNIT) == pytest.approx(30.0, rel=1e-9)


def test_steep_rates_on_a_large_window_gain_from_more_events(rng):
    window, cities = Box((0, 0), (1000, 1000)), rng.uniform(50.0, 950.0, (12, 2))
    X = (cities[rng.integers(12, size=3000)] + rng.normal(0.0, 2.0, (3000, 2))).clip(0.0, 1000.0)
    few, many = (
        StreamingIntensity(window, method=Refit(penalty=1e-4)).partial_fit(X[:n]).score(X[2000:])
        for n in (200, 2000)
    )
    # twelve cities of the size of a cell of the grid
    assert few - 0.05 < many
    assert many > -np.log(1000.0**2) + 3.0
