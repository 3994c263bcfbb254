"""KnownFactors: what is known of how much events trigger, as a simulation goes on.

A factor is drawn for each time between two knots of lags, from Gamma(k + N, k + E). What its event
then triggers is added to N, and what it was expected to trigger to E; both fade at the next knot.
All that is simulated counts, also where it would not be recorded: outside the region, or while
records are incomplete after a large event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hplus._checks import Bools, Floats, Ints
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import offspring


@dataclass(frozen=True)
class KnownFactors:
    """Factors Gamma(`shapes` + `counts`, `shapes` + `means`) of events, (n,) each.

    Events whose shape is infinite trigger as expected.
    """

    shapes: Floats
    counts: Floats
    means: Floats

    @classmethod
    def of_new(cls, rate: ExcitedRate, events: Catalogue) -> KnownFactors:
        """What is known of events that nothing has followed yet."""
        each = offspring(rate.trigger, rate.effects, events)
        varying = each >= rate.factor_law.least
        shapes = np.full(len(events), np.inf)
        shapes[varying] = rate.factor_law.shapes(each[varying])
        return cls(shapes, np.zeros(len(events)), np.zeros(len(events)))

    @property
    def vary(self) -> Bools:
        """Which events have a factor of their own, (n,)."""
        return np.isfinite(self.shapes)

    def picked(self, which: Ints | Bools) -> KnownFactors:
        """Those of some of the events."""
        return KnownFactors(self.shapes[which], self.counts[which], self.means[which])

    def drawn(self, rng: np.random.Generator) -> Floats:
        """A factor of each event, all of which have one, (n,)."""
        return rng.gamma(self.shapes + self.counts) / (self.shapes + self.means)

    def followed(self, which: Ints, counts: Ints, means: Floats, kept: Floats) -> KnownFactors:
        """What is known once some events have triggered `counts`, where `means` were expected.

        Of these events, all that is known so far then counts `kept` as much.
        """
        known = KnownFactors(self.shapes, self.counts.copy(), self.means.copy())
        known.counts[which] = kept * (self.counts[which] + counts)
        known.means[which] = kept * (self.means[which] + means)
        return known


def joined_factors(parts: list[KnownFactors]) -> KnownFactors:
    """What is known of several groups of events together."""
    return KnownFactors(
        np.concatenate([part.shapes for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.means for part in parts]),
    )


def between_knots(
    knots: Floats, low: Floats, high: Floats
) -> Iterator[tuple[Ints, Floats, Floats, Bools]]:
    """Spans from `low` to `high` (n,), cut at knots: which ones lie between two, and their ends.

    The last part tells which of them reach the second knot.
    """
    for start, end in zip(np.append(0.0, knots[:-1]), knots, strict=True):
        which = np.flatnonzero((low < end) & (high > start))
        if len(which):
            a, b = np.maximum(low[which], start), np.minimum(high[which], end)
            yield which, a, b, high[which] >= end
