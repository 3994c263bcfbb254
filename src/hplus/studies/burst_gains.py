"""Whether events of a study come in bursts, and what a self-exciting rate would gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hplus._checks import Floats
from hplus.evaluation.dependence import NOTABLE_EXCESS
from hplus.evaluation.time_order import PATTERN_LEVEL
from hplus.rates.gaps import gap_test, grouped_gaps
from hplus.storage.files import Json
from hplus.studies.frames import Frame
from hplus.wording import rounded, with_error

if TYPE_CHECKING:
    from hplus.studies.events import Reading
    from hplus.studies.holdouts import Holdout

MOST_MEASURED = 20_000
"""Events up to which the gain is measured: it takes a second or two."""

HELD_SHARE = 0.2
"""The last share of the observation period, on which it is measured."""

CLEAR_ERRORS = 2.0
"""Standard errors from which a gain is told of."""

BURST_PATTERNS = {"bursts", "near repeats"}
"""Patterns that a self-exciting rate explains."""


def burst_gain(
    frame: Frame, times: Floats, holdout: Holdout | None, reading: Reading
) -> Json | None:
    """What was found of bursts among times (n,) on the clock's axis, as plain data; None if none.

    With a cycle, or many events, that there are bursts; otherwise how many events an event triggers
    and what that gains over a constant rate, from times alone, if it is more than chance.
    """
    named = set() if holdout is None else {p.name for p in holdout.check.patterns}
    found = sorted(named & BURST_PATTERNS)
    if frame.clock is None or not (found or _bursts(frame, times)):
        return None
    if frame.cycle or len(times) > MOST_MEASURED:
        return {"patterns": found} if found else None
    # imported when needed: few studies have bursts
    from hplus.estimators.self_exciting import SelfExciting
    from hplus.studies.excitation_holdouts import predicted_ahead
    from hplus.studies.marked_events import MarkedEvents

    model = SelfExciting(frame.clock.window, random_state=0)
    held = predicted_ahead(model, MarkedEvents(times[:, None], None, None, reading), HELD_SHARE)
    if held is None:
        return {"patterns": found} if found else None
    if held.gain < CLEAR_ERRORS * held.gain_error:
        return None
    gains = {"gain": held.gain, "gain_error": held.gain_error}
    return {"patterns": found, "triggers": model.branching_ratio_, **gains}


def _bursts(frame: Frame, times: Floats) -> bool:
    """Are short gaps more frequent than those of independent events? Without a cycle."""
    if frame.cycle or frame.region is None:  # of a line, the hold-out tells
        return False
    table = grouped_gaps(np.sort(times))
    if table is None:
        return False
    gaps = gap_test(table)
    return gaps.p_value < PATTERN_LEVEL and gaps.variation > NOTABLE_EXCESS


def burst_words(found: Json | None) -> str:
    """What a self-exciting rate would do, in a sentence; "" if there are no bursts."""
    if found is None:
        return ""
    repeats = found["patterns"] == ["near repeats"]
    what = "Events repeat nearby" if repeats else "Events come in bursts"
    if "gain" not in found:
        return f"{what}: self_exciting= learns how events trigger others."
    return (
        f"{what}: self_exciting= learns how events trigger others, {rounded(found['triggers'], 2)} "
        "each, and from times alone gains "
        f"{with_error(found['gain'], found['gain_error'])} nats per event over a constant rate."
    )
