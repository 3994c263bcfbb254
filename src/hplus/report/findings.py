"""Findings: what a rate says, each as one large number and one plain sentence."""

from __future__ import annotations

import math
from typing import Any, final

from hplus._values import Value, value
from hplus.report.words import TIED, percent, times

SURE = 2.0
"""Standard errors from which a difference is told as one."""


FARTHEST = 20.0
"""Log of the ratio from which a comparison is only "over 1,000"."""


@final
@value
class Finding(Value):
    """A large number, and the sentence that it belongs to."""

    number: str
    text: str


def concentrated(share: float, extent: str) -> Finding:
    """The smallest share of the window in which half of the events are expected."""
    apart = ": they are spread out" if share > 0.4 else ""
    return Finding(percent(share), f"of the {extent} holds half of all expected events{apart}.")


def busiest(ratio: float, kind: str, where: str, when: str = "") -> Finding:
    """How much busier the first hot spot is than the whole window."""
    peak = f", most of all at {when}" if when else ""
    return Finding(
        f"{times(ratio)}{TIED}×", f"the average rate in the busiest {kind}: {where}{peak}."
    )


def covered(share: float, extent: str) -> Finding:
    """The smallest share of the window in which nine events of ten are expected."""
    return Finding(percent(share), f"of the {extent} holds nine out of ten expected events.")


def prediction(holdout: Any) -> Finding:
    """How much likelier held-out events are than under a constant rate, and beside a KDE."""
    odds = f"{times(math.exp(holdout.gain))}{TIED}×"
    said = "as likely as under a constant rate are events that it had not seen"
    if holdout.gain < SURE * holdout.gain_error:
        return Finding(odds, f"{said}, which may be chance.")
    return Finding(odds, f"{said}. {beside_kde(holdout)}")


def beside_kde(holdout: Any) -> str:
    """A comparison with a kernel density estimate that is only as bold as its error allows."""
    if abs(holdout.over_kde) < SURE * holdout.over_kde_error:
        return "A kernel density estimate does about as well."
    ratio = math.exp(min(holdout.over_kde, FARTHEST))
    if ratio >= 2.0:
        return f"That is {times(ratio)} times as good as a kernel density estimate."
    side = "better" if ratio > 1.0 else "worse"
    return f"That is {percent(abs(ratio - 1.0))} {side} than a kernel density estimate."
