"""The log rate of counts in blocks of time, for given scales and deviations of its fields."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.forecasts.kalman import (
    STATES,
    forward,
    simulated,
    smoothed,
    smoothed_variance,
)

LEVEL_DEVIATION = 1.0
"""Deviation of the long-run level of the log rate from that of the mean rate."""

MAX_MODE_STEPS = 40
MAX_HALVINGS = 12

MODE_TOLERANCE = 1e-3
"""Nats by which the last step may still raise the log posterior."""

MAX_LOG_RATIO = 40.0
"""Log rates further than this from the mean are cut off while a mode is searched for."""


class Fields(NamedTuple):
    """Scales and deviations of a smooth (ν = 3/2), a slow and a fast field (ν = 1/2)."""

    smooth: tuple[float, float]
    slow: tuple[float, float]
    fast: tuple[float, float]

    @property
    def variance(self) -> float:
        """The variance of the log rate around its level."""
        return sum(deviation**2 for _, deviation in self)


class Blocks(NamedTuple):
    """Counts and what a rate of 1 expects in each block (n,), and the time from center to center.

    Blocks that nobody watched, such as those to come, have mean 0.
    """

    counts: Floats
    means: Floats
    steps: Floats


class Chain(NamedTuple):
    """Fields in blocks of time: transitions of each kind of step, the first state's variances."""

    F: Floats
    Q: Floats
    kind: Ints
    start: Floats


class Mode(NamedTuple):
    """The most probable log rates (n,), the precision of counts there, and the log evidence."""

    log_rate: Floats
    precision: Floats
    variance: Floats
    gain: Floats
    log_evidence: float


def chain(fields: Fields, steps: Floats) -> Chain:
    """The Markov chain of the fields; steps (n,) is the time before each block, the first 0."""
    kinds, kind = np.unique(steps, return_inverse=True)
    (h, s), (h1, s1), (h2, s2) = fields
    start = np.array([LEVEL_DEVIATION, s, s, s1, s2]) ** 2
    x = np.sqrt(3.0) * kinds / h
    F = np.zeros((len(kinds), STATES, STATES))
    F[:, 0, 0] = 1.0
    # the slope is in units of √3/h, so that its variance is that of the field
    F[:, 1, 1], F[:, 1, 2], F[:, 2, 1], F[:, 2, 2] = np.array([1.0 + x, x, -x, 1.0 - x]) * np.exp(
        -x
    )
    F[:, 3, 3], F[:, 4, 4] = np.exp(-kinds / h1), np.exp(-kinds / h2)
    Q = np.diag(start) - (F * start) @ F.transpose(0, 2, 1)
    return Chain(F, 0.5 * (Q + Q.transpose(0, 2, 1)), kind.reshape(-1), start)


def find_mode(blocks: Blocks, links: Chain, guess: Floats) -> Mode:
    """Newton's method, each step a pass over the blocks, from a guess of the log rates (n,).

    With K the covariance of log rates z, z = Kα: zᵀK⁻¹z = αᵀz needs no inverse.
    """
    y, E = blocks.counts, blocks.means
    watched = E > 0.0
    z, alpha, best = np.clip(guess, -MAX_LOG_RATIO, MAX_LOG_RATIO), np.zeros(len(y)), -np.inf
    w = E * np.exp(z)
    for iteration in range(MAX_MODE_STEPS):
        seen = z + np.divide(y - w, w, out=np.zeros(len(y)), where=watched)
        variance, gain = forward(links.F, links.Q, links.kind, links.start, w)
        goal = smoothed(links.F, links.kind, w, variance, gain, seen)
        dual = w * (seen - goal)
        size, former = 1.0, best
        for _ in range(MAX_HALVINGS if iteration else 1):
            z_new = goal if size == 1.0 else z + size * (goal - z)
            alpha_new = dual if size == 1.0 else alpha + size * (dual - alpha)
            best = _log_posterior(y, E, z_new, alpha_new)
            if best >= former - 1e-9 * abs(former):
                break
            size *= 0.5
        z, alpha = np.clip(z_new, -MAX_LOG_RATIO, MAX_LOG_RATIO), alpha_new
        w = E * np.exp(z)
        if abs(best - former) < MODE_TOLERANCE:
            break
    variance, gain = forward(links.F, links.Q, links.kind, links.start, w)
    log_evidence = best - 0.5 * float(np.log1p(w * variance).sum())
    return Mode(z, w, variance, gain, log_evidence)


def _log_posterior(y: Floats, E: Floats, z: Floats, alpha: Floats) -> float:
    with np.errstate(over="ignore"):
        return float(y @ z - E @ np.exp(z) - 0.5 * (alpha @ z))


def variances(links: Chain, mode: Mode) -> Floats:
    """The variance of the log rate of each block (n,)."""
    return smoothed_variance(links.F, links.kind, mode.precision, mode.variance, mode.gain)


def draw_paths(links: Chain, mode: Mode, count: int, rng: np.random.Generator) -> Floats:
    """Log rates (count, n) drawn around a mode: of all blocks at once, those to come included.

    A path without observations, corrected by what its own noisy observations miss.
    """
    n, w = len(mode.log_rate), mode.precision
    noise = rng.standard_normal((count, n, STATES))
    paths = simulated(links.F, _roots(links.Q), links.kind, links.start, noise)
    watched = w > 0.0
    errors = rng.standard_normal((count, n))
    for path, error in zip(paths, errors, strict=True):
        error[watched] /= np.sqrt(w[watched])
        seen = np.where(watched, path + error, 0.0)
        path += mode.log_rate
        path -= smoothed(links.F, links.kind, w, mode.variance, mode.gain, seen)
    return paths


def _roots(Q: Floats) -> Floats:
    """Square roots of positive semi-definite matrices (k, 5, 5)."""
    values, vectors = np.linalg.eigh(Q)
    return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
