"""StreamTimes: what the times of a stream's events mean for its exposure and for forgetting."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.studies.frames import Frame
from hplus.studies.spans import CYCLES, Amount

FIRST_GAP = 1e-9
"""Cycles before the first event, at least."""


class StreamTimes(NamedTuple):
    """The frame of a stream, the half-life of its events, and whether its method is "tree"."""

    frame: Frame
    forget: Amount | None
    by_trees: bool

    @property
    def start(self) -> float:
        """When observation began, in seconds since 1970; 0 without times."""
        return 0.0 if self.frame.clock is None else self.frame.clock.start

    @property
    def fades(self) -> bool:
        """Are events forgotten by their own times, whatever the order of lines?"""
        timed = self.by_trees and self.frame.clock is not None and self.forget is not None
        return timed and not self._in_events

    @property
    def half_life_seconds(self) -> float:
        """The half-life by the times of events, or infinity."""
        return self.forget.to("s") if self.fades and self.forget else math.inf

    @property
    def half_life(self) -> float | None:
        """The half-life that the model takes: in seconds, cycles or events."""
        if self.forget is None:
            return None
        if self.fades:
            return self.half_life_seconds
        if self.by_trees and self.frame.clock is not None:
            raise ValueError(
                f"forget must be a time such as 8w beside time=, got {self.forget}: a number of "
                "events does not tell how much of the exposure is forgotten."
            )
        if self.frame.cycle and not self.by_trees:
            return self.forget.to(self.frame.cycle)
        if not self._in_events:
            raise ValueError(
                f"forget must be a number of events, got {self.forget}: a time needs time=, and "
                'cycle= unless method="tree".'
            )
        return self.forget.amount

    def cycles(self, latest: float) -> float:
        """The cycles until `latest` that are not forgotten."""
        period = CYCLES[self.frame.cycle]
        seconds = max(latest - self.start, FIRST_GAP * period)
        if self.fades:
            rate = math.log(2.0) / self.half_life_seconds
            seconds = -math.expm1(-seconds * rate) / rate
        return seconds / period

    def ages(self, seconds: Floats) -> Floats | None:
        """Seconds from the start of observation to each event; None if nothing depends on them."""
        return seconds - self.start if self.fades else None

    def gaps(self, seconds: Floats, latest: float, first: bool) -> Floats | None:
        """Cycles from the latest event so far to each event; None without a cycle."""
        if not self.frame.cycle:
            return None
        ends = np.maximum.accumulate(np.concatenate([[latest], seconds]))
        gaps = np.diff(ends) / CYCLES[self.frame.cycle]
        if first:
            gaps[0] = max(gaps[0], FIRST_GAP)
        return gaps

    @property
    def _in_events(self) -> bool:
        return self.forget is not None and self.forget.unit in ("", "event")
