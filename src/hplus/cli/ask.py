"""Commands that query a model at points and events: predict, check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hplus.cli.base import (
    check_writable,
    command,
    json_option,
    level_option,
    load_model,
    note,
    note_dropped,
    note_left_out,
    rows_output_option,
)
from hplus.cli.excited import check_excited, predicted_rates
from hplus.cli.grouped import group_option
from hplus.cli.options import narrowed, where_option
from hplus.cli.regress import predicted_quantities
from hplus.cli.writing import print_json, write_rows
from hplus.files.chunked_table import Table
from hplus.files.conditions import Condition
from hplus.files.feeds import TableError
from hplus.files.tables import open_table
from hplus.files.times import Zone
from hplus.storage.files import Json
from hplus.wording import count, left_out_words, six_digits

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy
    from hplus.studies.events import Reading
    from hplus.studies.holdouts import Holdout
    from hplus.studies.ranges import Extent


@command("hplus predict thefts.hplus places.csv -o rates.csv")
@click.argument("model")
@click.argument("points")
@where_option
@group_option
@level_option
@rows_output_option
@json_option
def predict(
    model: str, points: str, output: str | None, as_json: bool, level: float, **options: Any
) -> None:
    """Predict the rate, or the quantity, at each row of POINTS, with a confidence interval.

    The result is a CSV with the columns low and high: bounds of the rate for a model of hplus fit,
    of the target for a model of hplus regress. A self-exciting rate is that given the events before
    each row, beside its background and without bounds. Rows outside the window or with invalid
    cells are kept, without a prediction.
    """
    check_writable(output)
    study, where = load_model(model, *ANSWERS, group=options["group"]), options["where"]
    answers = ANSWERS[type(study).__name__]
    table = open_table(points)
    condition = Condition(where) if where else None
    why = Counter[str]()
    rows = list(answers(study, table, level, condition, why))
    if table.dropped:
        note(f"{count(table.dropped.total())} broken lines were skipped.")
    note_left_out(table.left_out)
    if not rows:
        left = f"no rows where {where}" if where else "a header but no rows"
        raise TableError(f"{points} has {left}: there is nothing to predict.")
    last = list(rows[0])[-1]
    if all(row[last] is None for row in rows):
        raise TableError(
            f"none of the {count(len(rows))} rows of {points} can be predicted: "
            f"{left_out_words(why)}."
        )
    for reason, lost in why.items():
        note(f"{count(lost)} of {count(len(rows))} rows have no prediction: {reason}.")
    write_rows(output, rows, as_json)


def _predicted(
    study: EventStudy, table: Table, level: float, where: Condition | None, why: Counter[str]
) -> Iterator[dict[str, Any]]:
    """The rate at each row and its band; `why` counts the rows without by reason."""
    frame, zone = study.frame.of_points(), Zone.NEITHER
    for chunk in table.chunks(frame.needed, where):
        found = frame.points(chunk, zone)
        zone = found.zone
        why.update(found.dropped + found.left_out)
        low, high = study.model_.predict_interval(found.X, level)
        rates = iter(zip(study.model_.predict(found.X), low, high, strict=True))
        cells = zip(*(chunk.columns[name].to_pylist() for name in frame.needed), strict=True)
        for row, good in zip(cells, found.rows, strict=True):
            rate, a, b = (six_digits(v) for v in next(rates)) if good else (None, None, None)
            named = {
                n: c if isinstance(c, int | float | str | None) else str(c)
                for n, c in zip(frame.needed, row, strict=True)
            }
            yield named | {"rate": rate, "low": a, "high": b}


ANSWERS = {
    "EventStudy": _predicted,
    "ExcitationStudy": predicted_rates,
    "QuantityStudy": predicted_quantities,
}
"""How models of each kind answer hplus predict."""


@command("hplus check thefts.hplus thefts-2018.csv")
@click.argument("model")
@click.argument("events", required=False)
@where_option
@group_option
@json_option
def check(model: str, events: str | None, where: str, group: str | None, as_json: bool) -> None:
    """Test whether a model fits the EVENTS of a file, best with events it was not fitted to.

    Rows are chosen as in the fit: by the condition, window and period of the model. Without a
    cycle, events that all lie outside the period are checked by place alone. A self-exciting rate
    keeps the events it was fitted to, and is checked on them without EVENTS.
    """
    study = load_model(model, "EventStudy", "ExcitationStudy", "GroupedStudy", group=group)
    if type(study).__name__ == "ExcitationStudy":
        study.frame = narrowed(study.frame, where)
        check_excited(study, events, as_json)
        return
    if events is None:
        raise click.UsageError(
            f"Missing EVENTS: a model does not keep the events that it is to be compared with. "
            f"Give their file: hplus check {model} events.csv."
        )
    if type(study).__name__ == "GroupedStudy":
        found = {}
        for name, part in study.studies_.items():
            part.frame = narrowed(part.frame, where)
            if not as_json:
                click.echo(f"{study.by} {name}:")
            found[name] = _checked(part, events, as_json)
        if as_json:
            print_json({"by": study.by, "groups": found})
        return
    study.frame = narrowed(study.frame, where)
    facts = _checked(study, events, as_json)
    if as_json:
        print_json(facts)


def _checked(study: EventStudy, events: str, as_json: bool) -> Json:
    """Check a study on the events of a file: print it in words, unless it is for JSON."""
    from hplus.evaluation import check as check_rate
    from hplus.studies.event_facts import model_parts
    from hplus.studies.later_places import events_to_check
    from hplus.studies.unfolding import unfolded

    (X, reading, extent, seconds), places_only = events_to_check(events, study.frame)
    held = study.holdout_ if study.fitted_to(reading) else None
    if held is not None:
        found = held.check
    elif places_only:
        place = model_parts(study.model_)["places"]
        found = check_rate(place, X[:, : place.window.dimension])
        note(
            "The events lie outside the observation period: their places are checked, as without a "
            "cycle the rate says nothing about other times."
        )
    else:
        line = unfolded(study.frame.clock, study.model_, seconds)
        found = check_rate(study.model_, X, exposure=_exposure(study, extent), timeline=line)
    if not as_json:
        _say(study, reading, len(X), held)
        click.echo(str(found))
    return {
        "events": reading.kept, "dropped": reading.dropped, "left_out": reading.left_out,
        "held_out": held is not None, "scored": "places" if places_only else "",
        "fits": not found.faults, "verdict": str(found).splitlines()[0],
        "faults": list(found.faults), "p_values": found.p_values,
        "relative_error": found.relative_error,
        "patterns": [pattern.get_params() for pattern in found.patterns],
        "calibration": {name: getattr(found.calibration, name) for name in
                        ("rates", "expected", "observed", "low", "high")},
    }  # fmt: skip


def _say(study: EventStudy, reading: Reading, sampled: int, held: Holdout | None) -> None:
    """Print what was read, and what it can tell."""
    from hplus.studies.event_facts import holdout_words

    note_dropped(reading.dropped, reading.rows)
    note_left_out(reading.left_out)
    if held is not None:
        said = holdout_words(held, study.frame)
        note(f"The model was fitted to these events: those that were held out are checked, {said}.")
        return
    if sampled < reading.kept:
        note(f"A random sample of {count(sampled)} events is checked.")
    if study.fitted_to(reading):
        note("The model was fitted to these events, so they say little about the fit.")


def _exposure(study: EventStudy, extent: Extent) -> Any:
    """The exposure of each hour of a cycle: as in the fit, if events are of the same period."""
    clock = study.frame.clock
    if clock is None or not clock.cycle:
        return study.exposure_over_window
    if clock.start <= extent.low[-1] and extent.high[-1] < clock.end:
        return study.exposure_over_window
    note(
        f"Some events lie outside the observation period of the fit: every hour of the "
        f"{clock.cycle} is assumed to have the same exposure."
    )
    return 1.0
