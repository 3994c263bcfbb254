"""The posterior of log rates around their mode, by Laplace's approximation, and averages of it.

W = ν e^z are the expected counts at the mode and R = √W; see `modes` for the problem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats, Reals
from hplus._progress import each
from hplus.rates.levels import Level
from hplus.rates.modes import System, broadcast, means, newton, sums
from hplus.rates.prior import LogRates, Weighted
from hplus.rates.torus import Covariance

LANCZOS_PROBES, LANCZOS_STEPS = 8, 30

DRAW_ACCURACY, MEAN_ACCURACY = 1e-2, 1e-2
"""Relative accuracy of the linear systems for draws and for means. Counts of large regions need it:
with 0.05, their draws were off by more than they vary."""

MAX_SHIFT_DEVIATIONS = 2.0
"""Standard deviations that the mean of a log rate may lie from its mode."""


@dataclass(frozen=True)
class Averaged:
    """Log rates averaged over priors on a grid: their modes with weights, and the uncertainty.

    The log rate has the mean `center` and the standard deviation `spread` at each node, and `draws`
    (k, *grid) are draws of it.
    """

    parts: list[Weighted]
    center: Floats
    spread: Floats
    draws: Reals

    @classmethod
    def of_mixture(
        cls, parts: list[Weighted], weights: Floats, means: Floats, variances: Reals, draws: Reals
    ) -> Averaged:
        """The mean and the deviation of a mixture, for means and variances (c, *grid)."""
        center = np.tensordot(weights, means, axes=1)
        spread = np.sqrt(np.tensordot(weights, variances + (means - center) ** 2, axes=1))
        return cls(parts, center, spread, draws)


def modes_under(level: Level, priors: list[Weighted]) -> list[Weighted]:
    """The modes under weighted priors on one level, from log rates to start from."""
    s, nu = level.arrays(np.float32)
    parts = []
    for weight, (prior, start, _) in each("averaging priors", priors):
        K = prior.covariance(level.grid).single()
        mode = newton(K, s, nu, start.mean(axis=0, keepdims=True), tolerance=level.tolerance)
        parts.append((weight, LogRates(prior, mode.z, mode.a)))
    return parts


def average(level: Level, parts: list[Weighted], draws: int, seed: int) -> Averaged:
    """Means, deviations and draws around the modes under weighted priors on one level."""
    _, nu = level.arrays(np.float32)
    rng = np.random.RandomState(seed)
    covariances, clouds = [], []
    for weight, found in each("drawing rates", parts):
        K = found.prior.covariance(level.grid).single()
        clouds.append(deviations(K, nu * np.exp(found.z), max(round(draws * weight), 1), rng))
        covariances.append(K)
    # few draws of each: they share one variance
    variance = np.mean(np.concatenate(clouds) ** 2, axis=0, keepdims=True)
    reach = MAX_SHIFT_DEVIATIONS * np.sqrt(variance)
    means = []
    for (_, found), K in zip(parts, covariances, strict=True):
        shift = shifted_means(K, nu * np.exp(found.z), variance)
        # an expansion: beyond a few deviations it says nothing
        means.append(found.z + np.clip(shift, -reach, reach))
    drawn = np.concatenate([mean + cloud for mean, cloud in zip(means, clouds, strict=True)])
    weights, centers = np.array([w for w, _ in parts]), np.concatenate(means).astype(float)
    return Averaged.of_mixture(parts, weights, centers, variance, drawn)


def log_determinant(
    covariance: Covariance,
    W: Reals,
    rng: np.random.RandomState,
    probes: int = LANCZOS_PROBES,
    steps: int = LANCZOS_STEPS,
) -> float:
    """log det(I + QRKRQ) by stochastic Lanczos quadrature, W of shape (1, *grid).

    Equal `rng` states give equal probes, which makes differences between priors far more exact.
    """
    system = System(covariance, np.broadcast_to(W, (probes, *W.shape[1:])))
    v = system.project(rng.choice([-1.0, 1.0], size=system.W.shape).astype(W.dtype))
    lengths = sums(v * v)
    q, before, beta = v / broadcast(np.sqrt(lengths), v), np.zeros_like(v), np.zeros(probes)
    T = np.zeros((probes, steps, steps))
    for j in range(steps):
        w = system.apply(q) - broadcast(beta, v).astype(W.dtype) * before
        alpha = sums(w * q)
        w -= broadcast(alpha, q) * q
        beta = np.sqrt(sums(w * w))
        T[:, j, j] = alpha
        if j + 1 < steps:
            T[:, j, j + 1] = T[:, j + 1, j] = beta
        before, q = q, w / broadcast(np.maximum(beta, 1e-30), w)
    nodes, vectors = np.linalg.eigh(T)
    estimates = np.sum(vectors[:, 0] ** 2 * np.log(np.maximum(nodes, 1.0)), axis=1)
    return float(np.mean(lengths * estimates))


def deviations(
    covariance: Covariance,
    W: Reals,
    k: int,
    rng: np.random.RandomState,
    accuracy: float = DRAW_ACCURACY,
) -> Reals:
    """k draws of the log rate around its mode, N(0, (K⁻¹ + RQR)⁻¹), shape (k, *grid).

    A draw y of the prior and noise e: y - KRQ B⁻¹ Q(Ry + e) [math, Eq. 4.6]; its mean under W is
    a draw of the constant, of variance 1/n.
    """
    y = covariance.draw(k, rng).reshape((k, *W.shape[1:]))
    system = System(covariance, np.broadcast_to(W, y.shape))
    e = np.asarray(rng.standard_normal(y.shape), dtype=y.dtype)
    x = system.solve(system.project(system.R * y + e), 0.0 * e, accuracy)
    y = y - covariance.apply(system.R * system.project(x))
    n = float(np.sum(W))
    noise = rng.standard_normal(k).astype(y.dtype) / np.sqrt(n)
    return y - means(system.W, y) + broadcast(noise, y)


def shifted_means(covariance: Covariance, W: Reals, variances: Reals) -> Reals:
    """How far the mean of log rates lies from their mode, -½ (K⁻¹ + RQR)⁻¹(W∘v), (1, *grid).

    Counts pull less on the low side of a log rate than on the high side [math, Eq. 4.9].
    """
    system = System(covariance, W)
    rhs = system.project(0.5 * system.R * variances)
    x = system.solve(rhs, 0.0 * rhs, MEAN_ACCURACY)
    y = -covariance.apply(system.R * system.project(x))
    return y - means(W, y + 0.5 * variances)
