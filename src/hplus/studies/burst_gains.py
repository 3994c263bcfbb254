"""Whether events of a study come in bursts, or follow a cycle, and what to learn them by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hplus._checks import Floats
from hplus.evaluation.dependence import NOTABLE_EXCESS
from hplus.evaluation.time_order import PATTERN_LEVEL
from hplus.rates.gaps import gap_test, grouped_gaps
from hplus.storage.files import Json
from hplus.studies.event_facts import copies_words
from hplus.studies.followed_cycles import FollowedCycle, followed_cycle
from hplus.studies.frames import Frame
from hplus.wording import rounded, with_error

if TYPE_CHECKING:
    from hplus.studies.events import Reading
    from hplus.studies.holdouts import Holdout
    from hplus.studies.outlooks import Outlook

MOST_MEASURED = 20_000
"""Events up to which the gain is measured: it takes a second or two."""

HELD_SHARE = 0.2
"""The last share of the observation period, on which it is measured."""

CLEAR_ERRORS = 2.0
"""Standard errors from which a gain is told of."""

BURST_PATTERNS = {"bursts", "near repeats"}
"""Patterns that a self-exciting rate explains."""


def burst_gain(
    frame: Frame,
    times: Floats,
    holdout: Holdout | None,
    reading: Reading,
    outlook: Outlook | None = None,
) -> Json | None:
    """What was found of bursts among times (n,) on the clock's axis, as plain data; None if none.

    With a cycle, or many events, that there are bursts; otherwise how many events an event triggers
    and what that gains over a constant rate, from times alone, if it is more than chance. Where the
    forecast found a cycle that was not asked for, bursts must gain clearly more than it does.
    Copies of events are no bursts.
    """
    named = set() if holdout is None else {p.name for p in holdout.check.patterns}
    found = sorted(named & BURST_PATTERNS)
    if frame.clock is None or not (found or _bursts(frame, times)):
        return None
    cycle = _unasked_cycle(frame, outlook)
    bursts: Json | None = None
    if not copies_words(frame, reading):
        gains = _gains(frame, times, reading)
        beyond = cycle is None or "near repeats" in found or _clearly_more(gains, cycle)
        if gains is not None and beyond and (found or gains):
            bursts = {"patterns": found, **gains}
    return bursts if cycle is None else {"patterns": [], **(bursts or {}), "cycle": cycle.name}


def _unasked_cycle(frame: Frame, outlook: Outlook | None) -> FollowedCycle | None:
    """The cycle that the forecast found, if none was asked for."""
    if frame.cycle or outlook is None or outlook.forecast is None:
        return None
    return followed_cycle(outlook.forecast.cycles_)


def _gains(frame: Frame, times: Floats, reading: Reading) -> Json | None:
    """What a self-exciting rate of times gains; empty if it is not measured, None if nothing."""
    if frame.cycle or len(times) > MOST_MEASURED:
        return {}
    # imported when needed: few studies have bursts
    from hplus.estimators.self_exciting import SelfExciting
    from hplus.studies.excitation_holdouts import predicted_ahead
    from hplus.studies.marked_events import MarkedEvents

    assert frame.clock is not None
    model = SelfExciting(frame.clock.window, random_state=0)
    held = predicted_ahead(model, MarkedEvents(times[:, None], None, None, reading), HELD_SHARE)
    if held is None:
        return {}
    if held.gain < CLEAR_ERRORS * held.gain_error:
        return None
    gains = {"gain": held.gain, "gain_error": held.gain_error}
    return {"triggers": model.branching_ratio_, **gains}


def _clearly_more(gains: Json | None, cycle: FollowedCycle) -> bool:
    """Do bursts gain more than a cycle, which they could be, by more than chance?"""
    if not gains:
        return False
    error = float(np.hypot(gains["gain_error"], cycle.error))
    return bool(gains["gain"] > cycle.gain + CLEAR_ERRORS * error)


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
    """What a self-exciting rate or a cycle would do, in a sentence; "" if there are no bursts."""
    if found is None:
        return ""
    if "cycle" in found:
        return _cycle_words(found)
    what = _what(found)
    if "gain" not in found:
        return f"{what}: self_exciting= learns how events trigger others."
    return (
        f"{what}: self_exciting= learns how events trigger others, {rounded(found['triggers'], 2)} "
        "each, and from times alone gains "
        f"{with_error(found['gain'], found['gain_error'])} nats per event over a constant rate."
    )


def _what(found: Json) -> str:
    repeats = found["patterns"] == ["near repeats"]
    return "Events repeat nearby" if repeats else "Events come in bursts"


def _cycle_words(found: Json) -> str:
    cycle = found["cycle"]
    if found["patterns"] or "gain" in found:
        return (
            f"{_what(found)}, and times follow the {cycle}: self_exciting= with cycle={cycle!r} "
            "learns how events trigger others beside the cycle."
        )
    return (
        f"Times follow the {cycle}, which can look like bursts: use cycle={cycle!r} to learn the "
        f"rate by time of {cycle}."
    )
