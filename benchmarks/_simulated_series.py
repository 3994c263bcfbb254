"""Simulated events with a known truth: what was observed, and as many futures of it as wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

DAYS, LONGEST = 182.0, 28.0
"""The observation period, and what may be forecast after it."""

BURST_LENGTH = 0.1
"""The mean time in days from the beginning of a cluster to one of its events."""

STEP, REVERTS_WITHIN, DEVIATION = 0.05, 10.0, 0.5
"""Days in which a reverting log rate is constant, its scale in days, and its deviation."""

Rng = np.random.Generator


class Simulated(NamedTuple):
    """Times that were observed, and a draw of those that follow, given all that came before."""

    past: np.ndarray
    future: Callable[[Rng], np.ndarray]


def known(rate: Callable[[np.ndarray], np.ndarray], most: float) -> Callable[[Rng], Simulated]:
    """A Poisson process with this rate, which is at most `most`."""

    def thinned(rng: Rng, low: float, high: float) -> np.ndarray:
        t = rng.uniform(low, high, rng.poisson(most * (high - low)))
        return t[rng.random(len(t)) * most < rate(t)]

    return lambda rng: Simulated(
        thinned(rng, 0.0, DAYS), lambda again: thinned(again, DAYS, DAYS + LONGEST)
    )


def bursts(rng: Rng) -> Simulated:
    """Clusters of 4 events on average, within hours, at a flat rate of clusters."""

    def clusters(rng: Rng, low: float, high: float) -> np.ndarray:
        begin = low - 30.0 * BURST_LENGTH
        sizes = rng.poisson(4.0, rng.poisson(3.0 * (high - begin)))
        t = np.repeat(rng.uniform(begin, high, len(sizes)), sizes)
        t += rng.exponential(BURST_LENGTH, len(t))
        return t[(t >= low) & (t < high)]

    return Simulated(clusters(rng, 0.0, DAYS), lambda again: clusters(again, DAYS, DAYS + LONGEST))


def stepwise(rng: Rng, rates: np.ndarray, step: float) -> np.ndarray:
    """A Poisson process whose rate is constant for each step."""
    counts = rng.poisson(rates * step)
    starts = np.repeat(np.arange(len(rates)) * step, counts)
    return starts + step * rng.random(len(starts))


def varied_weeks(rng: Rng) -> Simulated:
    """Weeks with independent rates of deviation 0.35."""

    def weeks(rng: Rng, many: int) -> np.ndarray:
        return stepwise(rng, 12.0 * rng.gamma(8.0, 1 / 8.0, many), 7.0)

    return Simulated(
        weeks(rng, round(DAYS / 7.0)), lambda again: DAYS + weeks(again, round(LONGEST / 7.0))
    )


def reverting(rng: Rng) -> Simulated:
    """A log rate of deviation 0.5 that reverts within 10 days."""
    keep = np.exp(-STEP / REVERTS_WITHIN)

    def path(rng: Rng, start: float, days: float) -> np.ndarray:
        z = np.append(start, rng.standard_normal(round(days / STEP)))
        for i in range(1, len(z)):
            z[i] = keep * z[i - 1] + DEVIATION * np.sqrt(1.0 - keep**2) * z[i]
        return z[1:]

    z = path(rng, DEVIATION * rng.standard_normal(), DAYS)
    return Simulated(
        stepwise(rng, 12.0 * np.exp(z), STEP),
        lambda again: DAYS + stepwise(again, 12.0 * np.exp(path(again, z[-1], LONGEST)), STEP),
    )


KINDS: dict[str, Callable[[Rng], Simulated]] = {
    "flat": known(lambda t: np.full(len(t), 12.0), 12.0),
    "daily cycle": known(lambda t: 12.0 * (1.0 + 0.8 * np.sin(2.0 * np.pi * t)), 22.0),
    "bursts": bursts,
    "trend": known(lambda t: 6.0 * np.exp(1.2 * t / DAYS), 30.0),
    "over-dispersed weeks": varied_weeks,
    "reverting log rate": reverting,
}
