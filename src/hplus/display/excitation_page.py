"""From a study of a self-exciting rate to a page: facts and charts in one HTML file."""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path
from types import SimpleNamespace

from hplus._checks import shown
from hplus.display.excitation_figures import (
    cell_residuals,
    declustered,
    followed_shares,
    gap_quantiles,
    productive_events,
    trigger_curves,
    triggered_outlook,
)
from hplus.display.findings import SIGNIFICANT_ERRORS, Finding, silence_notes
from hplus.display.page import page_template
from hplus.display.provenance import Fact, file_name, how_to_reproduce, rows_fact
from hplus.storage.files import Json, replace_file
from hplus.studies.checked_files import checked
from hplus.studies.excitation_study import ExcitationStudy
from hplus.studies.excitation_words import doubt, hardly_any, too_few, why_no_outlook
from hplus.studies.triggered_counts import clock_of
from hplus.wording import (
    count,
    counted,
    day_words,
    percent,
    quantity,
    rounded,
    sentence,
    times,
    with_error,
)


def excitation_html(
    study: ExcitationStudy, events: str | None = None, title: str | None = None
) -> str:
    """The page of a fitted study as text; `events` is a file to check it on."""
    if not isinstance(study, ExcitationStudy) or not hasattr(study, "model_"):
        raise TypeError(f"study must be a fitted ExcitationStudy, got {shown(study)}.")
    facts = gather_excitation(study, events, title)
    return page_template("excitation.html.j2").render(facts=facts)


def write_excitation_report(
    study: ExcitationStudy,
    path: str | PathLike[str],
    events: str | None = None,
    title: str | None = None,
) -> None:
    """Write the page of a fitted study; an existing file is replaced in one step."""
    replace_file(Path(path), [excitation_html(study, events, title).encode()])


def gather_excitation(
    study: ExcitationStudy, events: str | None, title: str | None
) -> SimpleNamespace:
    """Everything on the page of a study."""
    found = study.facts()
    fit = checked(study, events)
    place = declustered(study)
    return SimpleNamespace(
        title=title or "How events trigger others",
        source=file_name(study),
        about=_about(study, found),
        findings=_findings(found),
        cautions=[*_cautions(found["followed_cycle"]), *silence_notes(found["silences"])],
        tiles=_tiles(found),
        curves=trigger_curves(study),
        delay=found["delay"]["words"],
        distance=None if found["distance"] is None else found["distance"]["words"],
        directions=None if found["directions"] is None else found["directions"]["words"],
        marks=None if found["productivity"] is None else found["productivity"]["words"],
        soon=followed_shares(study) if place is None else None,
        productive=productive_events(study),
        place=place,
        types=found["types"],
        outlook=triggered_outlook(study, found["outlook"]),
        no_outlook=why_no_outlook(found),
        later=fit.later,
        verdict=fit.check.verdict,
        gaps=gap_quantiles(fit.check),
        residuals=cell_residuals(fit.check, study.model_),
        held=_prediction(found["holdout"], found["distance"] is not None),
        fitted=_fitted(study, found),
        origin=how_to_reproduce(study),
        command=str(study.made_with_.get("command", "")),
    )


def _about(study: ExcitationStudy, found: Json) -> str:
    clock = clock_of(study)
    return (
        f"{counted(found['events'])} from {day_words(clock.start)} to {day_words(clock.end)}. "
        "This page shows which of them were triggered by others, how soon"
        f"{' and how near' * bool(study.frame.columns)}, and what to expect next."
    )


def _cautions(followed: Json | None) -> list[str]:
    """What to keep in mind if times follow a cycle that the model does not have."""
    if followed is None:
        return []
    name = followed["name"]
    return [
        f"Times follow the {name}, which can look like triggering: a model with a cycle of the "
        f"{name} tells how much of it is."
    ]


def _findings(found: Json) -> tuple[Finding, ...]:
    """How many were triggered, how soon, and what is next."""
    return (
        *_about_triggering(found),
        *(
            Finding(
                rounded(first["expected"]),
                f"events are expected in the next {first['next']}: {count(first['low'])} to "
                f"{count(first['high'])} with a probability of 90 %.",
            )
            for first in found["outlook"][:1]
        ),
    )


def _about_triggering(found: Json) -> tuple[Finding, ...]:
    ratio, n = found["branching"], found["events"]
    if too_few(found):
        words = f"{'event is' if n == 1 else 'events are'} too few to tell about triggering."
        return (Finding(count(n), words),)
    # with several types, the ratio and its interval are not those of an average event
    if hardly_any(found):
        return (Finding("Hardly any", "event was triggered by earlier ones."),)
    several = found["types"] is not None
    band = "" if several else f" (90 % interval {ratio['low']:.2f} to {ratio['high']:.2f})"
    soon = found["delay"]["words"].rsplit(" within ", 1)[1]
    near = found["distance"]
    return (
        Finding(
            percent(1.0 - found["background_share"]),
            "of the events were triggered by earlier ones. An event triggers "
            f"{rounded(ratio['triggers'], 2)} others directly, on average{band}{doubt(ratio)}.",
        ),
        Finding(
            soon,
            "is the time within which half of the triggered events follow"
            f"{'' if near is None else ', ' + near['words']}.",
        ),
    )


def _tiles(found: Json) -> tuple[Fact, ...]:
    ratio, held = found["branching"], found["holdout"]
    band = f"{ratio['low']:.2f} to {ratio['high']:.2f}"
    if too_few(found):
        band += ": too few events to tell"
    tiles = [
        Fact("Events", count(found["events"]), f"of {count(found['rows'])} rows in the file"),
        Fact("Branching ratio", f"{ratio['ratio']:.2f}", band),
        Fact("Background", percent(found["background_share"]), "of the events were not triggered"),
    ]
    if held is not None:
        gain = with_error(held["over_poisson"], held["over_poisson_error"])
        tiles.append(Fact("Gain", gain, "nats per event, over independent events"))
    return tuple(tiles)


def _prediction(held: Json | None, in_place: bool) -> str:
    """How well later events were predicted, in words; "" if none were held out."""
    if held is None:
        return ""
    gain, error = held["over_poisson"], held["over_poisson_error"]
    chance = " This may be due to chance." if gain < SIGNIFICANT_ERRORS * error else ""
    rival, also = "a constant rate", ""
    if in_place:
        rival = "the better of a constant rate and a map of the rate"
        also = f", and {with_error(held['gain'], held['gain_error'])} over a constant rate"
    return (
        f"Held out: {held['words']}. On average, each is {times(math.exp(gain))} times as likely "
        f"as under {rival}, learned from the same events: a gain of {with_error(gain, error)} nats "
        f"per event{also}.{chance}"
    )


def _model(study: ExcitationStudy) -> str:
    far = " and distance" * bool(study.frame.columns)
    by_mark = ", times a productivity by mark" * bool(study.mark)
    return (
        f"A background rate plus what every earlier event adds: a trigger by lag{far} without a "
        f"fixed form, smooth on the log scale{by_mark}."
    )


def _fitted(study: ExcitationStudy, found: Json) -> tuple[Fact, ...]:
    """Model, longest lag and distance, certificate, rows."""
    delay, far, seconds = found["delay"], found["distance"], found["seconds"]
    facts = [
        Fact("Model", _model(study), "The rate cannot be negative."),
        Fact("Longest lag", quantity(delay["longest"], delay["unit"])),
    ]
    if far is not None:
        facts.append(Fact("Farthest", quantity(far["longest"], far["unit"])))
    facts.append(Fact("Certificate", sentence(found["certificate"]["words"])))
    facts.append(rows_fact(study.reading_))
    if seconds is not None:
        facts.append(Fact("Duration", f"{quantity(float(seconds), 's')} to read and fit"))
    return tuple(facts)
