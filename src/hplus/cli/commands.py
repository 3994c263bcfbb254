"""The command `hplus`: a subcommand is imported when it runs, so that help comes at once."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from hplus import __version__

COMMANDS = {
    "check": ("hplus.cli.ask", "Test whether a model fits the events of a file."),
    "data": ("hplus.cli.show", "List the example data sets, or copy one to a file."),
    "demo": ("hplus.cli.show", "Fit, query and report on Stephen Curry's shots."),
    "expect": ("hplus.cli.ahead", "Expected counts in regions or grid cells, with intervals."),
    "fit": ("hplus.cli.fit", "Learn the rate of events from a file."),
    "info": ("hplus.cli.info", "Show what a model file holds."),
    "merge": ("hplus.cli.scanned", "Learn one rate from the events of several models."),
    "predict": ("hplus.cli.ask", "Predict the rate or the quantity at each row of a file."),
    "regress": ("hplus.cli.regress", "Learn to predict a quantity that cannot be negative."),
    "report": ("hplus.cli.show", "Write a report: maps, hot spots, goodness of fit."),
    "sample": ("hplus.cli.ahead", "Simulate events from a model."),
    "serve": ("hplus.cli.serve", "Take events by HTTP and answer with rates, durably."),
    "stream": ("hplus.cli.stream", "Learn the rate of events from lines as they arrive."),
}
"""The module of each subcommand, and its line in the help of `hplus`."""

CODES = {
    1: "an internal error",
    2: "an invalid command or option",
    3: "a data file cannot be read or does not hold what was asked for",
    4: "a model file is missing, damaged or of the wrong kind",
    5: "a result cannot be written",
    6: "an optional dependency is not installed",
    7: "not enough memory",
    130: "interrupted",
}
"""Exit codes other than 0."""

EPILOG = "Exit codes: 0 success; " + "; ".join(f"{c} {meaning}" for c, meaning in CODES.items())


class Group(click.Group):
    """A group that reports errors in one sentence with a documented exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all subcommands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A subcommand, imported when it is looked up."""
        return subcommand(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The lines of COMMANDS, without importing any subcommand."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; errors of the library become a sentence and an exit code."""
        from hplus.cli.base import command_errors, warnings_as_notes

        with command_errors(), warnings_as_notes():
            return super().invoke(ctx)


def subcommand(name: str) -> click.Command:
    """A subcommand by name."""
    found: click.Command = getattr(import_module(COMMANDS[name][0]), name)
    return found


@click.group(
    cls=Group,
    epilog=EPILOG + ".",
    context_settings={"max_content_width": 100},
)
@click.version_option(__version__)
def hplus() -> None:
    """Learn how often events happen, where and when, with rates that are never negative.

    \b
    hplus demo                                  a tour on data that come with the package
    hplus data thefts -o thefts.csv.gz          copy an example data set to a file
    hplus fit thefts.csv.gz --columns lon,lat   suggests a window that holds your data
    """
