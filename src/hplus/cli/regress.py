"""hplus regress: a quantity that cannot be negative, from the columns of a table."""

from __future__ import annotations

import math
import shlex
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from hplus import save
from hplus._checks import Bools, check_fraction, shown
from hplus.cli.base import (
    CommandError,
    check_writable,
    command,
    json_option,
    level_option,
    model_output_option,
    most_dropped_option,
    note,
    note_dropped,
    note_left_out,
    print_pairs,
    progress_bar,
    seed_option,
)
from hplus.cli.options import names_option, where_option
from hplus.cli.summary import made_with
from hplus.cli.writing import print_json
from hplus.files.chunked_table import Table
from hplus.files.conditions import Condition
from hplus.files.feeds import TableError
from hplus.files.kinds import TypedChunks, TypedColumns, kind_of_values, read_columns
from hplus.files.tables import open_table
from hplus.storage.files import Json
from hplus.studies.importance_ranks import ranks
from hplus.wording import count, listed, rounded, six_digits

if TYPE_CHECKING:
    from hplus.studies.encoding import Column
    from hplus.studies.quantity_study import QuantityStudy

MAX_ROWS_HELD = 200_000
"""Rows of a table up to which all are held in memory; of more, a sample is."""

MIN_SHARE_SHOWN, MOST_SHOWN = 0.03, 8
"""The share of the importance of all columns from which on a column is named, and how many are."""


@command(
    "hplus regress bikes.csv --target cnt --features hr,temp,workingday -o bikes.hplus",
    "hplus regress claims.csv --target Claims --exposure Holders",
    "hplus predict bikes.hplus next-week.csv",
)
@click.argument("file")
@click.option("--target", "y", required=True, metavar="COLUMN", help="What to predict; at least 0.")
@click.option(
    "--features",
    "columns",
    callback=names_option,
    metavar="A,B,...",
    help=("Columns to predict from: numbers, dates or text (default: all others)."),
)
@click.option(
    "--exposure",
    metavar="COLUMN",
    help=("Column with the exposure of each row: how long, or how many."),
)
@where_option
@level_option
@most_dropped_option
@seed_option
@model_output_option
@json_option
def regress(file: str, y: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Learn to predict a quantity that cannot be negative, with prediction intervals.

    Held-out rows measure how good the predictions are. A missing cell in a feature is a category
    of its own; rows without a target or an exposure are dropped.
    """
    from hplus.studies.quantity_study import QuantityStudy

    began = perf_counter()
    check_writable(output)
    check_fraction("level", options["level"])
    table, exposure = open_table(file), options["exposure"]
    features = options["columns"] or _others(table, y, exposure)
    _check_target(y, features, exposure)
    names = [*features, y, *([exposure] if exposure else [])]
    where, condition = options["where"], None
    if where:
        condition = Condition(where)
    most = math.inf if table.is_pipe else MAX_ROWS_HELD
    found = read_columns(table, names, condition, optional=features, most=most)
    study = QuantityStudy(options["level"], random_state=options["random_state"])
    with progress_bar(as_json), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the notes are printed below
        if found.whole:
            _check_dropped(file, found, options["most_dropped"])
            _check_numbers(found, {"--target": y, "--exposure": exposure})
            study.fit(found.values, y, exposure=exposure)
        else:
            _check_numbers(found, {"--target": y, "--exposure": exposure})
            kinds = {name: kind_of_values(values) for name, values in found.values.items()}
            chunks = TypedChunks(table, kinds, condition, features)
            study.fit_chunks(chunks, y, exposure=exposure)
            found = found._replace(dropped=chunks.dropped, left_out=table.left_out)
            _check_dropped(file, found, options["most_dropped"], study.summary_["rows"])
    study.made_with_ = made_with(began, options["random_state"])
    study.made_with_ |= {"file": file, "target": y, "exposure": exposure, "where": where or None}
    if output:
        save(study, output)
    _tell(study, found, output, as_json)


def _check_target(target: str, features: Sequence[str], exposure: str | None) -> None:
    """An error if what is predicted is also predicted from, or the exposure is."""
    for option, names in (("--features", features), ("--exposure", [exposure])):
        if target in names:
            raise CommandError(
                f"{option} must not be the target, got {target!r}: it is what is predicted.", 2
            )
    if exposure in features:
        raise CommandError(
            f"--features must not include the exposure, got {exposure!r}: counts are already "
            "proportional to it.",
            2,
        )


def _check_numbers(found: TypedColumns, named: dict[str, str | None]) -> None:
    for option, name in named.items():
        values = np.asarray(found.values[name]) if name else np.empty(0)
        if len(values) and values.dtype.kind not in "biuf":
            raise CommandError(
                f"{option} must be a column of numbers, got {shown(str(values[0]))} in {name!r}: "
                "choose another column, or correct the cells.",
                2,
            )


def _check_dropped(file: str, found: TypedColumns, most: float, kept: int | None = None) -> None:
    """Raise if more than this share of the rows of a table cannot be used."""
    from hplus.studies.events import Reading

    reasons = "; ".join(f"{why}: {n}" for why, n in found.dropped.items())
    if not found.rows.any():
        raise TableError(
            f"no row of {file} can be used ({reasons}): choose another --target or --exposure."
        )
    kept = int(found.rows.sum()) if kept is None else kept
    reading = Reading(file, kept + found.dropped.total(), kept, dict(found.dropped))
    reading.check_dropped(most)


def _others(table: Table, target: str, exposure: str | None) -> list[str]:
    others = [name for name in table.names if name not in (target, exposure)]
    if not others:
        raise TableError(f"{table.path} must have columns besides {target!r} to predict from.")
    return others


def quantity_words(found: dict[str, Any], made_with: dict[str, Any]) -> dict[str, str]:
    """What a study of a quantity found as a short table."""
    error, plain = (found[name]["mean_absolute_error"] for name in ("scores", "plain_mean"))
    inside = f"contain {found['coverage']:.1%} of held-out targets"
    rows, tested = count(found["rows"]), count(found["held_out"])
    return {
        "rows": f"{rows}, {_tested(rows, tested, found.get('folds'))}",
        "mean error": f"{rounded(error)}, against {rounded(plain)} for the plain mean",
        "explained": f"{found['explained']:.0%} of the Poisson deviance",
        "intervals": f"{found['level']:.0%} level, {inside}",
        "importance": importance_words(found["importance"]),
        "seconds": rounded(made_with.get("seconds", float("nan"))),
    }


def importance_words(importance: list[Json]) -> str:
    """The share of each column in what all of them add, for example "a 60%, b and c 20% each"."""
    whole = sum(part["lost"] for part in importance if part["lost"] > 0.0) or 1.0
    named = [part for part in importance if part["lost"] > MIN_SHARE_SHOWN * whole][:MOST_SHOWN]
    said = []
    for rank in ranks(named):
        names = [str(part["column"]) for part in rank]
        share = sum(part["lost"] for part in rank) / (len(rank) * whole)
        each = "" if len(rank) == 1 else " each"
        said.append(f"{listed(names)} {'about ' * bool(each)}{share:.0%}{each}")
    return ", ".join(said) or "no column improves the predictions"


def _tested(rows: str, tested: str, folds: int | None) -> str:
    """How predictions were tested; models of earlier versions do not know the number of folds."""
    if tested == rows:
        of_folds = "" if folds is None else f"once by {folds}-fold "
        return f"each predicted {of_folds or 'by '}cross-validation"
    in_folds = "" if folds in (None, 1) else f" in {folds} folds"
    return f"of which {tested} were held out{in_folds} to test predictions"


def _tell(study: QuantityStudy, found: TypedColumns, output: str | None, as_json: bool) -> None:
    dropped, left_out = dict(found.dropped), dict(found.left_out)
    if as_json:
        more = {"made_with": study.made_with_, "dropped": dropped, "left_out": left_out}
        print_json(study.summary_ | more | {"model": output})
        return
    note_left_out(left_out)
    note_dropped(dropped, study.summary_["rows"] + sum(dropped.values()))
    for said in study.summary_["notes"]:
        note(f"Note: {said}")
    table = quantity_words(study.summary_, study.made_with_)
    print_pairs(f"Predictions of {study.made_with_['target']}", table)
    if output is None:
        note("The model was not saved: give -o model.hplus to predict with it later.")
    else:
        note(f"Saved {output}. Next: hplus predict {shlex.quote(output)} OTHER-ROWS.csv")


def predicted_quantities(
    study: QuantityStudy, table: Table, level: float, where: Condition | None, why: Counter[str]
) -> Iterator[dict[str, Any]]:
    """The rows of a table with their predictions; `why` counts those without by reason."""
    exposure = study.made_with_.get("exposure")
    names = [column.name for column in study.columns_]
    gaps = [c.name for c in study.columns_ if c.kind != "date" or c.levels]
    found = read_columns(table, [*names, *([exposure] if exposure else [])], where, optional=gaps)
    why.update(found.dropped - table.dropped)
    columns = {name: found.values[name] for name in names}
    exposures = found.values[exposure] if exposure else None
    for column in study.columns_:
        _note_unlike(column, columns[column.name])
    mean = study.predict(columns, exposure=exposures)
    low, high = study.predict_interval(columns, level, exposure=exposures)
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
    """Print how many entries are unlike any that the model was fitted to."""
    unlike = _unlike(column, entries)
    if unlike.any():
        note(
            f"Note: {count(unlike.sum())} of {count(len(unlike))} rows have a {column.name} unlike "
            f"any in the fit, for example {shown(entries[unlike.argmax()])}: their predictions "
            "rest on the other columns."
        )


def _unlike(column: Column, entries: Any) -> Bools:
    """Unknown texts and, in columns of few distinct numbers, numbers beyond them."""
    from hplus.studies.encoding import CURVE_POINTS

    values, seen = column.values(entries), column.grid
    if column.kind == "text" and len(seen):
        return values == len(column.levels)
    gaps = np.isnan(values) & (not column.levels)
    if column.kind == "number" and 0 < len(seen) < CURVE_POINTS:
        return (values < seen[0]) | (values > seen[-1]) | gaps
    return gaps


def _cell(cell: Any) -> Any:
    if cell is None or cell != cell:
        return None
    return cell if isinstance(cell, int | float | str) else str(cell)
