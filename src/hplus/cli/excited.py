"""What commands do with a self-exciting rate: fit, expect, sample, predict."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING

import click

from hplus import save
from hplus.cli.base import note, note_dropped, note_left_out, print_pairs, progress_bar
from hplus.cli.summary import edge_cells, gain_words, made_with, selection_rows, silence_words
from hplus.cli.writing import print_json
from hplus.files.chunked_table import Table
from hplus.files.conditions import Condition
from hplus.files.times import Zone
from hplus.storage.files import Json
from hplus.wording import count, counted, rounded, six_digits

if TYPE_CHECKING:
    from hplus.estimators.self_exciting import SelfExciting
    from hplus.studies.excitation_study import ExcitationStudy
    from hplus.studies.frames import Frame
    from hplus.studies.triggered_counts import MarkedFuture, TriggeredCount

BACKGROUNDS = ("auto", "exp", "tree")
"""Models of the background that --model may name."""

APART = {
    "by": "--type learns which types trigger which",
    "weight": "give --mark",
    "exposure": "--from and --to say what was observed",
    "updatable": "when there are more events, fit again to all of them",
}
"""Options that cannot be used with --self-exciting, and what to do."""

MOST_COLUMNS = 2
"""Columns of places, at most."""

ABOUT_TRIGGERING = ("delay", "distance", "directions", "marks", "variation", "types")
"""Rows of the table that are left out if hardly any event was triggered."""


def check_self_exciting(options: Json) -> None:
    """Refuse options of hplus fit that do not go together."""
    if not options["self_exciting"]:
        for name, typed in (("--mark", options["mark"]), ("--type", options["kind"])):
            if typed:
                raise click.UsageError(
                    f"{name} needs --self-exciting: add it, or leave out {name}."
                )
        return
    for name, advice in APART.items():
        if options[name]:
            raise click.UsageError(f"--{name} cannot be used with --self-exciting: {advice}.")
    if len(options["columns"]) > MOST_COLUMNS:
        raise click.UsageError(
            "--columns must name at most two columns of places with --self-exciting, got "
            f"{','.join(options['columns'])}: give a magnitude as --mark."
        )
    if not options["time"]:
        raise click.UsageError("--self-exciting needs a column of times: give --time.")
    if options["blocks"] > 1:
        raise click.UsageError(
            "--holdout-blocks cannot be used with --self-exciting: the last part of the period is "
            "predicted, each event from those before it."
        )
    if options["model"] not in BACKGROUNDS:
        raise click.UsageError(
            f"--model {options['model']} cannot be used with --self-exciting: its background is "
            "learned by auto, exp or tree."
        )


def fit_excitation(
    table: Table, frame: Frame, options: Json, output: str | None, as_json: bool
) -> None:
    """Fit a self-exciting rate, print what it found, and save it."""
    from hplus.studies.excitation_study import ExcitationStudy

    began = perf_counter()
    names = ("mark", "kind", "holdout", "most_dropped", "random_state", "n_jobs")
    given = {name: options[name] for name in names} | {"cycle": options["cycle"] or ""}
    study = ExcitationStudy(frame, background=options["model"], **given)
    with progress_bar(as_json):
        study.fit(table)
    study.made_with_ = made_with(began, options["random_state"])
    found = study.facts()
    if output:
        save(study, output, summary=found)
    if as_json:
        print_json(found | {"model": output})
        return
    note_dropped(study.reading_.dropped, study.reading_.rows)
    print_pairs(f"The self-exciting rate of {counted(found['events'])}", excitation_table(found))
    if output is None:
        note("The model was not saved: give -o model.hplus to use it later.")
    else:
        note(f"Saved {output}. Next: {shlex.join(['hplus', 'expect', output, '--for', '7d'])}")


def excitation_table(found: Json) -> dict[str, str]:
    """What a study of a self-exciting rate found, as a short table."""
    from hplus.studies.excitation_words import hardly_any, too_few, triggered_words

    earlier = f"; {count(found['history'])} earlier ones are history" * bool(found["history"])
    far, marks = found["distance"], found["productivity"]
    table = {
        "events": f"{count(found['events'])} of {count(found['rows'])} rows in {found['file']}"
        f"{earlier}",
        **selection_rows(found),
        "window": found["window"],
        "period": found["time"],
        "branching": triggered_words(found),
        "delay": found["delay"]["words"],
        "distance": "" if far is None else far["words"],
        # files of earlier versions do not say
        "directions": (found.get("directions") or {"words": ""})["words"],
        "marks": "" if marks is None else marks["words"],
        "variation": "" if found["variation"] is None else found["variation"]["words"],
        "types": _types(found["types"]),
        "cycle": _cycle(found),
        "outlook": _outlook(found),
        "silence": silence_words(found),
        "certificate": found["certificate"]["words"],
    }
    if too_few(found) or hardly_any(found):
        table |= dict.fromkeys(ABOUT_TRIGGERING, "")
    if too_few(found):
        table["certificate"] = ""
    table |= _held_out(found)
    if found["seconds"] is not None:
        table["seconds"] = f"{found['seconds']:.1f}"
    return {name: text for name, text in table.items() if text}


def _held_out(found: Json) -> dict[str, str]:
    """How well later events were predicted, or why none were held out."""
    held = found["holdout"]
    if held is None:
        # files of earlier versions do not say
        asked = found.get("holdout_share") == 0.0
        return {"held out": f"none: {'--holdout 0' if asked else 'too few events'}"}
    table = {
        "held out": held["words"],
        "vs constant": gain_words(held["gain"], held["gain_error"]),
    }
    if found["distance"] is not None:
        table["vs Poisson"] = gain_words(held["over_poisson"], held["over_poisson_error"])
    return table


def _cycle(found: Json) -> str:
    """The cycle asked for or, without one, that which times follow; earlier files do not say."""
    if found["cycle"] is not None:
        return str(found["cycle"]["words"])
    followed = found.get("followed_cycle")
    return "" if followed is None else f"{followed['words']}: give --cycle {followed['name']}"


def _types(found: dict[str, dict[str, float]] | None) -> str:
    """Who triggers whom, in words."""
    if found is None:
        return ""
    rows = (
        f"{source} triggers {', '.join(f'{rounded(n, 2)} {to}' for to, n in row.items())}"
        for source, row in found.items()
    )
    return "; ".join(rows)


def _outlook(found: Json) -> str:
    """What to expect of the times to come, in words."""
    from hplus.studies.excitation_words import why_no_outlook

    if not found["outlook"]:
        return why_no_outlook(found)
    return f"events: {', '.join(map(_next, found['outlook']))}"


def _next(part: Json) -> str:
    return (
        f"{rounded(part['expected'])} in the next {part['next']} "
        f"({count(part['low'])} to {count(part['high'])})"
    )


def triggered_row(part: TriggeredCount, mark_above: float | None) -> Json:
    """A count to expect as a row of a table."""
    row = {
        "region": part.region.name,
        **edge_cells(part.region),
        "expected": six_digits(part.expected),
        "low": int(part.low),
        "high": int(part.high),
        "chance": six_digits(part.chance),
    }
    if part.chance_above is not None:
        row[f"chance_above_{mark_above:g}"] = six_digits(part.chance_above)
    return row


def with_newer(study: ExcitationStudy, path: str, until: float) -> SelfExciting:
    """The model with the events of a file, observed until a time in seconds since 1970."""
    from hplus.studies.triggered_counts import brought_up_to, quiet_words

    model, reading = brought_up_to(study, path, until)
    note_dropped(reading.dropped, reading.rows)
    if not reading.kept:
        note(quiet_words(study, path, until))
    return model


def future_rows(study: ExcitationStudy, path: int, future: MarkedFuture) -> Iterator[Json]:
    """Simulated events as rows with the user's own columns."""
    frame, (columns, seconds) = study.frame, future.events
    assert seconds is not None
    assert frame.clock is not None
    for i, numbers in enumerate(columns):
        row: Json = {"path": path}
        row |= {n: float(f"{v:.9g}") for n, v in zip(frame.columns, numbers, strict=True)}
        row[frame.needed[-1]] = frame.clock.written(float(seconds[i]))
        if future.marks is not None:
            row[study.mark] = six_digits(float(future.marks[i]))
        if future.types is not None:
            row[study.kind] = str(future.types[i])
        yield row


def predicted_rates(
    study: ExcitationStudy, table: Table, level: float, where: Condition | None, why: Counter[str]
) -> Iterator[Json]:
    """The rate at each row given the events before it, and its background; there is no band.

    `why` counts the rows without by reason.
    """
    from hplus.studies.excited_points import conditional_rates

    frame, zone = study.frame, Zone.NEITHER
    for chunk in table.chunks(frame.needed, where):
        found = conditional_rates(study, chunk, zone)
        why.update(found.lost)
        zone, answers = found.zone, iter(zip(found.rates, found.background, strict=True))
        cells = zip(*(chunk.columns[name].to_pylist() for name in frame.needed), strict=True)
        for row, good in zip(cells, found.rows, strict=True):
            rate, own = (six_digits(v) for v in next(answers)) if good else (None, None)
            named = {
                n: c if isinstance(c, int | float | str | None) else str(c)
                for n, c in zip(frame.needed, row, strict=True)
            }
            yield named | {"rate": rate, "background": own}


def check_excited(study: ExcitationStudy, events: str | None, as_json: bool) -> None:
    """Check a self-exciting rate on the events that it learned from, or on later ones."""
    from hplus.studies.checked_files import checked

    found = checked(study, events)
    if as_json:
        print_json({
            "events": found.check.count, "expected": found.check.expected,
            "dropped": found.reading.dropped, "left_out": found.reading.left_out,
            "fits": not found.check.faults,
            "verdict": found.check.verdict, "faults": list(found.check.faults),
            "p_values": found.check.p_values, "gain": found.gain, "gain_error": found.gain_error,
        })  # fmt: skip
        return
    note_dropped(found.reading.dropped, found.reading.rows)
    note_left_out(found.reading.left_out)
    if not found.later:
        note("The model was fitted to these events, so they say little about the fit.")
    click.echo(str(found.check))
    if found.gain is not None and found.gain_error is not None:
        gain = gain_words(found.gain, found.gain_error)
        click.echo(f"one event ahead, vs the best constant rate: {gain}")
