"""Edge-corrected kernel density estimates: the baselines that a rate should beat."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self, final

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import Floats, check_scales, shown
from hplus.estimators.base import Estimator, check_fitted, check_points, check_weights
from hplus.evaluation.bandwidths import (
    LocalBandwidths,
    Trial,
    fixed_bandwidth,
    least_bandwidths,
)
from hplus.evaluation.smoothing import COUNT_NODES, KernelMixture, Layer
from hplus.windows import Window, check_window


class KernelEstimator(Estimator):
    """What both estimates share: a mixture of kernels and of a uniform rate."""

    window: Window
    mixture_: KernelMixture

    @abstractmethod
    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from events X (n, d) in the window; y is ignored."""

    def predict(self, X: ArrayLike) -> Floats:
        """λ(X[i]) > 0, in events per unit of volume, shape (n,)."""
        check_fitted(self, "mixture_")
        X = self.window.require("X", check_points(self, X, reset=False))
        return self.mixture_.rates(X)

    def expected_count(self, regions: Window | Sequence[Window]) -> float | Floats:
        """∫λ over each region within the window, shape (r,); a float for a single window.

        Parts add up to the whole. Computed on a grid with 1,025 nodes along the longest side (401
        in 2-D, 81 in 3-D), so that the error is a part of what lies in the cells at the border of
        a region.
        """
        check_fitted(self, "mixture_")
        if isinstance(regions, Window):
            return float(self.mixture_.counts([regions], self.window)[0])
        return self.mixture_.counts(regions, self.window)

    def score(self, X: ArrayLike, y: None = None) -> float:
        """The mean of log(λ(X[i])/∫λ)."""
        return float(np.mean(np.log(self.predict(X))) - np.log(self.mixture_.total))

    def _events(self, X: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Floats, Floats]:
        """Events in the window that have a weight, and their weights."""
        check_window("window", self.window, *COUNT_NODES)
        X = self.window.require("X", check_points(self, X, reset=True))
        weights = check_weights("sample_weight", sample_weight, len(X))
        return X[weights > 0.0], weights[weights > 0.0]


@final
class EdgeCorrectedKDE(KernelEstimator):
    """A rate by Gaussian kernel smoothing with one bandwidth, corrected for the window's edges.

    λ(x) = (1 - ε) Σ_i w_i k_h(x, x_i) + ε Σ_i w_i/|W|. Kernels are mirrored at the walls of a box
    and go around a `Cycle`; in a polygon they are divided by root masses inside it, so that
    ∫_W k_h = 1. ε, a uniform share of at most 1 %, is learned with the bandwidth: it keeps the
    likelihood of events far from all others finite.

    Parameters
    ----------
    window : Window
        Where events can occur, with 1 to 3 axes.
    bandwidth : float, tuple of float or "auto", default="auto"
        h, the standard deviation of the kernel, one for all axes or one for each. "auto" maximises
        the likelihood of held-out events (10 folds, until 3,000 events were held out) from the
        smallest distances between neighbours, or their typical distance if a tenth of the events
        repeat the position of another, to 1/2 of the longest side; axes with the same unit share a
        bandwidth.

    Attributes
    ----------
    bandwidth_ : array (d,)
        h on each axis.
    uniform_share_ : float
        ε.
    cv_score_ : float
        The mean log-density of events held out in cross-validation; NaN for a single event.
    """

    def __init__(self, window: Window, bandwidth: float | Sequence[float] | str = "auto") -> None:
        self.window = window
        self.bandwidth = bandwidth

    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from events X (n, d) in the window; y is ignored."""
        X, weights = self._events(X, sample_weight)
        trial = Trial(self.window, X, weights)
        self.bandwidth_ = _given(self.bandwidth, self.window)
        if self.bandwidth_ is None:
            self.bandwidth_ = fixed_bandwidth(trial)
        self.cv_score_, self.uniform_share_ = trial.fixed(self.bandwidth_)
        layers = (Layer(X, weights, self.bandwidth_),)
        self.mixture_ = KernelMixture(trial.edges, layers, self.uniform_share_)
        return self


@final
class AdaptiveKDE(KernelEstimator):
    """A rate by kernels that are narrow where events are dense, corrected for the window's edges.

    Like `EdgeCorrectedKDE`, with the bandwidth h (p(x_i)/g)^(-1/2) for the kernel at event i, where
    p is that estimate, the pilot, and g its geometric mean over the events [abramson1982].

    Parameters
    ----------
    window : Window
        Where events can occur, with 1 to 3 axes.
    bandwidth : float, tuple of float or "auto", default="auto"
        h, one for all axes or one for each. "auto" cross-validates multiples of the bandwidth of
        the pilot.

    Attributes
    ----------
    bandwidth_ : array (d,)
        h on each axis.
    pilot_ : EdgeCorrectedKDE
        With a cross-validated bandwidth of its own.
    uniform_share_ : float
        ε.
    cv_score_ : float
        The mean log-density of events held out in cross-validation, of the pilot too; NaN for a
        single event.
    """

    def __init__(self, window: Window, bandwidth: float | Sequence[float] | str = "auto") -> None:
        self.window = window
        self.bandwidth = bandwidth

    def fit(self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from events X (n, d) in the window; y is ignored."""
        X, weights = self._events(X, sample_weight)
        given = _given(self.bandwidth, self.window)
        self.pilot_ = EdgeCorrectedKDE(self.window).fit(X, sample_weight=weights)
        trial, pilot = Trial(self.window, X, weights), self.pilot_.mixture_
        local = LocalBandwidths(trial, pilot)
        h = pilot.layers[0].h if given is None else given
        factor = local.best_factor(h) if given is None else 1.0
        self.bandwidth_ = factor * h
        self.cv_score_, self.uniform_share_ = local.predicted(h, factor)
        layers = local.layers(X, weights, h, factor)
        self.mixture_ = KernelMixture(trial.edges, layers, self.uniform_share_)
        return self


def best_kde(
    window: Window, X: ArrayLike, sample_weight: ArrayLike | None = None
) -> EdgeCorrectedKDE | AdaptiveKDE:
    """The one of both estimates that predicts held-out events better in cross-validation, fitted.

    This is what tables and reports call a KDE.
    """
    adaptive = AdaptiveKDE(window).fit(X, sample_weight=sample_weight)
    return adaptive if adaptive.cv_score_ > adaptive.pilot_.cv_score_ else adaptive.pilot_


def _given(bandwidth: float | Sequence[float] | str, window: Window) -> Floats | None:
    """The given bandwidth on each axis, shape (d,); None for "auto"."""
    if isinstance(bandwidth, str):
        if bandwidth == "auto":
            return None
        raise ValueError(f'bandwidth must be "auto" or a positive number, got {shown(bandwidth)}.')
    h = check_scales("bandwidth", bandwidth)
    if not isinstance(h, tuple) and len(set(window.axis_units)) > 1:
        raise ValueError(
            f"bandwidth must be a tuple with one number for each axis, since their units differ, "
            f"{window.axis_units}, got {shown(h)}."
        )
    if isinstance(h, tuple) and len(h) != window.dimension:
        raise ValueError(
            f"bandwidth must be one number or {window.dimension}, one for each axis, got "
            f"{shown(h)}."
        )
    least = least_bandwidths(window)
    if np.any(h < least):
        raise ValueError(
            f"bandwidth must be at least {shown(least.tolist())} in this window, got {shown(h)}."
        )
    return np.broadcast_to(np.asarray(h, dtype=np.float64), (window.dimension,)).copy()
