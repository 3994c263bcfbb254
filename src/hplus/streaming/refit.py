"""The batch problem on a dictionary: the most probable log rate, by Newton's method.

Minimises  -Σ_g s_g z_g/n + log Σ_g v_g e^{z_g} + (penalty/2n)‖z‖²  over z on the atoms, where s are
the n events counted on the nodes g of a grid and v the shares of the window: the likelihood with
its constant factor profiled out [math, Eq. 5.7]. Events and integral use z at the same nodes, so
that z cannot be high at the events and low in the integral.
"""

from __future__ import annotations

from typing import NamedTuple, TypedDict

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.special import logsumexp

from hplus._checks import Floats
from hplus._threads import one_thread_if_small
from hplus.streaming.engine.atoms import TOTAL
from hplus.streaming.engine.layout import EVENTS, SEEN
from hplus.streaming.engine.learner import Learner, gram
from hplus.streaming.engine.nodes import Inside

CANDIDATE_PENALTIES = np.geomspace(1e3, 1e-4, 15)
"""Tried in turn, each from the solution of the one before."""

LARGEST_ROUNDING = 1e-12
"""The rounding error of a matrix, as a share of its trace."""

MAX_REFIT_STEPS, LEAST_DECREMENT = 60, 1e-12
"""Newton's method stops after this many steps, or below this decrement."""


class Snapshot(TypedDict):
    """A learner at one moment: its atoms, and the events counted on its grid."""

    centers: Floats
    counts: Floats
    seen: float
    events: float


class RefitProblem(NamedTuple):
    """In whitened coordinates u, z = Σ_j (L⁻ᵀu)_j k_j: slopes of ⟨μ, z⟩/n, z at nodes, shares."""

    target: Floats
    at_nodes: Floats
    log_shares: Floats
    events: float


class RefitMode(NamedTuple):
    """The minimiser u, the objective there, and the Hessian without the penalty."""

    u: Floats
    value: float
    curvature: Floats


def snapshot(learner: Learner) -> Snapshot:
    """The learner as it is now."""
    state = learner.state
    return {
        "centers": learner.dictionary,
        "counts": state.rows[TOTAL, : int(np.prod(learner.constants.grid[2]))].copy(),
        "seen": float(state.numbers[SEEN]),
        "events": float(state.counts[EVENTS]),
    }


def refitted(
    learner: Learner, then: Snapshot, inside: Inside, penalty: float | str
) -> tuple[Floats, Floats]:
    """Centers and weights of z at a snapshot, solved on the nodes of its grid."""
    kernel, constants, centers = learner.kernel, learner.constants, then["centers"]
    background = kernel.dot(inside.nodes, constants.nodes, constants.shares)
    at_nodes = np.column_stack([background, kernel(inside.nodes, centers)])
    K = gram(kernel, centers, constants.nodes, constants.shares)
    counts, known = then["counts"][inside.which], None if isinstance(penalty, str) else penalty
    w = solve(K, at_nodes, inside.shares, counts, then["seen"], known)
    points = np.vstack([constants.nodes, centers])
    return points, np.concatenate([w[0] * constants.shares, w[1:]])


def solve(
    K: Floats, at_nodes: Floats, shares: Floats, counts: Floats, n: float, penalty: float | None
) -> Floats:
    """The weights of z on atoms with inner products K; a penalty of None is learned.

    `at_nodes` (nodes, atoms) are values of the atoms, `counts` the n events on the nodes.
    """
    with one_thread_if_small(len(K)):
        L = cholesky(K, lower=True)
        whitened = solve_triangular(L, at_nodes.T, lower=True).T
        problem = RefitProblem(whitened.T @ counts / n, whitened, np.log(shares), n)
        if penalty is None:
            u = _most_evident(problem)
        else:
            u = _mode(problem, np.zeros(len(K)), penalty).u
        return solve_triangular(L.T, u)


def _most_evident(problem: RefitProblem) -> Floats:
    """The mode for the penalty with the largest evidence, in decreasing order [math, Eq. 5.8]."""
    u, best = np.zeros_like(problem.target), -np.inf
    for penalty in CANDIDATE_PENALTIES:
        mode = _mode(problem, u, penalty)
        n, M = problem.events, len(u)
        factor = cholesky(n * _lifted(mode.curvature, penalty / n), lower=True)
        log_determinant = 2.0 * np.log(np.diag(factor)).sum()
        evidence = -n * mode.value + 0.5 * (M * np.log(penalty) - log_determinant)
        if evidence < best:
            break
        u, best = mode.u, evidence
    return u


def _mode(problem: RefitProblem, u: Floats, penalty: float) -> RefitMode:
    """Damped Newton steps from u."""
    ridge = penalty / problem.events
    value, p = _objective(problem, u, ridge)
    for _ in range(MAX_REFIT_STEPS):
        mean = problem.at_nodes.T @ p
        slope = mean - problem.target + ridge * u
        centered = problem.at_nodes - mean
        H = (centered.T * p) @ centered
        step = cho_solve(cho_factor(_lifted(H, ridge)), slope)
        decrement, size = float(slope @ step), 1.0
        while True:
            ahead, q = _objective(problem, u - size * step, ridge)
            if ahead <= value - 0.25 * size * decrement or size < 1e-6:
                break
            size *= 0.5
        if decrement < LEAST_DECREMENT or ahead > value:
            break
        u, value, p = u - size * step, ahead, q
    return RefitMode(u, value, H)


def _lifted(H: Floats, ridge: float) -> Floats:
    """H + ridge·I, with a margin for rounding in H."""
    return H + (ridge + LARGEST_ROUNDING * max(np.trace(H), 0.0) + 1e-12) * np.eye(len(H))


def _objective(problem: RefitProblem, u: Floats, ridge: float) -> tuple[float, Floats]:
    """The objective at u, and the shares of ∫e^z at the nodes."""
    logs = problem.log_shares + problem.at_nodes @ u
    total = logsumexp(logs)
    value = float(total - problem.target @ u + 0.5 * ridge * (u @ u))
    return value, np.exp(logs - total)
