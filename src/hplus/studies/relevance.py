"""Which columns matter, and on what scale: by the evidence of a Gaussian process on roots.

The kernel is a product over parts, Π_j ((1 - a_j) + a_j k_j), which holds the effect of each part
alone and of any parts together. a_j near 0 leaves a part out, and where k_j is 0, far from the data
or at an unknown label, the others still count.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from hplus._checks import Floats
from hplus._threads import one_thread_if_small
from hplus.kernels import Constant, Kernel
from hplus.studies.encoding import ColumnPart
from hplus.studies.pair_products import (
    fill_lower,
    multiply_factors,
    pull_of_pairs,
    sums_by_factor,
)

MIN_SCALE_ROWS, MAX_SCALE_ROWS = 500, 1000
"""Rows that scales are learned from: a third of all, but at least and at most as many."""

FIRST_ROWS = 250
"""Rows that the search starts with, which is eight times as fast."""

MAX_ENTRIES = 25_000_000
"""Squared distances held in memory, over all parts: 200 MB."""

MIN_VARIANCE = 1e-3
"""Noise of a row with a large exposure, in units of that at the mean exposure."""

FIRST_STEPS, LAST_STEPS = 25, 12
"""Steps of the search with the first rows, and with all once it is decided what is periodic."""

WEIGHT_BOUNDS, SCALE_BOUNDS = (-6.0, 6.0), (-3.0, 3.0)
SIGNAL_BOUNDS, NOISE_BOUNDS = (-4.0, 5.0), (-9.0, 2.0)
"""Bounds of the logits of a_j, and of the logarithms of the others."""


class Scales(NamedTuple):
    """What was learned: weights a_j (parts,), scales (parts,), the parts, signal and noise."""

    weights: Floats
    scales: Floats
    parts: tuple[ColumnPart, ...]
    signal: float
    noise: float

    def factors(self) -> list[Kernel]:
        """(1 - a_j) + a_j k_j, for each part."""
        return [
            Constant(1.0 - a) + a * part.kernel(s, j)
            for j, (part, a, s) in enumerate(
                zip(self.parts, self.weights.tolist(), self.scales.tolist(), strict=True)
            )
        ]

    def kernel(self) -> Kernel:
        """The product over parts, plus a constant."""
        return _product(self.factors()) + Constant(1.0) if self.parts else Constant(1.0)

    def penalty(self, rows: int) -> float:
        """The penalty of the mean loss that a Gaussian process with this noise stands for."""
        return self.noise / (2.0 * self.signal * rows)


def learned_scales(
    parts: tuple[ColumnPart, ...], periods: Floats, X: Floats, rate: Floats, exposure: Floats
) -> Scales:
    """The scales with the most evidence for √rate (n,), given the parts X (n, parts).

    The noise of row i has variance noise/exposure_i. A part on a line with a positive period is
    put on a circle instead if that raises the evidence.
    """
    n = _rows(len(X), len(parts))
    X, weights = X[:n], exposure[:n] / exposure[:n].mean()
    z = np.sqrt(rate[:n])
    z = z - np.average(z, weights=weights)
    z /= np.sqrt(np.average(z**2, weights=weights)) or 1.0
    D = pair_distances(parts, X)
    theta = np.concatenate([np.zeros(2 * len(parts)), [0.0, np.log(0.1)]])
    variances = np.maximum(1.0 / weights, MIN_VARIANCE)
    first = min(n, FIRST_ROWS)
    with one_thread_if_small(n):
        pairs = first * (first + 1) // 2
        some = np.ascontiguousarray(D[:, :pairs]), z[:first], variances[:first]
        theta = _search(theta, *some, FIRST_STEPS)
        least = evidence(theta, D, z, variances)[0] if np.any(periods) else 0.0
        for j in np.flatnonzero(periods):
            circle = ColumnPart(float(periods[j]))
            line, D[j] = D[j].copy(), pair_distances((circle,), X[:, [j]])
            value = evidence(theta, D, z, variances)[0]
            if value < least:
                parts, least = (*parts[:j], circle, *parts[j + 1 :]), value
            else:
                D[j] = line
        theta = _search(theta, D, z, variances, LAST_STEPS)
    a, s, signal, noise = _split(theta, len(parts))
    return Scales(a, s, parts, signal, noise)


def pair_distances(parts: tuple[ColumnPart, ...], X: Floats) -> Floats:
    """The squared distances of all pairs of rows of X (n, parts), shape (parts, pairs)."""
    lower = np.tril_indices(len(X))
    D = [part.squared_distances(x)[lower] for part, x in zip(parts, X.T, strict=True)]
    return np.array(D).reshape(len(parts), len(lower[0]))


def evidence(theta: Floats, D: Floats, z: Floats, variances: Floats) -> tuple[float, Floats]:
    """-log p(z | θ) - log p(θ) and its gradient, z ~ N(0, signal·K + noise·diag(variances)).

    D (parts, pairs) are squared distances. The scales have a wide log-normal prior about 1, the
    spread of a part.
    """
    p, n = len(D), len(z)
    a, s, signal, noise = _split(theta, p)
    F, K, A = np.empty_like(D), np.full(D.shape[1], signal), np.zeros((n, n))
    multiply_factors(D, a, s, F, K)
    fill_lower(K, A)
    A[np.diag_indices(n)] += noise * variances
    # A.T is A in LAPACK's order, its upper half
    L, info = dpotrf(A.T, lower=0, overwrite_a=1)
    if info:
        raise LinAlgError("the covariance of the roots is not positive definite")
    alpha = dpotrs(L, z, lower=0)[0]
    value = 0.5 * z @ alpha + np.log(np.diag(L)).sum() + 0.125 * np.sum(np.log(s) ** 2)
    inverse = dpotri(L, lower=0, overwrite_c=1)[0].T
    # ∂value = tr(G ∂C)/2, G = C⁻¹ - α αᵀ
    slope_noise = 0.5 * noise * (np.diag(inverse) - alpha**2) @ variances
    G, ratios, pulls = np.empty_like(K), np.empty(p), np.empty(p)
    pull_of_pairs(inverse, alpha, K, G)
    sums_by_factor(G, F, D, a, ratios, pulls)
    total, gradient = G.sum(), np.empty(2 * p + 2)
    gradient[:p] = 0.5 * (1.0 - a) * (total - ratios)
    # a k d = (F - (1 - a)) d
    gradient[p : 2 * p] = 0.5 * pulls / s**2 + 0.25 * np.log(s)
    gradient[2 * p :] = 0.5 * total, slope_noise
    return float(value), gradient


def _search(theta: Floats, D: Floats, z: Floats, variances: Floats, steps: int) -> Floats:
    bounds = [WEIGHT_BOUNDS] * len(D) + [SCALE_BOUNDS] * len(D)
    bounds += [SIGNAL_BOUNDS, NOISE_BOUNDS]
    options: Any = {"maxiter": steps}
    args = (D, z, variances)
    return minimize(
        evidence, theta, args, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x


def _split(theta: Floats, p: int) -> tuple[Floats, Floats, float, float]:
    a, s = 1.0 / (1.0 + np.exp(-theta[:p])), np.exp(theta[p : 2 * p])
    return a, s, float(np.exp(theta[2 * p])), float(np.exp(theta[2 * p + 1]))


def _rows(n: int, parts: int) -> int:
    wanted = int(np.clip(n // 3, MIN_SCALE_ROWS, MAX_SCALE_ROWS))
    return min(n, wanted, max(50, int(np.sqrt(MAX_ENTRIES / max(parts, 1)))))


def _product(factors: list[Kernel]) -> Kernel:
    """The product as a balanced tree."""
    if len(factors) == 1:
        return factors[0]
    half = len(factors) // 2
    return _product(factors[:half]) * _product(factors[half:])
