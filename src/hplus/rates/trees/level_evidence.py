"""What the children of cells say about the concentration of one level of trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from hplus._checks import Floats
from hplus.rates.trees.evidence import Families, left_out_gain, mean_gain
from hplus.rates.trees.roughness import factors_of

LOG_CONCENTRATIONS = np.arange(-6.0, 25.0, 3.0)
"""Log concentrations that are tried first."""

LIKELY_LOSS = 1.92
"""Nats that the ends of a 95 % likelihood interval lose to the best value: a half of χ²."""

MAX_LOG_CHANGE = 2.0
"""How far the log concentration that predicts best may lie from that of the evidence: where no
cell is empty, predictions alone would let it fall to 0."""


@dataclass(frozen=True)
class Best:
    """The log of the concentration with the largest gain, that gain in nats, and the one to use."""

    log_concentration: float
    gain: float
    concentration: float


@dataclass(frozen=True)
class LevelEvidence:
    """What the children of cells say about the concentration of one level.

    Families of `trees` trees come with one in how many was taken: those of each tree if there are
    MANY_EVENTS, or else of all trees together. `powers` are those of the roughness and the count.
    """

    families: tuple[tuple[int, Families], ...]
    trees: int
    many: bool
    powers: tuple[float, float] = (0.0, 0.0)

    def loss(self, log_concentration: float) -> float:
        """Nats that a concentration loses to the base, averaged over trees."""
        return self._loss(mean_gain, log_concentration)

    def predicted_loss(self, log_concentration: float) -> float:
        """The same, if there are many events of each of them predicted from the others."""
        return self._loss(left_out_gain if self.many else mean_gain, log_concentration)

    def _loss(self, gain: Callable[..., float], log_concentration: float) -> float:
        A, found = float(np.exp(log_concentration)), zip(self.families, self.factors, strict=True)
        gains = (every * gain(A, factors, families) for (every, families), factors in found)
        return -sum(gains) / self.trees

    @cached_property
    def factors(self) -> list[Floats]:
        """What multiplies the concentration for each family of each tree."""
        powers = np.array(self.powers)
        return [
            factors_of(powers, found.roughness, np.maximum(found.parents - 1.0, 0.0))
            for _, found in self.families
        ]

    @cached_property
    def mean_log_factor(self) -> float:
        """The mean of the logs of the factors over events."""
        found = list(zip(self.families, self.factors, strict=True))
        logs = sum(every * float(f.parents @ np.log(factors)) for (every, f), factors in found)
        return logs / sum(every * float(f.parents.sum()) for every, f in self.families)

    @cached_property
    def tried(self) -> Floats:
        """The losses of LOG_CONCENTRATIONS."""
        return np.array([self.loss(x) for x in LOG_CONCENTRATIONS])

    def best(self) -> Best:
        """The concentration with the largest gain."""
        center = LOG_CONCENTRATIONS[int(np.argmin(self.tried))]
        step = LOG_CONCENTRATIONS[1] - LOG_CONCENTRATIONS[0]
        x, loss = least_loss(self.loss, center - step, center + step)
        return Best(x, -loss, float(np.exp(self.predicting(x) if self.many else x)))

    def predicting(self, near: float) -> float:
        """The log concentration, near another, under which events predict each other best."""
        return least_loss(self.predicted_loss, near - MAX_LOG_CHANGE, near + MAX_LOG_CHANGE)[0]

    def bounds(self, best: Best) -> tuple[float, float]:
        """The least and the greatest concentration that gain nearly as much; 0 or inf if all do.

        They contain the one to use.
        """

        def above(x: float) -> float:
            return self.loss(x) + best.gain - LIKELY_LOSS

        x, far = best.log_concentration, LOG_CONCENTRATIONS[self.tried + best.gain > LIKELY_LOSS]
        low, high = far[far < x], far[far > x]
        least = float(np.exp(brentq(above, low[-1], x, xtol=0.05))) if len(low) else 0.0
        most = float(np.exp(brentq(above, x, high[0], xtol=0.05))) if len(high) else np.inf
        return min(least, best.concentration), max(most, best.concentration)


def least_loss(loss: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Where a loss is least between two numbers, and that loss."""
    best = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 0.05})
    return float(best.x), float(best.fun)
