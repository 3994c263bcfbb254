"""What a study of events found, as plain data: known from its parts, or computed from its rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hplus.rates.by_region import rate_unit
from hplus.storage.files import Json
from hplus.studies.event_weights import counted_noun
from hplus.studies.frames import Frame
from hplus.studies.spans import moment
from hplus.wording import (
    SECONDS_IN,
    count,
    duration_words,
    lengths_words,
    percent,
    rate_words,
    rounded,
    scales_words,
    window_words,
)

MODEL_NAMES = {
    "exp": "smooth field",
    "tree": "trees",
    "tree on exp": "trees on the smooth field",
    "constant": "constant",
}
"""Parts of a rate in words."""

if TYPE_CHECKING:
    from hplus.estimators.intensity import Intensity
    from hplus.estimators.separable import SeparableIntensity
    from hplus.storage.registry import Unbuilt
    from hplus.studies.event_study import EventStudy
    from hplus.studies.events import Reading
    from hplus.studies.holdouts import Holdout
    from hplus.studies.map_trials import JudgedMap


def event_facts(study: EventStudy) -> Json:
    """What a fit found."""
    # what a file says about itself is known without it
    from hplus.studies.busiest import peak_facts
    from hplus.studies.prospects import outlook_facts

    model, held, found = study.model_, study.holdout_, known_facts(study)
    if held is not None:
        found["holdout"]["faults"] = list(held.check.faults)
        found["holdout"]["misfits"] = list(held.check.misfits)
        found["holdout"]["relative_error"] = held.check.relative_error
    return found | {
        "expected": float(model.expected_count(model.window)),
        "peak": peak_facts(study),
        "gap": model.solution_.relative_gap,
        "outlook": outlook_facts(study),
    }


def known_facts(study: EventStudy | Unbuilt) -> Json:
    """What nothing has to be computed for; the study may be a namespace of its stored parts."""
    frame, reading, held = study.frame, study.reading_, study.holdout_
    # once a week, in each hour of it, is once an hour
    per = "" if frame.cycle else study.exposure_.unit
    return {
        "file": reading.file,
        "rows": reading.rows,
        "events": reading.kept,
        "dropped": reading.dropped,
        **selection_facts(frame, reading),
        "window": window_words(frame.window),
        "volume": frame.window.volume,
        "unit": rate_unit(frame.window),
        "rates": rate_words(frame.window, per).replace("events", counted_noun(frame), 1),
        "time": period_words(frame),
        "exposure": {"amount": study.exposure_.amount, "unit": study.exposure_.unit},
        **_precision(study.model_, frame),
        "weights": weight_words(study),
        "held_share": getattr(study, "holdout", None),
        "holdout": None if held is None else holdout_facts(held, frame),
        "bursts": getattr(study, "bursts_", None),
        "seconds": study.made_with_.get("seconds"),
    }


def weight_words(study: EventStudy | Unbuilt) -> str:
    """What is counted instead of events, and how much is known of it; "" without weights."""
    scale = getattr(study, "weights_", None)
    if scale is None:
        return ""
    column, total, unit = study.frame.weight, scale["total"], scale["unit"]
    return (
        f"rates and counts are sums of {column}, {rounded(total)} in all; as much is known as from "
        f"{rounded(total / unit)} events of {rounded(unit)} each, and intervals take the {column} "
        "of an event to be independent of the others"
    )


def selection_facts(frame: Frame, reading: Reading | Unbuilt) -> Json:
    """Which rows are meant, and how many were left out on purpose; earlier files do not say."""
    where = None if frame.where is None else frame.where.text
    return {
        "where": where,
        "left_out": getattr(reading, "left_out", {}),
        "weight": frame.weight,
        "trial": frame.trial,
        "copies": copies_words(frame, reading),
    }


def copies_words(frame: Frame, reading: Reading | Unbuilt) -> str:
    """How many events are copies of others, in a sentence; "" if few are.

    Times to the minute, or places alone, are often the same by chance.
    """
    share, clock = getattr(reading, "copies", 0.0), frame.clock
    if clock is None or clock.spread > MOST_COPIED_STEP or share < MIN_TOLD_COPIES:
        return ""
    told = f"{percent(share)} of the events are exact copies of others, time and all"
    return f"{told}: if they were recorded twice, remove them, as they make patterns look certain"


MOST_COPIED_STEP, MIN_TOLD_COPIES = 1.0, 0.05
"""Seconds to which times are known, at most, and the share of copies that is worth a word."""

MIN_TOLD_STEP = 60.0
"""Seconds from which the rounding of times is worth a word."""

MIN_TOLD_SHARE = 1e-6
"""The step of positions, as a share of the window's longest side, that is worth a word."""

HOLDOUT_SCORES = ("events", "gain", "gain_error", "kde_gain", "over_kde", "over_kde_error")


def holdout_facts(held: Holdout | Unbuilt, frame: Frame) -> Json:
    """What was held out and how well it was predicted; files of earlier versions say less."""
    patterns = getattr(held, "patterns", ())
    return {name: getattr(held, name) for name in HOLDOUT_SCORES} | {
        "kde": getattr(held, "kde", ""),
        "kde_events": getattr(held, "kde_events", 0),
        "kind": getattr(held, "kind", "random"),
        "words": holdout_words(held, frame),
        "constant": [constant_words(p.of, frame) for p in patterns if not p.kept],
        "map": map_words(getattr(held, "map_by_time", None)),
    }


def holdout_words(held: Holdout | Unbuilt, frame: Frame) -> str:
    """What was held out, and what its prediction says."""
    text = getattr(held, "words", "") or f"{count(held.events)} events, held out at random"
    text += f", drawn in proportion to {frame.weight}" if frame.weight else ""
    if getattr(held, "scored", "") == "places":
        return f"{text}; predicted by place, as without a cycle times say nothing about the future"
    if frame.clock is not None and getattr(held, "kind", "random") == "random":
        known = "this measures how well the pattern of the observation period is known"
        return f"{text}: {known}, not how well the future is predicted"
    return text


def map_words(judged: JudgedMap | Unbuilt | None) -> str:
    """Whether the map changes with the time of day or week, in a sentence; "" if not judged."""
    if judged is None:
        return ""
    if judged.kept:
        gain = f"{judged.gain:+.4f} ± {judged.gain_error:.4f}"
        return (
            f"the map changes with the time of {judged.by}: {gain} nats per event on later events"
        )
    if judged.evidence > 0.0:
        return f"no change of the map with the time of {judged.by} that predicts later events"
    return f"no evidence that the map changes with the time of {judged.by}"


def constant_words(of: str, frame: Frame) -> str:
    """That a pattern was left out, in a sentence."""
    what = f"hour of the {frame.cycle}" if of == "times" else "place"
    return f"{what}: no pattern that predicts later events, so a constant rate is used"


def period_words(frame: Frame) -> str | None:
    """The observation period in words, and how times are used."""
    clock = frame.clock
    if clock is None:
        return None
    text = f"{moment(clock.start)} to {moment(clock.end)}"
    by_hour = f", by hour of the {clock.cycle}" * bool(clock.cycle)
    if clock.spread < MIN_TOLD_STEP:
        return f"{text}{by_hour}"
    step = {3600.0: "an hour", 86_400.0: "a day"}.get(clock.spread, f"{clock.spread / 60:g} min")
    return f"{text}{by_hour}; times were rounded, so each is spread over {step}"


def model_parts(model: Intensity | SeparableIntensity | Unbuilt) -> Json:
    """The rates that are learned separately, by what they are rates of: places and times, or ""."""
    if hasattr(model, "place_"):
        return {"places": model.place_, "times": model.time_}
    return {"": model}


def _precision(model: Intensity | SeparableIntensity | Unbuilt, frame: Frame) -> Json:
    """Which models have weight, the scales of the smooth one, and what the map stops at."""
    parts = model_parts(model)
    said = {
        "models": {of: weights_words(part) for of, part in parts.items()},
        "resolution": {
            of: resolution_words(part, time_step(frame, of)) for of, part in parts.items()
        },
        "positions": {of: positions_words(part) for of, part in parts.items()},
    }
    named = {
        name: "; ".join(f"{text} for {of}" if of else text for of, text in texts.items() if text)
        for name, texts in said.items()
    }
    return {"scales": [text for part in parts.values() for text in _scales(part)]} | named


def time_step(frame: Frame, of: str) -> float:
    """The step that times were rounded to, in the unit of their axis; 0 for "places"."""
    if frame.clock is None or of == "places":
        return 0.0
    return frame.clock.spread / SECONDS_IN[frame.clock.unit]


def is_constant(model: Intensity | Unbuilt) -> bool:
    """Does the rate not vary, as its pattern did not predict later events?"""
    return "constant" in getattr(model, "weights_", {})


def weights_words(model: Intensity | Unbuilt) -> str:
    """The models that have weight, such as "smooth field 60 %, trees 40 %"; "" for squares."""
    weights = getattr(model, "weights_", {})
    if len(weights) == 1:
        return MODEL_NAMES[next(iter(weights))]
    return ", ".join(f"{MODEL_NAMES[name]} {percent(w)}" for name, w in weights.items())


def resolution_words(model: Intensity | Unbuilt, least: float = 0.0) -> str:
    """The side of the smallest cell that the rate tells apart, in words; "" if it is not known.

    It is no smaller than `least`, the step of rounded times.
    """
    if not hasattr(model, "resolution_") or is_constant(model):
        return ""
    units = model.window.axis_units
    sides = np.maximum(np.broadcast_to(model.resolution_, len(units)), least)
    if len(units) == 1 and units[0] in SECONDS_IN:
        return duration_words(float(sides[0]), units[0])
    return lengths_words([float(f"{side:.2g}") for side in sides], units)


def positions_words(model: Intensity | Unbuilt) -> str:
    """What rounded or repeated positions mean for a rate, in a sentence; "" if there are none."""
    positions = getattr(model, "positions_", None)
    words = getattr(positions, "words", None)
    if positions is None or not callable(words):
        return ""
    notable = np.any(positions.step > MIN_TOLD_SHARE * model.window.longest_sides())
    return str(words(model.window.axis_units)) if notable else ""


def _scales(model: Intensity | Unbuilt) -> list[str]:
    """The scales of the leading prior, the coarsest first, if the smooth field has any weight."""
    if not hasattr(model, "kernel_") or getattr(model, "weights_", {}).keys() == {"tree"}:
        return []
    units = model.window.axis_units
    fields = getattr(model.kernel_, "fields", ())
    return [scales_words(field.scales, units) for field in fields] or [str(model.kernel_)]
