"""What a study found, as plain data and as a short table for people."""

from __future__ import annotations

import platform
import re
import shlex
import sys
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from hplus import __version__
from hplus.storage.files import Json
from hplus.studies.spans import Amount
from hplus.wording import (
    count,
    left_out_words,
    listed,
    off_by,
    place_words,
    rounded,
    six_digits,
)

if TYPE_CHECKING:
    from hplus.studies.expect import Expected, Region

MOST_GAIN = 5.0
"""Nats per event from which the odds are not given as a number."""


def fit_table(found: Json) -> dict[str, str]:
    """What a study of events found as a short table; some facts may be missing."""
    held, peak, exposure = found["holdout"], found.get("peak"), Amount(**found["exposure"])
    unit = exposure.unit
    table = {
        "events": f"{count(found['events'])} of {count(found['rows'])} rows in {found['file']}",
        **selection_rows(found),
        "window": found["window"],
        "period": found["time"],
        "exposure": str(exposure) if unit and not found["time"] else "",
        "weights": found.get("weights", ""),
    }
    if peak is not None:
        place = {name: at for name, at in peak.items() if name != "rate"}
        noun = f"units of {found['weight']}" if found.get("weight") else "events"
        table["expected"] = f"{rounded(found['expected'])} {noun}{f' per {unit}' * bool(unit)}"
        highest = f"{rounded(peak['rate'])} {found['rates']}"
        table["busiest at"] = f"{place_words(place)}: {highest}" if place else ""
    # files of 0.1.0 have neither trees nor a resolution
    table["model"] = found.get("models", "")
    table["scales"] = listed(found["scales"]) if found["scales"] else ""
    table["resolution"] = found.get("resolution", "")
    # the name of the row is the subject of the sentence
    table["positions"] = re.sub("positions( along .+?)? are ", _axes, found.get("positions", ""))
    table |= outlook_rows(found.get("outlook"), found.get("weight") or "")
    if held is None:
        asked = found.get("held_share") == 0.0
        few = "too few events or trials" if found.get("trial") else "too few events"
        table["held out"] = "none, because of --holdout 0" if asked else f"none: {few}"
    else:
        table |= holdout_rows(held)
    if found["seconds"] is not None:
        table["seconds"] = f"{found['seconds']:.1f}"
    return {name: text for name, text in table.items() if text}


def selection_rows(found: Json) -> dict[str, str]:
    """Which rows are meant, and how many others there are; older files do not say."""
    return {
        "where": found.get("where") or "",
        "left out": left_out_words(found.get("left_out") or {}),
        "copies": found.get("copies") or "",
    }


def holdout_rows(held: Json) -> dict[str, str]:
    """What was held out, how well it is predicted, and what does not predict it."""
    table = {
        "patterns": "; ".join(held["constant"]),
        # files of earlier versions do not say
        "place and time": held.get("map", ""),
        "held out": held["words"],
        "vs constant": gain_words(held["gain"], held["gain_error"]),
        "vs KDE": gain_words(held["over_kde"], held["over_kde_error"]),
    }
    if some := held.get("kde_events"):
        table["vs KDE"] += f" (a KDE of {count(some)} of the other events)"
    if faults := held.get("faults"):
        table["does it fit?"] = _misfit_words(held, faults)
    return table


def _misfit_words(held: Json, faults: list[str]) -> str:
    """What does not fit, and what says that events are not independent of each other."""
    # files of earlier versions do not tell misfits of the rate from dependence
    misfits = held.get("misfits", faults)
    others = listed([name for name in faults if name not in misfits])
    if not misfits:
        return f"the rate fits, but events are not independent, according to {others}"
    found = f"not in all respects: {listed(misfits)} found a misfit on held-out events"
    if "relative_error" in held:
        found += f"; expected counts are {off_by(held['relative_error'])}"
    return f"{found}; events are not independent, according to {others}" if others else found


def outlook_rows(outlook: Json | None, weight: str = "") -> dict[str, str]:
    """What follows the observation period, and how much more counts vary than Poisson counts."""
    if outlook is None:
        return {}
    if not outlook["counts"]:
        return {"outlook": f"no forecast: {outlook['reason']}"}
    first, *others = outlook["counts"]
    noun = f" units of {weight}" if weight else " events"
    parts = [_prospect(**first, noun=noun, level="90 % interval ")]
    parts += [_prospect(**other) for other in others]
    change = outlook.get("change") or {"words": ""}
    return {
        "outlook": ", ".join(parts),
        "variation": outlook["variation"],
        "changes": change["words"],
        "silence": silence_words(outlook),
    }


def silence_words(found: Json) -> str:
    """The silences among what was found; files of earlier versions do not say."""
    return "; ".join(silence["words"] for silence in found.get("silences", ()))


def _prospect(
    expected: float, low: float, high: float, noun: str = "", level: str = "", **period: str
) -> str:
    """The count of a time to come, such as "15.4 in the next day (9 to 23)"."""
    bounds = f"{level}{count(low)} to {count(high)}"
    return f"{rounded(expected)}{noun} in the next {period['next']} ({bounds})"


def _axes(found: re.Match[str]) -> str:
    """Which axes a sentence about positions is about, if not about all."""
    return f"{found[1].strip()}, " if found[1] else ""


def edge_cells(region: Region) -> Json:
    """The edges of a region as cells of a table."""
    edges = region.edges.items()
    return {name: float(f"{v:.8g}") if isinstance(v, float) else v for name, v in edges}


def whole_or_rounded(number: float) -> float:
    """A whole number as it is, a sum of weights with six digits."""
    return int(number) if number == int(number) else six_digits(number)


def count_row(part: Expected) -> Json:
    """An expected count as a row of a table."""
    return {
        "region": part.region.name,
        **edge_cells(part.region),
        "expected": six_digits(part.expected),
        "low": whole_or_rounded(part.low),
        "high": whole_or_rounded(part.high),
    }


def made_with(began: float, seed: int, command: str | None = None) -> Json:
    """How a model was made, for the record; `began` is a reading of perf_counter."""
    return {
        "command": command or shlex.join(["hplus", *sys.argv[1:]]),
        "hplus": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "seconds": round(perf_counter() - began, 2),
        "seed": seed,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def gain_words(gain: float, error: float) -> str:
    """A gain in nats, and what it means."""
    odds = f"{np.exp(gain):.2f} times" if gain < MOST_GAIN else "over 100 times"
    return f"{gain:+.3f} ± {error:.3f} nats per event: {odds} as likely"
