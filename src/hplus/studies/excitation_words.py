"""What a study of a self-exciting rate found, in words."""

from __future__ import annotations

from hplus.rates.excitation.branching_band import MIN_EVIDENCE
from hplus.storage.files import Json
from hplus.wording import percent, rounded

FEWEST_TOLD, LEAST_TOLD = 3, 0.005
"""Events, and the share of them that was triggered, below which nothing is told of triggering."""


def why_no_outlook(found: Json) -> str:
    """Why what comes next could not be simulated, in a sentence without a full stop."""
    if found["branching"]["ratio"] >= 1.0:
        return "cannot be simulated: the branching ratio is above 1, so that bursts never die out"
    return "cannot be simulated: there would be too many events"


def triggered_words(found: Json) -> str:
    """The branching ratio with its interval, and what it means; with several types, it is not how
    many others an event triggers.
    """
    if too_few(found):
        return "too few events to tell whether they trigger others"
    ratio, share = found["branching"], 1.0 - found["background_share"]
    numbers = f"{ratio['ratio']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"
    if hardly_any(found):
        return f"{numbers}: hardly any event was triggered"
    each = f"each event triggers {rounded(ratio['triggers'], 2)} others directly, on average"
    if found["types"]:
        each = (
            "the size of a generation of triggered events relative to the one before, in the long "
            f"run; {each}"
        )
    return f"{numbers}: {each}; {percent(share)} of the events were triggered{doubt(ratio)}"


def doubt(ratio: Json) -> str:
    """What explains the events as well as triggering; files of earlier versions do not say."""
    if ratio.get("evidence", MIN_EVIDENCE) >= MIN_EVIDENCE:
        return ""
    return f", but this could also be {ratio['rival'] or 'chance'}"


def hardly_any(found: Json) -> bool:
    """Is the share of triggered events so small that nothing is told about them?"""
    return bool(1.0 - found["background_share"] < LEAST_TOLD)


def too_few(found: Json) -> bool:
    """Are there too few events to tell about triggering?"""
    return bool(found["events"] + found["history"] < FEWEST_TOLD)
