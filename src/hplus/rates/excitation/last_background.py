"""The background of a self-exciting rate in the end: the one that predicts other events better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hplus._checks import Bools, Floats
from hplus.rates.excitation.excitation_fit import ExcitationFit, ObservedEvents
from hplus.rates.excitation.learned_places import (
    LEAST_WEIGHT,
    MIN_PLACED,
    LearnedPlace,
    LearnPlace,
    rates_at_events,
)


def with_better_place(
    observed: ObservedEvents, fit: ExcitationFit, learn_places: Sequence[LearnPlace]
) -> ExcitationFit:
    """The fit with the background that best predicts each half of the time from the other.

    Densities at the events that were learned from are unchanged.
    """
    kinds = observed.inside.types
    all_learned = [
        [learn(*_background_of(observed, fit, kinds == k)) for k in range(observed.types)]
        for learn in learn_places
    ]
    best = all_learned[0]
    if len(all_learned) > 1:
        best = max(all_learned, key=lambda learned: _halves_predicted(observed, fit, learned))
    places = tuple(place.rate for place in best)
    return replace(fit, background=replace(fit.background, places=places))


def _halves_predicted(
    observed: ObservedEvents, fit: ExcitationFit, learned: Sequence[LearnedPlace]
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
                rate = learned[kind].again(*_background_of(observed, fit, others))
                densities[here] = rate.function(inside.places[here]) / rate.integral()
    return float(np.log(rates_at_events(observed, replace(fit, densities=densities))[1]).sum())


def _background_of(
    observed: ObservedEvents, fit: ExcitationFit, which: Bools
) -> tuple[Floats, Floats]:
    """The places of some of the events, and how likely each belongs to the background."""
    some = which & (fit.shares > LEAST_WEIGHT)
    return observed.inside.places[some], fit.shares[some]
