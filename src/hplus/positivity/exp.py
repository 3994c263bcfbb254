"""Functions given by f = exp(z) at the nodes of a grid: non-negative, with exact integrals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from hplus._checks import (
    Floats,
    Ints,
    Seed,
    check_count,
    check_nonnegative,
    check_random_state,
    frozen_array,
    shown,
)
from hplus._values import Value, value
from hplus.grids import TensorGrid, integrals_near
from hplus.windows import Box, Window, check_window
from hplus.windows.geometry import product_points

MAX_DRAWS_PER_ROUND = 2**20
"""Points drawn at a time, before those outside the window are dropped."""


@final
@value
class GridFunction(Value):
    """f(x) = Σ_g values[g] φ_g(x) on a window, φ_g the hat function of node g, so f >= 0.

    Integrals, samples and the peak are those of f on the window. Values are computed at any point:
    the caller checks that points lie in the window.

    >>> from hplus.windows import Interval
    >>> f = GridFunction(Interval(0, 2), TensorGrid((0,), (2,), (3,)), [1.0, 3.0, 0.0])
    >>> f([[0.5], [1.5]]).tolist(), f.integral(), f.integral(Interval(0, 1))
    ([2.0, 1.5], 3.5, 2.0)

    Parameters
    ----------
    window : Window
    grid : TensorGrid
        Its box must cover the window.
    values : array of shape grid.shape
    """

    window: Window
    grid: TensorGrid
    values: Floats

    __array_ufunc__ = None  # array * f calls __rmul__, which raises

    def __post_init__(self) -> None:
        _check_grid(self.window, self.grid)
        values = frozen_array("values", self.values)
        if values.shape != self.grid.shape or np.any(values < 0.0):
            got = f"{values.min()}" if values.shape == self.grid.shape else f"shape {values.shape}"
            raise ValueError(
                f"values must be one number of at least 0 for each node, shape {self.grid.shape}, "
                f"got {got}."
            )
        self._set(values=values)

    def __call__(self, X: Any) -> Floats:
        """f(X[i]) >= 0, shape (n,)."""
        return self.grid.interpolate(self.values, X)

    def gradient(self, X: Any) -> Floats:
        """∇f(X[i]), shape (n, d); between two cells, that of the cell on the right."""
        return self.grid.slopes(self.values, X)

    def integral(self, region: Window | None = None) -> float:
        """Σ_g values[g] ∫φ_g = ∫f over the part of a region in the window; None for all of it."""
        if region is not None:
            return float(self.integrals([region])[0])
        with np.errstate(over="ignore"):
            return float(_finite(np.array([np.sum(self._hats * self.values)]))[0])

    def integrals(self, regions: Sequence[Window]) -> Floats:
        """∫f over the part of each region in the window, shape (r,)."""
        near = integrals_near(self.grid, regions, self.window)
        with np.errstate(over="ignore"):
            return _finite(np.array([np.sum(hats * self.values[at]) for at, hats in near], float))

    def sample(self, n: int, random_state: Seed = None) -> Floats:
        """n independent points of the window with density f/∫f, shape (n, d).

        A node g is drawn with weight values[g] ∫φ_g, then a point with density φ_g, until it is
        inside the window.
        """
        n, rng = check_count("n", n, least=0), check_random_state(random_state)
        shares, accepted = self._shares()
        found = [np.empty((0, self.grid.dimension))]
        while (missing := n - sum(map(len, found))) > 0:
            tries = min(MAX_DRAWS_PER_ROUND, int(1.1 * missing / accepted) + 8)
            nodes = np.unravel_index(rng.choice(self.grid.size, tries, p=shares), self.grid.shape)
            X = _near(self.grid, np.stack(nodes, axis=1), rng)
            found.append(X[self.window.contains(X)][:missing])
        return np.concatenate(found)

    def peak(self) -> tuple[Floats, float]:
        """Where f is largest, shape (d,), and its value there.

        Exact for boxes; in a polygon, the largest value at the nodes inside it or, if there are
        none, at the nodes of a quadrature.
        """
        low, high = self.window.bounds()
        # on a box f is largest at a node, or where a grid line meets the border
        axes = map(np.clip, self.grid.axes, low, high)
        X = product_points(axes)
        X = X[self.window.contains(X)]
        X = X if len(X) else self.window.quadrature(4)[0]
        f = self(X)
        return X[np.argmax(f)], float(f.max())

    def __mul__(self, number: float) -> GridFunction:
        """α f for a number α >= 0."""
        factor = check_nonnegative("the factor of a grid function", number)
        with np.errstate(over="ignore"):
            return GridFunction(self.window, self.grid, factor * self.values)

    __rmul__ = __mul__

    @cached_property
    def _hats(self) -> Floats:
        """∫φ_g over the window, array of the grid's shape."""
        return self.grid.integrals(self.window)

    def _shares(self) -> tuple[Floats, float]:
        """The probability of each node (G,), and that a point then falls in the window."""
        box = self.grid.integrals(Box(self.grid.low, self.grid.high))
        scaled = self.values / max(self.values.max(), np.finfo(float).tiny)
        # points drawn from a hat outside the window would all be dropped
        masses = np.where(self._hats > 0.0, scaled * box, 0.0)
        inside = float(np.sum(scaled * self._hats))
        if inside <= 0.0:
            raise ValueError(
                "values must have a positive integral over the window to draw points, got 0."
            )
        return masses.ravel() / masses.sum(), inside / float(masses.sum())


def _finite(integrals: Floats) -> Floats:
    if np.any(integrals == np.inf):
        raise OverflowError("values must have a finite integral, got inf: rescale f.")
    return integrals


def _check_grid(window: Window, grid: TensorGrid) -> None:
    check_window("window", window)
    if not isinstance(grid, TensorGrid):
        raise TypeError(f"grid must be a TensorGrid, got {shown(grid)}.")
    low, high = window.bounds()
    covers = grid.dimension == len(low) and np.all(grid.low <= low) and np.all(high <= grid.high)
    if not covers:
        raise ValueError(
            f"grid must cover the window from {low.tolist()} to {high.tolist()}, got {shown(grid)}."
        )


def _near(grid: TensorGrid, nodes: Ints, rng: np.random.RandomState) -> Floats:
    """One point for each row of indices (n, d) of nodes, with density φ_g/∫φ_g on the box."""
    last = np.subtract(grid.shape, 1)
    # P(t <= s) = 1 - (1 - s)² for the distance t from the node, in cells
    t = 1.0 - np.sqrt(rng.random_sample(nodes.shape))
    right = (rng.random_sample(nodes.shape) < 0.5) & (nodes < last) | (nodes == 0)
    X = np.add(grid.low, grid.spacing * (nodes + np.where(right, t, -t)))
    return np.clip(X, grid.low, grid.high)
