"""Rates of events as a sum of squares.

f = φᵀAφ, A ⪰ 0, minimises by the solver of `psd`
    -Σ w_i log f(x_i) + E tr(TA) + λ tr A + (μ/2)‖A‖²,   μ a small share of λ.
The penalties cost some of the expected count: E∫f = Σw - λ tr A - μ‖A‖².
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from hplus._checks import Bools, Floats, Seed, check_positive, check_random_state
from hplus._threads import one_thread_if_small
from hplus.kernels import Kernel
from hplus.positivity import Full
from hplus.rates.kernel_search import Penalties, learn_kernel
from hplus.rates.square_rate import curvature, quadratic_form
from hplus.rates.squares_rate import FactorPosterior, SquaresRate, laplace
from hplus.rates.window_features import Setting, WeightedEvents, setting
from hplus.solvers.sos.learning import likelihood, with_few_columns
from hplus.solvers.sos.problem import Problem
from hplus.solvers.sos.psd import certify, solve
from hplus.solvers.sos.sweeps import values_of

SOS_FOLDS, USUAL_TRACE = 3, 1e-2
"""Thinned parts that are held out in turn; the first trace penalty, in units of E tr T."""

MAX_SOS_EVENTS, SOS_FEATURES = 1000, 200
"""Events from which scales and penalties are learned at most, and features for that."""

MIN_TRACE, MAX_TRACE = 0.9e-5, 1.1e-1
"""Trace penalties that are compared, in units of E tr T: stronger ones cost most of the count."""

FROBENIUS_SHARE = 1e-2
"""The Frobenius penalty, small beside the trace penalty: it makes the problem easy to solve."""

ROUGH_GAP = 1e-2
"""The gap at which held-out parts are compared."""


def learn_sos_rate(
    events: WeightedEvents, kernel: Kernel | None, penalty: float | None, random_state: Seed
) -> SquaresRate:
    """The sum of squares with the smallest -Σ w_i log f(x_i) + E∫f + λ tr A + (μ/2)‖A‖².

    A kernel or a penalty λ that is None is learned by held-out thinned parts of the events.
    """
    if kernel is None or penalty is None:
        order = check_random_state(random_state).permutation(len(events.w))
        some = events.thinned(order[:MAX_SOS_EVENTS])
        # every kernel starts from the slopes -1/f of the last one
        compare = partial(by_thinning, slopes=[None] * SOS_FOLDS)
        kernel, penalty = learn_kernel(some, kernel, penalty, compare, SOS_FEATURES)
    s, penalty = setting(events, kernel), check_positive("penalty", penalty)
    s.require_reach()
    problem = sos_problem(s, penalty)
    solved = solve(problem)
    with one_thread_if_small(problem.width):
        weights = with_few_columns(problem, solved.weights)
        level = events.total / events.exposure
        posterior = _posterior(s, np.sqrt(level) * weights[0], penalty)
        z = problem.outputs([posterior.function(events.X) / level])
        result = certify(problem, replace(solved, weights=weights), z)
    # with f = (Σw/E) h the objective is Σw (that of h - log(Σw/E))
    result = replace(
        result,
        objective=events.total * (result.objective - float(np.log(level))),
        gap=events.total * result.gap,
        size=events.total * result.size,
    )
    return SquaresRate.of(events, posterior.function, posterior, result, penalty)


def sos_problem(s: Setting, penalty: float) -> Problem:
    """-Σ p_i log h(x_i) + ∫h + penalties, for the shares p = w/Σw and f = (Σw/E) h."""
    events = s.events
    frobenius = _frobenius(s, penalty) * events.total / events.exposure
    cone = Full(penalty / events.exposure, frobenius / events.exposure)
    return likelihood(events.w / events.total, s.Phi, s.T, cone, 1.0 / events.window.volume)


def _frobenius(s: Setting, penalty: float) -> float:
    """μ, so small that a constant rate f = c‖φ‖² pays FROBENIUS_SHARE/2 of its trace penalty."""
    return FROBENIUS_SHARE * penalty * s.unit / s.events.total


def _posterior(s: Setting, R: Floats, penalty: float) -> FactorPosterior:
    """D = ET + λI + μA - Σ w φφᵀ/f, positive semidefinite at the optimum by dual feasibility.

    It is singular along R and, where λ is small, nearly singular in many other directions. There
    the columns of R are given a prior of the right size: r of them have the usual γ times r.
    """
    B = quadratic_form(s, penalty) + _frobenius(s, penalty) * (R @ R.T)
    S = curvature(s.Phi, s.events.w, np.linalg.norm(s.Phi @ R, axis=1))
    return laplace(s, R, B - S, R.shape[1] * s.usual, s.events.w)


def by_thinning(s: Setting, slopes: list[Floats | None]) -> Penalties:
    """Penalties by the likelihood of held-out parts.

    The likelihood Σ w log f - E∫f accounts for the count that a penalty costs; that of f/∫f would
    not.
    `slopes` are where the solver starts for each part, and are replaced by where it ends.
    """
    folds = min(SOS_FOLDS, len(s.events.w))
    fold = np.arange(len(s.events.w)) % folds

    def score(penalty: float) -> float:
        if folds < 2:
            return 0.0
        gains = np.empty(folds)
        for k in range(folds):
            gains[k], slopes[k] = _held_out(s, fold == k, penalty, slopes[k])
        return float(gains.sum())

    return Penalties(USUAL_TRACE * s.unit, MIN_TRACE * s.unit, MAX_TRACE * s.unit, score)


def _held_out(s: Setting, out: Bools, penalty: float, start: Floats | None) -> tuple[float, Floats]:
    """Σ w log h - Σw∫h of the events `out`, h learned from the others, and the slopes -1/h."""
    rest = np.flatnonzero(~out)
    problem = sos_problem(replace(s, events=s.events.thinned(rest), Phi=s.Phi[rest]), penalty)
    softness = None if start is None else problem.hardest
    solved = solve(problem, start, softness, tolerance=ROUGH_GAP)
    (R,) = solved.weights
    f, mass = values_of(s.Phi[out], R), float(np.sum(R * (s.T @ R)))
    with np.errstate(divide="ignore"):  # f may be 0 far from the events that it was learned from
        return float(s.events.w[out] @ (np.log(f) - mass)), solved.x
