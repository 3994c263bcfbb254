"""The semidefinite programs: nested cones, certificates, a missing cvxpy."""

import sys

import numpy as np
import pytest

from hplus.losses import Absolute, Huber, Logistic, Poisson, Quantile, Squared
from hplus.positivity import Full
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import Status
from hplus.solvers.sos.learning import regression
from hplus.solvers.sos.nonnegative import certify, solve_nonnegative
from hplus.solvers.sos.paper_cone import paper_cone
from hplus.solvers.sos.psd import certify as certify_full
from hplus.solvers.sos.psd import solve


def wave_example(n, scale=0.75):
    """The points, targets and Gram matrix, nugget included, of [bagnell2015]."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-5.0, 5.0, n))
    truth = np.sin(x) + np.cos(3.0 * x) - (0.5 * x) ** 2 + 3.0
    y = truth + 0.5 * rng.normal(size=n)
    G = np.exp(-0.5 * ((x[:, None] - x) / scale) ** 2) + 0.01 * np.eye(n)
    return y, G, np.full(n, 1.0 / n), 0.01 / n


def diagonal(G, y, shares, penalty):
    risk, K = Risk(Squared(), y, shares, penalty), G * G
    return certify(risk, K, K, *solve_nonnegative(risk, K, K)).objective


def symmetric(G, alpha):
    return G * (alpha[:, None] + alpha)


@pytest.fixture(scope="module")
def paper_fit():
    y, G, shares, penalty = wave_example(50)
    return (y, G, shares, penalty), paper_cone(G, y, shares, penalty)


def test_the_papers_program_is_solved_to_a_certified_gap(paper_fit):
    (_, G, _, _), (alpha, result) = paper_fit
    assert result.status is Status.CONVERGED
    assert result.relative_gap <= 1e-8
    assert alpha.min() >= 0.0
    assert np.linalg.eigvalsh(symmetric(G, alpha)).min() >= -1e-8


def test_the_objective_is_the_papers_up_to_the_scaling(paper_fit):
    (y, G, _, _), (alpha, result) = paper_fit
    K = G * G
    M, N = K.T @ K + 0.01 * K, -K.T @ y
    assert 50.0 * result.objective == pytest.approx(alpha @ M @ alpha + 2.0 * alpha @ N + y @ y)


def test_the_three_cones_have_the_known_objectives(paper_fit):
    (y, G, shares, penalty), (_, paper) = paper_fit
    values, vectors = np.linalg.eigh(G)
    problem = regression(Squared(), y, shares, vectors * np.sqrt(values), Full(0.0, 2 * penalty))
    solved = solve(problem)
    full = certify_full(problem, solved, problem.outputs(problem.values(solved.weights))).objective
    found = 50.0 * np.array([full, diagonal(G, y, shares, penalty), paper.objective])
    np.testing.assert_allclose(found, [91.4495, 98.1398, 120.4976], rtol=1e-5)


def test_the_papers_cone_is_smaller_than_the_diagonal_one(paper_fit):
    (y, G, shares, penalty), (_, result) = paper_fit
    assert result.objective > 1.05 * diagonal(G, y, shares, penalty)


def test_the_three_cones_are_nested_with_the_common_penalty(full_cone_reference):
    y, G, shares, penalty = wave_example(12)
    values, vectors = np.linalg.eigh(G)
    features = vectors * np.sqrt(values)
    full = full_cone_reference(features, y, shares, Squared(), 0.0, 2.0 * penalty)[1]
    middle = diagonal(G, y, shares, penalty)
    paper = paper_cone(G, y, shares, penalty)[1].objective
    assert full <= middle * (1.0 + 1e-7)
    assert middle <= paper * (1.0 + 1e-7)
    assert paper > full


def test_weights_of_the_diagonal_cone_need_not_lie_in_the_papers():
    G, alpha = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([1.0, 0.01])
    np.testing.assert_allclose(np.linalg.eigvalsh(symmetric(G, alpha)), [-0.334, 2.354], atol=5e-4)
    assert np.linalg.eigvals(G * alpha).min() > 0.0
    y, shares = (G * G) @ alpha, np.full(2, 0.5)
    found, result = paper_cone(G, y, shares, 1e-9)
    assert diagonal(G, y, shares, 1e-9) < 1e-8
    assert result.objective > 1e-3
    assert result.relative_gap <= 1e-6
    assert np.linalg.eigvalsh(symmetric(G, found)).min() >= -1e-8


def test_a_singular_gram_matrix_is_certified_too():
    x = np.array([0.0, 0.0, 0.5, 1.0, 2.0])
    G = np.exp(-0.5 * (x[:, None] - x) ** 2)
    shares = np.array([0.1, 0.3, 0.2, 0.2, 0.2])
    _, result = paper_cone(G, np.array([1.0, 2.0, 0.5, -0.5, 1.5]), shares, 1e-3)
    assert result.relative_gap <= 1e-6


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
@pytest.mark.parametrize(
    "loss", [Squared(), Poisson(), Quantile(0.8), Absolute(), Huber(0.3)], ids=repr
)
def test_the_full_cone_reference_minimises_what_it_says(loss, solver, rng, full_cone_reference):
    F, shares = rng.normal(size=(15, 3)), rng.dirichlet(np.ones(15))
    y = rng.poisson(2.0, 15).astype(float)
    A, objective = full_cone_reference(F, y, shares, loss, 0.1, 0.2, solver, 1e-8)

    def value(A):
        f = np.einsum("ij,jk,ik->i", F, A, F)
        return shares @ loss.value(y, f) + 0.1 * np.trace(A) + 0.1 * np.sum(A**2)

    assert np.linalg.eigvalsh(A).min() >= -1e-6
    assert objective == pytest.approx(value(A), rel=1e-5)
    for size in (0.3, 0.03, 0.003):
        R = size * rng.normal(size=(3, 3))
        assert value((np.eye(3) + R) @ A @ (np.eye(3) + R).T + 0.1 * R @ R.T) >= objective - 1e-6


def test_the_reference_refuses_other_losses(full_cone_reference):
    with pytest.raises(ValueError, match=r"Huber or Poisson .* got Logistic\(\)"):
        full_cone_reference(np.ones((2, 1)), np.ones(2), np.full(2, 0.5), Logistic(), 0.0, 1.0)


def test_a_missing_cvxpy_is_reported_with_the_package_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r'needs cvxpy, .*: pip install "hplus\[sdp\]"\.$'):
        paper_cone(np.eye(2), np.ones(2), np.full(2, 0.5), 1.0)


def test_scs_takes_over_where_clarabel_fails(monkeypatch, rng):
    import cvxpy as cp

    solve = cp.Problem.solve

    def failing(self, solver, **settings):
        if solver == "CLARABEL":
            raise cp.error.SolverError("failed")
        return solve(self, solver=solver, **settings)

    y, G, shares, penalty = wave_example(6)
    expected = paper_cone(G, y, shares, penalty)[1].objective
    monkeypatch.setattr(cp.Problem, "solve", failing)
    assert paper_cone(G, y, shares, penalty)[1].objective == pytest.approx(expected, rel=1e-6)
