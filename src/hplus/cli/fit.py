"""hplus fit: from a file of events to a model."""

from __future__ import annotations

import shlex
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from hplus import save
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
from hplus.cli.words import (
    amount_option,
    count,
    facts,
    made_with,
    names_option,
    numbers_option,
    window_words,
)

if TYPE_CHECKING:
    from hplus.studies.study import EventStudy

EXAMPLE = """
\b
Examples:
  hplus fit shots.csv --columns x,y --window=-25,-5,25,42 --unit ft --exposure "82 games"
  hplus fit thefts.csv.gz --columns lon,lat --within boroughs.geojson --time datetime \\
      --from 2014-01-01 --to 2018-01-01 --cycle week -o thefts.hplus
  hplus fit spikes.csv --columns t_us --window 0,1e7 --unit us
"""


def frame_options(command: Any) -> Any:
    """The options that say which columns are what, and where events could be seen."""
    options = [
        click.option("--columns", callback=names_option, default="", metavar="A,B", help=(
            "Columns with coordinates, one to three; lon and lat become kilometres.")),
        click.option("--lonlat", callback=names_option, default="", metavar="LON,LAT", help=(
            "Two columns that are a longitude and a latitude, whatever they are called.")),
        click.option("--plain", is_flag=True, help="Take lon and lat as plain numbers."),
        click.option("--window", callback=numbers_option, metavar="LOW,...,HIGH,...", help=(
            "Where events could be seen: the lowest corner, then the highest.")),
        click.option("--within", metavar="FILE", help=(
            "GeoJSON file, or CSV of vertices, with the polygons in which events could be seen.")),
        click.option("--unit", default="", help="Unit of the columns, such as m."),
        click.option("--time", metavar="COLUMN", help="Column with dates or times."),
        click.option("--from", "start", metavar="DATE", help="When watching began."),
        click.option("--to", "end", metavar="DATE", help="When watching ended."),
        click.option("--cycle", type=click.Choice(["day", "week"]), help=(
            "Times are hours of the day or week: the coming ones can then be asked for.")),
        click.option("--timezone", "zone", default="UTC", metavar="ZONE", help=(
            "Clock for times with an offset, such as Europe/Paris. Others stay as they are.")),
        click.option("--time-format", "form", default="", metavar="FORMAT", help=(
            'For times that are not ISO 8601, such as "%m/%d/%Y %H:%M".')),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command(epilog=EXAMPLE)
@click.argument("file")
@frame_options
@click.option(
    "--exposure",
    callback=amount_option,
    metavar="AMOUNT",
    help=('How long or how often the window was watched, such as 365d or "82 games".'),
)
@click.option(
    "--holdout",
    type=click.FloatRange(0, 0.9),
    default=0.2,
    show_default=True,
    help=("Share of the events held out to see how well they are predicted; 0 for none."),
)
@most_dropped_option
@click.option("--jobs", type=click.IntRange(-1), default=-1, help="Cores to use; all by default.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
@click.option("-o", "--output", metavar="FILE", help="Where the model goes, such as model.hplus.")
@json_option
def fit(file: str, output: str | None, as_json: bool, **options: Any) -> None:  # fmt: skip
    """Learn how often events happen and where, from a FILE with one event a row.

    CSV (gz too), Parquet and JSON lines are read in chunks, so a file may be larger than memory.
    The window is never guessed: without one, the command says which one the data would fit in.
    """
    from hplus.studies.plans import plan
    from hplus.studies.study import EventStudy

    began = perf_counter()
    check_writable(output)
    if file == "-":
        raise click.UsageError("A fit reads its file more than once: for a pipe, use hplus stream.")
    frame = plan(file, **plan_words(options))
    study = EventStudy(
        frame,
        options["exposure"],
        options["holdout"],
        options["most_dropped"],
        options["seed"],
        options["jobs"],
    )
    with progress_bar(as_json):
        study.fit(file)
    study.made_with_ = made_with(began, options["seed"])
    found = facts(study)
    if output:
        save(study, output, summary=found)
    _tell(study, found, output, as_json)


def plan_words(options: dict[str, Any]) -> dict[str, Any]:
    """The options of `plan` among those of a command."""
    if options["columns"] and options["lonlat"]:
        raise click.UsageError("Give --columns or --lonlat, not both.")
    lonlat = True if options["lonlat"] else False if options["plain"] else None
    words = ("window", "within", "unit", "time", "start", "end", "zone", "form")
    return {name: options[name] for name in words} | {
        "columns": options["lonlat"] or options["columns"],
        "lonlat": lonlat,
        "cycle": options["cycle"] or "",
    }


def _tell(study: EventStudy, found: dict[str, Any], output: str | None, as_json: bool) -> None:
    if as_json:
        print_json(found | {"model": output})
        return
    note_dropped(study.reading_.dropped, study.reading_.rows)
    print_pairs(f"The rate of {count(study.reading_.kept)} events", window_words(found))
    if output is None:
        note("Nothing was saved: name a file with -o model.hplus to ask it later.")
    else:
        words = shlex.join(["hplus", "report", output, study.reading_.file])
        note(f"Saved {output}. Next: {words}")
