"""Background: the rate of events that no other event triggered, by place and by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats
from hplus.grids.hats import knot_weights
from hplus.rates.fitted import FittedRate
from hplus.rates.forecasts.beta_laws import draw_times, edge_weights, times_line
from hplus.rates.forecasts.cycle_factor import Cycles
from hplus.windows import Window

NO_CYCLES = Cycles((), (), 0.0)


@dataclass(frozen=True)
class Background:
    """μ(x, t) = ρ(x) · cycles(t) · Σ_k levels_k hat_k(t), for each type of event.

    `places` are rates in the plane, whose densities are ρ; there are none on a line. `knots` (T,)
    are times, and `levels` (types, T) the rates there; before the first and after the last knot the
    rate stays.
    """

    places: tuple[FittedRate, ...]
    knots: Floats
    levels: Floats
    cycles: Cycles

    def at(self, times: Floats, places: Floats, kind: int) -> Floats:
        """The rate of a type at times (n,) and places (n, 2) or (n, 0)."""
        return self.hats(times) @ self.levels[kind] * self.density(places, kind)

    def density(self, places: Floats, kind: int) -> Floats:
        """ρ at places (n, 2); 1 on a line."""
        if not self.places:
            return np.ones(len(places))
        rate = self.places[kind]
        return rate.function(places) / rate.integral()

    def shares(self, regions: Sequence[Window], kind: int) -> Floats:
        """∫ρ over each region."""
        rate = self.places[kind]
        return rate.integrals(regions) / rate.integral()

    def hats(self, times: Floats) -> Floats:
        """cycles(t) · hat_k(t), (n, T)."""
        near = knot_weights(self.knots, times)
        return near * self.cycles.at(times)[:, None] if self.cycles.periods else near

    def hat_integrals(self, start: float, end: float) -> Floats:
        """∫ cycles(t) · hat_k(t) from start to end, (T,)."""
        edges = self._edges(start, end)
        return edge_weights(self.cycles.mean_masses(edges)) @ knot_weights(self.knots, edges)

    def cumulative(self, times: Floats, start: float, kind: int) -> Floats:
        """∫ of the rate of a type over the whole region from the start to each time, (n,)."""
        edges = np.union1d(self._edges(start, float(np.max(times, initial=start))), times)
        masses = self._masses(edges, kind).sum(axis=1)
        return np.append(0.0, np.cumsum(masses))[np.searchsorted(edges, times)]

    def _edges(self, start: float, end: float) -> Floats:
        """The start, the end and all times between them where the rate bends."""
        return np.union1d(np.clip(self.knots, start, end), self.cycles.edges(start, end))

    def _masses(self, edges: Floats, kind: int) -> Floats:
        """∫ of the rate of a type between edges, by Beta laws, (parts, cycles + 2)."""
        levels = np.interp(edges, self.knots, self.levels[kind])[:, None]
        masses = self.cycles.mean_masses(edges)[..., None]
        return times_line(masses, levels[:-1], levels[1:])[..., 0]

    def integral(self, start: float, end: float, kind: int) -> float:
        """∫μ over the whole region from start to end."""
        return float(self.hat_integrals(start, end) @ self.levels[kind])

    def sample(
        self, start: float, end: float, n: int, kind: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Times (n,) and places (n, 2) or (n, 0) of n independent events of a type."""
        edges = self._edges(start, end)
        masses = self._masses(edges, kind)
        chosen = rng.choice(masses.size, size=n, p=masses.ravel() / masses.sum())
        times = draw_times(edges, chosen, masses.shape[1], rng)
        if not self.places:
            return times, np.zeros((n, 0))
        state = np.random.RandomState(rng.integers(2**31 - 1))
        return times, self.places[kind].on_grid.sample(n, state)
