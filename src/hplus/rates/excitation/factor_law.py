"""FactorLaw: which events have a factor of their own in how many others they trigger."""

from __future__ import annotations

from typing import final

import numpy as np

from hplus._checks import Bools, Floats
from hplus._values import Value, value
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.mark_effects import MarkEffects
from hplus.rates.excitation.trigger import Trigger


@final
@value
class FactorLaw(Value):
    """Which events have a factor of their own, and how much these vary.

    Those that trigger at least `least` events, in expectation; a factor is of mean 1 and variance
    1/k with k = shape · offspring^growth. There are none if `least` is infinite. While an event is
    expected to trigger others faster than `fastest`, a rate at which none have been recorded yet,
    what follows says nothing of its factor: after a large earthquake, many go unrecorded. When the
    time since an event is ten times as long, what is known of its factor counts `kept` as much.
    """

    least: float
    shape: float
    growth: float
    fastest: float
    kept: float = 1.0

    def vary(self, trigger: Trigger, effects: MarkEffects, events: Catalogue) -> Bools:
        """Which events have a factor of their own, (n,)."""
        return offspring(trigger, effects, events) >= self.least

    def fade(self, lags: Floats) -> float:
        """How much what is known counts after each knot of lags, which are log-spaced."""
        return float(self.kept ** np.log10(lags[-1] / lags[-2]))

    def mean_error(self, offspring: Floats) -> float:
        """How exactly events that trigger so many tell of their mean factor, on the log scale.

        As if factors never changed: if they do, it is known better.
        """
        own = offspring[offspring >= self.least]
        variance = np.sum(own**2 / self.shapes(own)) / max(float(offspring.sum()), 1e-300) ** 2
        return float(np.sqrt(np.log1p(variance)))

    def shapes(self, offspring: Floats) -> Floats:
        """The shape k of the factors of events that trigger so many, (n,)."""
        return self.shape * offspring**self.growth


NO_FACTORS = FactorLaw(np.inf, 1.0, 0.0, np.inf)
"""All events of one mark trigger equally many, in expectation."""


def offspring(trigger: Trigger, effects: MarkEffects, events: Catalogue) -> Floats:
    """How many events each one triggers directly, in expectation, wherever they fall, (n,)."""
    each = trigger.integral().sum(axis=1)[events.types]
    return effects.productivity(events.marks) * each
