"""The most probable path of a rate in blocks of time, for given scales and deviations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.forecasts.kalman import (
    STATES,
    forward,
    rates_and_slopes,
    simulated,
    smoothed,
    smoothed_variance,
)

LEVEL_DEVIATION = 1.0
"""Deviation of the long-run level of the log rate from that of the mean rate."""

JUMP_DEVIATION = 0.5
"""Deviation of a jump of the level."""

SURGE_CHANCE, SURGE_RATIO, MAX_SURGE = 0.005, 6.0, 2.0
"""One in 200 steps to come of the slow and the fast field is so many times as large as others.

Its deviation is at most MAX_SURGE. The variance of a step is what was learned.
"""

MAX_MODE_STEPS = 40
MAX_HALVINGS = 12

MODE_TOLERANCE = 1e-3
"""Nats by which the last step may still raise the log posterior."""

MAX_PATH = 40.0
"""Paths further than this from the level are cut off while a mode is searched for."""

LEAST_RATE = 1e-12
"""Rates below this share of the mean are not told from it."""

MEAN_NODES = 24
"""Points at which a mean over a normal variable is evaluated."""


class Fields(NamedTuple):
    """Scales and deviations of a smooth (ν = 3/2), a slow and a fast field (ν = 1/2).

    `bend` is how their sum z becomes a rate: `rate_of`.
    """

    smooth: tuple[float, float]
    slow: tuple[float, float]
    fast: tuple[float, float]
    bend: float


def rate_of(z: Floats, bend: float) -> tuple[Floats, Floats]:
    """g(z) > 0 and its slope, with g(0) = g'(0) = 1: e^z for a low bend, near 1 + z for a high one.

    g(z) = log(1 + e^(c + sz))/log(1 + e^c): convex with a concave log, so that modes are unique.
    """
    rate, slope = rates_and_slopes(z.ravel(), bend)
    return rate.reshape(z.shape), slope.reshape(z.shape)


def path_of(rate: Floats, bend: float) -> Floats:
    """z with g(z) = rate."""
    top = np.logaddexp(0.0, bend)
    y = rate * top
    x = y + np.log(-np.expm1(-np.maximum(y, LEAST_RATE)))
    return (x - bend) / (top * (1.0 + np.exp(-bend)))


def mean_rate(z: Floats, variance: Floats, bend: float) -> Floats:
    """E g(z + noise) for normal noise of this variance."""
    nodes, weights = _mean_rule()
    at = z[:, None] + np.sqrt(variance)[:, None] * nodes
    return rate_of(at, bend)[0] @ weights / weights.sum()


@cache
def _mean_rule() -> tuple[Floats, Floats]:
    """Nodes and weights of means under a normal distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(MEAN_NODES)
    return nodes, weights


@dataclass(frozen=True)
class Blocks:
    """Counts and what a rate of 1 expects in each block (n,), and the time from center to center.

    Blocks that nobody watched, such as those to come, have mean 0. `slow_steps` is the time that
    passes for the slow field: `steps`, or whole periods at the start of each if the field is
    constant in between. The level jumps before the block number `jump`, or never if that is 0;
    it is likely to do so before one of the blocks `changes`, if there are any.
    """

    counts: Floats
    means: Floats
    steps: Floats
    slow_steps: Floats
    jump: int = 0
    changes: tuple[int, ...] = ()

    @cached_property
    def kinds(self) -> tuple[Floats, Ints]:
        """Different steps, steps of the slow field and jumps (3, k); which is before each block."""
        pairs, kind = np.unique(self.steps + 1j * self.slow_steps, return_inverse=True)
        kinds = np.array([pairs.real, pairs.imag, np.zeros(len(pairs))])
        if self.jump:
            own = [self.steps[self.jump], self.slow_steps[self.jump], 1.0]
            kinds = np.column_stack([kinds, own])
            kind[self.jump] = len(pairs)
        return kinds, kind


class Chain(NamedTuple):
    """Fields in blocks of time: transitions of each kind of step, the first state's variances."""

    F: Floats
    Q: Floats
    kind: Ints
    start: Floats


class Mode(NamedTuple):
    """The most probable path (n,), its rate, the precision of counts there, the log evidence."""

    path: Floats
    rate: Floats
    precision: Floats
    variance: Floats
    gain: Floats
    log_evidence: float


def chain(fields: Fields, blocks: Blocks) -> Chain:
    """The Markov chain of the fields in blocks of time; the steps before the first one are 0.

    The smooth field begins at 0, with any slope: where a trend begins is the level's to say, and a
    long scale costs no evidence.
    """
    (kinds, slow_kinds, jumps), kind = blocks.kinds
    (h, s), (h1, s1), (h2, s2), _ = fields
    steady = np.array([LEVEL_DEVIATION, s, s, s1, s2]) ** 2
    x = np.sqrt(3.0) * kinds / h
    F = np.zeros((len(kinds), STATES, STATES))
    F[:, 0, 0] = 1.0
    # the slope is in units of √3/h, so that its variance is that of the field
    F[:, 1, 1], F[:, 1, 2], F[:, 2, 1], F[:, 2, 2] = np.array([1.0 + x, x, -x, 1.0 - x]) * np.exp(
        -x
    )
    F[:, 3, 3], F[:, 4, 4] = np.exp(-slow_kinds / h1), np.exp(-kinds / h2)
    Q = np.diag(steady) - (F * steady) @ F.transpose(0, 2, 1)
    Q[:, 0, 0] += JUMP_DEVIATION**2 * jumps
    start = steady * np.array([1.0, 0.0, 1.0, 1.0, 1.0])
    return Chain(F, 0.5 * (Q + Q.transpose(0, 2, 1)), kind, start)


def find_mode(blocks: Blocks, links: Chain, bend: float, guess: Floats) -> Mode:
    """Fisher scoring, each step a pass over the blocks, from a guess of the rates (n,).

    With K the covariance of the path z, z = Kα: zᵀK⁻¹z = αᵀz needs no inverse.
    """
    y, E = blocks.counts, blocks.means
    z, alpha, best = path_of(guess, bend), np.zeros(len(y)), -np.inf
    z = np.clip(z, -MAX_PATH, MAX_PATH)
    g, slope = rate_of(z, bend)
    for iteration in range(MAX_MODE_STEPS):
        w = E * slope**2 / g
        seen = z + np.divide(y - E * g, E * slope, out=np.zeros(len(y)), where=w > 0.0)
        variance, gain = forward(links.F, links.Q, links.kind, links.start, w)
        goal = smoothed(links.F, links.kind, w, variance, gain, seen)
        dual = w * (seen - goal)
        size, former = 1.0, best
        for _ in range(MAX_HALVINGS if iteration else 1):
            z_new = goal if size == 1.0 else z + size * (goal - z)
            alpha_new = dual if size == 1.0 else alpha + size * (dual - alpha)
            g, slope = rate_of(np.clip(z_new, -MAX_PATH, MAX_PATH), bend)
            best = float(y @ np.log(g) - E @ g - 0.5 * (alpha_new @ z_new))
            if best >= former - 1e-9 * abs(former):
                break
            size *= 0.5
        z, alpha = np.clip(z_new, -MAX_PATH, MAX_PATH), alpha_new
        if abs(best - former) < MODE_TOLERANCE:
            break
    w = E * slope**2 / g
    variance, gain = forward(links.F, links.Q, links.kind, links.start, w)
    log_evidence = best - 0.5 * float(np.log1p(w * variance).sum())
    return Mode(z, g, w, variance, gain, log_evidence)


def variances(links: Chain, mode: Mode) -> Floats:
    """The variance of the path in each block (n,)."""
    return smoothed_variance(links.F, links.kind, mode.precision, mode.variance, mode.gain)


def draw_paths(links: Chain, mode: Mode, count: int, rng: np.random.Generator) -> Floats:
    """Paths (count, n) drawn around a mode: of all blocks at once, those to come included.

    A path without observations, corrected by what its own noisy observations miss. Steps after the
    last observation may be surges, which nothing has to be corrected for.
    """
    n, w = len(mode.path), mode.precision
    noise = rng.standard_normal((count, n, STATES))
    watched = w > 0.0
    ahead = int(np.append(-1, np.flatnonzero(watched))[-1]) + 1
    roots = _roots(links.Q)
    deviations = roots[links.kind[ahead:]].diagonal(axis1=1, axis2=2)[:, 3:]
    noise[:, ahead:, 3:] *= _surges(deviations, count, rng)
    paths = simulated(links.F, roots, links.kind, links.start, noise)
    errors = rng.standard_normal((count, n))
    for path, error in zip(paths, errors, strict=True):
        error[watched] /= np.sqrt(w[watched])
        seen = np.where(watched, path + error, 0.0)
        path += mode.path
        path -= smoothed(links.F, links.kind, w, mode.variance, mode.gain, seen)
    return paths


def _surges(deviations: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Factors (count, *shape) of normal steps with these deviations: mean square 1, a few large."""
    largest = np.divide(
        MAX_SURGE, deviations, out=np.full(deviations.shape, SURGE_RATIO), where=deviations > 0.0
    )
    ratio = np.clip(largest, 1.0, SURGE_RATIO)
    large = rng.random((count, *deviations.shape)) < SURGE_CHANCE
    return np.where(large, ratio, 1.0) / np.sqrt(1.0 + SURGE_CHANCE * (ratio**2 - 1.0))


def _roots(Q: Floats) -> Floats:
    """Triangular roots of covariances (k, 5, 5) in which only smooth field and slope covary."""
    roots = np.zeros_like(Q)
    states = np.arange(STATES)
    roots[:, states, states] = np.sqrt(np.maximum(Q[:, states, states], 0.0))
    own = roots[:, 1, 1]
    shared = np.divide(Q[:, 1, 2], own, out=np.zeros(len(Q)), where=own > 0.0)
    roots[:, 2, 1] = shared
    roots[:, 2, 2] = np.sqrt(np.maximum(Q[:, 2, 2] - shared**2, 0.0))
    return roots
