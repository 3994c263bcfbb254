"""TreeStream: the batch rate by trees of events that keep arriving, in any order."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, Self, final

import numpy as np

from hplus._checks import Floats, shown
from hplus.estimators.intensity import Intensity
from hplus.rates.accumulator import CellAccumulator
from hplus.rates.statistic import Statistic
from hplus.streaming.engine.learner import StreamStatus
from hplus.streaming.exact_sums import as_float, exact_sum
from hplus.streaming.fading import epochs, faded, kept, shifted, weight, weight_units
from hplus.streaming.methods import Tree
from hplus.streaming.stepped_rate import gaps_between
from hplus.windows import Window

ONLY_EPOCH = 0
"""The epoch of all events if nothing is forgotten."""


@final
class TreeStream:
    """Counts of events in the cells of a window, from which trees are learned when asked for.

    With a half-life there are counts of each of the last epochs; see `fading`.
    """

    def __init__(self, window: Window, method: Tree, half_life: float) -> None:
        self.window, self.method, self.half_life = window, method, half_life
        self._cells = {ONLY_EPOCH: CellAccumulator(window)} if half_life == math.inf else {}
        self._events, self._exposure, self._latest = 0, 0, -math.inf
        self._answers: tuple[int, int, Intensity | None] = (-1, 0, None)

    def learn(self, X: Floats, exposure: Floats | None, times: Floats | None) -> None:
        """Add events (n, d) of the window; see `StreamingIntensity.partial_fit`."""
        if self.half_life == math.inf:
            self._cells[ONLY_EPOCH].add(X)
        else:
            self._fade(X, self._arrivals(len(X), exposure) if times is None else times)
        self._exposure += 0 if exposure is None else exact_sum(exposure)
        self._events += len(X)

    def learn_one(self, x: Floats) -> None:
        """Add one event (1, d) without exposure."""
        if self.half_life == math.inf:
            self._cells[ONLY_EPOCH].add_one(x)
            self._events += 1
        else:
            self.learn(x, None, None)

    def advance(self, gap: float) -> None:
        """Add exposure without an event."""
        if self.half_life < math.inf:
            self._latest = max(self._latest, 0.0) + gap
        self._exposure += exact_sum(np.array([gap]))

    def copy(self) -> TreeStream:
        """Another stream with the same events, made at once."""
        other = TreeStream(self.window, self.method, self.half_life)
        other._cells = {epoch: cells.copy() for epoch, cells in self._cells.items()}
        other._events, other._exposure, other._latest = self._events, self._exposure, self._latest
        return other

    def absorb(self, other: TreeStream) -> None:
        """The events of another stream by the same times, which must not be used afterwards."""
        for epoch, cells in other._cells.items():
            self._cells.setdefault(epoch, CellAccumulator(self.window)).absorb(cells)
        self._events, self._exposure = (
            self._events + other._events,
            self._exposure + other._exposure,
        )
        self._latest = max(self._latest, other._latest)
        for epoch in [e for e in self._cells if not kept(e, self._epoch)]:
            del self._cells[epoch]

    def statistic(self) -> Statistic:
        """All events, with weights relative to the beginning of the newest epoch."""
        if self.half_life == math.inf:
            return self._cells[ONLY_EPOCH].statistic()
        newest = self._epoch
        parts = {e: cells.statistic() for e, cells in self._cells.items() if kept(e, newest)}
        return faded(parts or {newest: Statistic.of(self.window, self._none)}, newest)

    @property
    def latest_weight(self) -> float:
        """The weight of an event that happens now, in the unit of the statistic."""
        if self.half_life == math.inf or self._latest == -math.inf:
            return 1.0
        return float(weight(np.array(self._latest), self.half_life, self._epoch))

    @property
    def total(self) -> float:
        """Σ 2^(-age/h) over all events, but for rounding."""
        newest = 0 if self.half_life == math.inf else self._epoch
        parts = [shifted(cells.total, newest - e) for e, cells in sorted(self._cells.items())]
        return sum(parts) / self.latest_weight

    @property
    def exposure(self) -> float:
        """The exposure that counts: ∫ 2^(-age/h) until now."""
        total = as_float(self._exposure)
        if self.half_life == math.inf:
            return total
        return -self.half_life / math.log(2.0) * math.expm1(-total * math.log(2.0) / self.half_life)

    def answers(self, exposed: bool) -> Intensity:
        """The batch estimator, fitted to all events so far."""
        events, exposure, found = self._answers
        if found is None or (events, exposure) != (self._events, self._exposure):
            E = self.latest_weight * (self.exposure if exposed else 1.0)
            found = Intensity(self.window, model="tree", random_state=self.method.random_state)
            with warnings.catch_warnings():  # what was said when the stream began
                warnings.filterwarnings("ignore", "window looks like degrees")
                found.fit(self.statistic(), exposure=E)
            self._answers = (self._events, self._exposure, found)
        return found

    @property
    def status(self) -> StreamStatus:
        """How many events were learned from, and how many cells hold them."""
        cells = sum(len(cells.statistic().codes) for cells in self._cells.values())
        return StreamStatus(self._events, cells, 0, 0, 0.0, 0.0)

    def saved(self) -> tuple[dict[str, Any], ...]:
        """All that is to be kept, as numbers and statistics."""
        order = sorted(self._cells)
        return (
            {
                "epochs": np.array(order, dtype=np.int64),
                "statistics": tuple(self._cells[e].statistic() for e in order),
                "events": self._events,
                "exposure": self._exposure,
                "latest": self._latest,
            },
        )

    def restored(self, saved: Mapping[str, Any]) -> Self:
        """This stream with what was saved of another one."""
        windows = {statistic.window for statistic in saved["statistics"]}
        if windows - {self.window}:
            raise ValueError(
                f"state_ must hold statistics of the window, got one of {shown(windows.pop())}: "
                "load the model again."
            )
        pairs = zip(saved["epochs"].tolist(), saved["statistics"], strict=True)
        self._cells = {e: CellAccumulator(self.window, statistic) for e, statistic in pairs}
        self._events, self._exposure = int(saved["events"]), int(saved["exposure"])
        self._latest = float(saved["latest"])
        return self

    @property
    def _epoch(self) -> int:
        """The newest epoch."""
        if self._latest == -math.inf:
            return ONLY_EPOCH
        return int(epochs(np.array(self._latest), self.half_life))

    @property
    def _none(self) -> Floats:
        return np.zeros((0, self.window.dimension))

    def _arrivals(self, n: int, exposure: Floats | None) -> Floats:
        """The times of n events by exposure or, without one, by their number so far."""
        gaps = gaps_between(n, exposure)
        return np.cumsum(np.concatenate([[max(self._latest, 0.0)], gaps]))[1:]

    def _fade(self, X: Floats, times: Floats) -> None:
        """Add events to the cells of their epochs, and drop those that no longer count."""
        self._latest = max(self._latest, float(times.max(initial=-math.inf)))
        newest, own = self._epoch, epochs(times, self.half_life)
        for epoch in np.unique(own).tolist():
            if kept(epoch, newest):
                here = own == epoch
                cells = self._cells.setdefault(epoch, CellAccumulator(self.window))
                cells.add(X[here], weight_units(times[here], self.half_life, epoch))
        for epoch in [e for e in self._cells if not kept(e, newest)]:
            del self._cells[epoch]
