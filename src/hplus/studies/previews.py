"""The rate of a stream on a coarse grid: cheap enough to update all the time."""

from __future__ import annotations

import numpy as np

from hplus._checks import Bools, Floats
from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.streaming.engine.nodes import nodes_within
from hplus.streaming.intensity import StreamingIntensity
from hplus.streaming.methods import PMD, Refit, Tree, as_method

SHAPES = {1: (121,), 2: (31, 31), 3: (13, 13, 13)}
"""Nodes on each axis: their distance is below the width of a stream's kernel."""


class Preview:
    """The shape of a rate, λ|W|/∫λ, at the nodes of a coarse grid, as of the last update.

    It does not change between updates, so that it predicts the events that come after one. The
    method `Refit` takes seconds to evaluate: its preview is never updated. That of `Tree` is a
    histogram: trees are learned when a rate is asked for.
    """

    def __init__(self, model: StreamingIntensity) -> None:
        self._model, self._method, window = model, as_method(model.method), model.window
        low, high = window.bounds()
        shape = SHAPES[window.dimension]
        self.grid = TensorGrid(tuple(low.tolist()), tuple(high.tolist()), shape)
        self._inside = nodes_within(self.grid, window)
        self.shape = np.where(self._inside.which, 1.0, np.nan).reshape(shape)
        self._sum, self._events = 0.0, 0
        self._counts = np.ones(self.grid.size)
        if isinstance(self._method, Tree) and hasattr(model, "state_"):
            cells = model.statistic_
            weights = cells.masses * (model.effective_events_ / cells.total)
            self._count(cells.lattice.centers(cells.codes, cells.depth), weights)

    def update(self) -> None:
        """Evaluate what has been learned."""
        if not hasattr(self._model, "state_") or isinstance(self._method, Refit):
            return
        nodes, shares, which = self._inside
        f = self._at(nodes, which)
        self.shape[which.reshape(self.shape.shape)] = f / (shares @ f)

    def _at(self, nodes: Floats, which: Bools) -> Floats:
        """The rate at the nodes inside the window, up to a factor."""
        if isinstance(self._method, Tree):
            # the nodes of hat functions at edges stand for less of the window
            return self._counts[which] / (len(nodes) * self._inside.shares)
        if isinstance(self._method, PMD):
            rate = self._model.rate_
            assert isinstance(rate, GridFunction)
            return rate.grid.interpolate(rate.values, nodes)
        z = self._model.function_(nodes)
        return np.exp(z - z.max())

    def _count(self, X: Floats, weights: Floats | None = None) -> None:
        """Add events to the histogram, each at the nearest node."""
        low, spacing = np.array(self.grid.low), np.array(self.grid.spacing)
        places = np.rint((X - low) / spacing).astype(np.int64)
        flat = np.ravel_multi_index(tuple(places.T), self.grid.shape, mode="clip")
        self._counts += np.bincount(flat, weights, minlength=self.grid.size)

    def score_events(self, X: Floats) -> None:
        """Score events (n, d) that have not been learned yet."""
        if isinstance(self._method, Refit):
            return
        f = self.grid.interpolate(np.nan_to_num(self.shape), X)
        self._sum -= float(np.sum(np.log(np.maximum(f, 1e-13))))
        self._events += len(X)
        if isinstance(self._method, Tree):
            self._count(X)

    def loss(self) -> float:
        """The mean of -log(λ(x)|W|/∫λ) over the events scored since the last call, or NaN.

        It is 0 for a constant rate, and lower is better.
        """
        mean = self._sum / self._events if self._events else np.nan
        self._sum, self._events = 0.0, 0
        return mean
