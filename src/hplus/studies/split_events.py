"""SplitEvents: the events of a file in statistics, some to learn from and some to predict."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hplus._checks import Floats
from hplus.rates.map_learning import joint_statistic
from hplus.rates.statistic import Statistic, merged, with_another
from hplus.studies.event_weights import WeightScale
from hplus.studies.events import Sample
from hplus.studies.frames import Frame
from hplus.studies.splits import HELD, Split
from hplus.windows import Product, Window

Statistics = tuple[Statistic, ...]
"""A statistic of each window that is learned separately."""

Parts = tuple[Statistics, ...]
"""Statistics of parts of the events, for each such window."""


def binned(windows: Sequence[Window], X: Floats, weights: Floats | None = None) -> Statistics:
    """The statistics of events (n, d), whose columns are split among the windows."""
    ends = np.cumsum([window.dimension for window in windows])
    parts = zip(windows, np.split(X, ends[:-1], axis=1), strict=True)
    return tuple(Statistic.of(window, part, weights) for window, part in parts)


class SplitEvents:
    """Events of a file, split into those to learn from, those held out and those in gaps.

    Of each there are the statistics, and of the first two a sample of the events themselves, with
    their times. Places and times are learned separately; `joint` has both, if times are folded
    into a cycle. Weights are counted in the unit of their `scale`, and the samples are drawn in
    proportion to them.
    """

    def __init__(
        self, frame: Frame, split: Split, seed: int, scale: WeightScale | None = None
    ) -> None:
        self.scale = scale
        self.windows: tuple[Window, ...] = (frame.window,)
        if frame.region is not None and frame.clock is not None:
            self.windows = (frame.region, frame.clock.window)
        self.split, self._rng = split, np.random.RandomState(seed)
        self._statistics: dict[int, Parts] = {}
        self._joint_window = frame.window if len(self.windows) == 2 and frame.cycle else None
        self._joint: dict[int, Statistics] = {}
        d = frame.window.dimension
        self.learned_sample, self.held_sample = Sample(d), Sample(d)

    def add(self, X: Floats, seconds: Floats, weights: Floats | None = None) -> None:
        """Events (n, d), their times (n,), and what each one counts (n,), None for 1."""
        u, v = self._rng.random_sample((len(X), 2)).T
        part = self.split.parts(seconds, u)
        drawn, masses = np.ones(len(X), dtype=bool), weights
        if weights is not None and self.scale is not None:
            masses = weights / self.scale.unit
            drawn = self._rng.random_sample(len(X)) * self.scale.largest < weights
        for k in np.unique(part).tolist():
            known = self._statistics.get(k, ((),) * len(self.windows))
            own = None if masses is None else masses[part == k]
            new = binned(self.windows, X[part == k], own)
            self._statistics[k] = tuple(map(with_another, known, new))
            if isinstance(self._joint_window, Product):
                both = joint_statistic(self._joint_window, X[part == k], own)
                self._joint[k] = with_another(self._joint.get(k, ()), both)
        for sample, chosen in ((self.learned_sample, part >= 0), (self.held_sample, part == HELD)):
            some = chosen & drawn
            sample.add(X[some], seconds[some], v[some])

    def sizes(self) -> tuple[int, int]:
        """How many events there are to learn from, and to be predicted."""
        if self.scale is not None:
            return len(self.learned_sample.X), len(self.held_sample.X)
        return self.learned()[0].events, self.held[0].events

    @property
    def everything(self) -> Statistics:
        """The statistics of all events."""
        return self._merged(lambda k: True)

    @property
    def sampled(self) -> Floats:
        """The sample of all events but those in gaps, (n, d)."""
        return np.concatenate([self.learned_sample.X, self.held_sample.X])

    @property
    def held(self) -> Statistics:
        """The statistics of the events held out."""
        return self._merged(lambda k: k == HELD)

    def learned(self, before: int | None = None) -> Statistics:
        """The statistics of the events to learn from, of all spans of time or the first ones."""
        return self._merged(lambda k: k >= 0 and (before is None or k < before))

    def joint(self, before: int | None = None, *, everything: bool = False) -> Statistic | None:
        """The statistic of places and times together: as `learned`, or of all events."""
        found = [
            statistic
            for k, parts in self._joint.items()
            if everything or (k >= 0 and (before is None or k < before))
            for statistic in parts
        ]
        return merged(found) if found else None

    def _merged(self, wanted: Callable[[int], bool]) -> Statistics:
        none = binned(self.windows, np.zeros((0, sum(w.dimension for w in self.windows))))
        found = [parts for k, parts in self._statistics.items() if wanted(k)]
        return tuple(
            merged([empty, *(s for parts in found for s in parts[i])])
            for i, empty in enumerate(none)
        )
