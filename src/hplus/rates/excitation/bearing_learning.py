"""How strongly events trigger others along the lines on which earlier ones lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hplus.rates.excitation.bearings import bearings_of, directions_of
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.excitation_fit import (
    ExcitationFit,
    LastRows,
    ObservedEvents,
    parts_of,
    with_weights,
)
from hplus.rates.excitation.log_weights import log_likelihood

STRENGTHS = (0.5, 1.0, 1.5)
"""Strengths that are tried."""

MIN_TURNING_GAIN = 3.0
"""Nats that directions must gain."""

MOST_EVENTS = 5000
"""Events by which strengths are compared, at most."""


def with_bearings(
    observed: ObservedEvents, fit: ExcitationFit
) -> tuple[ObservedEvents, ExcitationFit]:
    """Events with the bearings under which they are likeliest, and the weights given these.

    Directions are those to earlier events only, so that no event tells of itself.
    """
    if fit.trigger.axes != 2 or observed.region is None:
        return observed, fit
    every = -(-len(observed.inside) // MOST_EVENTS)
    directions = directions_of(observed.events, fit.effects, fit.trigger.distances)

    def with_strength(strength: float) -> ObservedEvents:
        bearings = bearings_of(directions, strength)
        events: Catalogue = replace(observed.events, bearings=bearings)
        return replace(observed, events=events, last_rows=LastRows())

    def likelihood(some: ObservedEvents) -> float:
        found = 0.0
        for kind, mode in enumerate(fit.modes):
            found += log_likelihood(parts_of(some, fit, kind, every), np.exp(mode.log_weights))
        return every * found

    plain = likelihood(observed)
    gains = [likelihood(with_strength(strength)) - plain for strength in STRENGTHS]
    if max(gains) < MIN_TURNING_GAIN:
        return observed, fit
    strength = STRENGTHS[int(np.argmax(gains))]
    some = with_strength(strength)
    return some, with_weights(some, replace(fit, direction_strength=strength), learn=False)
