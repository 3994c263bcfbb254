"""hplus regress: a quantity that cannot be negative, from the columns of a table."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from hplus import save
from hplus._checks import Bools, shown
from hplus.cli.doors import (
    check_writable,
    json_option,
    most_dropped_option,
    note,
    note_dropped,
    print_json,
    print_pairs,
    progress_bar,
)
from hplus.cli.words import count, made_with, names_option, short, six_digits
from hplus.tables.columns import Columns, read_columns
from hplus.tables.source import Table, TableError, open_table

if TYPE_CHECKING:
    from hplus.studies.columns import Column
    from hplus.studies.quantities import QuantityStudy


@click.command(
    epilog="""
\b
Examples:
  hplus regress bikes.csv --target cnt --features hr,temp,workingday -o bikes.hplus
  hplus regress claims.csv --target Claims --exposure Holders
  hplus predict bikes.hplus next-week.csv
"""
)
@click.argument("file")
@click.option("--target", required=True, metavar="COLUMN", help="What to predict, at least 0.")
@click.option(
    "--features",
    callback=names_option,
    metavar="A,B,...",
    help=("Columns to predict from: numbers, dates or text (default: all others)."),
)
@click.option(
    "--exposure",
    metavar="COLUMN",
    help=("Column that says how long or how many each row was watched."),
)
@click.option("--level", default=0.9, show_default=True, help="Share that intervals should hold.")
@most_dropped_option
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
@click.option("-o", "--output", metavar="FILE", help="Where the model goes, such as model.hplus.")
@json_option
def regress(file: str, target: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Predict a quantity that cannot be negative, with intervals that cannot either.

    A fifth of the rows is held out to say how good the predictions are. Rows with a missing cell
    are left out; if these are many, leave out the column that is empty in them.
    """
    from hplus.studies.quantities import QuantityStudy

    began = perf_counter()
    check_writable(output)
    table, exposure = open_table(file), options["exposure"]
    features = options["features"] or _others(table, target, exposure)
    names = [*features, target, *([exposure] if exposure else [])]
    found = read_columns(table, names)
    _check_dropped(file, found, options["most_dropped"])
    columns = {name: found.values[name] for name in features}
    study = QuantityStudy(options["level"], random_state=options["seed"])
    with progress_bar(as_json), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the notes are told below
        watched = found.values[exposure] if exposure else None
        study.fit(columns, found.values[target], exposure=watched)
    study.made_with_ = made_with(began, options["seed"])
    study.made_with_ |= {"file": file, "target": target, "exposure": exposure}
    if output:
        save(study, output)
    _tell(study, dict(found.dropped), output, as_json)


def _check_dropped(file: str, found: Columns, most: float) -> None:
    """Refuse a table of which more rows than this share are of no use."""
    from hplus.studies.events import Reading

    reasons = ", ".join(f"{n} {why}" for why, n in found.dropped.items())
    if not found.rows.any():
        raise TableError(f"no row of {file} can be used ({reasons}): leave a column out.")
    kept = int(found.rows.sum())
    reading = Reading(file, kept + found.dropped.total(), kept, dict(found.dropped))
    reading.refuse_beyond(most, "mend the file, name other --features")


def _others(table: Table, target: str, exposure: str | None) -> list[str]:
    others = [name for name in table.names if name not in (target, exposure)]
    if not others:
        raise TableError(f"{table.path} must have columns beside {target!r} to predict from.")
    return others


def quantity_facts(study: QuantityStudy) -> dict[str, Any]:
    """What a study of a quantity found, as plain data."""
    return {**study.summary_, "made_with": study.made_with_}


def quantity_words(found: dict[str, Any], made_with: dict[str, Any]) -> dict[str, str]:
    """The same as a short table for people."""
    error, plain = (found[name]["mean_absolute_error"] for name in ("scores", "plain_mean"))
    inside = f"{found['coverage']:.1%} of held-out rows inside"
    ranked = [part for part in found["importance"] if part["lost"] > 0.0]
    whole = sum(part["lost"] for part in ranked) or 1.0
    shares = (f"{part['column']} {part['lost'] / whole:.0%}" for part in ranked[:8])
    return {
        "rows": f"{count(found['rows'])}, {count(found['held_out'])} of them held out in turn",
        "mean error": f"{short(error)}, where always saying the mean errs by {short(plain)}",
        "explained": f"{found['explained']:.0%} of the deviance",
        "intervals": f"{found['level']:.0%} wanted, {inside}",
        "what matters": ", ".join(shares),
        "seconds": short(made_with.get("seconds", float("nan"))),
    }


def _tell(study: QuantityStudy, dropped: dict[str, int], output: str | None, as_json: bool) -> None:
    if as_json:
        print_json(quantity_facts(study) | {"dropped": dropped, "model": output})
        return
    note_dropped(dropped, study.summary_["rows"] + sum(dropped.values()))
    for said in study.summary_["notes"]:
        note(f"Note: {said}")
    table = quantity_words(study.summary_, study.made_with_)
    print_pairs(f"{study.made_with_['target']}, never below zero", table)
    if output is None:
        note("Nothing was saved: name a file with -o model.hplus to predict later.")
    else:
        note(f"Saved {output}. Next: hplus predict {shlex.quote(output)} OTHER-ROWS.csv")


def predicted_quantities(
    study: QuantityStudy, table: Table, level: float
) -> Iterator[dict[str, Any]]:
    """The rows of a table with what to expect of each; empty where a cell is missing."""
    exposure = study.made_with_.get("exposure")
    names = [column.name for column in study.columns_]
    found = read_columns(table, [*names, *([exposure] if exposure else [])])
    columns = {name: found.values[name] for name in names}
    watched = found.values[exposure] if exposure else None
    for column in study.columns_:
        _note_unlike(column, columns[column.name])
    mean = study.predict(columns, exposure=watched)
    low, high = study.predict_interval(columns, level, exposure=watched)
    answers = iter(zip(mean, low, high, strict=True))
    cells = {name: iter(values.tolist()) for name, values in columns.items()}
    for good in found.rows:
        if good:
            row = {name: _cell(next(values)) for name, values in cells.items()}
            m, a, b = (six_digits(v) for v in next(answers))
            yield row | {"expected": m, "low": a, "high": b}
        else:
            yield dict.fromkeys(names) | {"expected": None, "low": None, "high": None}


def _note_unlike(column: Column, entries: Any) -> None:
    """Say how many entries are unlike any that the model learned from."""
    unlike = _unlike(column, entries)
    if unlike.any():
        note(
            f"Note: {count(unlike.sum())} of {count(len(unlike))} rows have a {column.name} unlike "
            f"any that was learned from, such as {shown(entries[unlike.argmax()])}: little is "
            "known of them."
        )


def _unlike(column: Column, entries: Any) -> Bools:
    """Texts that were not seen and, of columns with few numbers, numbers beyond them."""
    from hplus.studies.columns import CURVE_POINTS

    values, seen = column.values(entries), column.grid
    if column.kind == "text" and len(seen):
        return values == len(column.levels)
    if column.kind == "number" and 0 < len(seen) < CURVE_POINTS:
        return (values < seen[0]) | (values > seen[-1])
    return np.zeros(len(values), dtype=bool)


def _cell(cell: Any) -> Any:
    return cell if isinstance(cell, int | float | str) else str(cell)
