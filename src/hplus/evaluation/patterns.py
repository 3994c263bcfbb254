"""Patterns: what it means, in words, that events depend on each other."""

from __future__ import annotations

from collections.abc import Collection
from typing import final

import numpy as np

from hplus._values import Value, value
from hplus.evaluation.dispersion import MIN_EVEN_BLOCKS, Dispersion
from hplus.evaluation.gaps import GROUP_GAPS
from hplus.evaluation.lags import Excess
from hplus.evaluation.near_repeats import NearRepeats
from hplus.evaluation.time_order import TimeOrder
from hplus.wording import duration_words, lengths_words, times

PATTERN_LEVEL = 0.05
"""Level at which one of several lengths of block is found to be at fault."""


@final
@value
class Pattern(Value):
    """How events depend on each other: `name`, one `sentence`, and its `meaning` for the user.

    `name` is "bursts", "uneven counts", "events keep apart", "alternating gaps" or "near repeats".
    """

    name: str
    sentence: str
    meaning: str


def patterns(
    order: TimeOrder | None, repeats: NearRepeats | None, faults: Collection[str]
) -> tuple[Pattern, ...]:
    """The patterns behind the checks of dependence that are among the `faults`."""
    found = [] if order is None else [_in_time(order, faults)]
    if repeats is not None and "near repeats" in faults:
        found.append(_repeating(repeats, order))
    return tuple(pattern for pattern in found if pattern is not None)


def _in_time(order: TimeOrder, faults: Collection[str]) -> Pattern | None:
    """The pattern of gaps and counts in time, if one of their checks is at fault."""
    counts = order.dispersion if "dispersion" in faults else None
    local = 0.0 if counts is None else _local_sign(counts)
    if "gaps" in faults:
        local = float(np.sign(order.gaps.variation - 1.0))
    if not local and "neighbours" in faults:
        if order.neighbours.correlations.sum() < 0.0:
            return _alternating()
        local = 1.0
    if local > 0.0:
        return _bursts(order)
    if local < 0.0:
        return _apart(order)
    return None if counts is None else _uneven(order, counts)


def _local_sign(counts: Dispersion) -> float:
    """1 if counts of short blocks vary too much, -1 if too little, 0 if those of long ones do."""
    tails = np.where(counts.events <= GROUP_GAPS, counts.tails, 1.0)
    at = int(tails.argmin())
    found = len(tails) * tails[at] < PATTERN_LEVEL
    return float(np.sign(counts.index[at] - 1.0)) if found else 0.0


def _bursts(order: TimeOrder) -> Pattern:
    text = "Events come in bursts"
    sentence = f"{text}{_others(order, order.more)}."
    return Pattern("bursts", sentence, f"{_too_narrow(order)} {_one_burst()}")


def _one_burst() -> str:
    return "Events of one burst are not independent evidence for a peak of the rate."


def _apart(order: TimeOrder) -> Pattern:
    return Pattern(
        "events keep apart",
        f"Events keep apart{_others(order, order.fewer)}.",
        "The mean rate remains right, but intervals for counts, which assume independent events, "
        "are too wide.",
    )


def _alternating() -> Pattern:
    return Pattern(
        "alternating gaps",
        "Gaps depend on each other: after a long gap a short one is more likely.",
        "The mean rate remains right, but events are not independent, so that intervals for "
        "counts are approximate.",
    )


def _uneven(order: TimeOrder, counts: Dispersion) -> Pattern | None:
    """Counts of long blocks that vary too much: a level that changes."""
    at = int(counts.tails.argmin())
    if counts.index[at] < 1.0:
        return _apart(order)
    block = duration_words(float(counts.events[at]) * order.gap, order.unit)
    more = times(float(counts.index[at]))
    return Pattern(
        "uneven counts",
        f"Counts are uneven: those of {block} vary {more} times as much as the rate allows.",
        _too_narrow(order),
    )


def _repeating(repeats: NearRepeats, order: TimeOrder | None) -> Pattern:
    unit = "" if order is None else order.unit
    where = lengths_words([float(f"{repeats.distance:.2g}")], [repeats.unit])
    when = duration_words(repeats.lag, unit)
    return Pattern(
        "near repeats",
        f"Events repeat nearby: within {where} and {when} of an event there are "
        f"{times(repeats.ratio)} times as many others as if places and times were independent.",
        "The mean rate remains right, but after an event more are to be expected nearby, and "
        "intervals for counts of small areas are too narrow.",
    )


def _others(order: TimeOrder, found: Excess | None) -> str:
    """How many others there are near an event, as the end of a sentence."""
    if found is None:
        return f": gaps vary {times(order.gaps.variation)} times as much as those of chance"
    lag, ratio = duration_words(found.lag, order.unit), found.ratio
    many = (
        "no others, where the rate expects some"
        if ratio == 0.0
        else (
            f"{times(ratio) if ratio >= 0.1 else f'{ratio:.2f}'} times as many others as the rate "
            "expects"
        )
    )
    return f": within {lag} of an event there are {many}"


def _too_narrow(order: TimeOrder) -> str:
    """That intervals are too narrow and, where counts of blocks tell it, by how much."""
    text = "The mean rate remains right, but intervals for counts, which assume independent events"
    counts = order.dispersion
    if counts is None:
        return f"{text}, are too narrow."
    many = np.flatnonzero(counts.events * MIN_EVEN_BLOCKS <= 2.0 * counts.events[0])
    if not len(many) or counts.index[many].max() <= 1.0:
        return f"{text}, are too narrow."
    at = int(many[counts.index[many].argmax()])
    block = duration_words(float(counts.events[at]) * order.gap, order.unit)
    return (
        f"{text}, are too narrow: for {block} by a factor of about {counts.index[at] ** 0.5:.1f}."
    )
