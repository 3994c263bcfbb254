"""Silences: times without events that are far longer than all others: a failed detector?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hplus._checks import Floats
from hplus.storage.files import Json
from hplus.studies.spans import SECONDS, moment
from hplus.wording import rounded

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy

MOST_SILENCES, LONGER, MIN_MISSED = 3, 3.0, 20.0
"""Silences that are told, at most, how many times as long they are as the next longest gap, and how
many events are missing in each at the mean rate, at least."""


def find_silences(times: Floats, start: float, end: float) -> Floats:
    """The longest gaps of times (n,) in a period, if they stand out: starts and ends, (k, 2)."""
    if len(times) < MIN_MISSED:
        return np.zeros((0, 2))
    ends = np.concatenate([[start], np.sort(times), [end]])
    gaps = np.diff(ends)
    longest = np.argsort(gaps)[::-1][: MOST_SILENCES + 1]
    for k in range(min(MOST_SILENCES, len(longest) - 1), 0, -1):
        shortest, next_longest = gaps[longest[k - 1]], gaps[longest[k]]
        watched = end - start - gaps[longest[:k]].sum()
        if shortest >= LONGER * next_longest and shortest * len(times) >= MIN_MISSED * watched:
            which = np.sort(longest[:k])
            return np.column_stack([ends[which], ends[which + 1]])
    return np.zeros((0, 2))


def silence_facts(study: EventStudy) -> list[Json]:
    """Each silence as plain data with a sentence; none in files of earlier versions."""
    clock, outlook = study.frame.clock, getattr(study, "outlook_", None)
    found = None if outlook is None else getattr(outlook, "silences", None)
    if clock is None or found is None or not len(found):
        return []
    seconds = SECONDS["day"] * found
    watched = clock.end - clock.start - float(np.diff(seconds).sum())
    rate = study.reading_.kept / watched
    return [_told(float(a), float(b), rate * float(b - a), clock.end) for a, b in seconds]


def _told(start: float, end: float, usual: float, last: float) -> Json:
    """A silence; one that has not ended is told as such, `last` being the end of the period."""
    when = f"from {moment(start)[:16]} to {moment(end)[:16]}"
    advice = "if none were recorded then, rates are too low"
    if end >= last - 1.0:
        when = f"since {moment(start)[:16]}"
        advice = "if the record is not complete, end the observation period before"
    words = f"no events {when}, where about {rounded(usual, 2)} would be usual: {advice}"
    return {"from": moment(start), "to": moment(end), "usual": usual, "words": words}
