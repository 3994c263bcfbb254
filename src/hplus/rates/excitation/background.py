"""Background: the rate of events that no other event triggered, by place and by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats, Ints
from hplus.grids.hats import knot_weights
from hplus.rates.fitted import FittedRate
from hplus.rates.forecasts.cycle_factor import Cycles
from hplus.windows import Window

CELLS_PER_CYCLE = 48
"""Cells of time in which a cycle is taken to be constant when it is integrated."""

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
        # linear between these edges, or short against the cycles: midpoints are exact, or nearly
        edges = self._edges(start, end)
        return np.diff(edges) @ self.hats(0.5 * (edges[1:] + edges[:-1]))

    def cumulative(self, times: Floats, start: float, kind: int) -> Floats:
        """∫ of the rate of a type over the whole region from the start to each time, (n,)."""
        edges = np.union1d(self._edges(start, float(np.max(times, initial=start))), times)
        masses = np.diff(edges) * (self.hats(0.5 * (edges[1:] + edges[:-1])) @ self.levels[kind])
        return np.append(0.0, np.cumsum(masses))[np.searchsorted(edges, times)]

    def _edges(self, start: float, end: float) -> Floats:
        edges = np.clip(np.concatenate([[start, end], self.knots]), start, end)
        if self.cycles.periods:
            size = min(self.cycles.periods) / CELLS_PER_CYCLE
            edges = np.append(
                edges, np.linspace(start, end, int(np.ceil((end - start) / size)) + 1)
            )
        return np.unique(edges)

    def integral(self, start: float, end: float, kind: int) -> float:
        """∫μ over the whole region from start to end."""
        return float(self.hat_integrals(start, end) @ self.levels[kind])

    def sample(
        self, start: float, end: float, n: int, kind: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Times (n,) and places (n, 2) or (n, 0) of n independent events of a type."""
        edges = self._edges(start, end)
        rates, widths = self.hats(edges) @ self.levels[kind], np.diff(edges)
        masses = widths * (rates[1:] + rates[:-1])
        cell: Ints = rng.choice(len(masses), size=n, p=masses / masses.sum())
        # linear between edges: the inverse of its integral, from u of the mass on
        a, b, u = rates[cell], rates[cell + 1], rng.random(n)
        root = np.sqrt(a**2 + u * (b**2 - a**2))
        times = edges[cell] + widths[cell] * u * (a + b) / (a + root)
        if not self.places:
            return times, np.zeros((n, 0))
        state = np.random.RandomState(rng.integers(2**31 - 1))
        return times, self.places[kind].on_grid.sample(n, state)
