"""Smooth, non-negative weights of the parts of a rate: α = e^z under a Gaussian prior of z.

Events see λ_i = Σ_b A_ib α_b, and c_b is the integral of part b over the window, so that the log
likelihood is Σ_i log λ_i - cᵀα. The prior of z has precision Σ_k τ_k S_k + ε I; the strengths τ
follow from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.blas import dsyrk

from hplus._checks import Floats
from hplus._threads import one_thread_if_small

MAX_SCORING_STEPS = 100
STEP_TOLERANCE = 1e-7
"""Gain of the log posterior, per event, at which Newton's method ends."""

ROWS_AT_ONCE = 2**11
"""Rows of a product that are computed at once."""

LONGEST_STEP = 3.0
"""How far a log weight may move in one step."""

RIDGE = 1e-3
"""ε, the precision of the level of the log weights."""

STRENGTHS = (1e-2, 1e6)
"""The least and the largest strength of a prior."""

STRENGTH_ROUNDS = 12

LEAST_CURVATURE = 0.1
"""Precision that proposals have in every direction, at least."""

BURN_IN_DRAWS, STEPS_PER_DRAW = 60, 3
"""Steps of the sampler before the first draw, and from one to the next."""


class Parts(NamedTuple):
    """Parts of a rate at events (n, B), and their integrals over the window (B,)."""

    rows: Floats
    integrals: Floats


class LogPrior(NamedTuple):
    """A Gaussian prior of log weights: its mean (B,), penalties (k, B, B) and their strengths.

    `fixed` (B, B) is a part of its precision whose strength is not learned.
    """

    mean: Floats
    penalties: tuple[Floats, ...]
    strengths: Floats
    fixed: Floats | float = 0.0

    @property
    def precision(self) -> Floats:
        """Σ_k τ_k S_k + ε I, and what is fixed, (B, B)."""
        found = RIDGE * np.eye(len(self.mean)) + self.fixed
        for strength, penalty in zip(self.strengths, self.penalties, strict=True):
            found += strength * penalty
        return found


class WeightMode(NamedTuple):
    """The most probable log weights (B,), the log posterior there, and the log likelihood.

    `information` (B, B) is that of the events about the log weights, without the prior.
    """

    log_weights: Floats
    log_posterior: float
    log_likelihood: float
    information: Floats


def log_likelihood(parts: Parts, weights: Floats) -> float:
    """Σ log λ_i - cᵀα."""
    with np.errstate(divide="ignore"):
        return float(np.log(parts.rows @ weights).sum() - parts.integrals @ weights)


def find_mode(parts: Parts, prior: LogPrior, start: Floats) -> WeightMode:
    """The log weights of largest posterior density near `start`, by damped scoring."""
    Q, z = prior.precision, np.array(start)
    least = STEP_TOLERANCE * max(len(parts.rows), 1)

    def posterior(z: Floats) -> float:
        d = z - prior.mean
        return log_likelihood(parts, np.exp(z)) - 0.5 * float(d @ Q @ d)

    value = posterior(z)
    with one_thread_if_small(len(z)):
        for _ in range(MAX_SCORING_STEPS):
            slope, info = _derivatives(parts, z)
            slope = slope - Q @ (z - prior.mean)
            # the last term of the curvature, where it is positive, keeps steps from overshooting
            surplus = np.maximum(-slope - Q @ (z - prior.mean), 0.0)
            H = info + Q + np.diag(surplus)
            step = cho_solve(cho_factor(H), slope)
            step *= min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-300))
            gain = 0.0
            for _ in range(30):
                gain = posterior(z + step) - value
                if gain >= 0.0:
                    break
                step *= 0.5
            if gain < 0.0:
                break
            z, value = z + step, value + gain
            if gain < least:
                break
    return WeightMode(z, value, log_likelihood(parts, np.exp(z)), info)


def _derivatives(parts: Parts, z: Floats) -> tuple[Floats, Floats]:
    """Slope of the log likelihood in z (B,), and the information about z (B, B)."""
    A, c = parts
    a = np.exp(z)
    p = 1.0 / (A @ a)
    return a * (A.T @ p - c), weighted_squares(A, p, a)


def weighted_squares(A: Floats, p: Floats, a: Floats) -> Floats:
    """JᵀJ of J = diag(p) A diag(a), (B, B), in blocks of rows that stay in the cache."""
    found, block = np.zeros((len(a), len(a))), np.empty((min(ROWS_AT_ONCE, len(A)), len(a)))
    for start in range(0, len(A), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        J = np.multiply(A[rows], p[rows, None], out=block[: len(A) - start])
        found += dsyrk(1.0, J.T)
    upper = np.triu(found)
    return (upper + np.triu(upper, 1).T) * np.outer(a, a)


def learn_strengths(
    parts: Sequence[Parts], priors: Sequence[LogPrior], starts: Sequence[Floats]
) -> tuple[tuple[LogPrior, ...], tuple[WeightMode, ...]]:
    """The priors whose strengths, the same for all, are of largest evidence, and their modes.

    τ_k ← τ_k Σ (tr(Q⁻¹S_k) - tr(V S_k)) / Σ (zᵀS_k z), V the posterior covariance [math, Eq. 6.4].
    """
    modes = tuple(map(find_mode, parts, priors, starts))
    for _ in range(STRENGTH_ROUNDS):
        former = priors[0].strengths
        freedom, sizes = np.sum([_terms(*each) for each in zip(priors, modes, strict=True)], axis=0)
        strengths = np.clip(
            former * np.maximum(freedom, 1e-12) / np.maximum(sizes, 1e-12), *STRENGTHS
        )
        priors = [prior._replace(strengths=strengths) for prior in priors]
        modes = tuple(map(find_mode, parts, priors, [mode.log_weights for mode in modes]))
        if np.abs(np.log(strengths / former)).max(initial=0.0) < 0.1:
            break
    return tuple(priors), modes


def _terms(prior: LogPrior, mode: WeightMode) -> tuple[list[float], list[float]]:
    """tr(Q⁻¹S_k) - tr(V S_k) and zᵀS_k z of each penalty."""
    Q, d = prior.precision, mode.log_weights - prior.mean
    with one_thread_if_small(len(d)):
        before = cho_solve(cho_factor(Q), np.eye(len(d)))
        after = cho_solve(cho_factor(Q + mode.information), np.eye(len(d)))
    freedom = [float(np.sum((before - after) * S)) for S in prior.penalties]
    return freedom, [float(d @ S @ d) for S in prior.penalties]


def log_evidence(prior: LogPrior, mode: WeightMode) -> float:
    """The log evidence by Laplace's method, up to a constant."""
    Q = prior.precision
    before, after = (np.linalg.slogdet(M)[1] for M in (Q, Q + mode.information))
    return mode.log_posterior + 0.5 * float(before - after)


def moved(prior: LogPrior, mode: WeightMode, change: Floats) -> Floats:
    """How the mode moves with changes (k, B) of the mean of the prior, (k, B)."""
    Q = prior.precision
    return np.asarray(cho_solve(cho_factor(Q + mode.information), Q @ change.T).T)


def drawn(
    parts: Parts, prior: LogPrior, mode: WeightMode, count: int, rng: np.random.Generator
) -> Floats:
    """Log weights drawn from the posterior, (count, B), by elliptical slices around the mode.

    Where events say little of a weight, its posterior falls steeply on one side only, and is far
    from normal.
    """
    Q = prior.precision
    R = Q + mode.information + LEAST_CURVATURE * np.eye(len(Q))
    with one_thread_if_small(len(Q)):
        lower, _ = cho_factor(R, lower=True)

        def weight(d: Floats) -> float:
            z = mode.log_weights + d
            apart = z - prior.mean
            with np.errstate(over="ignore"):
                found = log_likelihood(parts, np.exp(z)) - 0.5 * float(apart @ Q @ apart)
            return found + 0.5 * float(d @ R @ d) if np.isfinite(found) else -np.inf

        d, found = np.zeros(len(Q)), []
        now = weight(d)
        for k in range(BURN_IN_DRAWS + count * STEPS_PER_DRAW):
            noise = rng.standard_normal(len(Q))
            d, now = _slice(
                weight, d, now, solve_triangular(lower, noise, lower=True, trans="T"), rng
            )
            if k >= BURN_IN_DRAWS and (k - BURN_IN_DRAWS) % STEPS_PER_DRAW == 0:
                found.append(mode.log_weights + d)
    return np.array(found)


def _slice(
    weight: Callable[[Floats], float],
    d: Floats,
    now: float,
    other: Floats,
    rng: np.random.Generator,
) -> tuple[Floats, float]:
    """A point on the ellipse through d and `other` that is as likely as a random level below d."""
    level = now + np.log(rng.random())
    angle = rng.uniform(0.0, 2.0 * np.pi)
    low, high = angle - 2.0 * np.pi, angle
    while True:
        new = d * np.cos(angle) + other * np.sin(angle)
        value = weight(new)
        if value >= level:
            return new, value
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = rng.uniform(low, high)


def second_differences(n: int) -> Floats:
    """S = DᵀD of second differences, (n, n); of none if there are fewer than three numbers."""
    D = np.diff(np.eye(n), 2, axis=0) if n > 2 else np.zeros((0, n))
    return D.T @ D


def first_differences(n: int) -> Floats:
    """S = DᵀD of first differences, (n, n)."""
    D = np.diff(np.eye(n), axis=0)
    return D.T @ D
