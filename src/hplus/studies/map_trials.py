"""Whether the map of events changes with the time of day or week, judged by later events.

The change must be evident among the events learned from, and it must predict later events, before
the hold-out, better than independent places and times do; only a change that the events held out
refute is dropped after all. So bursts at one place, near repeats and addresses that report at one
time of one year are not taken for a habit of the hour.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from hplus._checks import Floats, Ints
from hplus._values import Value, value
from hplus.rates.map_by_time import MapByTime
from hplus.rates.map_learning import DAY_HOURS, MassesOf, learn_map_by_time
from hplus.studies.factor_trials import MIN_LEARNED, block_error
from hplus.studies.frames import Frame
from hplus.studies.split_events import SplitEvents
from hplus.studies.splits import time_blocks

MAP_STRETCHES = 2
"""Stretches of time before the hold-out that are predicted by those before them."""

MAP_ERRORS = 1.0
"""Standard errors by which the change must raise the likelihood of later events."""


@final
@value
class JudgedMap(Value):
    """Whether the map changes with time, and what that gains on later events, in nats per event.

    `gain` is that of the events held out, `judged_gain` that of the time before them. `evidence`
    is in nats, 0 if no change is evident. `by` is "day" or "week".
    """

    kept: bool
    by: str
    evidence: float
    judged_gain: float
    judged_error: float
    gain: float
    gain_error: float


class MapScores(NamedTuple):
    """How the map changes, None if it does not, with log gains of the events held out, (n,)."""

    by_time: MapByTime | None
    gains: Floats
    judged: JudgedMap


def map_scores(
    frame: Frame, events: SplitEvents, margins: MassesOf | None, blocks: Ints, seed: int
) -> MapScores | None:
    """Judge the change of the map, and score it on the events held out; None if it cannot be.

    It needs a cycle of times and a hold-out of a later time. `margins` are those of the rates of
    places and of times; None for those of the events.
    """
    joint = events.joint()
    if joint is None or not events.split.held or joint.events < MIN_LEARNED:
        return None
    X = events.held_sample.X
    found = learn_map_by_time(joint, margins, seed)
    by = frame.cycle if found is None or found.period != DAY_HOURS else "day"
    evidence = 0.0 if found is None else found.log_evidence
    mean, error = _judged(frame, events, seed) if found is not None else (0.0, 0.0)
    gains, kept = np.zeros(len(X)), found is not None and mean > MAP_ERRORS * error
    gain, gain_error = 0.0, 0.0
    if found is not None:
        gains = np.log(found.at(X))
        gain, gain_error = block_error(gains, blocks)
        kept = kept and gain > -gain_error
    judged = JudgedMap(kept, by, evidence, mean, error, gain, gain_error)
    return MapScores(found if kept else None, gains * kept, judged)


def _judged(frame: Frame, events: SplitEvents, seed: int) -> tuple[float, float]:
    """The mean log gain on the last stretches before the hold-out, and its standard error."""
    spans, sample = events.split.learned, events.learned_sample
    part = events.split.parts(sample.seconds, np.ones(len(sample.seconds)))
    scores, blocks = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for k in range(max(1, len(spans) - MAP_STRETCHES), len(spans)):
        before, at = events.joint(before=k), part == k
        if before is None or before.events < MIN_LEARNED or not at.any():
            continue
        found = learn_map_by_time(before, None, seed)
        ratios = np.ones(int(at.sum())) if found is None else found.at(sample.X[at])
        scores.append(np.log(ratios))
        of_stretch = time_blocks(sample.seconds[at], spans[k : k + 1], frame.cycle)
        blocks.append(of_stretch + 1000 * k)
    every = np.concatenate(scores)
    return block_error(every, np.concatenate(blocks)) if len(every) > 1 else (0.0, 0.0)
