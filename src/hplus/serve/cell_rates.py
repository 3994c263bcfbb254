"""CellRates: what a model expects in cells of the window, at any time."""

from __future__ import annotations

from itertools import pairwise, product
from typing import final

import numpy as np

from hplus._checks import Floats, Ints
from hplus._values import Value, value
from hplus.alerts.overlapping_blocks import OverlappingBlocks
from hplus.alerts.watch import WEEK
from hplus.estimators.intensity import Intensity
from hplus.estimators.separable import SeparableIntensity
from hplus.studies.event_study import EventStudy
from hplus.studies.frames import Frame
from hplus.studies.spans import CYCLES, SECONDS, Clock
from hplus.windows import Box, Interval, Window

CELLS_ALONG = {1: 64, 2: 16, 3: 6}
"""Cells along each axis of a window of places, by its dimension."""


@final
@value
class CellRates(Value):
    """Events expected in a week in each cell, and how the rate changes along a cycle.

    `profile` is the rate in each hour of the cycle, 1 on average; `learned` are the seconds of
    observation from which all of this was learned.
    """

    weekly: Floats
    profile: Floats
    clock: Clock | None
    learned: float

    @property
    def total(self) -> float:
        """Events expected in a week."""
        return float(self.weekly.sum())

    def factor(self, seconds: Floats) -> Floats:
        """The rate at times, as multiples of its average."""
        if self.clock is None or len(self.profile) == 1:
            return np.ones(len(seconds))
        hours = self.clock.axis(seconds).astype(np.int64) % len(self.profile)
        return np.asarray(self.profile[hours])

    def means(self, start: float, end: float) -> Floats:
        """Events expected in each cell from one time to another."""
        factor = float(self.factor(np.array([0.5 * (start + end)]))[0])
        return self.weekly * (factor * (end - start) / WEEK)


def blocks_of(frame: Frame) -> OverlappingBlocks:
    """The places of a frame in which changes are looked for; one if it has times alone."""
    if frame.region is None:
        return OverlappingBlocks(1, 1)
    d = frame.region.dimension
    return OverlappingBlocks(CELLS_ALONG[d], d)


def cells_of(frame: Frame, blocks: OverlappingBlocks, X: Floats) -> Ints:
    """The cell that each event (n, d) is in, (n,)."""
    if frame.region is None:
        return np.zeros(len(X), dtype=np.int64)
    low, high = frame.region.bounds()
    shares = (X[:, : blocks.dimension] - low) / (high - low)
    index = np.clip((shares * blocks.cells).astype(np.int64), 0, blocks.cells - 1)
    return np.ravel_multi_index(tuple(index.T), (blocks.cells,) * blocks.dimension)


def cell_rates(study: EventStudy, blocks: OverlappingBlocks, running: float) -> CellRates:
    """What a study expects; `running` are the seconds of a service whose events have no times."""
    rate, clock = study.model_, study.frame.clock
    shape = (blocks.cells,) * blocks.dimension
    place = rate.place_ if isinstance(rate, SeparableIntensity) else rate
    shares = np.ones(shape)
    if study.frame.region is not None:
        counts = np.asarray(place.expected_count(_boxes(study.frame.region, blocks.cells)))
        shares = counts.reshape(shape) / counts.sum()
    weekly, learned = _events_a_week(study, running)
    profile = np.ones(1)
    if clock is not None and clock.cycle:
        profile = _profile(rate.time_ if isinstance(rate, SeparableIntensity) else rate, clock)
    return CellRates(weekly * shares, profile, clock, learned)


def _events_a_week(study: EventStudy, running: float) -> tuple[float, float]:
    """Events expected in a week on average, and the seconds of observation."""
    unit, amount = study.exposure_.unit, study.exposure_.amount
    clock, rate = study.frame.clock, study.model_.rate_
    seconds = CYCLES.get(unit) or SECONDS.get(unit, 0.0)
    if seconds:
        return float(rate.integral()) * WEEK / seconds, amount * seconds
    observed = running if clock is None else max(clock.end - clock.start, 1.0)
    return study.reading_.kept * WEEK / observed, observed


def _profile(time: Intensity, clock: Clock) -> Floats:
    hours = round(CYCLES[clock.cycle] / 3600.0)
    counts = np.asarray(time.expected_count([Interval(h, h + 1.0) for h in range(hours)]))
    return counts / counts.mean()


def _boxes(region: Window, cells: int) -> list[Window]:
    """The cells of a window's bounds, in the order of C."""
    low, high = region.bounds()
    edges = [np.linspace(a, b, cells + 1).tolist() for a, b in zip(low, high, strict=True)]
    sides = [list(pairwise(axis)) for axis in edges]
    if len(sides) == 1:
        return [Interval(a, b) for a, b in sides[0]]
    return [Box(tuple(a for a, _ in cell), tuple(b for _, b in cell)) for cell in product(*sides)]
