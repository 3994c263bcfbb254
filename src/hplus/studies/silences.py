"""Silences: times without events that are far longer than all others: a failed detector?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hplus._checks import Floats
from hplus.storage.files import Json
from hplus.studies.spans import SECONDS, Clock, moment
from hplus.wording import rounded

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy

MOST_SILENCES, LONGER, MIN_MISSED = 3, 3.0, 20.0
"""Silences that are told, at most, how many times as long they are as the next longest gap, and how
many events or bursts are missing in each, at least."""


def find_silences(times: Floats, start: float, end: float) -> Floats:
    """The longest gaps of times (n,) in a period, if they stand out: starts and ends, (k, 2)."""
    if len(times) < MIN_MISSED:
        return np.zeros((0, 2))
    ends = np.concatenate([[start], np.sort(times), [end]])
    gaps = np.diff(ends)
    longest = np.argsort(gaps)[::-1][: MOST_SILENCES + 1]
    for k in range(min(MOST_SILENCES, len(longest) - 1), 0, -1):
        shortest, next_longest = gaps[longest[k - 1]], gaps[longest[k]]
        wait = _mean_wait(np.delete(gaps, longest[:k]))
        if shortest >= LONGER * next_longest and shortest >= MIN_MISSED * wait > 0.0:
            which = np.sort(longest[:k])
            return np.column_stack([ends[which], ends[which + 1]])
    return np.zeros((0, 2))


def _mean_wait(gaps: Floats) -> float:
    """The mean of gaps (n,) or, if events come in bursts, the mean time until the next burst.

    Σg²/(2Σg) is the mean time from any moment to the next event: with independent events it is the
    mean gap, and with bursts that between bursts, most of the time.
    """
    total = float(gaps.sum())
    return max(total / len(gaps), float(gaps @ gaps) / (2.0 * total)) if total else 0.0


def silence_facts(study: EventStudy) -> list[Json]:
    """Each silence as plain data with a sentence; none in files of earlier versions."""
    clock, outlook = study.frame.clock, getattr(study, "outlook_", None)
    found = None if outlook is None else getattr(outlook, "silences", None)
    if clock is None or found is None or not len(found):
        return []
    return _all_told(SECONDS["day"] * found, study.reading_.kept, clock)


def silences_among(times: Floats, clock: Clock) -> list[Json]:
    """The silences among times (n,) on the axis of a clock."""
    seconds = clock.start + SECONDS[clock.unit] * times
    return _all_told(find_silences(seconds, clock.start, clock.end), len(times), clock)


def _all_told(silences: Floats, events: int, clock: Clock) -> list[Json]:
    """Silences (k, 2), in seconds, with what would be usual at the mean rate of the other time."""
    watched = clock.end - clock.start - float(np.diff(silences).sum())
    rate = events / watched
    return [_told(float(a), float(b), rate * float(b - a), clock.end) for a, b in silences]


def _told(start: float, end: float, usual: float, last: float) -> Json:
    """A silence; one that has not ended is told as such, `last` being the end of the period."""
    when = f"from {moment(start)[:16]} to {moment(end)[:16]}"
    advice = "if none were recorded then, rates are too low"
    if end >= last - 1.0:
        when = f"since {moment(start)[:16]}"
        advice = "if the record is not complete, end the observation period before"
    words = f"no events {when}, where about {rounded(usual, 2)} would be usual: {advice}"
    return {"from": moment(start), "to": moment(end), "usual": usual, "words": words}
