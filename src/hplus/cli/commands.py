"""The group `hplus` with all its commands."""

from __future__ import annotations

import click

from hplus import __version__
from hplus.cli.ask import check, expect, info, predict, sample
from hplus.cli.bench import bench
from hplus.cli.doors import CODES, Commands
from hplus.cli.fit import fit
from hplus.cli.regress import regress
from hplus.cli.show import data, demo, report
from hplus.cli.stream import stream

EPILOG = "Exit codes: 0 all went well; " + "; ".join(
    f"{code} {said}" for code, said in CODES.items()
)


@click.group(cls=Commands, epilog=EPILOG + ".", context_settings={"max_content_width": 100})
@click.version_option(__version__)
def hplus() -> None:
    """Learn how often events happen, where and when: never below zero, with error bars.

    \b
    hplus demo                                  a tour on data that come with the package
    hplus data thefts -o thefts.csv.gz          one of those data sets as a file
    hplus fit thefts.csv.gz --columns lon,lat   says which window your data would fit in
    """


for command in (
    fit,
    regress,
    stream,
    expect,
    predict,
    sample,
    check,
    info,
    report,
    demo,
    data,
    bench,
):
    hplus.add_command(command)
