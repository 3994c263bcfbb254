"""The background of a self-exciting rate in the end: the one that predicts other events better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hplus._checks import Bools
from hplus.rates.excitation.alternation import (
    LEAST_WEIGHT,
    MIN_PLACED,
    LearnPlace,
    rates_at_events,
)
from hplus.rates.excitation.excitation_fit import ExcitationFit, ObservedEvents
from hplus.rates.fitted import FittedRate


def with_better_place(
    observed: ObservedEvents, fit: ExcitationFit, learn_places: Sequence[LearnPlace]
) -> ExcitationFit:
    """The fit with the background that best predicts each half of the time from the other.

    Densities at the events that were learned from are unchanged.
    """
    best = learn_places[0]
    if len(learn_places) > 1:
        best = max(learn_places, key=lambda learn: _halves_predicted(observed, fit, learn))
    kinds = observed.inside.types
    places = tuple(_learned(observed, fit, best, kinds == k) for k in range(observed.types))
    return replace(fit, background=replace(fit.background, places=places))


def _halves_predicted(
    observed: ObservedEvents, fit: ExcitationFit, learn_place: LearnPlace
) -> float:
    """Σ log λ of all events, each half of the time with a background learned from the other half.

    Where the other half holds too few events of the background, theirs stays as it is.
    """
    inside, densities = observed.inside, fit.densities.copy()
    early = inside.times < 0.5 * (observed.start + observed.end)
    for kind in range(observed.types):
        own = inside.types == kind
        for half in (early, ~early):
            here, others = own & half, own & ~half
            if fit.shares[others].sum() >= MIN_PLACED:
                rate = _learned(observed, fit, learn_place, others)
                densities[here] = rate.function(inside.places[here]) / rate.integral()
    return float(np.log(rates_at_events(observed, replace(fit, densities=densities))[1]).sum())


def _learned(
    observed: ObservedEvents, fit: ExcitationFit, learn_place: LearnPlace, which: Bools
) -> FittedRate:
    """The background of some of the events, by how likely they belong to it."""
    some = which & (fit.shares > LEAST_WEIGHT)
    return learn_place(observed.inside.places[some], fit.shares[some])
