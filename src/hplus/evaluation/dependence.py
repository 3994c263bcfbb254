"""Patterns: what it means, in words, that events depend on each other."""

from __future__ import annotations

from collections.abc import Collection
from typing import final

import numpy as np

from hplus._values import Value, value
from hplus.evaluation.dispersion import MIN_EVEN_BLOCKS, CountDispersion
from hplus.evaluation.lags import LagExcess
from hplus.evaluation.near_repeats import NearRepeats
from hplus.evaluation.time_order import PATTERN_LEVEL, TimeOrder
from hplus.rates.gaps import GROUP_GAPS
from hplus.wording import duration_words, lengths_words, times

NOTABLE_EXCESS = 1.1
"""Ratio of observed to expected numbers from which a pattern is named."""


AT_THIS_RATE = (
    "This says nothing against the mean rate, but makes intervals for counts at this rate, which "
    "assume independent events,"
)
"""How a sentence begins that tells what dependence means for intervals."""


@final
@value
class Dependence(Value):
    """How events depend on each other: `name`, one `sentence`, and its `meaning` for the user.

    `name` is "bursts", "uneven counts", "events keep apart", "alternating gaps", "slight
    dependence" or "near repeats".
    """

    name: str
    sentence: str
    meaning: str


def patterns(
    order: TimeOrder | None, repeats: NearRepeats | None, faults: Collection[str]
) -> tuple[Dependence, ...]:
    """The patterns behind the checks of dependence that are among the `faults`."""
    found = [] if order is None else [_in_time(order, faults)]
    if repeats is not None and "near repeats" in faults:
        found.append(_repeating(repeats, order))
    return tuple(pattern for pattern in found if pattern is not None)


def _in_time(order: TimeOrder, faults: Collection[str]) -> Dependence | None:
    """The pattern of gaps and counts in time, if one of their checks is at fault."""
    if not {"gaps", "neighbours", "dispersion"} & set(faults):
        return None
    counts = order.dispersion if "dispersion" in faults else None
    sign = 0.0 if counts is None else _local_sign(counts)
    if order.gaps.p_value < PATTERN_LEVEL:
        sign = float(np.sign(order.gaps.variation - 1.0))
    if not sign and order.neighbours.p_value < PATTERN_LEVEL:
        if order.neighbours.correlations.sum() < 0.0:
            return _alternating()
        sign = 1.0
    if sign > 0.0 and order.more is not None and order.more.ratio > NOTABLE_EXCESS:
        return _bursts(order, order.more)
    if sign < 0.0 and order.fewer is not None and order.fewer.ratio < 1.0 / NOTABLE_EXCESS:
        return _apart(order, order.fewer)
    at = 0 if counts is None else int(counts.tails.argmin())
    if counts is not None and counts.index[at] > NOTABLE_EXCESS:
        return _uneven(order, counts, at)
    return _slight()


def _local_sign(counts: CountDispersion) -> float:
    """1 if counts of short blocks vary too much, -1 if too little, 0 if those of long ones do."""
    tails = np.where(counts.events <= GROUP_GAPS, counts.tails, 1.0)
    at = int(tails.argmin())
    found = len(tails) * tails[at] < PATTERN_LEVEL
    return float(np.sign(counts.index[at] - 1.0)) if found else 0.0


def _bursts(order: TimeOrder, found: LagExcess) -> Dependence:
    return Dependence(
        "bursts",
        f"Events come in bursts: {_others(order, found)}.",
        f"{_too_narrow(order)} Events of one burst are not independent evidence of a peak.",
    )


def _apart(order: TimeOrder, found: LagExcess) -> Dependence:
    return Dependence(
        "events keep apart",
        f"Events keep apart: {_others(order, found)}.",
        f"{AT_THIS_RATE} too wide.",
    )


def _slight() -> Dependence:
    return Dependence(
        "slight dependence",
        "Events depend on each other, but only slightly.",
        "With so many events small effects are found: this one hardly changes an interval.",
    )


def _alternating() -> Dependence:
    return Dependence(
        "alternating gaps",
        "Gaps depend on each other: after a long gap a short one is more likely.",
        f"{AT_THIS_RATE} approximate.",
    )


def _uneven(order: TimeOrder, counts: CountDispersion, at: int) -> Dependence:
    """Counts of blocks that vary too much: a level that changes."""
    block = duration_words(float(counts.events[at]) * order.gap, order.unit, digits=1)
    more = times(float(counts.index[at]))
    return Dependence(
        "uneven counts",
        f"Counts are uneven: those of about {block} vary {more} times as much as the rate allows.",
        _too_narrow(order),
    )


def _repeating(repeats: NearRepeats, order: TimeOrder | None) -> Dependence:
    unit = "" if order is None else order.unit
    where = lengths_words([float(f"{repeats.distance:.2g}")], [repeats.unit])
    when = duration_words(repeats.lag, unit)
    return Dependence(
        "near repeats",
        f"Events repeat nearby: within {where} and {when} of an event there are "
        f"{times(repeats.ratio)} times as many others as if places and times were independent.",
        "This says nothing against the mean rate, but after an event more are to be expected "
        "nearby, and intervals for counts of small areas are too narrow.",
    )


def _others(order: TimeOrder, found: LagExcess) -> str:
    """How many others there are near an event, as the end of a sentence."""
    ratio = times(found.ratio) if found.ratio >= 0.1 else f"{found.ratio:.2g}"
    lag = duration_words(found.lag, order.unit)
    return f"within {lag} of an event there are {ratio} times as many others as the rate expects"


def _too_narrow(order: TimeOrder) -> str:
    """That intervals are too narrow and, where counts of blocks tell it, by how much."""
    text = f"{AT_THIS_RATE} too narrow"
    counts = order.dispersion
    if counts is None:
        return f"{text}."
    many = np.flatnonzero(counts.events * MIN_EVEN_BLOCKS <= 2.0 * counts.events[0])
    if not len(many) or counts.index[many].max() <= 1.0:
        return f"{text}."
    at = int(many[counts.index[many].argmax()])
    block = duration_words(float(counts.events[at]) * order.gap, order.unit, digits=1)
    return f"{text}: those for about {block} by a factor of {counts.index[at] ** 0.5:.1f}."
