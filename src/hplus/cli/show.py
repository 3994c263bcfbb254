"""Commands that show: report, demo, data."""

from __future__ import annotations

import webbrowser
from typing import Any

import click

from hplus import datasets
from hplus.cli.doors import check_writable, json_option, load_model, note, print_json, print_pairs
from hplus.studies.study import EventStudy


@click.command(
    epilog="""
\b
Example:
  hplus report thefts.hplus thefts.csv.gz -o report.html
"""
)
@click.argument("model")
@click.argument("events", required=False)
@click.option("-o", "--output", default="report.html", show_default=True, metavar="FILE")
@click.option("--title", help="Title of the page.")
@click.option("--open", "opened", is_flag=True, help="Open it in the browser.")
@json_option
def report(model: str, events: str | None, output: str, as_json: bool, **options: Any) -> None:
    """Write one HTML page with the map or curve, hot spots, fit and scores; it needs no network.

    EVENTS, usually the file that the model was fitted to, are drawn on the map.
    """
    from hplus.display.page import write_report
    from hplus.studies.events import sample_events

    check_writable(output)
    study = load_model(model, EventStudy)
    points = None if events is None else sample_events(events, study.frame)
    write_report(study, output, points, options["title"])
    print_json({"report": output}) if as_json else note(f"Wrote {output}.")
    if options["opened"]:
        webbrowser.open(output)


@click.command(
    epilog="""
\b
Examples:
  hplus data
  hplus data thefts -o thefts.csv.gz
"""
)
@click.argument("name", required=False)
@click.option("-o", "--output", metavar="FILE", help="Where it goes (default: its own name).")
@json_option
def data(name: str | None, output: str | None, as_json: bool) -> None:
    """Data that come with the package, as files to try the commands on."""
    known = datasets.files() | datasets.OUTLINES
    if name is None:
        print_json(known) if as_json else print_pairs("Data sets", _described(known))
        return
    if name not in known:
        raise click.UsageError(f"There is no data set {name!r}: {', '.join(known)}.")
    target = output or known[name]
    check_writable(target)
    datasets.copy(name, target)
    print_json({"file": target}) if as_json else note(f"Wrote {target}.")


def _described(known: dict[str, str]) -> dict[str, str]:
    """What each file holds, in its loader's first sentence."""
    loaders = {load.__name__: load for load in datasets.DATASETS}
    return {
        name: (loaders[name].__doc__ or "").split("\n")[0]
        if name in loaders
        else f"outlines, {file}"
        for name, file in known.items()
    }


@click.command(
    epilog="""
\b
Example:
  hplus demo --folder demo
"""
)
@click.option("--folder", default="demo", show_default=True, help="Where the results go.")
@json_option
def demo(folder: str, as_json: bool) -> None:
    """A tour on Stephen Curry's shots: fit, expect, report."""
    from hplus.cli.tour import tour

    tour(folder, as_json)
