"""hplus fit: from a file of events to a model."""

from __future__ import annotations

import shlex
from time import perf_counter
from typing import Any

import click

from hplus.cli.base import (
    check_writable,
    command,
    json_option,
    model_output_option,
    most_dropped_option,
    progress_bar,
    seed_option,
)
from hplus.cli.excited import check_self_exciting, fit_excitation
from hplus.cli.grouped import fit_groups
from hplus.cli.options import amount_option, names_option, numbers_option, where_option
from hplus.cli.scanned import (
    check_scan,
    finished,
    fit_study,
    opened,
    scan_options,
    unfitted,
    updated,
)
from hplus.storage.files import Json

MODELS = ("auto", "exp", "tree", "sos", "square")
"""Models of a rate; importing them from where they are would take a second."""


def frame_options(command: Any) -> Any:
    """The options that say which columns to use, and where events could occur."""
    options = [
        click.option("--columns", callback=names_option, default="", metavar="A,B", help=(
            "One to three columns with coordinates; lon and lat are converted to kilometres.")),
        click.option("--lonlat", callback=names_option, default="", metavar="LON,LAT", help=(
            "Two columns with longitude and latitude, whatever their names.")),
        click.option("--plain", is_flag=True, help="Treat lon and lat as plain numbers."),
        click.option("--window", callback=numbers_option, metavar="LOW,...,HIGH,...", help=(
            "Where events could occur: the lowest corner, then the highest.")),
        click.option("--within", metavar="FILE", help=(
            "GeoJSON file, or CSV of vertices: the polygons in which events could occur.")),
        click.option("--unit", default="", help="Unit of the columns, for example m."),
        click.option("--time", metavar="COLUMN", help="Column of dates or times."),
        click.option("--from", "start", metavar="DATE", help="Start of the observation period."),
        click.option("--to", "end", metavar="DATE", help="End of the observation period."),
        click.option("--cycle", type=click.Choice(["day", "week"]), help=(
            "Fold times into hours of the day or week; with --self-exciting, a cycle of the "
            "background.")),
        click.option("--timezone", "zone", default="UTC", metavar="ZONE", help=(
            "Time zone for times with a UTC offset, for example Europe/Paris.")),
        click.option("--time-format", "form", default="", metavar="FORMAT", help=(
            'Format of times that are not ISO 8601, for example "%m/%d/%Y %H:%M".')),
        click.option("--time-unit", default="", metavar="UNIT", help=(
            "Unit of times that are numbers, for example min; so may be --from and --to.")),
        click.option("--origin", metavar="DATE", help="Date and time at which such numbers are 0."),
        where_option,
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@command(
    'hplus fit shots.csv --columns x,y --window=-25,-5,25,42 --unit ft --exposure "82 games"',
    "hplus fit thefts.csv.gz --columns lon,lat --within boroughs.geojson --time datetime \\\n"
    "      --from 2014-01-01 --to 2018-01-01 --cycle week -o thefts.hplus",
    "hplus fit spikes.csv --columns t_us --window 0,1e7 --unit us",
    'hplus fit shots.csv --columns x,y --window=-25,-5,25,42 --where "made == 1" --by season',
    "hplus fit 'trips/2024-*.parquet' --columns lon,lat --window=-74.3,40.5,-73.7,40.9 \\\n"
    "      --checkpoint scan --skip-bad-files -o trips.hplus",
    "hplus fit quakes.csv --columns lon,lat --window=120,25,155,50 --time date \\\n"
    "      --from 1990-01-01 --to 2017-01-01 --self-exciting --mark mag -o quakes.hplus",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@frame_options
@click.option(
    "--model",
    type=click.Choice(MODELS),
    default="auto",
    show_default=True,
    help=(
        "auto: a smooth field and trees, weighted by what they predict; exp: the smooth field "
        "alone; tree: trees alone; sos, square: sums of squares, for few events."
    ),
)
@click.option(
    "--exposure",
    callback=amount_option,
    metavar="AMOUNT",
    help=('How long or how often events were observed, for example 365d or "82 games".'),
)
@click.option(
    "--holdout",
    type=click.FloatRange(0, 0.9),
    default=0.2,
    show_default=True,
    help=(
        "Share held out to measure how well it is predicted; 0 for none. With times it is the last "
        "part of the observation period, with --trial whole trials at random, otherwise events "
        "at random."
    ),
)
@click.option(
    "--holdout-blocks",
    "blocks",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="2 or more: hold out as many blocks of time, with gaps, all over the period.",
)
@click.option(
    "--weight",
    default="",
    metavar="COLUMN",
    help="Column with what each event counts, for example an amount: its sum is learned.",
)
@click.option(
    "--trial",
    default="",
    metavar="COLUMN",
    help=(
        "Column that names the trial, game or session of each event: rates are per trial, and "
        "intervals of the next one include how much they vary."
    ),
)
@click.option(
    "--self-exciting",
    is_flag=True,
    help="Learn how events trigger others: aftershocks, near repeats, bursts. Needs --time.",
)
@click.option(
    "--mark",
    default="",
    metavar="COLUMN",
    help="With --self-exciting: a number by which events trigger more or fewer, as a magnitude.",
)
@click.option(
    "--type",
    "kind",
    default="",
    metavar="COLUMN",
    help="With --self-exciting: types of events, to learn which trigger which.",
)
@click.option(
    "--by",
    default="",
    metavar="COLUMN",
    help="A model for each group of rows with the same value in this column, side by side.",
)
@click.option(
    "--most-groups",
    type=click.IntRange(1),
    help="With --by: the largest groups that are kept (default: 10).",
)
@most_dropped_option
@scan_options
@seed_option
@model_output_option
@json_option
def fit(files: tuple[str, ...], output: str | None, as_json: bool, **options: Any) -> None:
    """Learn how often events happen and where, from FILEs with one event per row.

    CSV (also compressed), Parquet and JSON lines are read in parts, so files may be larger than
    memory; a folder or a pattern such as '2024-*.parquet' means several, - is the standard input.
    The window is never inferred: without one, the command says what the data span.
    """
    from hplus.studies.plans import plan

    began, file = perf_counter(), shlex.join(files)
    check_writable(output)
    check_self_exciting(options)
    check_scan(options)
    if options["update"]:
        updated(options["update"], opened(files, options), file, options, output, as_json, began)
        return
    table = opened(files, options)
    if options["self_exciting"]:
        # a cycle multiplies the background: times are not folded, as their order matters
        frame = plan(table, **plan_arguments(options | {"cycle": None}))
        fit_excitation(table, frame, options, output, as_json)
        return
    study = unfitted(plan(table, **plan_arguments(options)), options)
    if options["by"]:
        fit_groups(table, study, options, output, as_json)
        return
    with progress_bar(as_json):
        fit_study(study, table, options["dask"])
    finished(study, file, options["random_state"], output, as_json, began)


def plan_arguments(options: Json) -> Json:
    """The arguments of `plan` among the options of a command."""
    if options["columns"] and options["lonlat"]:
        raise click.UsageError("Give --columns or --lonlat, not both.")
    lonlat = True if options["lonlat"] else False if options["plain"] else None
    words = ("window", "within", "unit", "time", "start", "end", "zone", "form", "time_unit",
             "origin", "where")  # fmt: skip
    return {name: options[name] for name in words} | {
        "weight": options.get("weight", ""),
        "trial": options.get("trial", ""),
        "columns": options["lonlat"] or options["columns"],
        "lonlat": lonlat,
        "cycle": options["cycle"] or "",
    }
