"""What simulations of a time to come know of the events before it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hplus.rates.excitation.bearings import Compass, compass_of
from hplus.rates.excitation.catalogue import NO_BEARINGS, Catalogue
from hplus.rates.excitation.conditional_rate import ConditionalRate
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import offspring
from hplus.rates.excitation.known_factors import KnownFactors


class Past(NamedTuple):
    """Events before a simulation: those without a factor of their own, and those that vary.

    The `compass` tells in which directions events trigger others: it is None if all are alike.
    """

    others: Catalogue
    varying: Catalogue
    known: KnownFactors
    compass: Compass | None

    def under(self, drawn: ExcitedRate, learned: ExcitedRate) -> Past:
        """The past under another rate than the one that factors were followed with.

        How many events were expected changes: what an event triggered so far is the same.
        """
        means, others = (offspring(r.trigger, r.effects, self.varying) for r in (drawn, learned))
        return self._replace(known=replace(self.known, means=self.known.means * (means / others)))


def past_of(known: ConditionalRate, start: float) -> Past:
    """What is known at the start of a simulation, of events that can still trigger."""
    sources, own = known.sources, known.factors
    near = (sources.times > start - known.rate.trigger.lags[-1]) & (sources.times <= start)
    # those whose factors are 1 again are like others
    lags, varying = known.rate.trigger.lags, own.varying
    some = near[own.which] & (start - varying.times < lags[varying.ends])
    with_factor = np.zeros(len(sources), dtype=bool)
    with_factor[own.which[some]] = True
    compass = compass_of(sources)
    # copies of parents need no bearings of their own
    sources = replace(sources, bearings=NO_BEARINGS)
    return Past(
        sources.picked(near & ~with_factor),
        sources.picked(with_factor),
        KnownFactors(varying.shapes[some], own.counts[some], own.means[some]),
        compass,
    )
