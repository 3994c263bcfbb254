"""Rates as squares: Newton's method in both forms, the certificate, evidence, bands, odd data."""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.optimize import minimize

from hplus.kernels import Constant, Gaussian, Linear
from hplus.rates.sos_rate import by_thinning, learn_sos_rate, sos_problem
from hplus.rates.square_rate import (
    SquareOptimum,
    certify,
    learn_square_rate,
    log_evidence,
    mean_square,
    newton,
    quadratic_form,
    solve_dual,
)
from hplus.rates.window_features import as_events, setting
from hplus.solvers.result import Status
from hplus.windows import Box, Interval, Polygon

LINE = Interval(0, 10)


def learn_sos(X, w, window, exposure, kernel, penalty):
    """With folds that are always the same."""
    return learn_sos_rate(as_events(X, w, window, exposure), kernel, penalty, random_state=0)


def learn_square(X, w, window, exposure, kernel, penalty):
    return learn_square_rate(as_events(X, w, window, exposure), kernel, penalty)


MODELS = [learn_square, learn_sos]
every_model = pytest.mark.parametrize("learn", MODELS, ids=lambda f: f.__name__)


def true_rate(x):
    return 40 * np.exp(-((x - 3) ** 2) / 1.28) + 25 * np.exp(-((x - 7) ** 2) / 2.88) + 4


def drawn(seed):
    """Events of the true rate on the line, by thinning, shape (n, 1)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, rng.poisson(460))
    return x[rng.uniform(0, 46, len(x)) < true_rate(x)][:, None]


def problem(rng, n=12, m=5):
    """Features, weights and a quadratic form for which g > 0 is easy to reach."""
    Phi, w = rng.uniform(0.1, 1.0, (n, m)), rng.uniform(0.2, 3.0, n)
    M = rng.normal(size=(m, m))
    return Phi, w, M @ M.T + 0.5 * np.eye(m)


def objective(u, Phi, w, B):
    return -w @ np.log((Phi @ u) ** 2) + u @ B @ u


# Newton's method


@pytest.mark.parametrize("start", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("solve", [newton, solve_dual])
def test_both_forms_find_the_minimum_of_scipy(solve, start, rng):
    Phi, w, B = problem(rng)
    solved = solve(Phi, w, B, np.full(12, start))
    oracle = minimize(objective, np.ones(5), (Phi, w, B), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(solved.x, oracle.x, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(solved.values, Phi @ solved.x, rtol=1e-9)


@pytest.mark.parametrize("spread", [0.0, 3.0, 9.0])
def test_the_dual_form_agrees_with_newton_in_the_features(spread, rng):
    Phi, _, B = problem(rng)
    w = 10.0 ** rng.uniform(-spread, spread, 12)
    one, other = (solve(Phi, w, B, np.ones(12)) for solve in (newton, solve_dual))
    np.testing.assert_allclose(one.x, other.x, rtol=1e-7)
    assert one.status is other.status is Status.CONVERGED


def test_the_value_is_that_of_the_dual_problem(rng):
    Phi, w, B = problem(rng)
    u = newton(Phi, w, B, np.ones(12)).x
    Q = Phi @ np.linalg.solve(B, Phi.T)
    dual = minimize(
        lambda z: 0.5 * np.exp(z) @ Q @ np.exp(z) - w @ z, np.zeros(12), options={"gtol": 1e-8}
    )
    # P = 2Σw - 2Σ w log w - 2 min ½αᵀH̃α - Σ w log α
    value = 2 * w.sum() - 2 * w @ np.log(w) - 2 * dual.fun
    assert objective(u, Phi, w, B) == pytest.approx(value, rel=1e-9)


def test_newtons_method_needs_few_steps_and_reports_if_they_are_too_few(rng, monkeypatch):
    Phi, w, B = problem(rng)
    assert newton(Phi, w, B, np.ones(12)).iterations <= 12
    monkeypatch.setattr("hplus.rates.square_rate.MAX_SQUARE_STEPS", 2)
    assert newton(Phi, w, B, np.full(12, 1e6)).status is Status.MAX_ITER


# The certificate


def test_the_gap_bounds_how_far_any_point_is_from_the_minimum(rng):
    Phi, w, B = problem(rng)
    best = newton(Phi, w, B, np.ones(12))
    least = objective(best.x, Phi, w, B)
    for size in (0.0, 1e-3, 0.03):
        u = best.x * (1.0 + size * rng.normal(size=5))
        result = certify(Phi, (Phi @ u) ** 2, w, B, SquareOptimum(u, Phi @ u, 3, Status.CONVERGED))
        assert result.objective == pytest.approx(objective(u, Phi, w, B))
        assert result.gap >= result.objective - least - 1e-9
        assert result.gap <= 10.0 * (result.objective - least) + 1e-8
    assert result.status is Status.STALLED


def test_a_rate_of_zero_at_an_event_has_an_infinite_gap(rng):
    Phi, w, B = problem(rng)
    f = np.r_[0.0, np.ones(11)]
    result = certify(Phi, f, w, B, SquareOptimum(np.ones(5), np.sqrt(f), 1, Status.CONVERGED))
    assert result.gap == np.inf
    assert result.status is Status.STALLED


@every_model
@pytest.mark.parametrize("share", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("exposure", [1.0, 50.0])
def test_every_fit_is_certified(learn, share, exposure):
    X = drawn(0)
    fit = learn(X, np.ones(len(X)), LINE, exposure, Gaussian(1.0), share * exposure * 10.0)
    assert fit.result.status is Status.CONVERGED
    assert fit.result.relative_gap <= 1e-6


# What is minimised


def test_a_penalty_costs_the_square_its_share_of_the_count():
    X, w = drawn(0), np.linspace(0.5, 2.0, len(drawn(0)))
    fit = learn_square(X, w, LINE, 3.0, Gaussian(1.0), 0.7)
    f = fit.posterior.function
    norm = float(f.factor[:, 0] @ Gaussian(1.0)(f.centers) @ f.factor[:, 0])
    assert 3.0 * f.integral(LINE) + 0.7 * norm == pytest.approx(w.sum(), rel=1e-6)
    value = -w @ np.log(f(X)) + 3.0 * f.integral(LINE) + 0.7 * norm
    assert fit.result.objective == pytest.approx(value, rel=1e-6)


def test_a_penalty_costs_the_sum_of_squares_its_share_of_the_count():
    X, w = drawn(0), np.linspace(0.5, 2.0, len(drawn(0)))
    fit = learn_sos(X, w, LINE, 3.0, Gaussian(1.0), 0.7)
    f = fit.posterior.function
    K = Gaussian(1.0)(f.centers)
    trace = float(np.sum(f.factor * (K @ f.factor)))
    square = float(np.sum((f.factor.T @ K @ f.factor) ** 2))
    mu = 1e-2 * 0.7 * 3.0 * 10.0 / w.sum()
    spent = 3.0 * f.integral(LINE) + 0.7 * trace + mu * square
    assert spent == pytest.approx(w.sum(), rel=5e-4)
    assert spent - mu * square < 0.999 * w.sum()
    value = -w @ np.log(f(X)) + 3.0 * f.integral(LINE) + 0.7 * trace + 0.5 * mu * square
    assert fit.result.objective == pytest.approx(value, rel=1e-6)


def test_the_sum_of_squares_has_the_smallest_objective_of_all():
    cp = pytest.importorskip("cvxpy")
    X = drawn(0)[::8]
    events = as_events(X, np.ones(len(X)), LINE, 2.0)
    s = setting(events, Gaussian(3.0))
    fit = learn_sos(X, np.ones(len(X)), LINE, 2.0, Gaussian(3.0), 0.5)
    A = cp.Variable((len(s.T), len(s.T)), PSD=True)
    mu = 1e-2 * 0.5 * s.unit / events.total
    f = cp.sum(cp.multiply(s.Phi @ A, s.Phi), axis=1)
    cost = -cp.sum(cp.log(f)) + 2.0 * cp.trace(s.T @ A) + 0.5 * cp.trace(A)
    oracle = cp.Problem(cp.Minimize(cost + 0.5 * mu * cp.sum_squares(A)))
    oracle.solve(solver="CLARABEL")
    assert fit.result.objective == pytest.approx(oracle.value, rel=1e-5)


def test_one_square_costs_no_less_than_many():
    X = drawn(0)
    w = np.ones(len(X))
    one, many = (learn(X, w, LINE, 1.0, Gaussian(1.0), 0.1) for learn in MODELS)
    assert many.result.objective - many.result.gap <= one.result.objective + 0.01 * len(X)
    assert one.posterior.function.factor.shape[1] == 1


# Evidence


def test_the_evidence_is_the_integral_over_all_functions():
    X, w = np.array([[0.4], [1.0], [1.3], [2.0]]), np.full(4, 20.0)
    kernel, penalty = Linear() + Constant(1.5), 3.0
    s = setting(as_events(X, w, Interval(0, 2), 1.0), kernel)
    B = quadratic_form(s, penalty)
    peak = newton(s.Phi, w, B, np.ones(4))
    least = objective(peak.x, s.Phi, w, B)

    def density(a, b):
        g = s.Phi @ np.array([a, b])
        return np.exp(least - objective(np.array([a, b]), s.Phi, w, B)) if np.all(g > 0) else 0.0

    sides = [(c - 2.0, c + 2.0) for c in peak.x[::-1]]
    mass = dblquad(density, *sides[0], *sides[1], epsabs=1e-6)[0]
    exact = np.log(mass * penalty / np.pi) - least
    fit = learn_square(X, w, Interval(0, 2), 1.0, kernel, penalty)
    assert fit.log_evidence == pytest.approx(exact, abs=0.02)


def test_the_evidence_needs_no_more_than_the_features_that_matter():
    X = drawn(0)
    s = setting(as_events(X, np.ones(len(X)), LINE, 1.0), Gaussian(1.0))
    H = quadratic_form(s, 0.1) + s.Phi.T @ s.Phi
    padded = np.block([[H, np.zeros((len(H), 3))], [np.zeros((3, len(H))), 0.1 * np.eye(3)]])
    assert log_evidence(padded, 0.1, 7.0) == pytest.approx(log_evidence(H, 0.1, 7.0))


def test_the_evidence_prefers_the_scale_that_drew_the_events():
    rng = np.random.default_rng(3)
    K = Gaussian(1.0)(np.linspace(0, 10, 400)[:, None]) + 1e-9 * np.eye(400)
    f = 30.0 * (np.linalg.cholesky(K) @ rng.normal(size=400)) ** 2
    counts = rng.poisson(f * 10 / 400)
    X = np.repeat(np.linspace(0, 10, 400), counts)[:, None]
    fit = learn_square(X, np.ones(len(X)), LINE, 1.0, None, None)
    assert 0.4 < fit.kernel.scale < 2.5
    assert 0.1 < fit.penalty * 2 * 30.0 < 10.0


# Bands


@pytest.mark.parametrize(("learn", "penalty"), [(learn_square, 0.04), (learn_sos, 0.1)])
def test_nine_of_ten_90_percent_bands_contain_the_truth(learn, penalty):
    X, held, counted = np.linspace(0.1, 9.9, 50)[:, None], [], []
    left = Interval(0, 5)
    nodes, weights = left.quadrature(40)
    for seed in range(20):
        events = drawn(seed)
        fit = learn(events, np.ones(len(events)), LINE, 1.0, Gaussian(1.5), penalty)
        low, high = fit.posterior.interval(X, 0.9)
        held.append((low <= true_rate(X[:, 0])) & (true_rate(X[:, 0]) <= high))
        error = np.log(fit.posterior.function.integral(left) / (weights @ true_rate(nodes[:, 0])))
        counted.append(abs(error) <= 1.645 * fit.posterior.log_count_sd(left))
    assert 0.8 <= np.mean(held) <= 0.97
    assert 0.75 <= np.mean(counted) <= 1.0


@every_model
def test_the_log_of_the_whole_count_is_known_to_one_over_the_root_of_the_events(learn):
    X = drawn(0)
    fit = learn(X, np.ones(len(X)), LINE, 1.0, Gaussian(2.0), 0.02)
    sd = fit.posterior.log_count_sd(LINE)
    assert sd * np.sqrt(len(X)) == pytest.approx(1.0, rel=0.05)


def test_the_mean_of_the_square_is_the_mean_of_draws(rng):
    X = drawn(0)[::4]
    fit = learn_square(X, np.ones(len(X)), LINE, 1.0, Gaussian(1.0), 0.5)
    p, Z = fit.posterior, np.linspace(0, 10, 9)[:, None]
    factors = p.function.factor + p.spread @ rng.normal(size=(p.spread.shape[1], 20_000))
    draws = (Gaussian(1.0)(Z, p.function.centers) @ factors) ** 2
    np.testing.assert_allclose(mean_square(p)(Z), draws.mean(axis=1), rtol=0.05)
    low, high = p.interval(Z, 0.8)
    np.testing.assert_allclose(np.mean(draws < low[:, None], axis=1), 0.1, atol=0.01)
    np.testing.assert_allclose(np.mean(draws > high[:, None], axis=1), 0.1, atol=0.01)


# Learned kernels and penalties


@every_model
def test_a_learned_kernel_finds_the_truth_and_the_same_one_again(learn):
    X = drawn(1)
    one, two = (learn(X, np.ones(len(X)), LINE, 1.0, None, None) for _ in range(2))
    grid = np.linspace(0, 10, 101)[:, None]
    np.testing.assert_array_equal(one.posterior.function(grid), two.posterior.function(grid))
    error = np.sqrt(one.posterior.function(grid)) - np.sqrt(true_rate(grid[:, 0]))
    assert np.sqrt(np.mean(error**2)) < 0.6  # a constant rate has 1.5
    assert one.kernel == two.kernel
    assert one.posterior.function.integral(LINE) == pytest.approx(len(X), rel=0.1)


def test_a_given_part_is_kept_while_the_other_is_learned():
    X = drawn(1)[::3]
    for learn in MODELS:
        assert learn(X, np.ones(len(X)), LINE, 1.0, Gaussian(1.3), None).kernel == Gaussian(1.3)
        assert learn(X, np.ones(len(X)), LINE, 1.0, None, 0.3).penalty == 0.3


def test_the_likelihood_of_parts_is_that_of_fits_to_the_others():
    X = drawn(1)[::3]
    s = setting(as_events(X, np.ones(len(X)), LINE, 1.0), Gaussian(1.5))
    expected = 0.0
    for k in range(3):
        out = np.arange(len(X)) % 3 == k
        share = np.mean(~out)
        f = learn_sos(s.events.X[~out], np.ones(sum(~out)), LINE, share, Gaussian(1.5), 0.2)
        f = f.posterior.function
        rate = len(X)  # of a density
        expected += np.sum(np.log(f(s.events.X[out]) / rate)) - sum(out) * f.integral(LINE) / rate
    found = by_thinning(s, [None] * 3).score(0.2)
    assert found == pytest.approx(expected, abs=0.1)


@every_model
def test_scales_that_the_features_do_not_resolve_are_not_learned(learn, rng):
    window, X = Box((0, 0), (1, 1)), np.repeat(rng.uniform(0.1, 0.9, (4, 2)), 5, axis=0)
    X = X + 0.002 * rng.normal(size=X.shape)  # clusters far smaller than any scale
    fit = learn(X, np.ones(20), window, 1.0, None, None)
    events = as_events(X, np.ones(20), window, 1.0)
    assert setting(events, fit.kernel).resolved
    assert not setting(events, Gaussian(0.02)).resolved


@every_model
def test_a_learned_penalty_follows_the_size_of_the_kernel(learn):
    X = drawn(1)[::3]
    one, other = (
        learn(X, np.ones(len(X)), LINE, 1.0, k, None) for k in (Gaussian(1.5), 1e-3 * Gaussian(1.5))
    )
    assert other.penalty == pytest.approx(1e-3 * one.penalty, rel=1e-3)
    np.testing.assert_allclose(other.posterior.function(X), one.posterior.function(X), rtol=1e-2)


@every_model
def test_a_kernel_out_of_reach_of_the_events_is_refused(learn):
    window = Box((0, 0), (1, 1))
    X = window.sample(900, random_state=0)
    with pytest.raises(ValueError, match="kernel must reach every event from 300 centers, got"):
        learn(X, np.ones(900), window, 1.0, Gaussian(1e-4), None)


# Invariances and odd data


@every_model
def test_units_of_space_and_exposure_change_nothing_but_units(learn):
    X, w = drawn(0)[::2], np.ones(len(drawn(0)[::2]))
    plain = learn(X, w, LINE, 1.0, Gaussian(1.0), 0.5).posterior.function
    grid = np.linspace(0, 10, 21)[:, None]
    wide = learn(1e3 * X, w, Interval(0, 1e4), 1.0, Gaussian(1e3), 0.5e3).posterior.function
    long = learn(X, w, LINE, 7.0, Gaussian(1.0), 3.5).posterior.function
    np.testing.assert_allclose(1e3 * wide(1e3 * grid), plain(grid), rtol=1e-3)
    np.testing.assert_allclose(7.0 * long(grid), plain(grid), rtol=1e-3)


@every_model
def test_a_weight_of_two_is_two_events(learn):
    X = drawn(0)[::3]
    w = 1.0 + (np.arange(len(X)) % 2)
    once = learn(X, w, LINE, 1.0, Gaussian(1.0), 0.5)
    twice = learn(np.repeat(X, w.astype(int), axis=0), np.ones(int(w.sum())), LINE, 1.0,
                  Gaussian(1.0), 0.5)  # fmt: skip
    np.testing.assert_array_equal(once.posterior.function(X), twice.posterior.function(X))


def odd_data():
    polygon = Polygon([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]])
    far, rng = 1e6, np.random.default_rng(0)
    return {
        "one event": ([[3.0]], [1.0], LINE),
        "two events": ([[3.0], [7.0]], [1.0, 1.0], LINE),
        "equal events": ([[3.0]] * 9, [1.0] * 9, LINE),
        "events at the edges": ([[0.0], [0.0], [10.0]], [1.0, 1.0, 1.0], LINE),
        "weights far apart": (drawn(0)[:30], 10.0 ** rng.uniform(-6, 6, 30), LINE),
        "tiny weights": (drawn(0)[:30], np.full(30, 1e-9), LINE),
        "a far window": (far + drawn(0)[:40], np.ones(40), Interval(far, far + 10)),
        "a polygon": (polygon.sample(30, random_state=0), np.ones(30), polygon),
    }


@every_model
@pytest.mark.parametrize("name", odd_data())
def test_odd_data_give_certified_rates_with_bands(learn, name):
    X, w, window = odd_data()[name]
    kernel = Gaussian(0.5) if name == "a polygon" else None
    fit = learn(X, w, window, 1.0, kernel, None)
    assert fit.result.relative_gap <= 1e-6
    f = mean_square(fit.posterior) if learn is learn_square else fit.posterior.function
    low, high = fit.posterior.interval(X, 0.9)
    assert np.all((low >= 0) & (low <= f(X)) & (f(X) <= high))
    assert np.isfinite(high).all()
    assert fit.posterior.function.integral(window) <= 1.0001 * np.sum(w)
    assert 0.1 * np.sum(w) < f.integral(window) < 5.0 * np.sum(w)


@every_model
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[11.0]]}, "X must lie in the window, got 1 of 1 points outside"),
        ({"exposure": 0.0}, "exposure must be a positive finite number, got 0.0"),
        ({"penalty": -1.0}, "penalty must be a positive finite number, got -1.0"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(learn, change, message):
    good = {"X": [[1.0]], "w": [1.0], "window": LINE, "exposure": 1.0, "kernel": Gaussian(1.0)}
    with pytest.raises(ValueError, match=message):
        learn(**good | {"penalty": 1.0} | change)


def test_the_scaled_problem_has_the_penalties_of_the_mean_form():
    s = setting(as_events([[1.0], [2.0]], [3.0, 1.0], LINE, 2.0), Gaussian(1.0))
    (block,) = sos_problem(s, 0.6).blocks
    assert block.trace == pytest.approx(0.3)
    assert block.frobenius == pytest.approx(1e-2 * 0.6 * s.unit / 2.0**2)
