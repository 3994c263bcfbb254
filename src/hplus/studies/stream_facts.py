"""What a stream has learned so far, as plain data and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hplus.storage.files import Json
from hplus.studies.spans import moment
from hplus.wording import rounded, window_words

if TYPE_CHECKING:
    from hplus.studies.streams import StreamStudy


def stream_facts(study: StreamStudy) -> Json:
    """What was learned so far."""
    clock, exposure, where = study.frame.clock, study.total_exposure, study.frame.where
    known = {
        "kind": "StreamStudy",
        "events": study.events_,
        "lines": study.lines_,
        "offset": study.offset_,
        "dropped": study.dropped_,
        "left_out": left_out_of(study),
        "where": None if where is None else where.text,
        "window": window_words(study.frame.window),
        "exposure": str(exposure) if exposure.unit else None,
        "since": None if clock is None else moment(clock.start),
        "rate": rate_words_of(study),
        "method": str(study.method),
        study.kept_in: study.atoms,
    }
    return {name: said for name, said in known.items() if said is not None} | study.made_with_


def left_out_of(study: StreamStudy) -> dict[str, int]:
    """Lines left out on purpose, by reason; states of earlier versions do not say."""
    found: dict[str, int] = getattr(study, "left_out_", {})
    return found


def rate_words_of(study: StreamStudy) -> str:
    """The rate with its unit, for example "12.5 per week"."""
    unit = study.total_exposure.unit
    return rounded(study.rate) + (f" per {unit}" if unit else "")


def stream_settings(study: StreamStudy) -> dict[str, str]:
    """The settings that must stay the same when a stream is resumed, as text."""
    frame = study.frame
    clock = None if frame.clock is None else frame.clock.replace(spread=0.0)
    parts = {"columns": frame.columns, "window": frame.region, "map": frame.place,
             "time": clock, "method": study.method, "budget": study.budget,
             "forget": study.forget, "where": frame.where and frame.where.text}  # fmt: skip
    return {name: "none" if part in (None, ()) else str(part) for name, part in parts.items()}
