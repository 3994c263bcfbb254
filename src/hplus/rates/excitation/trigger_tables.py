"""Tables of a trigger, from which simulated events draw their lags, distances and directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.excitation.bearings import Compass
from hplus.rates.excitation.trigger import Trigger
from hplus.rates.excitation.visible import hat_integrals

STEPS_PER_SEGMENT = 16
"""Points between two knots at which distributions of lags and distances are tabulated."""


@dataclass(frozen=True)
class TriggerTable:
    """A trigger as cumulative distributions, to draw lags, distances and directions from."""

    trigger: Trigger
    lags: Floats
    cumulative: Floats
    distances: Floats
    rings: Floats
    compass: Compass | None

    @classmethod
    def of(
        cls, trigger: Trigger, source: int, target: int, compass: Compass | None = None
    ) -> TriggerTable:
        """The table of one pair of types."""
        one = trigger.replace(weights=trigger.weights[source : source + 1, target : target + 1])
        lags = _refined(trigger.lags)
        by_lag = one.weights[0, 0] @ one.distance_integrals
        cumulative = hat_integrals(trigger.lags, lags) @ by_lag
        distances, rings = np.zeros(0), np.zeros((0, 0))
        if len(trigger.distances):
            distances = _refined(trigger.distances)
            middle = 0.5 * (distances[1:] + distances[:-1])
            hats = np.stack(
                [
                    np.interp(middle, trigger.distances, np.append(row, 0.0))
                    for row in one.weights[0, 0]
                ]
            )
            sizes = 2.0 * distances if trigger.axes == 1 else np.pi * distances**2
            rings = np.cumsum(hats * np.diff(sizes), axis=1)
            rings = np.pad(rings, ((0, 0), (1, 0)))
        return cls(one, lags, cumulative, distances, rings, compass)

    def draw_lags(self, low: Floats, high: Floats, rng: np.random.Generator) -> Floats:
        """A lag between each pair of bounds, (n,)."""
        a, b = (np.interp(x, self.lags, self.cumulative) for x in (low, high))
        return np.interp(a + (b - a) * rng.random(len(low)), self.cumulative, self.lags)

    def draw_distances(self, lags: Floats, rng: np.random.Generator) -> tuple[Floats, Ints]:
        """A distance at each lag, relative to the reach, and its hat function, (n,) each."""
        knots = self.trigger.lags
        place = np.interp(lags, knots, np.arange(len(knots)))
        left = np.minimum(place.astype(int), len(knots) - 2)
        totals = np.append(self.rings[:, -1], 0.0)
        right = (place - left) * totals[left + 1]
        whole = (1.0 - place + left) * totals[left] + right
        row = left + (rng.random(len(lags)) * whole < right)
        found, u = np.zeros(len(lags)), rng.random(len(lags))
        for k in np.unique(row):
            own = row == k
            found[own] = np.interp(u[own] * self.rings[k, -1], self.rings[k], self.distances)
        return found, self._hats(row, found, rng)

    def _hats(self, row: Ints, far: Floats, rng: np.random.Generator) -> Ints:
        """Which of two hat functions of distances each one comes from, given that of lags, (n,)."""
        knots = self.trigger.distances
        weights = np.pad(self.trigger.weights[0, 0], ((0, 0), (0, 1)))
        place = np.interp(far, knots, np.arange(len(knots)))
        left = np.minimum(place.astype(int), len(knots) - 2)
        right = (place - left) * weights[row, left + 1]
        whole = (1.0 - place + left) * weights[row, left] + right
        return left + (rng.random(len(far)) * whole < right)

    def draw_directions(self, places: Floats, hats: Ints, rng: np.random.Generator) -> Floats:
        """Directions from each place, given the hat function of distances, (n, 1) or (n, 2)."""
        n = len(places)
        if places.shape[1] == 1:
            return rng.choice([-1.0, 1.0], (n, 1))
        angle = 2.0 * np.pi * rng.random(n)
        if self.compass is not None:
            angle = self.compass.draw(places, hats, rng)
        return np.column_stack([np.cos(angle), np.sin(angle)])


Tables = dict[tuple[int, int], TriggerTable]
"""The trigger of each pair of types."""


def _refined(knots: Floats) -> Floats:
    parts = [np.linspace(a, b, STEPS_PER_SEGMENT, endpoint=False) for a, b in
             zip(np.append(0.0, knots[:-1]), knots, strict=True)]  # fmt: skip
    return np.append(np.concatenate(parts), knots[-1])
