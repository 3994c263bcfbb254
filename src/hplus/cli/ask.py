"""Commands that query a model: predict, expect, sample, check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from hplus.cli.base import (
    check_writable,
    command,
    json_option,
    json_text,
    level_option,
    load_model,
    note,
    note_dropped,
    print_json,
    rows_as_csv,
    rows_output_option,
    seed_option,
    write_rows,
    write_text,
)
from hplus.cli.options import amount_option, shape_option
from hplus.cli.regress import predicted_quantities
from hplus.cli.summary import count_row
from hplus.files.feeds import TableError
from hplus.files.tables import Table, open_table
from hplus.files.times import Zone
from hplus.studies.spans import moment
from hplus.wording import count, six_digits

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy
    from hplus.studies.expect import Expected
    from hplus.studies.ranges import Extent


start_option = click.option(
    "--from",
    "start",
    metavar="DATE",
    help="Start of the period (default: end of the observation period or, for a model without "
    "a cycle, its start).",
)
lasting_option = click.option(
    "--for",
    "lasting",
    callback=amount_option,
    metavar="AMOUNT",
    help='Length of the period, for example 7d or "10 games".',
)


@command("hplus predict thefts.hplus places.csv -o rates.csv")
@click.argument("model")
@click.argument("points")
@level_option
@rows_output_option
@json_option
def predict(model: str, points: str, level: float, output: str | None, as_json: bool) -> None:
    """Predict the rate, or the quantity, at each row of POINTS, with a confidence interval.

    The result is a CSV with the columns low and high: bounds of the rate for a model of hplus fit,
    of the target for a model of hplus regress. Rows outside the window or with invalid cells are
    kept, without a prediction.
    """
    check_writable(output)
    study = load_model(model, "EventStudy", "QuantityStudy")
    answers = _predicted if type(study).__name__ == "EventStudy" else predicted_quantities
    table = open_table(points)
    rows = list(answers(study, table, level))
    if table.dropped:
        note(f"{count(table.dropped.total())} broken lines were skipped.")
    if not rows:
        raise TableError(f"{points} has a header but no rows: there is nothing to predict.")
    lost = sum(row["low"] is None for row in rows)
    if lost == len(rows):
        raise TableError(
            f"none of the {len(rows)} rows of {points} lies inside the model's window."
        )
    if lost:
        note(
            f"{count(lost)} of {count(len(rows))} rows have no prediction: they lie outside the "
            "window or have invalid cells."
        )
    write_rows(output, rows, as_json)


def _predicted(study: EventStudy, table: Table, level: float) -> Iterator[dict[str, Any]]:
    frame, zone = study.frame.at_any_time(), Zone.NEITHER
    for chunk in table.chunks(frame.needed):
        found = frame.points(chunk, zone)
        zone = found.zone
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


@command(
    "hplus expect thefts.hplus --regions boroughs.geojson --for 7d",
    'hplus expect shots.hplus --grid 5x5 --for "82 games" -o zones.csv',
    "hplus expect thefts.hplus --regions beats.geojson --from 2026-11-16 --for 3d -o beats.geojson",
)
@click.argument("model")
@click.option("--regions", metavar="FILE", help="GeoJSON file, or CSV of vertices, with polygons.")
@click.option("--name-field", metavar="PROPERTY", help="Property that names the regions.")
@click.option(
    "--grid", callback=shape_option, metavar="20x20", help="Count in the cells of a grid instead."
)
@lasting_option
@start_option
@click.option("--to", "end", metavar="DATE", help="End of the period, instead of --for.")
@level_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "geojson"]),
    help=("Output format (default: by the suffix of the output file, else CSV)."),
)
@rows_output_option
@json_option
def expect(model: str, regions: str | None, grid: Any, output: str | None, **options: Any) -> None:
    """Expected counts of events in regions or grid cells, with prediction intervals.

    Counts of parts add up to the count of the whole. A model with a cycle forecasts: --for 7d is
    the coming week. Otherwise counts are for one unit of exposure, or for the exposure in --for.
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
    text = _counts(found, form, options["level"])
    note(f"Counts for {time.words}; total expected: {sum(part.expected for part in found):.6g}.")
    write_text(output, text)


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
        raise click.UsageError("GeoJSON needs --regions, or a --grid over two columns.")
    features = [
        {"type": "Feature", "properties": row, "geometry": part.region.geometry}
        for row, part in zip(rows, found, strict=True)
    ]
    return json_text({"type": "FeatureCollection", "features": features}, None) + "\n"


@command(
    "hplus sample arrivals.hplus --from 2026-11-17 --for 1d --seed 1 > tomorrow.csv",
    "hplus sample shots.hplus --paths 10",
)
@click.argument("model")
@click.option("--paths", default=1, show_default=True, help="Number of simulated patterns.")
@lasting_option
@start_option
@seed_option
@rows_output_option
@json_option
def sample(model: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Simulate events: random patterns with the rate of the model."""
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
    write_rows(output, rows, as_json, ("path", *study.frame.needed))


@command("hplus check thefts.hplus thefts-2018.csv")
@click.argument("model")
@click.argument("events")
@json_option
def check(model: str, events: str, as_json: bool) -> None:
    """Test whether a model fits the EVENTS of a file, best with events it was not fitted to."""
    from hplus.evaluation import check as check_rate
    from hplus.studies.events import sampled

    study = load_model(model, "EventStudy")
    X, reading, extent = sampled(events, study.frame.at_any_time())
    found = check_rate(study.model_, X, exposure=_exposure(study, extent))
    if as_json:
        print_json({
            "events": reading.kept, "dropped": reading.dropped, "fits": not found.faults,
            "faults": list(found.faults), "p_values": found.p_values,
            "calibration": {name: getattr(found.calibration, name) for name in
                            ("rates", "expected", "observed", "low", "high")},
        })  # fmt: skip
        return
    note_dropped(reading.dropped, reading.rows)
    if len(X) < reading.kept:
        note(f"A random sample of {count(len(X))} events is checked.")
    if study.fitted_to(reading):
        note("The model was fitted to these events, so they say little about the fit.")
        if study.holdout_ is not None:
            note(f"On held-out events: {str(study.holdout_.check).splitlines()[0]}")
    click.echo(str(found))


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
