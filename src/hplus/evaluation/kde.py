"""An edge-corrected kernel density estimate: the baseline that a rate should beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np
from sklearn.utils import check_random_state

from hplus._checks import Bools, Floats, Ints, check_scales, shown
from hplus.estimators.base import Estimator, check_fitted, check_points, check_weights
from hplus.evaluation.smoothing import (
    LeaveOneOut,
    best_factor,
    edge_corrected_rates,
    leave_one_out,
)
from hplus.grids import TensorGrid, integrals_within
from hplus.windows import Window, check_window

GRID_NODES = {1: 1025, 2: 401, 3: 81}
"""Number of nodes on the longest side, by the number of axes."""

MAX_BANDWIDTH, MIN_BANDWIDTH, N_BANDWIDTHS = 1.0 / 2.0, 1.0 / 300.0, 30
"""The range of bandwidths to try, relative to the longest side, and their number."""

MAX_SCORED_EVENTS = 20_000
"""Events left out in turn to choose a bandwidth; a random sample if there are more."""


@final
class EdgeCorrectedKDE(Estimator):
    """A rate by Gaussian kernel smoothing, divided by the kernel's mass inside the window.

    λ(x) ∝ Σ_i w_i k_h(x - x_i) / ∫_W k_h(x - u) du, scaled so that ∫_W λ = Σ_i w_i. Events are
    binned on a grid and λ is linear between its nodes, so integrals are exact. On a `Cycle` the
    kernel wraps around.

    Parameters
    ----------
    window : Window
        Where events can occur, with 1 to 3 axes.
    bandwidth : float, tuple of float or "auto", default="auto"
        h, the standard deviation of the kernel, one for all axes or one for each. "auto" maximises
        the leave-one-out likelihood over 30 values from 1/300 (in 3-D: 1/80) to 1/2 of the longest
        side, refined by a parabola; axes with the same unit share a bandwidth.

    Attributes
    ----------
    bandwidth_ : array (d,)
        h on each axis.
    grid_ : TensorGrid
    rates_ : array of the grid's shape
        λ at the nodes.
    """

    def __init__(self, window: Window, bandwidth: float | Sequence[float] | str = "auto") -> None:
        self.window = window
        self.bandwidth = bandwidth

    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Learn from events X (n, d) in the window; y is ignored."""
        check_window("window", self.window, *GRID_NODES)
        sides = self.window.longest_sides()
        self.grid_ = _grid(self.window, sides)
        X = self.window.require("X", check_points(self, X, reset=True))
        weights = check_weights("sample_weight", sample_weight, len(X))
        X, weights = X[weights > 0.0], weights[weights > 0.0]
        self.bandwidth_ = self._bandwidth(X, weights, sides)
        binned, areas = self.grid_.bin(X, weights), self.grid_.integrals(self.window)
        self.rates_ = edge_corrected_rates(self.grid_, binned, areas, self.bandwidth_)
        return self

    def predict(self, X: Any) -> Floats:
        """λ(X[i]) >= 0, in events per unit of volume, shape (n,)."""
        check_fitted(self, "rates_")
        X = self.window.require("X", check_points(self, X, reset=False))
        return self.grid_.interpolate(self.rates_, X)

    def expected_count(self, regions: Window | Sequence[Window]) -> float | Floats:
        """∫λ over each region within the window, shape (r,); a float for a single window."""
        check_fitted(self, "rates_")
        if isinstance(regions, Window):
            areas = integrals_within(self.grid_, regions, self.window)
            return float((self.rates_ * areas).sum())
        return np.array([self.expected_count(region) for region in regions], dtype=np.float64)

    def score(self, X: Any, y: None = None) -> float:
        """The mean of log(λ(X[i])/∫λ); -inf if an event is too far from those of the fit."""
        with np.errstate(divide="ignore"):
            log_rates = np.log(self.predict(X))
        return float(np.mean(log_rates) - np.log(self.expected_count(self.window)))

    def _bandwidth(self, X: Floats, weights: Floats, sides: Floats) -> Floats:
        """h on each axis, shape (d,), given or learned."""
        if isinstance(self.bandwidth, str) and self.bandwidth == "auto":
            return _learned(self.grid_, X, weights, self.window, sides)
        if isinstance(self.bandwidth, str):
            raise ValueError(
                f'bandwidth must be "auto" or a positive number, got {shown(self.bandwidth)}.'
            )
        return _given(check_scales("bandwidth", self.bandwidth), self.grid_, self.window)


def _grid(window: Window, sides: Floats) -> TensorGrid:
    """Nodes on the bounding box of the window, equally dense on axes with the same unit."""
    low, high = window.bounds()
    cells = np.ceil((GRID_NODES[window.dimension] - 1) * (high - low) / sides).astype(int)
    return TensorGrid(tuple(low), tuple(high), tuple((cells + 1).tolist()), window.closed_axes())


def _given(bandwidth: float | tuple[float, ...], grid: TensorGrid, window: Window) -> Floats:
    """The given bandwidth on each axis, shape (d,); an error if the grid is too coarse for it."""
    if not isinstance(bandwidth, tuple) and len(set(window.axis_units)) > 1:
        raise ValueError(
            f"bandwidth must be a tuple with one number for each axis, since their units differ, "
            f"{window.axis_units}, got {shown(bandwidth)}."
        )
    if isinstance(bandwidth, tuple) and len(bandwidth) != window.dimension:
        raise ValueError(
            f"bandwidth must be one number or {window.dimension}, one for each axis, got "
            f"{shown(bandwidth)}."
        )
    h = np.broadcast_to(np.asarray(bandwidth), (window.dimension,))
    if np.any(h < grid.spacing):
        raise ValueError(
            f"bandwidth must be at least the spacing of the grid, {shown(grid.spacing.tolist())}, "
            f"got {shown(bandwidth)}."
        )
    return np.array(h)


def _learned(grid: TensorGrid, X: Floats, weights: Floats, window: Window, sides: Floats) -> Floats:
    """The bandwidth on each axis, shape (d,), with the largest leave-one-out likelihood.

    First one factor for all sides, then one for each unit in turn if there are several. A single
    event cannot be left out: it gets the widest bandwidth.
    """
    narrowest = max(MIN_BANDWIDTH, 1.0 / (GRID_NODES[window.dimension] - 1))
    factors = np.geomspace(MAX_BANDWIDTH, narrowest, N_BANDWIDTHS)
    if len(X) == 1:
        return MAX_BANDWIDTH * sides
    left_out = leave_one_out(grid, X, weights, window, _scored(len(X)), sides)
    h = sides * best_factor(lambda factor: left_out.score(factor * sides), factors)
    groups = np.array(window.axis_groups())
    for group in np.unique(groups) if len(set(groups)) > 1 else ():
        h = _one_unit(left_out, h, sides, groups == group, factors[::3])
    return h


def _one_unit(
    left_out: LeaveOneOut, h: Floats, sides: Floats, chosen: Bools, factors: Floats
) -> Floats:
    """h with the best factor on the chosen axes."""

    def changed(factor: float) -> Floats:
        return np.where(chosen, factor * sides, h)

    return changed(best_factor(lambda factor: left_out.score(changed(factor)), factors))


def _scored(n: int) -> Ints:
    """The rows to leave out in turn: all, or a random sample that is always the same."""
    if n <= MAX_SCORED_EVENTS:
        return np.arange(n)
    return np.sort(check_random_state(0).choice(n, MAX_SCORED_EVENTS, replace=False))
