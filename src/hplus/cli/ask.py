"""Commands that ask a model: predict, expect, sample, check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hplus.cli.doors import (
    as_json as json_text,
)
from hplus.cli.doors import (
    check_writable,
    json_option,
    load_model,
    note,
    note_dropped,
    print_json,
    rows_as_csv,
    write_text,
)
from hplus.cli.regress import predicted_quantities
from hplus.cli.words import (
    amount_option,
    count,
    count_row,
    shape_option,
    six_digits,
)
from hplus.studies.spans import moment
from hplus.tables.source import TableError, open_table

if TYPE_CHECKING:
    from hplus.studies.expect import Expected
    from hplus.studies.study import EventStudy


@click.command(
    epilog="""
\b
Example:
  hplus predict thefts.hplus places.csv -o rates.csv
"""
)
@click.argument("model")
@click.argument("points")
@click.option("--level", default=0.9, show_default=True, help="Of the band.")
@click.option("-o", "--output", metavar="FILE", help="Where the rows go (default: the terminal).")
@json_option
def predict(model: str, points: str, level: float, output: str | None, as_json: bool) -> None:
    """The rate, or the quantity, at each row of POINTS: a CSV with it and with low and high.

    For a model of hplus fit these are bounds of the rate; for one of hplus regress, of the target.
    Rows that are not in the window, or have bad cells, keep their place without an answer.
    """
    check_writable(output)
    study = load_model(model, "EventStudy", "QuantityStudy")
    answers = _predicted if type(study).__name__ == "EventStudy" else predicted_quantities
    table = open_table(points)
    rows = list(answers(study, table, level))
    if table.broken:
        note(f"{count(table.broken)} broken lines are left out.")
    lost = sum(row["low"] is None for row in rows)
    if lost == len(rows):
        raise TableError(f"none of the {len(rows)} rows of {points} is one that the model knows.")
    if lost:
        note(
            f"{count(lost)} of {count(len(rows))} rows have no answer: outside the window, or bad."
        )
    write_text(output, json_text(rows) + "\n" if as_json else rows_as_csv(rows))


def _predicted(study: EventStudy, table: Any, level: float) -> Iterator[dict[str, Any]]:
    frame = study.frame.at_any_time()
    for chunk in table.chunks(frame.needed):
        found = frame.points(chunk)
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


@click.command(
    epilog="""
\b
Examples:
  hplus expect thefts.hplus --regions boroughs.geojson --for 7d
  hplus expect shots.hplus --grid 5x5 --for "82 games" -o zones.csv
  hplus expect thefts.hplus --regions beats.geojson --from 2026-11-16 --for 3d -o beats.geojson
"""
)
@click.argument("model")
@click.option("--regions", metavar="FILE", help="GeoJSON file (or CSV of vertices) with polygons.")
@click.option("--name-field", metavar="PROPERTY", help="Property with the names of the regions.")
@click.option("--grid", callback=shape_option, metavar="20x20", help="Cells of the window instead.")
@click.option(
    "--for",
    "lasting",
    callback=amount_option,
    metavar="AMOUNT",
    help=('How long, such as 7d or "10 games".'),
)
@click.option("--from", "start", metavar="DATE", help="From when (default: when watching ended).")
@click.option("--to", "end", metavar="DATE", help="Until when, instead of --for.")
@click.option("--level", default=0.9, show_default=True, help="Chance that a count is within.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "geojson"]),
    help=("Default: what the output's name ends with, or a table for the terminal."),
)
@click.option("-o", "--output", metavar="FILE", help="Where the rows go (default: the terminal).")
@json_option
def expect(model: str, regions: str | None, grid: Any, output: str | None, **options: Any) -> None:
    """How many events to expect in regions or cells, with an interval that includes chance.

    Counts of parts add up to the count of the whole. A model with a cycle looks ahead: --for 7d is
    the coming week. Otherwise counts are for one unit of exposure, or for what --for says.
    """
    from hplus.studies.expect import expect as expected_counts
    from hplus.studies.expect import grid_regions, named_regions, time_asked, whole

    check_writable(output)
    study = load_model(model, "EventStudy")
    if regions and grid:
        raise click.UsageError("Give --regions or --grid, not both.")
    asked = [whole(study.frame)]
    if regions:
        asked = named_regions(study.frame, regions, options["name_field"])
    elif grid:
        asked = grid_regions(study.frame, grid)
    time = time_asked(study, options["lasting"], options["start"], options["end"])
    found = expected_counts(study, asked, time, options["level"])
    if grid:
        found = [part for part in found if part.expected > 0.0]
    form = "json" if options["as_json"] else options["form"] or _form(output)
    note(f"Counts for {time.words}, in all {sum(part.expected for part in found):.6g} expected.")
    write_text(output, _counts(found, form, options["level"]))


def _form(output: str | None) -> str:
    endings = {".json": "json", ".geojson": "geojson"}
    return next((form for end, form in endings.items() if (output or "").endswith(end)), "csv")


def _counts(found: list[Expected], form: str, level: float) -> str:
    rows = [count_row(part) for part in found]
    if form == "csv":
        return rows_as_csv(rows)
    if form == "json":
        return json_text({"level": level, "regions": rows}) + "\n"
    if any(part.region.geometry is None for part in found):
        raise click.UsageError("GeoJSON needs regions or a grid of two columns.")
    features = [
        {"type": "Feature", "properties": row, "geometry": part.region.geometry}
        for row, part in zip(rows, found, strict=True)
    ]
    return json_text({"type": "FeatureCollection", "features": features}, None) + "\n"


@click.command(
    epilog="""
\b
Examples:
  hplus sample arrivals.hplus --from 2026-11-17 --for 1d --seed 1 > tomorrow.csv
  hplus sample shots.hplus --paths 10
"""
)
@click.argument("model")
@click.option("--paths", default=1, show_default=True, help="How many patterns.")
@click.option("--for", "lasting", callback=amount_option, metavar="AMOUNT", help="How long.")
@click.option("--from", "start", metavar="DATE", help="From when (default: when watching ended).")
@click.option("--seed", "random_state", type=int, default=0, show_default=True)
@click.option("-o", "--output", metavar="FILE", help="Where the rows go (default: the terminal).")
@json_option
def sample(model: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Events that could happen: random patterns with the rate of the model, for simulators."""
    from hplus.studies.draws import draw

    check_writable(output)
    study = load_model(model, "EventStudy")
    rows = []
    for path, pattern in enumerate(draw(study, **options), start=1):
        for i, numbers in enumerate(pattern.columns):
            row: dict[str, Any] = {"path": path}
            row |= {n: float(f"{v:.9g}") for n, v in zip(study.frame.columns, numbers, strict=True)}
            if pattern.seconds is not None and study.frame.clock is not None:
                row[study.frame.clock.column] = moment(float(pattern.seconds[i]))
            rows.append(row)
    names = ("path", *study.frame.needed)
    write_text(output, json_text(rows) + "\n" if as_json else rows_as_csv(rows, names))


@click.command(
    epilog="""
\b
Example:
  hplus check thefts.hplus thefts-2018.csv
"""
)
@click.argument("model")
@click.argument("events")
@json_option
def check(model: str, events: str, as_json: bool) -> None:
    """Does the model fit the EVENTS of a file? Best asked with events that it has not seen."""
    from hplus.evaluation import check as check_rate
    from hplus.studies.events import Events, read_events

    study = load_model(model, "EventStudy")
    kept = Events(study.frame, 0.0, seed=0)
    reading = read_events(open_table(events), study.frame.at_any_time(), kept)
    found = check_rate(study.model_, kept.known.X, exposure=_exposure(study, events))
    if as_json:
        print_json({
            "events": reading.kept, "dropped": reading.dropped, "fits": not found.faults,
            "faults": list(found.faults), "p_values": found.p_values,
            "calibration": {name: getattr(found.calibration, name) for name in
                            ("rates", "expected", "observed", "low", "high")},
        })  # fmt: skip
        return
    note_dropped(reading.dropped, reading.rows)
    if len(kept.known.X) < reading.kept:
        note(f"{count(len(kept.known.X))} of them are checked, drawn at random.")
    if Path(events).name == Path(study.reading_.file).name:
        note("These look like the events of the fit, which say little about it.")
        if study.holdout_ is not None:
            note(f"On those held out of it: {str(study.holdout_.check).splitlines()[0]}")
    click.echo(str(found))


def _exposure(study: EventStudy, events: str) -> Any:
    """How often each hour of a cycle was watched: as for the fit, if events are of that time."""
    from hplus.studies.events import placed

    clock = study.frame.clock
    if clock is not None and clock.cycle:
        parts = placed(open_table(events), study.frame)
        if any(part.dropped["outside the time watched"] for part in parts):
            note(
                f"Some events are not from the time of the fit: every hour of the {clock.cycle} is "
                "taken to have been watched equally often."
            )
            return 1.0
    return study.exposure_over_window
