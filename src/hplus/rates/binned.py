"""BinnedStatistic: events on the nodes of a grid, which the exponential model works on."""

from __future__ import annotations

from typing import final

import numpy as np

from hplus._checks import Floats, check_count, frozen_array, shown
from hplus._values import Value, value
from hplus.grids import TensorGrid
from hplus.rates.statistic import EVENT_FOLDS, Statistic
from hplus.windows import Window, check_window

COARSE_CELLS = {1: 128, 2: 128, 3: 24}
"""Cells of the coarsest grid along the longest side, by dimension: where priors are compared."""

GRID_DOUBLINGS = {1: 7, 2: 2, 3: 1}
"""How often its cells are halved to give the finest grid, on which events are binned."""

FOLDS_OF_FEW, FEW_TO_FOLD = 10, 500
"""Parts of fewer events than this, of which five would compare priors by luck."""

CELLS_AT_ONCE = 2**20
"""Cells whose events are binned at once."""


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


def fold_count(statistic: Statistic) -> int:
    """How many parts events are split into: more of few events, but not on a line.

    Priors of a line are compared by their evidence, which does not need the parts.
    """
    few = statistic.window.dimension > 1 and statistic.events < FEW_TO_FOLD
    return FOLDS_OF_FEW if few else EVENT_FOLDS


def binned_folds(statistic: Statistic, grid: TensorGrid, seed: int) -> Floats:
    """Weights of events on the nodes of a grid around their window, by fold, (parts, *grid)."""
    parts, mean_weights = fold_count(statistic), statistic.masses / statistic.counts
    counts = np.zeros((parts, *grid.shape))
    for start in range(0, len(statistic.codes), CELLS_AT_ONCE):
        cells = slice(start, start + CELLS_AT_ONCE)
        centers = statistic.lattice.centers(statistic.codes[cells], statistic.depth)
        for k, fold in enumerate(statistic.folds(seed, parts, cells)):
            held = np.flatnonzero(fold)
            counts[k] += grid.bin(centers[held], (fold * mean_weights[cells])[held])
    return counts


@final
@value
class BinnedStatistic(Value):
    """Weights of events on the nodes of a grid: all that version 0.1.0 kept of the events.

    counts[k, g] = Σ_i w_i φ_g(x_i) over the events in part k, φ_g the hat function of node g.

    Parameters
    ----------
    window : Window
    counts : array of shape (parts, *nodes)
        Binned weights of random parts: five in version 0.1.0.
    events : int
        The number of events.
    """

    window: Window
    counts: Floats
    events: int

    def __post_init__(self) -> None:
        counts = frozen_array("counts", self.counts)
        shape = (EVENT_FOLDS, *finest_grid(self.window).shape)
        if counts.shape not in (shape, (FOLDS_OF_FEW, *shape[1:])) or np.any(counts < 0.0):
            raise ValueError(
                f"counts must be at least 0 and of shape {shape}, got {shown(self.counts)}: use "
                "BinnedStatistic.of(statistic, seed)."
            )
        self._set(counts=counts, events=check_count("events", self.events, least=0))

    @classmethod
    def of(cls, statistic: AnyStatistic, seed: int) -> BinnedStatistic:
        """Events at the centres of their cells; each part has its share of a cell's weight."""
        if isinstance(statistic, BinnedStatistic):
            return statistic
        counts = binned_folds(statistic, finest_grid(statistic.window), seed)
        return cls(statistic.window, counts, statistic.events)

    @classmethod
    def nowhere(cls, statistic: Statistic) -> BinnedStatistic:
        """The grid without the events, for those who only need to know what was observed."""
        grid = finest_grid(statistic.window)
        return cls(statistic.window, np.zeros((EVENT_FOLDS, *grid.shape)), statistic.events)

    @property
    def grid(self) -> TensorGrid:
        """The grid that events are binned on."""
        return finest_grid(self.window)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.counts.sum())

    def __add__(self, other: BinnedStatistic) -> BinnedStatistic:
        if isinstance(other, Statistic):
            return self.__radd__(other)
        if not isinstance(other, BinnedStatistic):
            return NotImplemented
        if other.window != self.window:
            raise ValueError(
                f"statistics must share one window to be added, got {shown(self.window)} and "
                f"{shown(other.window)}."
            )
        return BinnedStatistic(self.window, self.counts + other.counts, self.events + other.events)

    def __radd__(self, other: object) -> BinnedStatistic:
        if not isinstance(other, Statistic):
            return NotImplemented
        raise ValueError(
            "a statistic of version 0.1.0 cannot be added to one of this version, got one of "
            f"{self.events} and one of {other.events} events: compute both from the events."
        )


AnyStatistic = Statistic | BinnedStatistic
"""Events in cells, or on a grid as version 0.1.0 kept them."""
