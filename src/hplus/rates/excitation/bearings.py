"""In which directions an event triggers others: along the line on which earlier events lie.

Aftershocks follow faults, and burglaries streets. For each event and hat function of distances,
the doubled angles to earlier events about as far away have a mean resultant (C, S) of length L; the
trigger is multiplied by the density of a von Mises law of doubled angles with that mean,

    h(θ) = exp(κ cos 2(θ - θ₀)) / I₀(κ),   κ = strength · L (2 - L²) / (1 - L²),

whose mean over all directions is 1: as many events are triggered as without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.spatial import cKDTree
from scipy.special import i0

from hplus._checks import Floats, Ints
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.mark_effects import MarkEffects
from hplus.rates.excitation.pair_rows import knots_per_log

WIDTH = 0.5
"""Earlier events count by how much the logarithm of their distance differs: the width of that."""

ISOTROPIC_EVENTS = 10.0
"""Events in all directions that are added to those at a distance: of few, little is concluded."""

LARGEST_LENGTH, LARGEST_KAPPA = 0.95, 8.0

MOST_NEIGHBOURS = 10_000
"""The last events before each one, whose directions are looked at, at most."""


@njit(cache=True, nogil=True)
def _resultants(times, xy, scales, distances, most, counts):
    """Add 1, cos 2θ and sin 2θ of the directions to earlier events to the nearest knot of each.

    `times` (n,) are sorted; to the `counts` (n, D, 3) of each event, the last `most` before it add.
    """
    per_log, D, end = knots_per_log(distances), len(distances) - 1, 0
    for j in range(len(times)):
        while times[end] < times[j]:
            end += 1
        for k in range(max(end - most, 0), end):
            dx, dy = xy[k, 0] - xy[j, 0], xy[k, 1] - xy[j, 1]
            r2 = dx * dx + dy * dy
            far = np.sqrt(r2) / scales[j]
            if far <= 0.0 or far >= distances[D]:
                continue
            d = min(max(int(np.floor(np.log(far / distances[0]) * per_log + 0.5)), 0), D - 1)
            counts[j, d, 0] += 1.0
            counts[j, d, 1] += (dx * dx - dy * dy) / r2
            counts[j, d, 2] += 2.0 * dx * dy / r2


def directions_of(events: Catalogue, effects: MarkEffects, distances: Floats) -> Floats:
    """L cos 2θ₀ and L sin 2θ₀ at each knot of distances but the last, (n, D, 2)."""
    D = len(distances) - 1
    counts = np.zeros((len(events), D, 3))
    scales = effects.reach(events.marks)
    _resultants(events.times, events.places, scales, distances, MOST_NEIGHBOURS, counts)
    steps = (np.arange(D)[:, None] - np.arange(D)) / (WIDTH * knots_per_log(distances))
    smooth = np.einsum("de,nec->ndc", np.exp(-0.5 * steps**2), counts)
    return smooth[..., 1:] / (smooth[..., :1] + ISOTROPIC_EVENTS)


def bearings_of(directions: Floats, strength: float) -> Floats:
    """κ cos 2θ₀, κ sin 2θ₀ and 1/I₀(κ) of each event and hat function, (n, D, 3)."""
    full = np.hypot(directions[..., 0], directions[..., 1])
    length = np.minimum(full, LARGEST_LENGTH)
    kappa = strength * length * (2.0 - length**2) / (1.0 - length**2)
    kappa = np.minimum(kappa, LARGEST_KAPPA)
    scale = kappa / np.maximum(full, 1e-300)
    return np.concatenate([scale[..., None] * directions, 1.0 / i0(kappa)[..., None]], axis=-1)


@dataclass(frozen=True)
class Compass:
    """Directions in which events of the past trigger others: simulated ones take the nearest's."""

    tree: cKDTree
    bearings: Floats

    def draw(self, places: Floats, hats: Ints, rng: np.random.Generator) -> Floats:
        """An angle at each place, given the hat function of distances, (n,)."""
        near = self.tree.query(places)[1]
        cos, sin = self.bearings[near, hats, 0], self.bearings[near, hats, 1]
        doubled = rng.vonmises(np.arctan2(sin, cos), np.hypot(cos, sin))
        # a doubled angle is one of two opposite directions
        return 0.5 * doubled + np.pi * rng.integers(2, size=len(places))


def compass_of(events: Catalogue) -> Compass | None:
    """The compass of events; None if they trigger alike in all directions."""
    if not len(events.bearings):
        return None
    return Compass(cKDTree(events.places), events.bearings)
