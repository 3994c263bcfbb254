"""The diagonal cone: optimality, certificates, oracles."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from hplus.kernels import Gaussian, Matern32, Matern52, Nugget
from hplus.losses import (
    Absolute,
    EpsilonInsensitive,
    Huber,
    Logistic,
    Own,
    Poisson,
    PoissonLog,
    Quantile,
    Squared,
    SquaredHinge,
)
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import Status
from hplus.solvers.sos import nonnegative
from hplus.solvers.sos.nonnegative import certify, lower_bound, promised_gap, solve_nonnegative


class Cosh:
    def __repr__(self):
        return "Cosh()"

    def value(self, y, f):
        return np.cosh(f - y) - 1.0

    def slope(self, y, f):
        return np.sinh(f - y)


class Fourth:
    def __repr__(self):
        return "Fourth()"

    def value(self, y, f):
        return (f - y) ** 4

    def slope(self, y, f):
        return 4.0 * (f - y) ** 3


LOSSES = (Squared(), Poisson(), Quantile(0.8), Absolute(), Huber(0.3), Own(Cosh()))
KERNELS = (Gaussian(0.7), Matern32(1.0), Gaussian(0.3) + 0.1 * Nugget())
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def problem(loss, rng, n=60, landmarks=None, kernel=KERNELS[0], penalty=1e-3, size=1.0):
    """A function that is 0 on half of the square, seen through noise: (risk, B, Q)."""
    X = rng.uniform(-2.0, 2.0, (n, 2))
    truth = np.maximum(np.sin(2.0 * X[:, 0]) + X[:, 1], 0.0)
    counts = isinstance(loss, Poisson)
    y = rng.poisson(size * truth) if counts else size * (truth + 0.3 * rng.standard_t(3, n))
    shares = rng.uniform(0.5, 1.5, n)
    Z = X if landmarks is None else X[:landmarks]
    risk = Risk(loss, y.astype(float), shares / shares.sum(), penalty)
    return risk, kernel(X, Z) ** 2, kernel(Z) ** 2


def solve(risk, B, Q):
    solution = solve_nonnegative(risk, B, Q)
    return solution[0], certify(risk, B, Q, *solution)


@pytest.mark.parametrize("penalty", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@every_loss
def test_every_loss_is_solved_to_the_promised_gap(loss, kernel, penalty, rng):
    alpha, result = solve(*problem(loss, rng, kernel=kernel, penalty=penalty))
    assert alpha.min() >= 0.0
    assert result.status is Status.CONVERGED
    assert result.relative_gap <= promised_gap(loss)


@pytest.mark.parametrize("size", [1e-6, 1e6])
@pytest.mark.parametrize("landmarks", [None, 10])
@pytest.mark.parametrize("loss", LOSSES[:-1], ids=repr)
def test_targets_may_be_of_any_size(loss, landmarks, size, rng):
    loss = loss.replace(threshold=0.3 * size) if isinstance(loss, Huber) else loss
    result = solve(*problem(loss, rng, landmarks=landmarks, size=size))[1]
    assert result.relative_gap <= promised_gap(loss)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("loss", LOSSES[:-1], ids=repr)
def test_shares_may_differ_by_six_decades(loss, seed):
    rng = np.random.default_rng(seed)
    risk, B, Q = problem(loss, rng, n=40, kernel=Matern52(0.2), penalty=1e-2, size=0.1)
    shares = 10.0 ** rng.uniform(-6.0, 0.0, 40)
    result = solve(Risk(loss, risk.y, shares / shares.sum(), 1e-2), B, Q)[1]
    assert result.relative_gap <= promised_gap(loss)


def test_an_iterate_near_an_edge_goes_back_to_the_middle():
    # without that, the steps of these few counts shrink to nothing at a gap of 1e-4
    rng = np.random.default_rng(23)
    X = rng.uniform(-2.0, 2.0, (60, 2))
    y = rng.poisson(0.1 * np.maximum(np.sin(2.0 * X[:, 0]) + X[:, 1], 0.0)).astype(float)
    shares = 10.0 ** rng.uniform(-3.0, 3.0, 60)
    B = Gaussian(0.7)(X) ** 2
    result = solve(Risk(Poisson(), y, shares / shares.sum(), 1e-3), B, B)[1]
    assert result.relative_gap <= 1e-6


@pytest.mark.parametrize("penalty", [1e-6, 1e-2])
@pytest.mark.parametrize(
    "loss", [SquaredHinge(), Logistic(), PoissonLog(), Own(Cosh()), Own(Fourth())], ids=repr
)
def test_smooth_losses_far_from_a_parabola_are_solved_too(loss, penalty):
    for seed in range(3):
        X = np.random.default_rng(seed).uniform(-2.0, 2.0, (50, 2))
        y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] > 1.0, 1.0, -1.0)
        y = np.maximum(y, 0.0) * 5.0 if isinstance(loss, PoissonLog | Own) else y
        B = Gaussian(0.2)(X) ** 2
        result = solve(Risk(loss, y, np.full(50, 1.0 / 50.0), penalty), B, B)[1]
        assert result.relative_gap <= 1e-6


@pytest.mark.parametrize("landmarks", [None, 15])
@pytest.mark.parametrize("penalty", [1.0, 1e-6])
def test_the_squared_loss_agrees_with_nnls_on_another_root(penalty, landmarks, rng):
    risk, B, Q = problem(Squared(), rng, landmarks=landmarks, penalty=penalty)
    values, vectors = np.linalg.eigh(Q)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    A = np.vstack([np.sqrt(risk.shares)[:, None] * B, np.sqrt(penalty) * root.T])
    b = np.concatenate([np.sqrt(risk.shares) * risk.y, np.zeros(len(Q))])
    assert solve(risk, B, Q)[1].objective == pytest.approx(nnls(A, b)[1] ** 2, rel=1e-8)


def test_the_interior_point_takes_over_where_nnls_gives_up(rng, monkeypatch):
    def gives_up(A, b):
        raise RuntimeError("Maximum number of iterations reached.")

    risk, B, Q = problem(Squared(), rng)
    expected = solve(risk, B, Q)[1].objective
    monkeypatch.setattr(nonnegative, "nnls", gives_up)
    result = solve(risk, B, Q)[1]
    assert result.iterations > 1
    assert result.objective == pytest.approx(expected, rel=1e-8)


def cvxpy_objective(risk, B, Q):
    """The same problem in the words of cvxpy."""
    values, vectors = np.linalg.eigh(Q)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    alpha = cp.Variable(len(Q), nonneg=True)
    f, y = B @ alpha, risk.y
    losses = {
        "Poisson": lambda: f - cp.multiply(y, cp.log(f)),
        "Quantile": lambda: cp.maximum((1 - risk.loss.level) * (f - y), risk.loss.level * (y - f)),
        "Absolute": lambda: cp.abs(f - y),
        "Huber": lambda: cp.huber(f - y, risk.loss.threshold) / 2,
        "Own": lambda: (cp.exp(f - y) + cp.exp(y - f)) / 2 - 1,
    }
    loss = risk.shares @ losses[type(risk.loss).__name__]()
    objective = loss + risk.penalty * cp.sum_squares(root.T @ alpha)
    return cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("landmarks", [None, 12])
@pytest.mark.parametrize("loss", LOSSES[1:], ids=repr)
def test_the_objective_agrees_with_clarabel(loss, landmarks, rng):
    risk, B, Q = problem(loss, rng, n=40, landmarks=landmarks, penalty=1e-2)
    expected = cvxpy_objective(risk, B, Q)
    assert solve(risk, B, Q)[1].objective == pytest.approx(expected, rel=1e-6)


@given(seed=st.integers(0, 10**6), loss=st.sampled_from(LOSSES), shift=st.floats(-3.0, 3.0))
def test_no_dual_bound_exceeds_the_optimum(seed, loss, shift):
    rng = np.random.default_rng(seed)
    risk, B, Q = problem(loss, rng, n=12, landmarks=rng.choice([None, 6]), penalty=1e-2)
    best = solve(risk, B, Q)[1]
    alpha = 10.0**shift * rng.exponential(size=len(Q)) * rng.integers(0, 2, len(Q))
    u = loss.slope(risk.y, B @ rng.exponential(size=len(Q))) * rng.uniform(0.0, 1.0, 12)
    assert lower_bound(risk, B, Q, alpha, u) <= best.objective + 1e-9 * best.size


@given(seed=st.integers(0, 10**6), loss=st.sampled_from(LOSSES))
def test_the_certified_gap_of_any_weights_reaches_down_to_the_optimum(seed, loss):
    rng = np.random.default_rng(seed)
    risk, B, Q = problem(loss, rng, n=12, penalty=1e-2)
    best = solve(risk, B, Q)[1]
    alpha = rng.exponential(size=12)
    u = loss.slope(risk.y, B @ alpha)
    result = certify(risk, B, Q, alpha, u, 0, Status.CONVERGED)
    assert result.objective - result.gap <= best.objective + 1e-9 * best.size
    assert result.objective >= best.objective - best.gap - 1e-12 * best.size
    assert (result.status is Status.CONVERGED) == (result.relative_gap <= promised_gap(loss))


@every_loss
def test_no_other_weights_have_a_smaller_objective(loss, rng):
    risk, B, Q = problem(loss, rng)
    alpha, result = solve(risk, B, Q)
    for size in (1e-1, 1e-3, 1e-5):
        other = np.maximum(alpha + size * rng.normal(size=len(Q)), 0.0)
        objective = risk.primal(B @ other, 0.0, other @ Q @ other)
        assert objective >= result.objective - result.gap - 1e-12


@every_loss
def test_most_weights_are_exactly_zero(loss, rng):
    alpha, _ = solve(*problem(loss, rng, n=80, penalty=1e-4))
    assert np.count_nonzero(alpha) < 40


@every_loss
def test_a_share_of_two_equals_a_point_twice(loss, rng):
    risk, B, Q = problem(loss, rng, n=30, penalty=1e-2)
    twice = np.r_[np.arange(30), np.arange(10)]
    weights = np.where(np.arange(30) < 10, 2.0, 1.0) / 40.0
    once = Risk(loss, risk.y, weights, risk.penalty)
    repeated = Risk(loss, risk.y[twice], np.full(40, 1.0 / 40.0), risk.penalty)
    first, second = solve(once, B, Q)[1], solve(repeated, B[twice], Q)[1]
    assert first.objective == pytest.approx(second.objective, rel=1e-6)


def test_counts_may_be_zero_here_or_everywhere(rng):
    risk, B, Q = problem(Poisson(), rng)
    assert 0.0 in risk.y
    assert np.all(B[risk.y > 0.0] @ solve(risk, B, Q)[0] > 0.0)
    alpha, result = solve(Risk(Poisson(), np.zeros(60), risk.shares, 1e-3), B, Q)
    assert not alpha.any()
    assert result.gap == 0.0


@pytest.mark.parametrize("loss", [x for x in LOSSES if not isinstance(x, Poisson)], ids=repr)
def test_targets_below_zero_give_the_function_zero(loss, rng):
    risk, B, Q = problem(loss, rng)
    alpha, result = solve(Risk(loss, -1.0 - np.abs(risk.y), risk.shares, 1e-3), B, Q)
    assert not alpha.any()
    assert result.relative_gap <= promised_gap(loss)


def test_counts_out_of_reach_of_every_centre_are_refused(rng):
    risk = Risk(Poisson(), np.array([1.0, 2.0]), np.full(2, 0.5), 1e-3)
    with pytest.raises(ValueError, match=r"got 0 in row 1: use more landmarks"):
        solve_nonnegative(risk, np.array([[1.0], [0.0]]), np.ones((1, 1)))


def test_a_tube_is_refused(rng):
    with pytest.raises(ValueError, match=r"not be ε-insensitive .* got EpsilonInsensitive\(0\.2\)"):
        solve_nonnegative(*problem(EpsilonInsensitive(0.2), rng))


def test_the_arguments_are_left_as_they_were(rng):
    risk, B, Q = problem(Poisson(), rng)
    for array in (risk.y, risk.shares, B, Q):
        array.flags.writeable = False
    solve(risk, B, Q)


@pytest.mark.parametrize("loss", [Absolute(), Poisson()], ids=repr)
def test_three_hundred_points_take_a_few_dozen_iterations(loss, rng):
    result = solve(*problem(loss, rng, n=300, penalty=1e-6))[1]
    assert result.iterations <= 40
    assert result.relative_gap <= 1e-6
