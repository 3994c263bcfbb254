"""Rates of events as sums of squares: features that cover the window, scales, error bands.

The rate f(x) = ‖Rᵀφ(x)‖² of events x_i with weights w_i, in a window W watched for an exposure E,
minimises -Σ w_i log f(x_i) + E∫_W f plus a penalty of R. What all such models share is here, the
models are in `square`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.special import chndtrix, ndtri
from scipy.stats import qmc

from hplus._checks import (
    Floats,
    Ints,
    as_floats,
    check_finite,
    check_fraction,
    check_positive,
    shown,
)
from hplus._threads import one_thread_if_small
from hplus.features import NystroemMap, pivoted_cholesky
from hplus.kernels import Gaussian, Kernel
from hplus.kernels.integrals import product_integral
from hplus.positivity.sos import SumOfSquares
from hplus.solvers.result import SolverResult
from hplus.solvers.sos.learning import EXACT
from hplus.windows import Window

WIDTH = 300
"""Features at most."""

NODES, PIVOTS = 500, 700
"""Points spread over the window, and events at most, among which centers are chosen."""

UNSEEN = 1e-10
"""An event is out of reach if its features have less than this share of k(x, x)."""

LARGEST, RATIO, SCALES, BEYOND = 0.5, 25.0 ** (-1.0 / 7.0), 8, 4
"""Scales: the first one as a share of the window's side, the step to the next, how many, and how
many larger ones are tried where the largest is the best."""

HOPELESS = 5.0
"""Nats below the best at which smaller scales are not tried any more."""

STEP, REACH = 10.0**0.5, 10
"""Penalties: the ratio of one to the next, and how many steps from the first one."""

ROUNDING = 1e-7
"""Penalties, in units of E tr T, that are no smaller than the rounding errors of T."""

FAINTEST = 1e-7
"""Where features of a window are cut off: fainter ones would cost integrals their last digits."""

RESOLVED = 0.9
"""The share of ∫k(s, s)ds that features must have for a scale to be learned: with less, scores
would depend on where the centers happen to be."""

BANDED = 1500
"""Events from which error bands are computed at most; of more, so many stand for all."""

FAR = 6.0
"""Standard deviations from zero at which the other sign of a normal g does not matter."""


@dataclass(frozen=True)
class Events:
    """Distinct events X (n, d) with weights w (n,), in a window watched for an exposure."""

    X: Floats
    w: Floats
    window: Window
    exposure: float

    @property
    def total(self) -> float:
        return float(self.w.sum())

    def thinned(self, rows: Ints) -> Events:
        """Some of the events, as if the window had been watched for a share of the time."""
        exposure = self.exposure * float(self.w[rows].sum()) / self.total
        return replace(self, X=self.X[rows], w=self.w[rows], exposure=exposure)

    @cached_property
    def candidates(self) -> Floats:
        """Points to choose centers from: events in turn with points spread over the window."""
        some = np.random.default_rng(0).permutation(len(self.X))[:PIVOTS]
        nodes = spread_over(self.window, NODES)
        order = np.argsort(np.r_[np.arange(len(some)), np.arange(len(nodes)) + 0.5])
        return np.vstack([self.X[some], nodes])[order]


def as_events(X: Any, w: Any, window: Window, exposure: float) -> Events:
    """Checked events with a positive weight, equal ones merged."""
    X, w = window.require("X", X), check_finite("w", as_floats("w", w))
    if w.shape != (len(X),) or np.any(w < 0.0) or not np.any(w > 0.0):
        raise ValueError(
            f"w must be one number of at least 0 for each of {len(X)} events, not all 0, got shape "
            f"{w.shape} and sum {w.sum():.6g}."
        )
    rows, inverse = np.unique(X[w > 0.0] + 0.0, axis=0, return_inverse=True)
    merged = np.bincount(inverse.ravel(), weights=w[w > 0.0]).astype(np.float64)
    return Events(rows, merged, window, check_positive("exposure", exposure))


def spread_over(window: Window, count: int) -> Floats:
    """Evenly spread points of the window, shape (count, d), always the same."""
    low, high = window.bounds()
    unit = qmc.Halton(window.dimension, scramble=False).random(16 * count)
    inside = low + (high - low) * unit
    inside = inside[window.contains(inside)][:count]
    return np.vstack([inside, window.sample(count - len(inside), random_state=0)])


@dataclass(frozen=True)
class Setting:
    """Events seen by features: Φ (n, m) of the events and T = ∫_W φφᵀ (m, m)."""

    events: Events
    features: NystroemMap
    Phi: Floats
    T: Floats

    @property
    def unit(self) -> float:
        """E tr T: the size of the quadratic form E∫f in A, in which penalties are counted."""
        return self.events.exposure * float(np.trace(self.T))

    @property
    def usual(self) -> float:
        """The γ for which g ~ N(0, k/2γ) has as many events g² to expect as there are."""
        return self.unit * max(0.5 / self.events.total, ROUNDING)

    @property
    def resolved(self) -> bool:
        """Do the features stand for nearly all of a Gaussian kernel, k(x, x) = 1?"""
        return not self.unseen and float(np.trace(self.T)) > RESOLVED * self.events.window.volume

    @cached_property
    def unseen(self) -> int:
        """How many events the features do not reach, so that f would be 0 there."""
        own = self.features.kernel.diag(self.events.X)
        return int(np.sum(~(np.einsum("ij,ij->i", self.Phi, self.Phi) > UNSEEN * own)))

    def require_reach(self) -> None:
        """Refuse a kernel that leaves events out of reach."""
        if self.unseen:
            raise ValueError(
                f"kernel must reach every event from {len(self.T)} centers, got {self.unseen} out "
                f"of reach of {shown(self.features.kernel)}: use a larger scale."
            )

    def function(self, R: Floats) -> SumOfSquares:
        """f = ‖Rᵀφ‖² for R (m, r)."""
        return SumOfSquares(self.features.kernel, self.features.centers, self.features.root @ R)


def setting(events: Events, kernel: Kernel, width: int = WIDTH) -> Setting:
    """Features on at most `width` centers that cover the window, each where they are worst."""
    features = covering_map(kernel, events.candidates, width)
    Phi = features(events.X)
    with one_thread_if_small(len(features.root)):
        T = features.root.T @ product_integral(kernel, events.window, features.centers)
        s, P = eigh(T @ features.root)
        # rounding may leave an eigenvalue of -1e-7
        return Setting(events, features, Phi, (P * np.maximum(s, 0.0)) @ P.T)


def covering_map(kernel: Kernel, points: Floats, width: int) -> NystroemMap:
    """Features on the first `width` pivots of the points, in their order where pivots tie."""
    finite = kernel.feature_count(points.shape[1]) is not None
    with one_thread_if_small(len(points)):
        pivots, L = pivoted_cholesky(kernel, points, EXACT if finite else FAINTEST)
        pivots = pivots[:width]
        L = L[pivots, : len(pivots)]
        return NystroemMap(
            kernel, points[pivots], solve_triangular(L, np.eye(len(L)), lower=True).T
        )


@dataclass(frozen=True)
class FactorPosterior:
    """The factor R of a rate as a normal variable around the best one (Laplace's approximation).

    Its precision is 2 D ⊗ I + Σ_i (φ_iφ_iᵀ) ⊗ (v_iv_iᵀ), v_i = 2√w_i Rᵀφ_i/f_i. With
    ψ(x) = (2D)^-½φ(x) = spreadᵀk(centers, x), the covariance of the numbers tr(δRᵀφ(x)uᵀ) is that
    of a Gaussian process with kernel (ψᵀψ')(uᵀu') observed at ψ_i, v_i with noise of variance 1.

    Shapes: spread (m, k), psi (s, k), v (s, r); root (s, s) is the observations' Cholesky factor.
    """

    function: SumOfSquares
    spread: Floats
    psi: Floats
    v: Floats
    root: Floats

    def interval(self, X: Any, level: float) -> tuple[Floats, Floats]:
        """Bounds between which f(X[i]) lies with probability `level`, shape (n,) each.

        With one column g² for a normal g; with more (√f ± z sd)², not below 0.
        """
        tail = 0.5 * (1.0 - check_fraction("level", level))
        f, sd = np.sqrt(self.function(X)), self.root_sd(X)
        if self.function.factor.shape[1] == 1:
            return square_quantile(f, sd, tail), square_quantile(f, sd, 1.0 - tail)
        z = -ndtri(tail)
        return np.maximum(f - z * sd, 0.0) ** 2, (f + z * sd) ** 2

    def root_sd(self, X: Any) -> Floats:
        """The standard deviation of √f(X[i]), to first order, shape (n,)."""
        X = check_finite("X", as_floats("X", X))
        parts = np.array_split(X, max(1, len(X) // 2000))
        return np.concatenate([self._root_sd(part) for part in parts])

    def log_count_sd(self, region: Window) -> float:
        """The standard deviation of log ∫_A f, to first order; infinite where f is 0."""
        f = self.function
        TC = product_integral(f.kernel, region, f.centers) @ f.factor
        count = float(np.sum(f.factor * TC))
        if not count > 0.0:
            return np.inf
        # ∇_R log ∫_A f = 2 T_A R/∫_A f
        Q = self.spread.T @ TC * (2.0 / count)
        seen = np.einsum("ij,ij->i", self.psi @ Q, self.v)
        return float(self._sd(np.array([np.sum(Q**2)]), seen[None])[0])

    def _root_sd(self, X: Floats) -> Floats:
        f = self.function
        psi, U = (f.kernel.dot(X, f.centers, C) for C in (self.spread, f.factor))
        # ∇_R √f = φ uᵀ/‖u‖, u = Rᵀφ
        U /= np.maximum(np.linalg.norm(U, axis=1, keepdims=True), 1e-300)
        return self._sd(np.einsum("ij,ij->i", psi, psi), (psi @ self.psi.T) * (U @ self.v.T))

    def _sd(self, prior: Floats, seen: Floats) -> Floats:
        known = solve_triangular(self.root, seen.T, lower=True) if len(self.root) else seen.T
        return np.sqrt(np.maximum(prior - np.einsum("ij,ij->j", known, known), 0.0))


def laplace(s: Setting, R: Floats, D: Floats, least: float, observed: Floats) -> FactorPosterior:
    """The posterior of precision 2 D ⊗ I + 4Σ_i observed_i (φ_iφ_iᵀ) ⊗ (u_iu_iᵀ)/f_i².

    Eigenvalues of D (m, m) are raised to `least` > 0, so that changes R → RQ with an orthogonal Q,
    which leave f as it is, have a precision too. `observed` (n,) are weights of the events, 0 for
    those that D has already.
    """
    with one_thread_if_small(len(D)):
        eigenvalues, P = eigh(D)
        whitened = P / np.sqrt(2.0 * np.maximum(eigenvalues, least))
    rows = np.flatnonzero(observed)
    few = rows[np.random.default_rng(0).permutation(len(rows))[:BANDED]]
    w = observed[few] * (observed.sum() / max(observed[few].sum(), 1e-300))
    psi, U = s.Phi[few] @ whitened, s.Phi[few] @ R
    v = U * (2.0 * np.sqrt(w) / np.einsum("ij,ij->i", U, U))[:, None]
    root = np.linalg.cholesky(np.eye(len(few)) + (psi @ psi.T) * (v @ v.T))
    return FactorPosterior(s.function(R), s.features.root @ whitened, psi, v, root)


def square_quantile(mean: Floats, sd: Floats, p: float) -> Floats:
    """The p-quantile of g² for g ~ N(mean, sd²), mean >= 0: noncentral χ² with one degree."""
    sd = np.maximum(sd, 1e-150)
    ratio = mean / sd
    near = sd**2 * chndtrix(p, 1.0, np.minimum(ratio, FAR) ** 2)
    return np.where(ratio < FAR, near, (mean + ndtri(p) * sd) ** 2)


@dataclass(frozen=True)
class LearnedRate:
    """A rate, what is known of its error, how well it was solved, and what was learned."""

    function: SumOfSquares
    posterior: FactorPosterior
    result: SolverResult
    log_evidence: float
    kernel: Kernel
    penalty: float


class Choice(NamedTuple):
    """A kernel and a penalty, and how good they are, in nats."""

    score: float
    kernel: Kernel
    penalty: float


Judge = Callable[[Kernel, float | None], Choice]
"""The best penalty for a kernel, looked for around one that was good for another kernel."""


def best_gaussian(window: Window, judge: Judge) -> Choice:
    """The Gaussian of the highest score, with one scale for all axes of a group.

    From large scales to small, every other one, all groups of axes together, as long as it is not
    hopeless; then uphill by single steps, all groups together and each on its own.
    """
    groups, group = np.unique(window.axis_groups(), return_inverse=True)
    sides = window.longest_sides()

    def at(steps: Floats, penalty: float | None) -> Place:
        scales = (LARGEST * sides * RATIO ** steps[group]).tolist()
        return judge(Gaussian(scales[0] if len(groups) == 1 else tuple(scales)), penalty), steps

    best = at(np.zeros(len(groups)), None)
    for step in range(2, SCALES, 2):
        tried = at(np.full(len(groups), float(step)), best[0].penalty)
        if not tried[0].score > best[0].score - HOPELESS:
            break
        best = tried if tried[0].score > best[0].score else best
    single = list(np.eye(len(groups))) if len(groups) > 1 else []
    for move in (np.ones(len(groups)), *single, *single):
        best = _uphill(at, best, move)
    return best[0]


Place = tuple[Choice, Floats]
"""A choice, and how many steps below the largest its scales are, shape (groups,)."""


def _uphill(at: Callable[[Floats, float | None], Place], best: Place, move: Floats) -> Place:
    """Along a direction, one way or the other, as long as the score rises."""
    start = best
    for way in (move, -move):
        while best is start or (best[1] - start[1]) @ way > 0.0:
            there = best[1] + way
            if there.min() < -BEYOND or there.max() >= SCALES:
                break
            tried = at(there, best[0].penalty)
            if not tried[0].score > best[0].score:
                break
            best = tried
    return best


def best_penalty(score: Callable[[float], float], start: float, kernel: Kernel) -> Choice:
    """The penalty of the highest score, uphill from `start` by factors of √10."""
    first = best = Choice(score(start), kernel, start)
    for ratio in (1.0 / STEP, STEP):
        for _ in range(REACH if best is first else 0):
            penalty = best.penalty * ratio
            tried = Choice(score(penalty), kernel, penalty)
            if not tried.score > best.score:
                break
            best = tried
    return best
