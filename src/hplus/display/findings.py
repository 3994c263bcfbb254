"""Findings: what a rate says, each as one large number and one plain sentence."""

from __future__ import annotations

import math
from typing import final

from hplus._values import Value, value
from hplus.display.data.check_data import (
    CalibrationData,
    GapQuantiles,
    QuadratResiduals,
    RescaledTimes,
)
from hplus.evaluation.dependence import Dependence
from hplus.storage.files import Json
from hplus.studies.holdouts import Holdout
from hplus.wording import NBSP, count, counted, listed, off_by, percent, sentence, times

SIGNIFICANT_ERRORS = 2.0
"""Standard errors from which a difference is reported as one."""

MOST_LOG_RATIO = 20.0
"""Log of the ratio from which a comparison is only "over 1,000"."""


@final
@value
class Finding(Value):
    """A large number, and the sentence that it belongs to."""

    number: str
    text: str


@final
@value
class Fit(Value):
    """Does the rate fit? Which events it was checked on, and what was found."""

    count: int
    held_out: bool
    faults: tuple[str, ...]
    relative_error: float
    calibration: CalibrationData
    residuals: QuadratResiduals | RescaledTimes
    patterns: tuple[Dependence, ...] = ()
    gaps: GapQuantiles | None = None


def concentrated(share: float, held: str, extent: str, noun: str) -> Finding:
    """The smallest share of the window that holds "half of all" expected events, or more."""
    apart = ": they are spread out" * (held == "half of all" and share > 0.4)
    return Finding(percent(share), f"of the {extent} holds {held} expected {noun}{apart}.")


def busiest(ratio: float, kind: str, where: str, when: str = "") -> Finding:
    """How much busier the first hot spot is than the whole window."""
    peak = f", with a peak at {when}" if when else ""
    return Finding(
        f"{times(ratio)}{NBSP}×", f"the average rate in the busiest {kind}: {where}{peak}."
    )


def silence_notes(silences: list[Json]) -> list[str]:
    """Times without events that are far longer than others, each in a sentence."""
    return [sentence(silence["words"]) for silence in silences]


EVEN = Finding(f"1{NBSP}×", "the average rate. No place or time is clearly busier than others.")
"""What is found of a rate that is nowhere clearly above the average."""


def likelihood_ratio(holdout: Holdout) -> str:
    """How many times as likely a held-out event is as under a constant rate, on average."""
    return times(math.exp(holdout.gain))


def prediction(holdout: Holdout) -> Finding:
    """How much likelier held-out events are than under a constant rate, and compared with a KDE."""
    odds = f"{likelihood_ratio(holdout)}{NBSP}×"
    measured = "as likely as under a constant rate: the average event held out from the fit"
    if holdout.gain < SIGNIFICANT_ERRORS * holdout.gain_error:
        return Finding(odds, f"{measured}. This may be due to chance.")
    return Finding(odds, f"{measured}. {against_kde(holdout)}")


def against_kde(holdout: Holdout) -> str:
    """A comparison with a kernel density estimate that is only as bold as its error allows."""
    some = f"of {count(holdout.kde_events)} of the other events" if holdout.kde_events else ""
    which = ", ".join(filter(None, (holdout.kde, some)))
    which = f" ({which})" if which else ""
    if abs(holdout.over_kde) < SIGNIFICANT_ERRORS * holdout.over_kde_error:
        return f"A kernel density estimate{which} does about as well."
    ratio = math.exp(min(holdout.over_kde, MOST_LOG_RATIO))
    if ratio >= 2.0:
        return f"That is {times(ratio)} times as good as a kernel density estimate{which}."
    side = "better" if ratio > 1.0 else "worse"
    return f"That is {percent(abs(ratio - 1.0))} {side} than a kernel density estimate{which}."


def verdict(fit: Fit) -> str:
    """A sentence or two on whether the rate fits."""
    inside = f"{int(fit.calibration.inside.sum())} of {counted(len(fit.calibration.inside), 'bin')}"
    limits = f"{inside} of the calibration lie within their limits."
    if fit.held_out:
        events = f"{count(fit.count)} held-out events"
    else:
        events = f"the {count(fit.count)} events it was fitted to (which say little about it)"
    if fit.faults:
        size = f"expected counts are {off_by(fit.relative_error)}"
        found = f"on {events}, {listed(fit.faults)} found a misfit"
        return f"Not in all respects: {found}: {size}; {limits}"
    if fit.patterns:
        found = "The rate fits, but events are not independent: no check of the rate"
        return f"{found} on {events} found a misfit, and {limits}"
    return f"Yes: no check on {events} found a misfit, and {limits}"
