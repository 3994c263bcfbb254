"""Commands that show: report, demo, data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hplus.cli.base import check_writable, command, json_option, load_model, note, print_pairs
from hplus.cli.grouped import group_option
from hplus.cli.options import amount_option, narrowed, where_option
from hplus.cli.writing import print_json
from hplus.files.feeds import TableError

if TYPE_CHECKING:
    from hplus.studies.event_study import EventStudy
    from hplus.studies.events import Sampled
    from hplus.studies.spans import Amount


@command("hplus report thefts.hplus thefts.csv.gz -o report.html")
@click.argument("model")
@click.argument("events", required=False)
@click.option("-o", "--output", default="report.html", show_default=True, metavar="FILE",
              help="File to write.")  # fmt: skip
@click.option("--title", help="Page title.")
@where_option
@group_option
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser.")
@json_option
def report(model: str, events: str | None, output: str, as_json: bool, **options: Any) -> None:
    """Write one HTML page with the map or curve, hot spots, goodness of fit and scores.

    The page needs no network; its map zooms down to the resolution of the rate. With EVENTS, for
    example the file that was fitted, they are drawn on the map; a self-exciting rate
    keeps those it was fitted to, and is checked on EVENTS, such as later ones.
    """
    from hplus.display.excitation_page import write_excitation_report
    from hplus.display.groups_page import write_groups_report
    from hplus.display.page import write_report

    check_writable(output)
    kinds = ("EventStudy", "ExcitationStudy", "GroupedStudy")
    study = load_model(model, *kinds, group=options["group"])
    grouped = type(study).__name__ == "GroupedStudy"
    for part in study.studies_.values() if grouped else [study]:
        part.frame = narrowed(part.frame, options["where"])
    if grouped:
        write_groups_report(study, output, events, options["title"])
    elif type(study).__name__ == "ExcitationStudy":
        write_excitation_report(study, output, events, options["title"])
    else:
        found = None if events is None else _drawn(study, model, events)
        points, seconds = (None, None) if found is None else (found.X, found.seconds)
        write_report(study, output, points, options["title"], seconds=seconds)
    print_json({"report": output}) if as_json else note(f"Wrote {output}.")
    if options["opened"]:
        import webbrowser

        webbrowser.open(output)


def _drawn(study: EventStudy, model: str, events: str) -> Sampled:
    """The events of a file that a page shows: those of the observation period."""
    from hplus.studies.events import OutsidePeriodError, sampled

    try:
        return sampled(events, study.frame)
    except OutsidePeriodError as error:
        raise TableError(
            f"{events} has no events of the model's observation period, which a report shows: "
            f"leave the file out, and check the model on it with hplus check {model} {events}."
        ) from error


@command(
    "hplus data",
    "hplus data thefts -o thefts.csv.gz",
)
@click.argument("name", required=False)
@click.option(
    "-o", "--output", metavar="FILE", help="File to write (default: the data set's own name)."
)
@json_option
def data(name: str | None, output: str | None, as_json: bool) -> None:
    """List the data sets that come with hplus, or copy one to a file to try the commands on."""
    from hplus import datasets

    known = datasets.files() | datasets.OUTLINES
    if name is None:
        print_json(known) if as_json else print_pairs("Data sets", _described(known))
        return
    if name not in known:
        raise click.UsageError(f"There is no data set {name!r}: choose from {', '.join(known)}.")
    target = output or known[name]
    check_writable(target)
    datasets.copy(name, target)
    print_json({"file": target}) if as_json else note(f"Wrote {target}.")


def _described(known: dict[str, str]) -> dict[str, str]:
    """The first sentence of each data set's loader."""
    from hplus import datasets

    loaders = {load.__name__: load for load in datasets.DATASETS}
    return {
        name: (loaders[name].__doc__ or "").split("\n")[0]
        if name in loaders
        else f"outlines, {file}"
        for name, file in known.items()
    }


@command("hplus demo --folder demo", "hplus demo --live --speed 12h")
@click.option("--folder", default="demo", show_default=True, help="Folder for the results.")
@click.option("--live", is_flag=True, help=(
    "Replay New York's vehicle thefts against a service on this machine, and open its live page."
))  # fmt: skip
@click.option("--speed", default="6h", show_default=True, callback=amount_option, metavar="AMOUNT",
              help="With --live, how much time passes in a second.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
              help="With --live, the port of the service; 0 for any that is free.")  # fmt: skip
@click.option("--no-browser", is_flag=True, help="With --live, do not open the page.")
@json_option
def demo(
    folder: str, live: bool, speed: Amount, port: int, no_browser: bool, as_json: bool
) -> None:
    """Take a tour with Stephen Curry's shots: fit a rate, query it, and write a report."""
    if live:
        note("Starting …")  # which takes seconds when it is the first time
        from hplus.cli.live_demo import live_demo

        live_demo(speed, port, not no_browser)
        return
    from hplus.cli.tour import tour

    tour(folder, as_json)
