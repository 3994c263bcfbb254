"""Log rates averaged over priors, with weights, and how uncertain they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Reals
from hplus._progress import each
from hplus.rates.levels import Level
from hplus.rates.modes import newton
from hplus.rates.posterior import deviations, shifted_means
from hplus.rates.prior import LogRates, Weighted

MAX_SHIFT_DEVIATIONS = 2.0
"""Standard deviations that the mean of a log rate may lie from its mode."""


@dataclass(frozen=True)
class Uncertainty:
    """What is known about log rates on the coarse grid: means, deviations and draws of them."""

    center: Floats
    spread: Floats
    draws: Reals

    @classmethod
    def of_mixture(
        cls, weights: Floats, means: Floats, variances: Reals, draws: Reals
    ) -> Uncertainty:
        """The mean and the deviation of a mixture, for means and variances (c, *grid)."""
        center = np.tensordot(weights, means, axes=1)
        spread = np.sqrt(np.tensordot(weights, variances + (means - center) ** 2, axes=1))
        return cls(center, spread, draws)


class Averaged(NamedTuple):
    """Modes under several priors with their weights, and the uncertainty of the mixture."""

    parts: list[Weighted]
    known: Uncertainty


def average(level: Level, priors: list[Weighted], draws: int, seed: int) -> Averaged:
    """The modes under weighted priors on one level, from log rates to start from, and draws."""
    s, nu = level.arrays(np.float32)
    rng = np.random.RandomState(seed)
    parts, covariances, clouds = [], [], []
    for weight, (prior, start, _) in each("averaging priors", priors):
        K = prior.covariance(level.grid).single()
        mode = newton(K, s, nu, start.mean(axis=0, keepdims=True), tolerance=level.tolerance)
        parts.append((weight, LogRates(prior, mode.z, mode.a)))
        clouds.append(deviations(K, nu * np.exp(mode.z), max(round(draws * weight), 1), rng))
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
    return Averaged(parts, Uncertainty.of_mixture(weights, centers, variance, drawn))
