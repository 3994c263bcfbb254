"""Problems solved by cvxpy (the extra `sdp`): the paper's cone, and an oracle for the full one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hplus._checks import Floats
from hplus.losses import Absolute, Huber, Loss, Poisson, Quantile, Squared
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
    cp = _cvxpy()
    K = G * G
    alpha, root = cp.Variable(len(y)), _root(K)
    inside = cp.multiply(G, _sums(cp, alpha)) >> 0
    loss = cp.sum_squares(cp.multiply(np.sqrt(shares), K @ alpha - y))
    objective = loss + penalty * cp.sum_squares(root.T @ alpha)
    iterations = _solve(
        cp, cp.Problem(cp.Minimize(objective), [inside]), "CLARABEL", CLARABEL_TOLERANCE
    )
    # the diagonal of the constraint is 2 G_ii α_i >= 0: only the solver's rounding is cut off
    weights = np.maximum(alpha.value, 0.0)
    S = _nearest_psd(inside.dual_value)
    risk = Risk(Squared(), y, shares, penalty)
    u = risk.loss.slope(y, K @ weights)
    least = 2.0 * np.sum(S * G, axis=1)
    result = certify(risk, K, K, weights, u, iterations, Status.CONVERGED, least=least)
    return weights, result


def full_cone_reference(
    features: Floats,
    y: Floats,
    shares: Floats,
    loss: Loss,
    trace: float,
    frobenius: float,
    solver: str = "CLARABEL",
    eps: float = 1e-9,
) -> tuple[Floats, float]:
    """A (m, m) ⪰ 0 that minimises Σ_i p_i Φ(y_i, φ_iᵀAφ_i) + trace·tr A + (frobenius/2)‖A‖²_F.

    φ_i are the rows of `features` (n, m). Slow, and A ⪰ 0 only up to `eps`: an oracle for small
    problems. Returns (A, objective).
    """
    cp = _cvxpy()
    A = cp.Variable((features.shape[1],) * 2, PSD=True)
    f = cp.sum(cp.multiply(features @ A, features), axis=1)
    penalty = trace * cp.trace(A) + 0.5 * frobenius * cp.sum_squares(A)
    problem = cp.Problem(cp.Minimize(shares @ _loss(cp, loss, y, f) + penalty))
    _solve(cp, problem, solver, eps)
    return np.asarray(A.value), float(problem.value)


def _cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError:
        raise ImportError(
            "the paper's cone and the reference solvers need cvxpy, which is not installed: "
            'pip install "hplus[sdp]".'
        ) from None
    return cvxpy


def _sums(cp: Any, alpha: Any) -> Any:
    """α_i + α_j, (n, n): G diag(α) + diag(α) G is G times this, entry by entry."""
    n = alpha.shape[0]
    return cp.reshape(alpha, (n, 1), order="C") + cp.reshape(alpha, (1, n), order="C")


def _loss(cp: Any, loss: Loss, y: Floats, f: Any) -> Any:
    """Φ(y_i, f_i) as a cvxpy expression, shape (n,)."""
    match loss:
        case Squared():
            return cp.square(f - y)
        case Absolute():
            return cp.abs(f - y)
        case Quantile(level=level):
            return cp.maximum((1.0 - level) * (f - y), level * (y - f))
        case Huber(threshold=threshold):
            return 0.5 * cp.huber(f - y, threshold)
        case Poisson():
            return f - cp.multiply(y, cp.log(f)) if np.any(y > 0.0) else f
    raise ValueError(
        f"loss must be Squared, Absolute, Quantile, Huber or Poisson for the reference, got {loss}."
    )


def _solve(cp: Any, problem: Any, solver: str, eps: float) -> int:
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
