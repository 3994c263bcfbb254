"""What a cycle such as the day multiplies a rate by, and what that gains on later cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np

from hplus._checks import Floats, check_memory
from hplus._values import Value, value
from hplus.rates.forecasts.beta_laws import times_line

MIN_CYCLES = 3.0
"""Cycles that must have been observed before one is learned."""

LEARNED_SHARE = 0.6
"""Share of the observation period that a cycle is learned from when later ones judge it."""

MIN_ERRORS = 2.0
"""Standard errors by which a cycle must raise the likelihood of later blocks to be kept."""

MIN_LEVEL_EVENTS = 400.0
"""Events from which the level around a time is estimated, at least."""

CYCLE_DRAWS = 64
"""Equally likely factors that are kept."""

CYCLE_SCALES = (0.03, 0.08, 0.2)
"""Scales of the log factor, as shares of the cycle."""

CYCLE_DEVIATIONS = (0.03, 0.1, 0.3, 0.8, 1.5)
"""Deviations of the log factor."""

LEAST_VARIANCE = 1e-9

PARTS_AT_ONCE = 2**8
"""Parts of time whose masses are computed together, by all draws: so few fit into the cache."""

BYTES_PER_PART = 64.0
"""Memory for each part of time: several arrays of numbers."""


@final
@value
class CycleGain(Value):
    """Whether a cycle was kept, and what it gains on later blocks of time.

    `gain` is in nats per event and `error` its standard error; both are NaN if the cycle could not
    be judged. `reason` says in words why it was kept or not.
    """

    name: str
    period: float
    kept: bool
    gain: float
    error: float
    reason: str


class Counted(NamedTuple):
    """Counts and exposure (n,) in bins of a cycle, one cycle after another, from phase 0."""

    counts: Floats
    exposure: Floats
    bins: int


@dataclass(frozen=True)
class Cycles:
    """Cycles that multiply a rate: their periods, and equally likely factors (draws, bins) of each.

    Factors have mean 1, and are linear from the center of a bin to the next one's. All cycles begin
    at the time `origin`.
    """

    periods: tuple[float, ...]
    factors: tuple[Floats, ...]
    origin: float

    def with_cycle(self, period: float, factor: Floats) -> Cycles:
        """These cycles and another one."""
        return Cycles((*self.periods, period), (*self.factors, factor), self.origin)

    def draw(self, number: int) -> Cycles:
        """These cycles with one of their draws, which are used in turn."""
        return replace(self, factors=tuple(f[[number % len(f)]] for f in self.factors))

    def draws_at(self, times: Floats) -> Floats:
        """Equally likely values of the product of all factors at each time, (n, draws)."""
        found = np.ones((len(times), 1))
        for values in self._factors_at(times):
            found = found * values
        return found

    def at(self, times: Floats) -> Floats:
        """The mean of the product of all factors at each time, (n,)."""
        return self._for_means().draws_at(times).mean(axis=1)

    def edges(self, start: float, end: float) -> Floats:
        """The start, the end and all times between them where a factor bends."""
        found = [np.array([start, end])]
        for period, factor in zip(self.periods, self.factors, strict=True):
            step = period / factor.shape[1]
            check_memory(
                BYTES_PER_PART * (end - start) / step,
                f"a cycle of {period:g} in a time of {end - start:g}",
                "use longer cycles or a shorter time",
            )
            first, last = np.floor((found[0] - self.origin) / step - 0.5)
            bends = self.origin + step * (np.arange(first, last + 1.0) + 0.5)
            found.append(bends[(start < bends) & (bends < end)])
        return np.unique(np.concatenate(found))

    def masses(self, edges: Floats) -> Floats:
        """∫ of the product of all factors between edges, (parts, cycles + 1, draws).

        Factors must not bend within a part. Their product is there a sum of Beta laws: all that it
        holds is Σ_k masses[:, k].
        """
        found = np.diff(edges)[:, None, None]
        for values in self._factors_at(edges):
            found = times_line(found, values[:-1], values[1:])
        return found

    def mean_masses(self, edges: Floats) -> Floats:
        """The mean of the masses, (parts, cycles + 1)."""
        cycles, starts = self._for_means(), range(0, max(len(edges) - 1, 1), PARTS_AT_ONCE)
        chunks = (edges[start : start + PARTS_AT_ONCE + 1] for start in starts)
        return np.concatenate([cycles.masses(chunk).mean(axis=2) for chunk in chunks])

    def _factors_at(self, times: Floats) -> Iterator[Floats]:
        """Equally likely values of each factor at each time, (n, draws)."""
        for period, factor in zip(self.periods, self.factors, strict=True):
            K = factor.shape[1]
            x = (times - self.origin) / period % 1.0 * K - 0.5
            i = np.floor(x).astype(int)
            right = (x - i)[:, None]
            yield (1.0 - right) * factor.T[i % K] + right * factor.T[(i + 1) % K]

    def _for_means(self) -> Cycles:
        """Cycles whose product has the same mean: with a single draw, if there is one cycle."""
        if len(self.periods) != 1:
            return self
        return replace(self, factors=(self.factors[0].mean(axis=0, keepdims=True),))


def local_level(counted: Counted) -> Floats:
    """The rate around each bin (n,): over whole cycles, so that the cycle itself averages out."""
    y, E, K = counted
    per_cycle = y.sum() * K / len(y)
    cycles = int(np.ceil(MIN_LEVEL_EVENTS / max(per_cycle, 1e-9)))
    width = min(max(cycles, 1) * K, max(len(y) // K, 1) * K)
    first = np.clip(np.arange(len(y)) - width // 2, 0, max(len(y) - width, 0))
    sums = [np.concatenate([[0.0], np.cumsum(x)]) for x in (y, E)]
    events, exposed = (x[np.minimum(first + width, len(y))] - x[first] for x in sums)
    return np.divide(events, exposed, out=np.zeros(len(y)), where=exposed > 0.0)


def judge(counted: Counted) -> tuple[float, float]:
    """Gain on later bins in nats per event, and its standard error, learned from earlier ones."""
    y, E, K = counted
    cut = int(LEARNED_SHARE * len(y) / K + 0.5) * K
    cut = min(max(cut, 2 * K), len(y) - K)
    factor = learn_factor(Counted(y[:cut], E[:cut], K)).mean(axis=0)
    later = Counted(y[cut:], E[cut:], K)
    means = E[cut:] * local_level(later)
    c = factor[(np.arange(cut, len(y))) % K]
    gains = later.counts * np.log(c) - means * (c - 1.0)
    repeats = (len(y) - cut) / K
    size = K if repeats >= 8 else max(K // 8, 1)
    parts = np.add.reduceat(gains, np.arange(0, len(gains), size))
    n, events = len(parts), max(later.counts.sum(), 1.0)
    return float(gains.sum() / events), float(parts.std() * np.sqrt(n * n / (n - 1.0)) / events)


def learn_factor(counted: Counted, seed: int = 0) -> Floats:
    """Equally likely factors (CYCLE_DRAWS, bins) of a cycle, with mean 1.

    Counts are divided by how much more they vary than Poisson counts would.
    """
    y, E, K = counted
    means = E * local_level(counted)
    phase = np.arange(len(y)) % K
    Y, M = (np.bincount(phase, weights=x, minlength=K) for x in (y, means))
    c = np.divide(Y + 1.0, M + 1.0)
    excess = _dispersion(y, means * c[phase], K)
    z, cov = _posterior(Y / excess, M / excess)
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    noise = rng.standard_normal((CYCLE_DRAWS // 2, K))
    noise = np.vstack([noise, -noise])
    factors = np.exp(z + noise @ root.T)
    return factors / factors.mean(axis=1, keepdims=True)


def _dispersion(y: Floats, means: Floats, K: int) -> float:
    """Variance over mean of counts around what is expected, for bins of several sizes; 1 or more.

    Bursts that last longer than a bin show only in larger ones.
    """
    worst = 1.0
    for size in (1, max(K // 24, 1), max(K // 8, 1), max(K // 4, 1)):
        n = len(y) // size * size
        a, b = (x[:n].reshape(-1, size).sum(axis=1) for x in (y, means))
        some = b > 0.0
        if some.sum() > 2:
            worst = max(worst, float(((a[some] - b[some]) ** 2).sum() / b[some].sum()))
    return worst


def _posterior(Y: Floats, M: Floats) -> tuple[Floats, Floats]:
    """The log factor (K,) of largest evidence and its covariance, for counts Y of mean M e^z."""
    K = len(Y)
    d = np.minimum(np.arange(K), K - np.arange(K)) / K
    best, found = -np.inf, (np.zeros(K), np.zeros((K, K)))
    index = (np.arange(K)[:, None] - np.arange(K)) % K
    for scale in CYCLE_SCALES:
        x = np.sqrt(3.0) * np.sin(np.pi * d) / (np.pi * scale)
        shape = ((1.0 + x) * np.exp(-x))[index]
        for deviation in CYCLE_DEVIATIONS:
            C = deviation**2 * shape + LEAST_VARIANCE * np.eye(K)
            z, cov, log_evidence = _cycle_mode(Y, M, C)
            if log_evidence > best:
                best, found = log_evidence, (z, cov)
    return found


def _cycle_mode(Y: Floats, M: Floats, C: Floats) -> tuple[Floats, Floats, float]:
    """The maximum of Σ(Y z - M e^z) - ½ zᵀC⁻¹z, with the covariance and log evidence there."""
    K = len(Y)
    z, alpha, value = np.zeros(K), np.zeros(K), -float(M.sum())
    for _ in range(50):
        w = M * np.exp(z)
        root = np.sqrt(w)
        B = np.eye(K) + root[:, None] * C * root
        r = w * z + Y - w
        dual = r - root * np.linalg.solve(B, root * (C @ r))
        goal, size = C @ dual, 1.0
        for _ in range(20):
            z_new, alpha_new = z + size * (goal - z), alpha + size * (dual - alpha)
            with np.errstate(over="ignore"):
                new = float(Y @ z_new - M @ np.exp(z_new) - 0.5 * alpha_new @ z_new)
            if new >= value:
                break
            size *= 0.5
        done = new - value < 1e-6
        z, alpha, value = z_new, alpha_new, max(new, value)
        if done:
            break
    root = np.sqrt(M * np.exp(z))
    B = np.eye(K) + root[:, None] * C * root
    S = np.linalg.solve(B, root[:, None] * C)
    cov = C - (C * root) @ S
    return z, 0.5 * (cov + cov.T), value - 0.5 * float(np.linalg.slogdet(B)[1])
