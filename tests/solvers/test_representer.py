"""The solvers of the kernel machines: optimality, certificates, oracles."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from hplus.features import Nystroem
from hplus.kernels import Gaussian, Linear, Matern32, Nugget, Polynomial
from hplus.losses import (
    LOSSES,
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Own,
    PiecewiseLinear,
    PoissonLog,
    Quantile,
    Squared,
    SquaredHinge,
)
from hplus.solvers.machines.gram import DenseGram, FeatureGram, cholesky, compact
from hplus.solvers.machines.representer import AllPoints, Landmarks, certify, ridge, train
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import SolverResult, Status


class Cosh:
    def __repr__(self):
        return "Cosh()"

    def value(self, y, f):
        return np.cosh(f - y) - 1.0

    def slope(self, y, f):
        return np.sinh(f - y)


CLASSIFIERS = (Hinge(), SquaredHinge(), Logistic())
REGRESSORS = (
    Squared(), Absolute(), Quantile(0.8), Huber(0.5), EpsilonInsensitive(0.2), PoissonLog(),
    Own(Cosh()),
)  # fmt: skip
KERNELS = (Gaussian(0.7), Matern32(1.0), Polynomial(2), Gaussian(0.5) + 0.1 * Nugget())


def problem(loss, rng, n=60, penalty=1e-3, bias=False):
    X = rng.normal(size=(n, 2))
    truth = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    y = truth + 0.3 * rng.standard_t(3, n)
    if isinstance(loss, CLASSIFIERS_TYPES):
        y = np.where(y > 0, 1.0, -1.0)
    elif isinstance(loss, PoissonLog):
        y = rng.poisson(np.exp(truth)).astype(float)
    shares = rng.uniform(0.5, 1.5, n)
    return X, Risk(loss, y, shares / shares.sum(), penalty, bias)


CLASSIFIERS_TYPES = tuple(type(loss) for loss in CLASSIFIERS)


@pytest.mark.parametrize("penalty", [1e-1, 1e-4])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("loss", REGRESSORS + CLASSIFIERS, ids=repr)
def test_every_loss_is_solved_to_a_certified_gap(loss, kernel, penalty, rng):
    X, risk = problem(loss, rng, penalty=penalty)
    result = train(AllPoints(kernel, X), risk).result
    assert result.status is Status.CONVERGED
    bound = 1e-5 if isinstance(loss, PiecewiseLinear) else 1e-8
    assert -1e-12 <= result.relative_gap <= bound


@pytest.mark.parametrize("loss", REGRESSORS + CLASSIFIERS, ids=repr)
def test_no_other_function_has_a_smaller_objective(loss, rng):
    X, risk = problem(loss, rng, bias=isinstance(loss, CLASSIFIERS_TYPES))
    basis = AllPoints(Gaussian(0.7), X)
    trained = train(basis, risk)
    K = basis.kernel(X)
    for size in (1e-1, 1e-3, 1e-5):
        c = trained.coefficients + size * rng.normal(size=len(X))
        f = K @ c
        objective = risk.primal(f, risk.best_bias(f), c @ f)
        assert objective >= trained.result.objective - trained.result.gap - 1e-12


@pytest.mark.parametrize("loss", [Squared(), Huber(0.5), PoissonLog(), Logistic()], ids=repr)
def test_the_coefficients_are_the_representers_fixed_point(loss, rng):
    # c_i = -(w_i/2γn) Φ'(y_i, f(x_i)), compared through K, which may be singular
    X, risk = problem(loss, rng, penalty=1e-2)
    basis = AllPoints(Gaussian(0.7), X)
    c = train(basis, risk).coefficients
    K = basis.kernel(X)
    np.testing.assert_allclose(K @ c, K @ risk.coefficients(K @ c, 0.0), atol=1e-5)


def test_ridge_solves_the_linear_system_of_the_representer_theorem(rng):
    X, y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    penalty = 1e-2
    trained = ridge(AllPoints(Gaussian(1.0), X), y, np.full(30, 1 / 30), penalty)
    K = Gaussian(1.0)(X)
    expected = np.linalg.solve(penalty * 30 * np.eye(30) + K, y)
    np.testing.assert_allclose(trained.coefficients, expected, rtol=1e-9)
    loss = ((K @ expected - y) ** 2).sum() / 30 + penalty * np.sum(expected * (K @ expected))
    assert trained.result.objective == pytest.approx(loss)
    assert abs(trained.result.relative_gap) < 1e-12


def test_newton_for_the_squared_loss_agrees_with_ridge(rng):
    X, risk = problem(Squared(), rng)
    basis = AllPoints(Matern32(1.0), X)
    direct = ridge(basis, risk.y, risk.shares, risk.penalty)
    np.testing.assert_allclose(train(basis, risk).coefficients, direct.coefficients, rtol=1e-6)


def cvxpy_objective(risk, K):
    """The same objective in the words of cvxpy."""
    root = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))
    v, b = cp.Variable(len(K)), cp.Variable()
    f = root @ v + (b if risk.bias else 0.0)
    r = f - risk.y
    losses = {
        "Quantile": lambda: cp.maximum(
            (1 - getattr(risk.loss, "level", 0)) * r, -getattr(risk.loss, "level", 0) * r
        ),
        "Absolute": lambda: cp.abs(r),
        "EpsilonInsensitive": lambda: cp.pos(cp.abs(r) - risk.loss.tube),
        "Huber": lambda: cp.huber(r, risk.loss.threshold) / 2,
        "Hinge": lambda: cp.pos(1 - cp.multiply(risk.y, f)),
        "SquaredHinge": lambda: cp.square(cp.pos(1 - cp.multiply(risk.y, f))),
        "Logistic": lambda: cp.logistic(-cp.multiply(risk.y, f)),
        "PoissonLog": lambda: cp.exp(f) - cp.multiply(risk.y, f),
    }
    loss = losses[type(risk.loss).__name__]()
    objective = cp.Minimize(risk.shares @ loss + risk.penalty * cp.sum_squares(v))
    return cp.Problem(objective).solve(solver=cp.CLARABEL)


ORACLE = [loss for loss in REGRESSORS + CLASSIFIERS if not isinstance(loss, Squared | Own)]


@pytest.mark.parametrize("loss", ORACLE, ids=repr)
def test_the_objective_agrees_with_clarabel(loss, rng):
    X, risk = problem(loss, rng, n=40, penalty=1e-2, bias=isinstance(loss, CLASSIFIERS_TYPES))
    basis = AllPoints(Gaussian(0.7), X)
    ours = train(basis, risk).result.objective
    assert ours == pytest.approx(cvxpy_objective(risk, basis.kernel(X)), rel=1e-6)


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.7), Linear(), Polynomial(2), Matern32(1.0)], ids=repr
)
def test_the_primal_and_the_dual_of_the_support_vector_machine_agree(kernel, rng):
    X, risk = problem(Hinge(), rng, n=150, bias=True)
    basis = AllPoints(kernel, X)
    primal, dual = train(basis, risk, "primal").result, train(basis, risk, "dual").result
    assert primal.objective == pytest.approx(dual.objective, rel=1e-6)
    assert max(primal.relative_gap, dual.relative_gap) < 1e-5


def test_the_bias_of_a_support_vector_machine_without_free_vectors_is_the_middle():
    # two far apart points with a small box: both α are at their bound
    X, y = np.array([[0.0], [10.0]]), np.array([1.0, -1.0])
    risk = Risk(Hinge(), y, np.full(2, 0.5), 10.0, bias=True)
    trained = train(AllPoints(Gaussian(1.0), X), risk, "dual")
    assert trained.bias == pytest.approx(0.0, abs=1e-9)
    assert trained.result.relative_gap < 1e-9


@pytest.mark.parametrize("loss", CLASSIFIERS, ids=repr)
def test_the_best_bias_minimises_the_objective_in_one_dimension(loss, rng):
    _, risk = problem(loss, rng, bias=True)
    f = rng.normal(size=60)
    objective = lambda b: risk.primal(f, b, 0.0)  # noqa: E731
    found = minimize_scalar(objective, bounds=(-20, 20), method="bounded", options={"xatol": 1e-9})
    assert objective(risk.best_bias(f)) <= found.fun + 1e-9


@pytest.mark.parametrize("loss", REGRESSORS + CLASSIFIERS, ids=repr)
def test_landmarks_at_every_point_give_the_same_objective(loss, rng):
    X, risk = problem(loss, rng, bias=isinstance(loss, CLASSIFIERS_TYPES))
    whole = train(AllPoints(Matern32(1.0), X), risk).result
    few = train(Landmarks(Matern32(1.0), X, Nystroem(len(X))), risk).result
    assert few.objective == pytest.approx(whole.objective, rel=1e-6)
    assert few.relative_gap <= 1e-5


def test_fewer_landmarks_cannot_lower_the_objective_and_stay_certified(rng):
    X, risk = problem(Huber(0.5), rng)
    objectives = []
    for m in (5, 15, 60):
        trained = train(Landmarks(Gaussian(0.7), X, Nystroem(m, random_state=0)), risk)
        assert abs(trained.result.relative_gap) < 1e-8
        objectives.append(trained.result.objective)
    assert objectives == sorted(objectives, reverse=True)


def test_a_wrong_solution_is_exposed_by_its_gap(rng):
    X, risk = problem(Huber(0.5), rng)
    basis = AllPoints(Gaussian(0.7), X)
    c = train(basis, risk).coefficients * 1.01
    assert certify(basis, risk, c, 0, Status.CONVERGED).result.relative_gap > 1e-6


# The linear system that all of them share.


@pytest.mark.parametrize("make", [DenseGram, lambda K: FeatureGram(np.linalg.cholesky(K)), compact])
def test_the_shared_system_is_solved_and_pinned_where_the_diagonal_is_infinite(make, rng):
    K = Gaussian(0.3)(rng.normal(size=(20, 2))) + 1e-6 * np.eye(20)
    gram, d, r = make(K.copy()), rng.uniform(0.1, 10.0, 20), rng.normal(size=(20, 2))
    d[[3, 7]] = np.inf
    x = gram.factor(d)(r)
    finite = np.isfinite(d)
    expected = np.linalg.solve(
        (K + np.diag(np.where(finite, d, 0)))[np.ix_(finite, finite)], r[finite]
    )
    np.testing.assert_allclose(x[finite], expected, rtol=1e-9, atol=1e-12)
    assert np.all(x[~finite] == 0.0)
    np.testing.assert_allclose(gram.dot(r), K @ r, rtol=1e-9, atol=1e-12)


def test_a_gram_matrix_of_low_rank_is_compacted_without_changing_it(rng):
    X = rng.normal(size=(80, 2))
    gram = compact(Polynomial(2)(X))
    assert isinstance(gram, FeatureGram)
    assert gram.features.shape[1] == 6
    np.testing.assert_allclose(gram.features @ gram.features.T, Polynomial(2)(X), atol=1e-12)


def test_cholesky_of_a_matrix_that_rounding_left_indefinite_still_gives_a_factor():
    K = Gaussian(5.0)(np.linspace(0.0, 1.0, 200)[:, None])
    L = np.tril(cholesky(K.copy(), np.zeros(200)))
    np.testing.assert_allclose(L @ L.T, K, atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(LOSSES)), st.floats(-6, 1))
def test_the_gap_is_never_negative_and_always_small_for_random_problems(seed, name, log_penalty):
    if name == "poisson":
        return
    rng = np.random.default_rng(seed)
    loss = LOSSES[name]()
    bias = isinstance(loss, CLASSIFIERS_TYPES)
    X, risk = problem(loss, rng, n=12, penalty=10.0**log_penalty, bias=bias)
    if bias and len(np.unique(risk.y)) < 2:
        return
    result = train(AllPoints(Gaussian(1.0), X), risk).result
    assert -1e-9 <= result.relative_gap <= 1e-5


def test_a_result_reports_its_gap_relative_to_the_objective():
    assert SolverResult(Status.CONVERGED, 3, -2.0, 1e-3, 2.0).relative_gap == pytest.approx(5e-4)
    assert all("Raise the penalty" in s.value for s in (Status.MAX_ITER, Status.STALLED))


@pytest.mark.parametrize("loss", CLASSIFIERS, ids=repr)
@pytest.mark.parametrize("positives", [1, 3, 30])
def test_a_certificate_with_a_bias_is_true_for_unbalanced_classes(loss, positives, rng):
    X = np.vstack([rng.normal(size=(positives, 2)), 50.0 + 50.0 * np.arange(40)[:, None] * [1, 0]])
    y = np.where(np.arange(len(X)) < positives, 1.0, -1.0)
    risk = Risk(loss, y, np.full(len(y), 1 / len(y)), 1 / (4 * len(y)), bias=True)
    basis = AllPoints(Gaussian(1.0), X)
    results = [train(basis, risk).result]
    if isinstance(loss, Hinge):
        results.append(train(basis, risk, "dual").result)
        results.append(certify(basis, risk, np.where(y > 0, 0.4, 0.0), 0, Status.CONVERGED).result)
    lowest = min(result.objective for result in results)
    assert all(result.objective - result.gap <= lowest + 1e-9 for result in results)
    assert results[0].relative_gap < 1e-5


def test_coefficients_that_do_not_balance_certify_nothing(rng):
    _, risk = problem(Hinge(), rng, bias=True)
    c = np.where(risk.y > 0, 0.9 * risk.box()[1], 0.0)
    assert risk.dual(c, 0.0) == -np.inf


def test_the_bias_of_a_loss_with_a_tube_is_the_best(rng):
    risk = Risk(EpsilonInsensitive(1.0), np.array([0.0, 1.5, 10.0]), np.array([0.34, 0.33, 0.33]),
                1.0, bias=True)  # fmt: skip
    grid = np.linspace(-5, 15, 20_001)
    best = min(risk.primal(np.zeros(3), b, 0.0) for b in grid)
    assert risk.primal(np.zeros(3), risk.best_bias(np.zeros(3)), 0.0) <= best + 1e-12


def test_libsvm_sees_points_far_from_the_origin_as_we_do(rng):
    X = 1.7e9 + rng.uniform(0, 10, (300, 1))
    y = np.where(np.sin(X[:, 0] - 1.7e9) > 0, 1.0, -1.0)
    risk = Risk(Hinge(), y, np.full(300, 1 / 300), 1e-3, bias=True)
    assert train(AllPoints(Gaussian(1.0), X), risk, "dual").result.relative_gap < 1e-6


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic(), Huber(0.5)], ids=repr)
def test_few_features_and_a_tiny_penalty_are_no_obstacle(loss, rng):
    X, risk = problem(loss, rng, n=150, penalty=1e-7, bias=isinstance(loss, CLASSIFIERS_TYPES))
    assert train(AllPoints(Polynomial(2), X), risk).result.relative_gap < 1e-8


def test_a_poisson_objective_near_zero_has_a_sensible_relative_gap():
    X = np.zeros((50, 1))
    risk = Risk(PoissonLog(), np.full(50, 2.7193), np.full(50, 0.02), 1e-3)
    result = train(AllPoints(Polynomial(1), X), risk).result
    assert abs(result.objective) < 1e-3
    assert result.status is Status.CONVERGED
    assert result.iterations < 20


def test_a_status_follows_the_certificate_and_not_the_solver(rng):
    X, risk = problem(Huber(0.5), rng)
    basis = AllPoints(Gaussian(0.7), X)
    c = train(basis, risk).coefficients
    assert certify(basis, risk, c, 9, Status.MAX_ITER).result.status is Status.CONVERGED
    assert certify(basis, risk, 2.0 * c, 9, Status.CONVERGED).result.status is Status.STALLED


def test_a_problem_at_the_edge_of_rounding_ends_without_a_warning(rng):
    X = rng.normal(size=(80, 1))
    risk = Risk(Quantile(0.5), 1e-8 * np.sin(X[:, 0]), np.full(80, 1 / 80), 1e-9)
    result = train(AllPoints(Gaussian(1.0), X), risk).result
    assert result.status in (Status.STALLED, Status.CONVERGED)
    assert result.gap >= 0.0


def test_small_machines_run_on_one_thread(rng, monkeypatch):
    from threadpoolctl import threadpool_info

    seen = []

    def spying(self, c):
        seen.extend(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")
        return self.K @ c

    monkeypatch.setattr(DenseGram, "dot", spying)
    X, risk = problem(Quantile(0.8), rng)
    train(AllPoints(Matern32(1.0), X), risk)
    assert set(seen) == {1}


def test_classes_of_very_unequal_weight_are_balanced_from_the_start(rng):
    X, y = rng.normal(size=(6, 2)), np.array([1.0, -1.0, -1.0, -1.0, -1.0, -1.0])
    for heavy in (1e-5, 1e5):
        shares = np.where(y > 0, heavy, 1.0)
        risk = Risk(Hinge(), y, shares / shares.sum(), 1e-3, bias=True)
        assert train(AllPoints(Gaussian(1.0), X), risk).result.relative_gap < 1e-5
