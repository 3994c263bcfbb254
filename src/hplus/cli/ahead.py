"""Commands that count events to come: expect, sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hplus.cli.base import (
    check_writable,
    command,
    json_option,
    level_option,
    load_model,
    note,
    rows_output_option,
    seed_option,
)
from hplus.cli.count_output import form_of, note_regions, regions_asked, write_counts
from hplus.cli.excited import future_rows, triggered_row, with_newer
from hplus.cli.grouped import group_option, write_ratios
from hplus.cli.options import amount_option, names_option, shape_option
from hplus.cli.summary import count_row
from hplus.cli.writing import write_rows
from hplus.storage.files import Json
from hplus.studies.periods import Period
from hplus.studies.spans import Amount

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy
    from hplus.studies.excitation_study import ExcitationStudy
    from hplus.studies.expect import Expected, Region

EXCITED_ONLY = {"--events": "newer", "--mark-above": "mark_above", "--paths": "n_paths"}
"""Options that a self-exciting rate alone has, and their names."""

start_option = click.option(
    "--from",
    "start",
    metavar="DATE",
    help="Start of the period (default: end of the observation period).",
)
lasting_option = click.option(
    "--for",
    "lasting",
    callback=amount_option,
    metavar="AMOUNT",
    help='Length of the period, for example 7d or "10 games".',
)


@command(
    "hplus expect thefts.hplus --regions boroughs.geojson --for 7d",
    "hplus expect quakes.hplus --from 2017-02-01 --for 7d --events january.csv --mark-above 6",
    'hplus expect shots.hplus --grid 5x5 --for "82 games" -o zones.csv',
    "hplus expect thefts.hplus --regions beats.geojson --from 2026-11-16 --for 3d -o beats.geojson",
    "hplus expect thefts.hplus --grid 10x10 --for 7d --every 1d -o days.csv",
    "hplus expect thefts.hplus --grid 200 --for 7d -o map.tif",
    "hplus expect seasons.hplus --ratio 2015,2012 --regions zones.geojson",
)
@click.argument("model")
@click.option("--regions", metavar="FILE", help="GeoJSON file, or CSV of vertices, with polygons.")
@click.option("--name-field", metavar="PROPERTY", help="Property that names the regions.")
@click.option(
    "--grid",
    callback=shape_option,
    metavar="20x20",
    help="Count in the cells of a grid instead; one number is that of square cells along the "
    "longest side or, for a model of times alone, of equal parts of the period.",
)
@lasting_option
@start_option
@click.option("--to", "end", metavar="DATE", help="End of the period, instead of --for.")
@click.option(
    "--every",
    callback=amount_option,
    metavar="AMOUNT",
    help="Count in each part of the period of this length, for example 1d.",
)
@click.option(
    "--events",
    "newer",
    metavar="FILE",
    help="For a self-exciting rate: events since the fit, known until --from.",
)
@click.option(
    "--mark-above",
    type=float,
    metavar="MARK",
    help="For a self-exciting rate with marks: also the chance of one above this.",
)
@click.option(
    "--paths",
    "n_paths",
    type=int,
    help="For a self-exciting rate: number of simulated futures (default: 1000).",
)
@group_option
@click.option(
    "--ratio",
    callback=names_option,
    metavar="A,B",
    help="For a model made with --by: the rate of one group over that of another.",
)
@level_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "geojson", "tif"]),
    help=("Output format (default: by the suffix of the output file, else CSV)."),
)
@rows_output_option
@json_option
def expect(model: str, regions: str | None, grid: Any, output: str | None, **options: Any) -> None:
    """Expected counts of events in regions or grid cells, with prediction intervals.

    Counts of parts add up to the count of the whole. A model with times forecasts: --for 7d is the
    week after the observation period, in total and by place; a time within the observation period
    is answered by the fitted rate. Otherwise counts are for one unit of exposure, or for the
    exposure in --for.

    A self-exciting rate forecasts by simulating what known events still trigger, and also tells the
    chance of at least one event. If --from is later, --events has the events until then.

    A GeoTIFF has the bands expected, low and high; its cells of longitude and latitude are even in
    degrees, those of other formats in area.
    """
    check_writable(output)
    kinds = ("EventStudy", "ExcitationStudy", "GroupedStudy")
    study = load_model(model, *kinds, group=options["group"])
    if regions and grid:
        raise click.UsageError("Give --regions or --grid, not both.")
    grouped = type(study).__name__ == "GroupedStudy"
    if options["ratio"] and not grouped:
        raise click.UsageError("--ratio needs a model made with hplus fit --by, without --group.")
    if type(study).__name__ == "ExcitationStudy":
        _expect_triggered(study, regions, grid, output, options)
        return
    for typed, name in EXCITED_ONLY.items():
        if options[name] is not None:
            raise click.UsageError(f"{typed} needs a model made with hplus fit --self-exciting.")
    if options["ratio"]:
        write_ratios(study, regions, grid, output, options)
        return
    studies = study.studies_ if grouped else {"": study}
    form = form_of(output, study.study.frame if grouped else study.frame, grid is not None, options)
    if grouped and form == "tif":
        raise click.UsageError("A GeoTIFF holds one model: choose one with --group.")
    every: list[Expected] = []
    rows: list[Json] = []
    about: Json = {}
    for name, part in studies.items():
        found, about = _expected(part, regions, grid, form, name, options)
        every += found
        rows += [({"group": name} if grouped else {}) | count_row(each) for each in found]
    write_counts(output, form, part.frame, every, rows, about)


def _expected(
    study: EventStudy, regions: str | None, grid: tuple[int, ...] | None, form: str, group: str,
    options: Json
) -> tuple[list[Expected], Json]:  # fmt: skip
    """The counts of a study, which are also said in a note, and what they are counts of."""
    from hplus.studies.expect import expect as expected_counts
    from hplus.studies.expect import whole
    from hplus.studies.outlooks import basis_words
    from hplus.studies.periods import time_asked

    time = time_asked(study, options["lasting"], options["start"], options["end"])
    asked = regions_asked(study, regions, options)
    cells, times = _cut(study, asked, time, grid, options["every"], form)
    found = expected_counts(study, cells, times, options["level"])
    total, basis = sum(part.expected for part in found), basis_words(study, time)
    weight = study.frame.weight
    what = f"sums of {weight}" if weight else "counts"
    what = f"{group}: {what}" if group else what[0].upper() + what[1:]
    note(f"{what} for {time.words}; total expected: {total:.6g}. {basis}".strip())
    if regions is not None:
        (in_all,) = expected_counts(study, [whole(study.frame)], time, options["level"])
        note_regions(study.frame, found, in_all.expected)
    return found, {"level": options["level"], "period": time.words, "basis": basis}


def _expect_triggered(
    study: ExcitationStudy,
    regions: str | None,
    grid: tuple[int, ...] | None,
    output: str | None,
    options: Json,
) -> None:
    """Counts to expect under a self-exciting rate."""
    from hplus.studies.expect import during, whole
    from hplus.studies.triggered_counts import FUTURES, basis_of, period_asked, triggered_counts

    n_paths = FUTURES if options["n_paths"] is None else options["n_paths"]
    asked = regions_asked(study, regions, options)
    time = period_asked(study, options["lasting"], options["start"], options["end"])
    newer = options["newer"]
    if newer is not None and options["start"] is None:
        raise click.UsageError("--events needs --from: until when its events were observed.")
    known = None if newer is None else with_newer(study, newer, time.start)
    form = form_of(output, study.frame, grid is not None, options)
    cells, times = _cut(study, asked, time, grid, options["every"], form)
    periods, above = [time] if isinstance(times, Period) else times, options["mark_above"]
    everywhere = [*cells, whole(study.frame)]
    asking: Json = {"mark_above": above, "model": known, "n_paths": n_paths}
    found = triggered_counts(study, everywhere, periods, options["level"], **asking)
    in_all, found = sum(row[-1].expected for row in found), [row[:-1] for row in found]
    if not isinstance(times, Period):
        found = [
            [part._replace(region=named) for part, named in
             zip(row, during(study.frame, cells, period, p), strict=True)]
            for p, (row, period) in enumerate(zip(found, times, strict=True))
        ]  # fmt: skip
    every = [part for row in found for part in row]
    total, basis = sum(part.expected for part in every), basis_of(study, time, known, n_paths)
    note(f"Counts for {time.words}; total expected: {total:.6g}. {basis}")
    if regions is not None:
        note_regions(study.frame, every, in_all)
    about = {"level": options["level"], "period": time.words, "basis": basis}
    rows = [triggered_row(part, above) for part in every]
    write_counts(output, form, study.frame, every, rows, about)


def _cut(
    study: EventStudy | ExcitationStudy,
    asked: list[Region],
    time: Period,
    grid: tuple[int, ...] | None,
    every: Amount | None,
    form: str,
) -> tuple[list[Region], Period | list[Period]]:
    """Regions and periods, as --grid and --every cut them."""
    from hplus.studies.expect import grid_regions
    from hplus.studies.periods import cut

    if grid and study.frame.region is not None:
        asked = grid_regions(study.frame, grid, in_degrees=form == "tif")
    elif grid and every:
        raise click.UsageError("Give --grid or --every, not both, for a model of times alone.")
    elif grid and len(grid) != 1:
        raise click.UsageError("--grid must be one number, like 24, for a model of times alone.")
    elif grid:
        return asked, cut(time, parts=grid[0])
    return asked, time if every is None else cut(time, every=every)


@command(
    "hplus sample arrivals.hplus --from 2026-11-17 --for 1d --seed 1 > tomorrow.csv",
    "hplus sample shots.hplus --paths 10",
)
@click.argument("model")
@click.option("--paths", default=1, show_default=True, help="Number of simulated patterns.")
@lasting_option
@start_option
@group_option
@seed_option
@rows_output_option
@json_option
def sample(model: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Simulate events: random patterns with the rate of the model.

    Events to come follow the forecast: each pattern is one of its possible futures.
    """
    from hplus.studies.draws import draw

    check_writable(output)
    study = load_model(model, "EventStudy", "ExcitationStudy", group=options.pop("group"))
    if type(study).__name__ == "ExcitationStudy":
        _sample_triggered(study, output, as_json, options)
        return
    rows = []
    for path, pattern in enumerate(draw(study, **options), start=1):
        for i, numbers in enumerate(pattern.columns):
            row: Json = {"path": path}
            row |= {n: float(f"{v:.9g}") for n, v in zip(study.frame.columns, numbers, strict=True)}
            clock = study.frame.clock
            if pattern.seconds is not None and clock is not None:
                row[clock.column] = clock.written(float(pattern.seconds[i]))
            rows.append(row)
    write_rows(output, rows, as_json, ("path", *study.frame.needed))


def _sample_triggered(
    study: ExcitationStudy, output: str | None, as_json: bool, options: Json
) -> None:
    """Simulated events of a self-exciting rate, with marks and types."""
    from hplus.studies.triggered_counts import draw_futures

    futures = enumerate(draw_futures(study, **options), start=1)
    rows = [row for path, future in futures for row in future_rows(study, path, future)]
    labels = [name for name in (study.mark, study.kind) if name]
    write_rows(output, rows, as_json, ("path", *study.frame.needed, *labels))
