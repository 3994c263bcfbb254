"""What a study of events found, as plain data: known from its parts, or computed from its rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hplus.rates.by_region import rate_unit
from hplus.studies.frames import Frame
from hplus.studies.spans import moment
from hplus.wording import rate_words, scales_words, window_words

if TYPE_CHECKING:
    from hplus.estimators.intensity import Intensity
    from hplus.estimators.separable import SeparableIntensity
    from hplus.storage.registry import Unbuilt
    from hplus.studies.event_study import EventStudy


def event_facts(study: EventStudy) -> dict[str, Any]:
    """What a fit found."""
    model, held, found = study.model_, study.holdout_, known_facts(study)
    if held is not None:
        found["holdout"]["faults"] = list(held.check.faults)
    place, rate = model.peak()
    return found | {
        "expected": float(model.expected_count(study.frame.window)),
        "peak": study.frame.describe(place)[0] | {"rate": rate},
        "gap": model.solution_.relative_gap,
    }


def known_facts(study: EventStudy | Unbuilt) -> dict[str, Any]:
    """What nothing has to be computed for; the study may be a namespace of its stored parts."""
    frame, reading, held = study.frame, study.reading_, study.holdout_
    # once a week, in each hour of it, is once an hour
    per = "" if frame.cycle else study.exposure_.unit
    scores = ("events", "gain", "gain_error", "kde_gain", "over_kde", "over_kde_error")
    return {
        "file": reading.file,
        "rows": reading.rows,
        "events": reading.kept,
        "dropped": reading.dropped,
        "window": window_words(frame.window),
        "volume": frame.window.volume,
        "unit": rate_unit(frame.window),
        "rates": rate_words(frame.window, per),
        "time": period_words(frame),
        "exposure": {"amount": study.exposure_.amount, "unit": study.exposure_.unit},
        "scales": _scales(study.model_),
        # files of 0.1.0 do not say which KDE it was
        "holdout": None
        if held is None
        else {name: getattr(held, name) for name in scores} | {"kde": getattr(held, "kde", "")},
        "seconds": study.made_with_.get("seconds"),
    }


def period_words(frame: Frame) -> str | None:
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


def _scales(model: Intensity | SeparableIntensity | Unbuilt) -> list[str]:
    """The scales of the leading priors, the coarsest first; of places, then of times."""
    parts = [model.place_, model.time_] if hasattr(model, "place_") else [model]
    return [
        scales_words(field.scales, part.window.axis_units)
        for part in parts
        for field in getattr(part.kernel_, "fields", ())
    ] or [str(part.kernel_) for part in parts]
