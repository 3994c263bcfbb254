"""The least-squares kernel intensity estimate, K2IE, which is linear in the events.

min ∫Λ² - 2 Σ_i Λ(x_i) + ‖Λ‖²/γ over the space of a kernel has the solution
Λ(x) = Σ_i φ(x)ᵀ(T + I/γ)⁻¹φ(x_i), T = ∫_W φφᵀ. It can be negative.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from hplus import Gaussian, Interval, product_integral
from hplus.solvers.sos.learning import feature_map

Floats = NDArray[np.float64]

SCALES = np.geomspace(1.0 / 40.0, 1.0, 14)
"""Candidate scales of the Gaussian kernel, as fractions of the window."""

PENALTIES = np.geomspace(1e-6, 1e1, 36)
"""Candidate values of 1/γ, as fractions of the largest eigenvalue of T."""

CENTERS = 161
"""Number of equally spaced centres of the features, a quarter of the smallest scale apart."""


class Spectrum:
    """Features of one kernel in which T is diagonal with entries t, shape (m,)."""

    def __init__(self, scale: float, window: Interval) -> None:
        self.kernel, (low, high) = Gaussian(scale), window.bounds()
        self.features = feature_map(self.kernel, np.linspace(low, high, CENTERS), None)
        root = self.features.root
        T = root.T @ product_integral(self.kernel, window, self.features.centers) @ root
        self.t, self.axes = np.linalg.eigh(T)

    def __call__(self, X: Floats) -> Floats:
        return self.features(X) @ self.axes


@cache
def spectrum_of(scale: float, window: Interval) -> Spectrum:
    """The parts that do not depend on the events."""
    return Spectrum(scale, window)


class K2IE:
    """Scale and γ minimise ∫Λ² - 2 Σ_i Λ₋ᵢ(x_i), where Λ₋ᵢ is learned without x_i."""

    def __init__(self, window: Interval) -> None:
        self.window = window

    def fit(self, X: Floats) -> K2IE:
        low, high = self.window.bounds()
        tried = [self._tried(scale, X) for scale in SCALES * float(high[0] - low[0])]
        self.loss_, self.penalty_, self.spectrum_ = min(tried, key=lambda found: found[0])
        self.weights_ = self.spectrum_(X).sum(axis=0) / (self.spectrum_.t + self.penalty_)
        return self

    def predict(self, X: Floats) -> Floats:
        return self.spectrum_(X) @ self.weights_

    def _tried(self, scale: float, X: Floats) -> tuple[float, float, Spectrum]:
        """The smallest loss for one scale, its 1/γ, and the features."""
        spectrum = spectrum_of(scale, self.window)
        penalties = PENALTIES * spectrum.t[-1]
        losses = leave_one_out(spectrum(X), spectrum.t, penalties)
        best = int(np.argmin(losses))
        return float(losses[best]), float(penalties[best]), spectrum


def leave_one_out(phi: Floats, t: Floats, penalties: Floats) -> Floats:
    """∫Λ² - 2 Σ_i Λ₋ᵢ(x_i) for features phi (n, m) of the events and each 1/γ, shape (k,)."""
    # with d = 1/(t + 1/γ) and s = Σ_i φ(x_i): Σ t d² s² - 2 Σ d (s² - Σ_i φ(x_i)²)
    d = 1.0 / (t + penalties[:, None])
    squared, own = phi.sum(axis=0) ** 2, (phi**2).sum(axis=0)
    return d**2 @ (t * squared) - 2.0 * d @ (squared - own)
