"""What a rate model needs of the events: their weights, binned on a grid in one pass."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from hplus._checks import Floats, Seed, check_count, check_random_state, frozen_array, shown
from hplus._values import Value, value
from hplus.grids import TensorGrid
from hplus.windows import Window, check_window

COARSE_CELLS = {1: 128, 2: 128, 3: 24}
"""Cells of the coarsest grid along the longest side, by dimension: where priors are compared."""

GRID_DOUBLINGS = {1: 7, 2: 2, 3: 1}
"""How often its cells are halved to give the finest grid, on which events are binned."""

EVENT_FOLDS = 5
"""Random parts of the events, each of which can be held out."""


def finest_grid(window: Window) -> TensorGrid:
    """The grid around a window on which events are binned; its cells are about square."""
    check_window("window", window, *COARSE_CELLS)
    d = window.dimension
    low, high = window.bounds()
    shares = (high - low) / window.longest_sides()
    cells = np.maximum(np.round(COARSE_CELLS[d] * shares).astype(int), 4) * 2 ** GRID_DOUBLINGS[d]
    if np.any((high - low) / cells <= np.spacing(np.maximum(np.abs(low), np.abs(high)))):
        raise ValueError(
            f"window must be wide enough for double precision to tell {cells.max()} points of a "
            f"side apart, got sides {shown((high - low).tolist())} at {shown(low.tolist())}: move "
            "its origin to 0."
        )
    shape = tuple((cells + 1).tolist())
    return TensorGrid(tuple(low.tolist()), tuple(high.tolist()), shape, window.closed_axes())


@final
@value
class Statistic(Value):
    """All that a fit of `Intensity` needs of the events; statistics of parts are added with `+`.

    counts[k, g] = Σ_i w_i φ_g(x_i) over the events in part k, φ_g the hat function of node g of a
    fine grid on the window. Binning takes one pass over the data, in parts if need be.

    >>> from hplus import Interval
    >>> monday = Statistic.of(Interval(0, 24), [[9.5], [17.2]])
    >>> tuesday = Statistic.of(Interval(0, 24), [[8.1]])
    >>> (monday + tuesday).total
    3.0

    Parameters
    ----------
    window : Window
    counts : array of shape (5, *nodes)
        Binned weights of the five random parts; `of` computes them.
    events : int
        The number of events.
    """

    window: Window
    counts: Floats
    events: int

    def __post_init__(self) -> None:
        counts = frozen_array("counts", self.counts)
        shape = (EVENT_FOLDS, *finest_grid(self.window).shape)
        if counts.shape != shape or np.any(counts < 0.0):
            raise ValueError(
                f"counts must be at least 0 and of shape {shape}, got {shown(self.counts)}: use "
                "Statistic.of(window, X)."
            )
        self._set(counts=counts, events=check_count("events", self.events, least=0))

    @classmethod
    def of(
        cls, window: Window, X: Any, sample_weight: Any = None, random_state: Seed = 0
    ) -> Statistic:
        """The statistic of events X (n, d) with weights (n,), ones by default."""
        check_window("window", window)
        X = window.require("X", X)
        w = _weights(sample_weight, len(X))
        grid = finest_grid(window)
        part = check_random_state(random_state).randint(EVENT_FOLDS, size=len(X))
        counts = np.stack([grid.bin(X[part == k], w[part == k]) for k in range(EVENT_FOLDS)])
        return cls(window, counts, len(X))

    @property
    def grid(self) -> TensorGrid:
        """The grid that events are binned on."""
        return finest_grid(self.window)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.counts.sum())

    def __add__(self, other: Statistic) -> Statistic:
        if not isinstance(other, Statistic):
            return NotImplemented
        if other.window != self.window:
            raise ValueError(
                f"statistics must share one window to be added, got {shown(self.window)} and "
                f"{shown(other.window)}."
            )
        return Statistic(self.window, self.counts + other.counts, self.events + other.events)


def _weights(weights: Any, n: int) -> Floats:
    if weights is None:
        return np.ones(n)
    w = frozen_array("sample_weight", weights)
    if w.shape != (n,) or np.any(w < 0.0):
        got = f"{w.min():.6g}" if w.shape == (n,) else f"shape {w.shape}"
        raise ValueError(
            f"sample_weight must hold one number of at least 0 for each of the {n} events, got "
            f"{got}."
        )
    return w
