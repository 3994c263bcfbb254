"""SteppedRate: a rate learned on atoms or nodes, event by event."""

from __future__ import annotations

import warnings
from typing import Any, final

import numpy as np
from scipy.stats import spearmanr

from hplus._checks import Floats
from hplus.grids import TensorGrid
from hplus.positivity.exp import GridFunction
from hplus.streaming.base import UNIT_GAP
from hplus.streaming.engine.atoms import CURRENT
from hplus.streaming.engine.layout import EVENTS, EXPOSURE, SAVED_ARRAYS, SEEN
from hplus.streaming.engine.learner import Learner, StreamStatus
from hplus.streaming.engine.nodes import nodes_within
from hplus.streaming.grid_answers import GridAnswers
from hplus.streaming.methods import PMD, Refit, SteppedMethod
from hplus.streaming.rate_setup import (
    RATE_RESOLUTION,
    REFIT_RESOLUTION,
    Resolution,
    density,
    mean_log,
    pmd_grid,
)
from hplus.streaming.refit import Snapshot, refitted, snapshot
from hplus.windows import Window

NO_TARGET = np.zeros(1)
"""The target of a single event, which rates do not use."""

LARGEST_DELAY = 32
"""Refit predicts from all events but the last, at most one in this many."""

STEEP = 1.0
"""By how much a log rate may change from node to node for a finer grid to be filled in."""

ORDER_EVENTS, LARGEST_ORDER = 300, 0.9
"""The first events, by which it is judged whether events come in order, and their largest rank
correlation with their order of arrival."""


@final
class SteppedRate:
    """The rate of a stream by a learner: all methods but Tree.

    `last` is the snapshot from which Refit predicts.
    """

    def __init__(
        self, window: Window, method: SteppedMethod, learner: Learner, last: Snapshot | None = None
    ) -> None:
        self.window, self.method, self.learner, self.last = window, method, learner, last
        self._order = None if isinstance(method, Refit) else OrderOfArrival(window)
        self._solution: tuple[Snapshot, tuple[Floats, Floats]] | None = None
        self._density: tuple[int, GridFunction] | None = None

    def learn(self, X: Floats, exposure: Floats | None, times: Floats | None) -> None:
        """Learn from events (n, d) one at a time; times are not used."""
        gaps = gaps_between(len(X), exposure)
        self._look(X)
        if isinstance(self.method, Refit):
            self._learn_between_snapshots(self.method, X, gaps)
        else:
            self.learner.learn(X, np.zeros(len(X)), gaps)

    def learn_one(self, x: Floats) -> None:
        """Learn from one event (1, d) without exposure."""
        if isinstance(self.method, Refit):
            self._learn_between_snapshots(self.method, x, UNIT_GAP)
        else:
            self._look(x)
            self.learner.learn(x, NO_TARGET, UNIT_GAP)

    def advance(self, gap: float) -> None:
        """Add exposure without an event."""
        self.learner.advance(gap)

    def answers(self, exposed: bool) -> GridAnswers:
        """The present rate."""
        exposure = float(self.learner.state.numbers[EXPOSURE]) if exposed else 1.0
        return GridAnswers(self.window, self.density(), self.total / exposure)

    @property
    def total(self) -> float:
        """Σ 2^(-age/h) over all events."""
        return float(self.learner.state.numbers[SEEN])

    @property
    def status(self) -> StreamStatus:
        """Counts of what has happened in the stream."""
        return self.learner.status

    def saved(self) -> tuple[dict[str, Any], ...]:
        """The learner's arrays."""
        return ({name: getattr(self.learner.state, name) for name in SAVED_ARRAYS},)

    def expansion(self) -> tuple[Floats, Floats]:
        """Centers and weights of z."""
        learner = self.learner
        if not isinstance(self.method, Refit):
            return learner.function(learner.rule.averaging >= 0.0)
        if self.last is None:
            return learner.function()
        if self._solution is None or self._solution[0] is not self.last:
            inside = nodes_within(REFIT_RESOLUTION.grid(learner.kernel, self.window), self.window)
            found = refitted(learner, self.last, inside, self.method.penalty)
            self._solution = (self.last, found)
        return self._solution[1]

    def density(self) -> GridFunction:
        """The rate divided by its integral, recomputed after new events."""
        at = int(self.learner.state.counts[EVENTS])
        if self._density is None or self._density[0] != at:
            self._density = (at, self._compute_density())
        return self._density[1]

    def _compute_density(self) -> GridFunction:
        learner = self.learner
        if isinstance(self.method, PMD):
            grid = pmd_grid(self.method, self.window)
            return density(
                self.window, grid, learner.state.rows[CURRENT, : grid.size], learner.rule
            )
        if not isinstance(self.method, Refit):
            return density(self.window, *self._on_grid(RATE_RESOLUTION), learner.rule)
        # what Refit solves holds at the nodes of its grid, and a steep z may rise between them
        grid, z = self._on_grid(REFIT_RESOLUTION)
        steps = (
            np.abs(np.diff(z.reshape(grid.shape), axis=j)).max() for j in range(len(grid.shape))
        )
        if max(steps) < STEEP:
            grid, z = self._on_grid(RATE_RESOLUTION)
        # it solves for z up to a constant
        return density(self.window, grid, z - mean_log(z, grid, self.window), learner.rule)

    def _on_grid(self, resolution: Resolution) -> tuple[TensorGrid, Floats]:
        """z at the nodes of a grid."""
        grid = resolution.grid(self.learner.kernel, self.window)
        return grid, self.learner.kernel.dot(grid.nodes(), *self.expansion())

    def _learn_between_snapshots(self, method: Refit, X: Floats, gaps: Floats) -> None:
        at, never, learner = 0, np.full(len(X), np.inf), self.learner
        while at < len(X):
            # when a snapshot is due depends only on the number of events
            last = 0 if self.last is None else int(self.last["events"])
            due = last + min(method.every, 1 + last // LARGEST_DELAY)
            part = slice(at, min(at + due - int(learner.state.counts[EVENTS]), len(X)))
            learner.learn(X[part], never[part], gaps[part])
            at = part.stop
            if learner.state.counts[EVENTS] == due:
                self.last = snapshot(learner)

    def _look(self, X: Floats) -> None:
        """Look at the first events of a stream, and warn if they come in order."""
        if self._order is None:
            return
        if self.learner.state.counts[EVENTS] > self._order.events or self._order.seen(X):
            self._order = None


class OrderOfArrival:
    """The first events of a stream: do they come in order along an axis of the window?"""

    def __init__(self, window: Window) -> None:
        self._axes = [j for j in range(window.dimension) if j not in window.closed_axes()]
        self._first: list[Floats] = []
        self.events = 0

    def seen(self, X: Floats) -> bool:
        """Add events (n, d); True once there are enough to tell."""
        self._first.append(X[: ORDER_EVENTS - self.events].copy())
        self.events += len(self._first[-1])
        if self.events < ORDER_EVENTS:
            return False
        for j in self._axes:
            column = np.concatenate(self._first)[:, j]
            if np.ptp(column) > 0.0:
                order = spearmanr(np.arange(ORDER_EVENTS), column).statistic
                if abs(order) > LARGEST_ORDER:
                    warnings.warn(_in_order(j), stacklevel=6)
                    break
        return True


def _in_order(axis: int) -> str:
    return (
        f"the first {ORDER_EVENTS} events come in order along axis {axis} of the window, and this "
        'method takes steps, so that late events count more: use method="tree", for which order '
        "does not matter."
    )


def gaps_between(n: int, exposure: Floats | None) -> Floats:
    """The exposure before each of n events; 1 each if none is given."""
    if exposure is None:
        return np.ones(n)
    gaps = np.full(n, float(exposure) / max(n, 1)) if exposure.ndim == 0 else exposure
    return np.require(gaps, requirements=("C", "W"))
