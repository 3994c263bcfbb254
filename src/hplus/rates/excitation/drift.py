"""Drift: how the level of a background goes on after the time that it was learned from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value

BLOCKS = 200
"""Blocks of the time that was learned from: the level is updated after each one as long."""


@final
@value
class Drift(Value):
    """The log level is a random walk from `start` on, updated after each block of time.

    `variance` is that of its steps per unit of time, as the trend of the background had it;
    `dispersion` is how much more counts of blocks vary around what the rate expects than Poisson
    counts.
    """

    start: float
    block: float
    variance: float
    dispersion: float

    def growth(self, ahead: float) -> float:
        """By how much the variance of the log level grows in a time ahead without counts.

        Of changes in a time longer than that learned from, nothing is known.
        """
        return self.variance * min(max(ahead, 0.0), BLOCKS * self.block)


class Levels(NamedTuple):
    """Factors of a background from edge to edge, and how well the last one is known.

    The logarithm of the level at the last edge is off by `memory` times what it was off by at the
    first edge, and by as much again as a normal number of this variance.
    """

    edges: Floats
    factors: Floats
    variance: float = 0.0
    memory: float = 1.0

    def at(self, times: Floats) -> Floats:
        """The factor at each time, (n,): 1 before the first edge, the last one after the last."""
        which = np.searchsorted(self.edges, times, side="right")
        return np.append(1.0, self.factors)[which]

    def before(self, times: Floats) -> Floats:
        """The factor just before each time, (n,)."""
        return np.append(1.0, self.factors)[np.searchsorted(self.edges, times, side="left")]

    def spans(self, start: float, end: float) -> list[tuple[float, float, float]]:
        """Parts (from, to, factor) of a period in which the level is the same."""
        inner = self.edges[(self.edges > start) & (self.edges < end)]
        edges = np.concatenate([[start], inner, [end]])
        factors = self.at(0.5 * (edges[1:] + edges[:-1]))
        return list(zip(edges[:-1], edges[1:], factors, strict=True))


def follow(
    drift: Drift, ratios: Sequence[Floats], means: Floats, triggered: Floats, first: float = 0.0
) -> Levels:
    """The levels after blocks of time, whose events are of the background or were triggered.

    `ratios` are, for the events of each block, what was triggered to the background at a level of
    1; `means` are what the background expects of each block at that level, `triggered` what comes
    on top, and `first` is the variance of the logarithm of the level at the start.
    """
    logs, variance, memory = [0.0], first, 1.0
    for each, mean, rest in zip(ratios, means, triggered, strict=True):
        before = max(variance + drift.variance * drift.block, 1e-12)
        level = np.exp(logs[-1])
        own = mean * level
        # the mode of the likelihood divided by the dispersion, after one step of scoring, whose
        # slope Σ level μ / λ - ∫ level μ is 0 on average if the level is right
        variance = 1.0 / (1.0 / before + own**2 / (own + rest) / drift.dispersion)
        memory *= variance / before
        step = variance * (np.sum(level / (level + each)) - own) / drift.dispersion
        logs.append(logs[-1] + float(np.clip(step, -1.0, 1.0)))
    edges: Floats = drift.start + drift.block * np.arange(len(logs), dtype=float)
    return Levels(edges, np.exp(logs), variance - memory**2 * first, memory)
