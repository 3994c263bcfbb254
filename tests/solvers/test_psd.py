"""Sums of squares by their dual: blocks, rows, Newton's method, the certificate."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg
from threadpoolctl import threadpool_info

from hplus._threads import one_thread_if_small
from hplus.features import Nystroem
from hplus.kernels import Constant, Gaussian, Nugget, Polynomial
from hplus.losses import Absolute, Huber, Poisson, Quantile, Squared
from hplus.positivity import Full
from hplus.solvers.result import Status
from hplus.solvers.sos import blocks as blocks_module
from hplus.solvers.sos import psd
from hplus.solvers.sos.blocks import Plain, Relaxation, Squares, curves
from hplus.solvers.sos.learning import feature_map, learn, likelihood, regression
from hplus.solvers.sos.problem import DualSolution, Problem
from hplus.solvers.sos.psd import GAP, certify, solve
from hplus.solvers.sos.rowwise import NormalNoise, OneOutput, Pinballs, Surprise
from hplus.solvers.sos.sweeps import values_of

LOSSES = [Squared(), Poisson(), Quantile(0.8), Absolute(), Huber(0.3)]


def rows_of(name, rng, n=12):
    """Rows of each kind, and slopes inside their domain."""
    y, z = rng.poisson(2.0, n) + 0.5, rng.uniform(0.3, 2.0, (n, 2))
    match name:
        case "normal noise":
            rows = NormalNoise(y, 0.1)
            eta, theta = z.T
            mean = eta / (theta + 0.1)
            return rows, np.stack([mean - y, 0.5 * (y**2 - mean**2) - 0.5 / (theta + 0.1)], 1)
        case "pinballs":
            rows = Pinballs((0.2, 0.7), y)
        case "surprise":
            return Surprise(n), -z[:, :1]
        case _:
            rows = OneOutput(name, y)
    low, high = rows.low.clip(-2.0), rows.high.clip(None, 2.0)
    return rows, low + (high - low) * rng.uniform(0.1, 0.9, low.shape)


ROWS = [*LOSSES, "normal noise", "pinballs", "surprise"]


def judged(problem, solved):
    return certify(problem, solved, problem.outputs(problem.values(solved.weights)))


# Rows


@pytest.mark.parametrize("name", ROWS, ids=repr)
def test_slope_and_curvature_of_a_row_are_the_derivatives_of_its_conjugate(name, rng):
    rows, x = rows_of(name, rng)
    d, h = rng.normal(size=x.shape), 1e-6
    rise = (rows.conjugate(x + h * d) - rows.conjugate(x - h * d)) / (2 * h)
    np.testing.assert_allclose(np.sum(rows.conjugate_slope(x) * d, axis=1), rise, atol=1e-6)
    bend = (rows.conjugate_slope(x + h * d) - rows.conjugate_slope(x - h * d)) / (2 * h)
    product = np.einsum("ikl,il->ik", rows.conjugate_curvature(x), d)
    np.testing.assert_allclose(product, bend, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ROWS, ids=repr)
def test_fenchels_inequality_is_an_equality_at_the_conjugates_slope(name, rng):
    rows, x = rows_of(name, rng)
    z = rows.conjugate_slope(x)
    product = np.sum(x * z, axis=1)
    np.testing.assert_allclose(rows.value(z) + rows.conjugate(x), product, atol=1e-9)
    other = z + rng.uniform(0.0, 1.0, z.shape)
    bound = np.sum(x * other, axis=1)
    assert np.all(rows.value(other) + rows.conjugate(x) >= bound - 1e-9)


@pytest.mark.parametrize("name", ROWS, ids=repr)
@pytest.mark.parametrize("level", [0.01, 1.0, 300.0])
def test_a_start_lies_inside_the_domain(name, level, rng):
    rows, _ = rows_of(name, rng)
    x = rows.start(np.full(rows.low.shape, level))
    assert np.isfinite(rows.conjugate(x)).all()
    assert np.all((rows.low <= x) & (x <= rows.high))


# Blocks


def blocks(rng, n=15, m=4):
    Phi, T = rng.normal(size=(n, m)), rng.normal(size=(m, m))
    return [
        Plain(Phi, 0.7),
        Squares(Phi, 0.1, 0.5),
        Squares(Phi, 0.0, 0.2, measure=T @ T.T),
        Squares(np.repeat(Phi, 10, axis=0), 0.1, 0.5),  # many rows for the features
    ]


@pytest.mark.parametrize("which", range(4))
def test_a_block_answers_with_the_minimiser(which, rng):
    block = blocks(rng)[which]
    a = rng.normal(size=len(block.features))
    point = block.response(a, Relaxation())
    np.testing.assert_allclose(point.values, values_of(block.features, point.weights))
    assert point.penalty == pytest.approx(block.penalty_of(point.weights))
    assert point.conjugate == pytest.approx(block.conjugate(a))

    def cost(weights):
        return a @ values_of(block.features, weights) + block.penalty_of(weights)

    assert cost(point.weights) == pytest.approx(-point.conjugate)
    for size in (0.3, 0.03):
        other = point.weights + size * rng.normal(size=point.weights.shape)
        assert cost(other) >= -point.conjugate - 1e-9


@pytest.mark.parametrize(
    "relaxation", [Relaxation(), Relaxation(softness=3.0), Relaxation(smoothing=0.1)], ids=repr
)
@pytest.mark.parametrize("which", range(4))
def test_values_and_curve_are_the_derivatives_of_a_blocks_conjugate(which, relaxation, rng):
    block = blocks(rng)[which]
    a, d = rng.normal(size=(2, len(block.features)))
    point, h = block.response(a, relaxation), 1e-6
    ahead, behind = block.response(a + h * d, relaxation), block.response(a - h * d, relaxation)
    assert -point.values @ d == pytest.approx(
        (ahead.smoothed - behind.smoothed) / (2 * h), rel=1e-5
    )
    numeric = (behind.values - ahead.values) / (2 * h)
    np.testing.assert_allclose(point.curve(d), numeric, rtol=1e-4, atol=1e-4)
    units = np.eye(len(a))
    np.testing.assert_allclose(point.curve_matrix() @ d, point.curve(d))
    exact = np.array([point.curve(e) @ e for e in units])
    assert np.all(point.curve_diagonal() <= 3.0 * exact + 1e-9)
    assert np.all(point.curve_diagonal() >= exact / 3.0)


def test_points_on_the_same_features_are_swept_together_or_one_by_one(rng):
    for n in (8, 400):  # few rows, and many
        Phi, a, d = rng.normal(size=(n, 5)), rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
        families = (Plain(Phi, 0.7), Squares(Phi, 0.1, 0.5), Squares(Phi, 0.0, 0.2))
        points = [block.response(a[:, b], Relaxation()) for b, block in enumerate(families)]
        for b, together in enumerate(curves(points, d)):
            np.testing.assert_allclose(together, points[b].curve(d[:, b]), rtol=1e-9, atol=1e-9)


# The solver against oracles


def random_problem(seed, loss):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 41))
    X = rng.uniform(-2, 2, size=(n, int(rng.integers(1, 3))))
    kernels = [Gaussian(2.0), Polynomial(2, 1.0), Gaussian(1.0) + Constant(0.3)]
    Phi = feature_map(kernels[seed % 3], X, Nystroem(12, random_state=0))(X)
    y = rng.poisson(3.0, n).astype(float)
    y = y if isinstance(loss, Poisson) else y + rng.normal(size=n)
    penalties = 10.0 ** rng.uniform(-3, 0, 2)
    return Phi, y, rng.dirichlet(np.ones(n)), Full(*penalties)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
@pytest.mark.parametrize("seed", range(30))
def test_thirty_random_problems_agree_with_interior_points_and_splitting(
    seed, solver, full_cone_reference
):
    loss = LOSSES[seed % len(LOSSES)]
    Phi, y, shares, cone = random_problem(seed, loss)
    problem = regression(loss, y, shares, Phi, cone)
    solved = solve(problem)
    result = judged(problem, solved)
    assert result.relative_gap <= 1e-6
    _, objective = full_cone_reference(
        Phi, y, shares, loss, cone.trace, cone.frobenius, solver, 1e-9
    )
    assert result.objective == pytest.approx(objective, rel=1e-6, abs=1e-6 * result.size)


def small_problem(loss, rng, cone=None):
    X = rng.uniform(-3, 3, size=(40, 1))
    y = rng.poisson(2.0 + np.sin(X[:, 0])).astype(float)
    features = feature_map(Gaussian(0.7), X, None)
    problem = regression(loss, y, np.full(40, 1 / 40), features(X), cone or Full(1e-2, 1e-2))
    return problem, features, X


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("exponent", [-7, -5, -3, 0, 3])
def test_every_loss_is_certified_over_ten_decades_of_penalties(loss, exponent, rng):
    cone = Full(0.5 * 10.0**exponent, 10.0**exponent)
    problem, features, X = small_problem(loss, rng, cone)
    result = learn(problem, features, X)[1]
    assert result.status is Status.CONVERGED
    assert result.relative_gap <= GAP


@given(st.integers(0, 10**6))
def test_no_slopes_give_a_bound_above_the_minimum(seed):
    rng = np.random.default_rng(seed)
    loss = LOSSES[seed % len(LOSSES)]
    problem, features, X = small_problem(loss, rng)
    best = learn(problem, features, X)[1]
    rows = problem.rows
    low, high = rows.low.clip(-3.0), rows.high.clip(None, 3.0)
    x = low + (high - low) * rng.uniform(0.01, 0.99, low.shape)
    R = rng.normal(size=(features.shape[1], 2))
    other = judged(problem, DualSolution(x, (R,), 0, Status.CONVERGED))
    assert other.objective >= best.objective - best.gap
    assert other.objective - other.gap <= best.objective + 1e-9


def test_a_certificate_notices_a_function_that_is_not_the_best(rng):
    problem, _, _ = small_problem(Squared(), rng)
    solved = solve(problem)
    result = judged(problem, replace(solved, weights=(1.05 * solved.weights[0],)))
    assert result.status is Status.STALLED
    assert result.relative_gap > 1e-4


@pytest.mark.parametrize("loss", [Quantile(0.8), Huber(0.3)], ids=repr)
def test_slopes_a_hair_outside_their_bounds_are_certified_as_those_on_them(loss, rng):
    problem, _, _ = small_problem(loss, rng)
    solved = solve(problem)
    outside = replace(solved, x=np.where(solved.x > 0.0, problem.rows.high + 1e-12, solved.x))
    inside = replace(solved, x=np.where(solved.x > 0.0, problem.rows.high, solved.x))
    assert judged(problem, outside).gap == judged(problem, inside).gap < np.inf


def test_the_first_features_give_a_good_start(rng):
    X = np.sort(rng.uniform(-5, 5, size=(300, 1)), axis=0)
    y = np.exp(np.sin(X[:, 0])) + 0.1 * rng.normal(size=300)
    kernel = Gaussian(0.75) + 0.01 * Nugget()
    Phi = feature_map(kernel, X, None)(X)
    assert Phi.shape[1] == 300
    problem = regression(Squared(), y, np.full(300, 1 / 300), Phi, Full())
    few = solve(problem.narrowed())
    assert solve(problem, few.x, 0.0).iterations < 5


def test_all_targets_zero_and_a_zero_kernel_are_solved(rng):
    for loss in LOSSES:
        problem = regression(loss, np.zeros(5), np.full(5, 0.2), np.ones((5, 1)), Full())
        solved = solve(problem)
        assert values_of(np.ones((1, 1)), solved.weights[0])[0] < 1e-3
    problem = regression(Squared(), np.ones(5), np.full(5, 0.2), np.zeros((5, 1)), Full())
    assert solve(problem).weights[0].shape == (1, 0)


def test_many_rows_start_from_few_and_end_at_the_same_optimum(rng):
    X = rng.uniform(-3, 3, size=(5000, 1))
    y = np.exp(np.sin(X[:, 0])) + 0.3 * rng.normal(size=5000)
    Phi, shares = feature_map(Gaussian(1.0), X, None)(X), rng.dirichlet(np.ones(5000))
    noise = (Plain(Phi, 1e-3), Squares(Phi, 1e-3, 1e-3))
    for problem in (
        regression(Squared(), y, shares, Phi, Full()),
        Problem(NormalNoise(y, 1e-3), shares, noise, np.eye(2)),
    ):
        assert problem.has_many_rows
        few = solve(problem)
        whole = solve(problem, problem.start())
        for solved in (few, whole):
            assert judged(problem, solved).status is Status.CONVERGED
        assert few.iterations < whole.iterations


def test_rows_of_zero_counts_keep_their_slopes_in_long_and_short_problems(rng):
    for n in (60, 400):
        X = rng.uniform(-3, 3, size=(n, 1))
        y = rng.poisson(0.7, n).astype(float)
        Phi = feature_map(Gaussian(1.0), X, None)(X)
        problem = regression(Poisson(), y, np.full(n, 1 / n), Phi, Full())
        solved = solve(problem)
        np.testing.assert_array_equal(solved.x[y == 0.0], 1.0)
        assert judged(problem, solved).status is Status.CONVERGED


def test_the_interior_point_method_agrees_with_newtons(rng):
    for loss in LOSSES:
        problem, _, _ = small_problem(loss, rng)
        sure, quick = psd._follow_path(problem, 1e-7), solve(problem)
        for solved in (sure, quick):
            assert judged(problem, solved).status is Status.CONVERGED


def test_the_certified_function_is_the_one_that_predicts(rng):
    problem, features, X = small_problem(Squared(), rng)
    wrong = features.replace(root=1.05 * features.root)
    assert learn(problem, features, X)[1].status is Status.CONVERGED
    assert learn(problem, wrong, X)[1].status is Status.STALLED


def test_small_problems_are_certified_on_one_thread(rng, monkeypatch):
    threads = []

    def eigh(*args, **kwargs):
        threads.extend(info["num_threads"] for info in threadpool_info())
        return linalg.eigh(*args, **kwargs)

    monkeypatch.setattr(blocks_module, "eigh", eigh)
    learn(*small_problem(Squared(), rng))
    blas = [info for info in threadpool_info() if info["user_api"] == "blas"]
    assert len(threads) >= 3 * len(blas)
    with one_thread_if_small(1):
        limited = [info["num_threads"] for info in threadpool_info()]
    assert threads[: len(limited)] == threads[-len(limited) :] == limited


def test_a_likelihood_on_many_features_keeps_its_measure(rng):
    X = rng.uniform(0, 1, size=(150, 1))
    Phi = feature_map(Gaussian(0.5) + 0.1 * Nugget(), X, None)(X)
    T = Phi.T @ Phi / 150
    problem = likelihood(np.full(150, 1 / 150), Phi, T, Full(1e-3, 1e-3), 1.0)
    assert problem.has_spare_features
    assert problem.narrowed().blocks[0].measure.shape == (37, 37)
    solved = solve(problem)
    assert judged(problem, solved).status is Status.CONVERGED


# Several blocks


def test_a_mean_and_its_noise_level_agree_with_a_grid_of_constants(rng):
    y = rng.normal(1.0, 2.0, size=400)
    shares, Phi = np.full(400, 1 / 400), np.ones((400, 1))
    blocks = (Plain(Phi, 1e-9), Squares(Phi, 0.0, 1e-9))
    problem = Problem(NormalNoise(y, 1e-6), shares, blocks, np.eye(2))
    solved = solve(problem)
    eta, theta = solved.weights[0][0], np.sum(solved.weights[1] ** 2)
    assert eta / theta == pytest.approx(y.mean(), rel=1e-5)
    assert 1.0 / theta == pytest.approx(y.var(), rel=1e-5)


def test_constant_quantiles_are_those_of_the_sample(rng):
    y, levels = np.sort(rng.normal(size=101)), (0.1, 0.5, 0.8)
    shares, Phi = np.full(101, 1 / 101), np.ones((101, 1))
    blocks = (Plain(Phi, 1e-7), Squares(Phi, 0.0, 1e-7), Squares(Phi, 0.0, 1e-7))
    problem = Problem(Pinballs(levels, y), shares, blocks, np.triu(np.ones((3, 3))))
    solved = solve(problem)
    steps = [solved.weights[0][0], *(np.sum(w**2) for w in solved.weights[1:])]
    np.testing.assert_allclose(np.cumsum(steps), y[[10, 50, 80]], atol=1e-3)


def test_the_density_of_a_constant_is_one_over_the_volume():
    shares, Phi = np.full(7, 1 / 7), np.ones((7, 1))
    problem = likelihood(shares, Phi, np.array([[4.0]]), Full(0.0, 1e-9), 1.0)
    solved = solve(problem)
    assert np.sum(solved.weights[0] ** 2) == pytest.approx(0.25, rel=1e-6)
