"""The background of a self-exciting rate in place, learned from its share in each event.

What it says of an event is learned from other blocks of time: a burst must not be its own
background.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.rates.excitation.excitation_fit import ExcitationFit, ObservedEvents, parts_of
from hplus.rates.fitted import FittedRate

TIME_BLOCKS = 10
"""Blocks of time: the background of each is learned from the others. With fewer blocks, it is
learned from fewer events than there are, and the trigger makes up for a map that is not sharp."""

MIN_PLACED = 30
"""Background events of other blocks of time, at least, to learn from them alone."""

LEAST_WEIGHT = 1e-6
"""Events less likely to be of the background are left out of it."""


class LearnedPlace(NamedTuple):
    """A rate in the plane, and what learns one of other events of the same kind from theirs.

    Places (n, 2) and weights (n,): only what depends on every event is learned again.
    """

    rate: FittedRate
    again: Callable[[Floats, Floats], FittedRate]


LearnPlace = Callable[[Floats, Floats], LearnedPlace]
"""A rate in the plane from places (n, 2) and their weights (n,)."""


def background_shares(observed: ObservedEvents, fit: ExcitationFit) -> Floats:
    """The probability that each event inside was not triggered, (n,)."""
    background, rates = rates_at_events(observed, fit)
    return background / rates


def rates_at_events(observed: ObservedEvents, fit: ExcitationFit) -> tuple[Floats, Floats]:
    """The background at each event inside, and the whole rate, (n,) each."""
    background, rates = np.zeros((2, len(observed.inside)))
    for kind in range(observed.types):
        own, parts = observed.inside.types == kind, parts_of(observed, fit, kind)
        T, weights = len(fit.background.knots), np.exp(fit.modes[kind].log_weights)
        background[own] = parts.rows[:, :T] @ weights[:T]
        rates[own] = parts.rows @ weights
    return background, rates


def with_places(
    observed: ObservedEvents,
    fit: ExcitationFit,
    learn_place: LearnPlace | None,
    shares: Floats,
) -> ExcitationFit:
    """The fit with the background learned from events by how likely they belong to it.

    What it says of an event is learned from other blocks of time: a burst must not be its own
    background.
    """
    if learn_place is None:
        return replace(fit, densities=np.ones(len(observed.inside)))
    inside, span = observed.inside, observed.end - observed.start
    block = np.floor((inside.times - observed.start) / span * TIME_BLOCKS).clip(0, TIME_BLOCKS - 1)
    places, densities = [], np.zeros(len(inside))
    for kind in range(observed.types):
        own = inside.types == kind
        some = own & (shares > LEAST_WEIGHT)
        learned = learn_place(inside.places[some], shares[some])
        places.append(learned.rate)
        for k in np.unique(block[own]):
            others, here = some & (block != k), own & (block == k)
            rate = learned.rate
            if shares[others].sum() >= MIN_PLACED:
                rate = learned.again(inside.places[others], shares[others])
            densities[here] = rate.function(inside.places[here]) / rate.integral()
    background = replace(fit.background, places=tuple(places))
    return replace(fit, densities=densities, shares=shares, background=background)
