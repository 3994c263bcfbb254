"""A rate that is a weighted sum of other rates: a smooth one and rates by trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats
from hplus.rates.bands import LogBand
from hplus.rates.climbing import climbed
from hplus.rates.drawing import RATE_DRAWS, interval_of_draws, log_band_of_draws, resampled
from hplus.rates.grid_rate import GridRate
from hplus.rates.lattice import CellLattice
from hplus.rates.trees.tree_rate import TreeRate
from hplus.solvers.result import SolverResult
from hplus.windows import Window

Part = tuple[float, GridRate | TreeRate]
"""A weight and a rate."""


@dataclass(frozen=True)
class StackedRate:
    """Σ weight · rate over parts whose weights are above 0 and add up to 1.

    What is uncertain is which of the rates is right, and that rate. The `result` and the like are
    those of `smooth`.
    """

    smooth: GridRate
    parts: tuple[Part, ...]

    @property
    def result(self) -> SolverResult:
        """How well the smooth rate was solved."""
        return self.smooth.result

    @property
    def promised_gap(self) -> float:
        """The relative gap of the objective that the fit of the smooth rate promised."""
        return self.smooth.promised_gap

    @property
    def log_evidence(self) -> float:
        """The log evidence of the smooth rate."""
        return self.smooth.log_evidence

    @property
    def on_grid(self) -> StackedRate:
        """The function that is sampled and has the highest point: the rate itself."""
        return self

    @property
    def finest_sides(self) -> Floats:
        """The sides of the smallest cells that the rate tells apart, (d,)."""
        return np.min([rate.finest_sides for _, rate in self.parts], axis=0)

    def function(self, X: Floats) -> Floats:
        """The rate at each point, shape (n,)."""
        return sum((w * rate.function(X) for w, rate in self.parts), np.zeros(len(X)))

    def without(self, X: Floats) -> Floats:
        """The rate at each point if an event there had not been learned from, (n,)."""
        return sum((w * rate.without(X) for w, rate in self.parts), np.zeros(len(X)))

    def integral(self) -> float:
        """∫ of the rate over the window."""
        return sum(w * rate.integral() for w, rate in self.parts)

    def integrals(self, regions: Sequence[Window]) -> Floats:
        """∫ of the rate over the part of each region in the window, (r,)."""
        return sum((w * r.integrals(regions) for w, r in self.parts), np.zeros(len(regions)))

    def rate_draws(self, X: Floats, k: int) -> Floats:
        """About k equally likely values of the rate at each point, (n, k)."""
        return np.hstack([resampled(r.rate_draws(X, k), n) for n, r in self._quotas(k)])

    def count_draws(self, regions: Sequence[Window]) -> Floats:
        """Equally likely values of the expected count of each region, (r, k)."""
        quotas = self._quotas(RATE_DRAWS)
        return np.hstack([resampled(rate.count_draws(regions), n) for n, rate in quotas])

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that contain the rate at each point with probability `level`, (n,) each."""
        return interval_of_draws(self, X, level)

    def log_band(self, X: Floats, level: float) -> LogBand:
        """The same on the log scale: a center, and the distances of the bounds from it."""
        return log_band_of_draws(self, X, level)

    def sample(self, n: int, random_state: np.random.RandomState) -> Floats:
        """n independent points with density λ/∫λ, shape (n, d)."""
        masses = np.array([w * rate.integral() for w, rate in self.parts])
        counts = random_state.multinomial(n, masses / masses.sum())
        found = [
            rate.on_grid.sample(int(count), random_state)
            for count, (_, rate) in zip(counts, self.parts, strict=True)
        ]
        return random_state.permutation(np.concatenate(found))

    def peak(self) -> tuple[Floats, float]:
        """The highest point that is found from those of the parts, and the rate there."""
        X = np.concatenate([rate.candidates() for _, rate in self.parts])
        trees = (rate.statistic.depth for _, rate in self.parts if isinstance(rate, TreeRate))
        return climbed(self.function, X, CellLattice(self.smooth.function.window), max(trees))

    def _quotas(self, k: int) -> list[tuple[int, GridRate | TreeRate]]:
        """How many of k values each part gives."""
        return [(max(round(w * k), 1), rate) for w, rate in self.parts]
