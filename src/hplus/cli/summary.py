"""What a study found, as plain data and as a short table for people."""

from __future__ import annotations

import platform
import shlex
import sys
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from hplus import __version__
from hplus.studies.spans import Amount, moment
from hplus.wording import count, listed, place_words, rate_words, rounded, six_digits, window_words

if TYPE_CHECKING:
    from hplus.studies.expect import Expected
    from hplus.studies.frames import Frame
    from hplus.studies.study import EventStudy

MOST_GAIN = 5.0
"""Nats per event from which the odds are not given as a number."""


def time_words(frame: Frame) -> str | None:
    """The observation period in words, and how times are used."""
    clock = frame.clock
    if clock is None:
        return None
    text = f"{moment(clock.start)} to {moment(clock.end)}"
    if not clock.cycle:
        return text
    step = {3600.0: "an hour", 86_400.0: "a day"}.get(clock.spread, f"{clock.spread / 60:g} min")
    spread = f"; times were rounded, so each is spread over {step}" if clock.spread else ""
    return f"{text}, by hour of the {clock.cycle}{spread}"


def facts(study: EventStudy) -> dict[str, Any]:
    """What a fit found, as plain data."""
    from hplus.display.provenance import scales
    from hplus.rates.by_region import rate_unit

    frame, clock = study.frame, study.frame.clock
    # once a week, in each hour of it, is once an hour
    per = "" if clock is not None and clock.cycle else study.exposure_.unit
    held, reading, model = study.holdout_, study.reading_, study.model_
    return {
        "file": reading.file,
        "rows": reading.rows,
        "events": reading.kept,
        "dropped": reading.dropped,
        "window": window_words(frame.window),
        "volume": frame.window.volume,
        "unit": rate_unit(frame.window),
        "rates": rate_words(frame.window, per),
        "time": time_words(frame),
        "exposure": {"amount": study.exposure_.amount, "unit": study.exposure_.unit},
        "expected": float(model.expected_count(frame.window)),
        "scales": scales(study),
        "peak": frame.describe(model.peak()[0])[0] | {"rate": model.peak()[1]},
        "gap": model.solution_.relative_gap,
        "holdout": None
        if held is None
        else {
            "events": held.events,
            "gain": held.gain,
            "gain_error": held.gain_error,
            "kde_gain": held.kde_gain,
            "over_kde": held.over_kde,
            "over_kde_error": held.over_kde_error,
            "faults": list(held.check.faults),
        },
        "seconds": study.made_with_.get("seconds"),
    }


def fit_table(found: dict[str, Any]) -> dict[str, str]:
    """The same as a short table for people."""
    held, peak, exposure = found["holdout"], dict(found["peak"]), Amount(**found["exposure"])
    unit, rate = exposure.unit, peak.pop("rate")
    table = {
        "events": f"{count(found['events'])} of {count(found['rows'])} rows in {found['file']}",
        "window": found["window"],
        "period": found["time"],
        "exposure": str(exposure) if unit and not found["time"] else "",
        "expected": f"{rounded(found['expected'])} events{f' per {unit}' * bool(unit)}",
        "busiest at": f"{place_words(peak)}: {rounded(rate)} {found['rates']}",
        "scales": listed(found["scales"]),
    }
    if held is None:
        table["held out"] = "none: too few events, or --holdout 0"
    else:
        table["held out"] = f"{count(held['events'])} events, to test predictions"
        table["vs constant"] = gain_words(held["gain"], held["gain_error"])
        table["vs KDE"] = gain_words(held["over_kde"], held["over_kde_error"])
        if held["faults"]:
            faults = listed(held["faults"])
            table["does it fit?"] = f"not everywhere: {faults} found a misfit on held-out events"
    if found["seconds"] is not None:
        table["seconds"] = f"{found['seconds']:.1f}"
    return {name: text for name, text in table.items() if text}


def count_row(part: Expected) -> dict[str, Any]:
    """An expected count as a row of a table."""
    edges = part.region.edges.items()
    return {
        "region": part.region.name,
        **{name: float(f"{v:.8g}") if isinstance(v, float) else v for name, v in edges},
        "expected": six_digits(part.expected),
        "low": int(part.low),
        "high": int(part.high),
    }


def made_with(began: float, seed: int, command: str | None = None) -> dict[str, Any]:
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
