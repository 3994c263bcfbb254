"""What every fitted rate can be asked, whatever model it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from hplus._checks import Floats
from hplus.rates.bands import LogBand
from hplus.solvers.result import SolverResult
from hplus.windows import Window


class Sampler(Protocol):
    """A rate that can be sampled and searched for its highest point."""

    def sample(self, n: int, random_state: np.random.RandomState) -> Floats:
        """n independent points with density λ/∫λ, shape (n, d)."""

    def peak(self) -> tuple[Floats, float]:
        """The point with the highest rate, shape (d,), and the rate there."""


class FittedRate(Protocol):
    """A rate of events on a window, with its uncertainty."""

    @property
    def function(self) -> Callable[[Floats], Floats]:
        """The rate at points (n, d), shape (n,)."""

    @property
    def on_grid(self) -> Sampler:
        """The rate for samples and the highest point."""

    @property
    def result(self) -> SolverResult:
        """How well the fit was solved."""

    def integral(self) -> float:
        """∫ of the rate over the window."""

    def integrals(self, regions: Sequence[Window]) -> Floats:
        """∫ of the rate over the part of each region in the window, shape (r,)."""

    def interval(self, X: Floats, level: float) -> tuple[Floats, Floats]:
        """Bounds that contain the rate at each point with probability `level`, (n,) each."""

    def log_band(self, X: Floats, level: float) -> LogBand:
        """The same on the log scale: a center, and the distances of the bounds from it."""

    def count_draws(self, regions: Sequence[Window]) -> Floats:
        """Equally likely values of the expected count of each region, shape (r, k)."""
