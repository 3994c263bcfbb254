"""The cone of [bagnell2015], by cvxpy (the extra `sdp`)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hplus._checks import Floats
from hplus.losses import Squared
from hplus.solvers.machines.risk import Risk
from hplus.solvers.result import SolverResult, Status
from hplus.solvers.sos.nonnegative import certify

SOLVED_STATUSES = ("optimal", "optimal_inaccurate")

CLARABEL_TOLERANCE = 1e-10
"""The accuracy requested from Clarabel; the certificate shows the accuracy reached."""


def paper_cone(G: Floats, y: Floats, shares: Floats, penalty: float) -> tuple[Floats, SolverResult]:
    """The weights α of problem (2) of [bagnell2015], in the scaling of a mean loss.

    min Σ_i p_i (f_i - y_i)² + penalty αᵀKα,  f = Kα,  K = G∘G,  G diag(α) + diag(α) G ⪰ 0, for
    the Gram matrix G (n, n), its nugget included. For a multiplier S ⪰ 0 of the constraint,
    tr S(G diag(α) + diag(α) G) = sᵀα with s = 2 diag(SG); a larger diagonal of S makes s larger, so
    every gradient >= s gives a bound.
    """
    cp = load_cvxpy()
    K = G * G
    alpha, root = cp.Variable(len(y)), _root(K)
    inside = cp.multiply(G, _sums(cp, alpha)) >> 0
    loss = cp.sum_squares(cp.multiply(np.sqrt(shares), K @ alpha - y))
    objective = loss + penalty * cp.sum_squares(root.T @ alpha)
    problem = cp.Problem(cp.Minimize(objective), [inside])
    iterations = solve_program(cp, problem, "CLARABEL", CLARABEL_TOLERANCE)
    # the diagonal of the constraint is 2 G_ii α_i >= 0: only the solver's rounding is cut off
    weights = np.maximum(alpha.value, 0.0)
    S = _nearest_psd(inside.dual_value)
    risk = Risk(Squared(), y, shares, penalty)
    u = risk.loss.slope(y, K @ weights)
    least = 2.0 * np.sum(S * G, axis=1)
    result = certify(risk, K, K, weights, u, iterations, Status.CONVERGED, least=least)
    return weights, result


def load_cvxpy() -> Any:
    """The module cvxpy, or an error that says how to install it."""
    try:
        import cvxpy
    except ImportError:
        raise ImportError(
            'the paper\'s cone needs cvxpy, which is not installed: pip install "hplus[sdp]".'
        ) from None
    return cvxpy


def _sums(cp: Any, alpha: Any) -> Any:
    """α_i + α_j, (n, n): G diag(α) + diag(α) G is G times this, entry by entry."""
    n = alpha.shape[0]
    return cp.reshape(alpha, (n, 1), order="C") + cp.reshape(alpha, (1, n), order="C")


def solve_program(cp: Any, problem: Any, solver: str, eps: float) -> int:
    """Solve with Clarabel, then with SCS if that fails, or with SCS; the number of iterations."""
    clarabel = {"tol_gap_abs": eps, "tol_gap_rel": eps, "tol_feas": eps}
    # as a last resort SCS gets some seconds, not minutes
    scs = {"eps_abs": eps, "eps_rel": eps, "max_iters": 200_000 if solver == "SCS" else 20_000}
    # the paper's program needs no rescaling, most others do
    plain = {"equilibrate_enable": False}
    chain = [("CLARABEL", clarabel | plain), ("CLARABEL", clarabel), ("SCS", scs)]
    for name, settings in chain[2 if solver == "SCS" else 0 :]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about accuracy, which the certificate shows
                problem.solve(solver=name, **settings)
        except cp.error.SolverError:
            continue
        if problem.status in SOLVED_STATUSES:
            return int(problem.solver_stats.num_iters)
    raise RuntimeError(f"Clarabel and SCS found no solution; the last status is {problem.status}.")


def _root(K: Floats) -> Floats:
    """R with K = RRᵀ, from an eigendecomposition."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _nearest_psd(S: Floats) -> Floats:
    values, vectors = np.linalg.eigh(0.5 * (S + S.T))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T
