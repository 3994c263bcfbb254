"""Events and features of a kernel that cover a window: what rates by squares learn from.

The rate f(x) = ‖Rᵀφ(x)‖² of events x_i with weights w_i, in a window W with an exposure E,
minimises -Σ w_i log f(x_i) + E∫_W f plus a penalty of R: the models are in `square_rate` and
`sos_rate`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.stats import qmc

from hplus._checks import Floats, Ints, as_floats, check_finite, check_positive, shown
from hplus._threads import one_thread_if_small
from hplus.features import NystroemMap, pivoted_cholesky
from hplus.kernels import Kernel
from hplus.kernels.integrals import product_integral
from hplus.positivity.sos import SumOfSquares
from hplus.solvers.sos.learning import EXACT
from hplus.windows import Window

MAX_FEATURES = 300

SPREAD_POINTS, MAX_EVENT_PIVOTS = 500, 700
"""Points spread over the window, and events at most, among which centers are chosen."""

MIN_REACH = 1e-10
"""An event is out of reach if its features have less than this share of k(x, x)."""

PENALTY_ROUNDING = 1e-7
"""Penalties, in units of E tr T, that are no smaller than the rounding errors of T."""

FAINTEST_FEATURE = 1e-7
"""Where features of a window are cut off: fainter ones would cost integrals their last digits."""

MIN_RESOLVED = 0.9
"""The share of ∫k(s, s)ds that features must have for a scale to be learned: with less, scores
would depend on where the centers happen to be."""


@dataclass(frozen=True)
class WeightedEvents:
    """Distinct events X (n, d) with weights w (n,), in a window with an exposure."""

    X: Floats
    w: Floats
    window: Window
    exposure: float

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.w.sum())

    def thinned(self, rows: Ints) -> WeightedEvents:
        """Some of the events, with their share of the exposure."""
        exposure = self.exposure * float(self.w[rows].sum()) / self.total
        return replace(self, X=self.X[rows], w=self.w[rows], exposure=exposure)

    @cached_property
    def candidates(self) -> Floats:
        """Points to choose centers from: events alternating with points spread over the window."""
        some = np.random.default_rng(0).permutation(len(self.X))[:MAX_EVENT_PIVOTS]
        nodes = spread_over(self.window, SPREAD_POINTS)
        order = np.argsort(np.r_[np.arange(len(some)), np.arange(len(nodes)) + 0.5])
        return np.vstack([self.X[some], nodes])[order]


def as_events(X: Any, w: Any, window: Window, exposure: float) -> WeightedEvents:
    """Checked events with a positive weight, equal ones merged."""
    X, w = window.require("X", X), check_finite("w", as_floats("w", w))
    if w.shape != (len(X),) or np.any(w < 0.0) or not np.any(w > 0.0):
        raise ValueError(
            f"w must be one number of at least 0 for each of {len(X)} events, not all 0, got shape "
            f"{w.shape} and sum {w.sum():.6g}."
        )
    rows, inverse = np.unique(X[w > 0.0] + 0.0, axis=0, return_inverse=True)
    merged = np.bincount(inverse.ravel(), weights=w[w > 0.0]).astype(np.float64)
    return WeightedEvents(rows, merged, window, check_positive("exposure", exposure))


def spread_over(window: Window, count: int) -> Floats:
    """Evenly spread points of the window, shape (count, d), always the same."""
    low, high = window.bounds()
    unit = qmc.Halton(window.dimension, scramble=False).random(16 * count)
    inside = low + (high - low) * unit
    inside = inside[window.contains(inside)][:count]
    return np.vstack([inside, window.sample(count - len(inside), random_state=0)])


@dataclass(frozen=True)
class Setting:
    """Events, and features: Φ (n, m) of the events and T = ∫_W φφᵀ (m, m)."""

    events: WeightedEvents
    features: NystroemMap
    Phi: Floats
    T: Floats

    @property
    def unit(self) -> float:
        """E tr T: the size of the quadratic form E∫f in A, in which penalties are counted."""
        return self.events.exposure * float(np.trace(self.T))

    @property
    def usual(self) -> float:
        """The γ for which the rate g², g ~ N(0, k/2γ), expects as many events as there are."""
        return self.unit * max(0.5 / self.events.total, PENALTY_ROUNDING)

    @property
    def resolved(self) -> bool:
        """Do the features stand for nearly all of a Gaussian kernel, k(x, x) = 1?"""
        share = float(np.trace(self.T)) / self.events.window.volume
        return not self.out_of_reach and share > MIN_RESOLVED

    @cached_property
    def out_of_reach(self) -> int:
        """The number of events that the features do not reach: f would be 0 there."""
        own = self.features.kernel.diag(self.events.X)
        return int(np.sum(~(np.einsum("ij,ij->i", self.Phi, self.Phi) > MIN_REACH * own)))

    def require_reach(self) -> None:
        """Raise if the kernel leaves events out of reach."""
        if self.out_of_reach:
            raise ValueError(
                f"kernel must reach every event from {len(self.T)} centers, got "
                f"{self.out_of_reach} out of reach of {shown(self.features.kernel)}: use a larger "
                "scale."
            )

    def function(self, R: Floats) -> SumOfSquares:
        """f = ‖Rᵀφ‖² for R (m, r)."""
        return SumOfSquares(self.features.kernel, self.features.centers, self.features.root @ R)


def setting(events: WeightedEvents, kernel: Kernel, width: int = MAX_FEATURES) -> Setting:
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
        pivots, L = pivoted_cholesky(kernel, points, EXACT if finite else FAINTEST_FEATURE)
        pivots = pivots[:width]
        L = L[pivots, : len(pivots)]
        return NystroemMap(
            kernel, points[pivots], solve_triangular(L, np.eye(len(L)), lower=True).T
        )
