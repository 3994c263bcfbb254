"""hplus stream: learn from lines as they arrive, save what was learned, and resume."""

from __future__ import annotations

from typing import Any

import click

from hplus.cli.base import check_writable, command
from hplus.cli.fit import frame_options
from hplus.cli.options import amount_option
from hplus.streaming.methods import METHODS

RESUMING = """
\b
All lines before the offset printed last are saved in --state, whatever happens to the process or
the machine: the same command resumes from there, and the result is the same bit for bit as if it
had never stopped. A pipe has to send the same bytes again, unless --live says that they are new.

\b
While it runs, and afterwards, the folder given as --state answers hplus expect, predict, info,
check, report and sample in place of a model file.
"""


@command(
    "hplus stream shots.csv --columns x,y --window=-25,-5,25,42 --state shots.state",
    "tail -n +1 -F hits.csv | hplus stream - --columns x,y --window 0,0,1,1 --state hits.state",
    "hplus stream calls.csv --follow --columns lon,lat --window=-74.3,40.5,-73.7,40.9 \\\n"
    "      --time at --from 2026-01-01 --cycle week --forget 8w --state calls.state --json",
    more=RESUMING,
)
@click.argument("file")
@frame_options
@click.option("--method", type=click.Choice(list(METHODS)), help=(
    "Learning method (default: that of --state, else tree: hplus fit --model tree, line by line)."
))  # fmt: skip
@click.option("--budget", type=click.IntRange(1), metavar="N",
              help="Largest number of kernel atoms, for other methods than tree.")  # fmt: skip
@click.option("--forget", callback=amount_option, metavar="AMOUNT", help=(
    "Half-life of events: with --time, a time such as 8w, by the times of events in any order; "
    "otherwise a number of events."
))  # fmt: skip
@click.option("--exposure", callback=amount_option, metavar="AMOUNT", help=(
    'Exposure of all lines together, for example "82 games"; not with --cycle.'
))  # fmt: skip
@click.option(
    "--state", metavar="DIR", help="Folder for snapshots, from which a stream can resume."
)
@click.option("--every", type=click.IntRange(1), metavar="N",
              help="Events between snapshots (default: no limit).")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(0.0, min_open=True), default=5.0,
              show_default=True, help=(
    "Longest wait for a snapshot, in seconds, unless saving would take over a tenth of the time."
))  # fmt: skip
@click.option("--follow", is_flag=True, help="Wait for lines added to the file, like tail -f.")
@click.option("--live", is_flag=True, help="The pipe sends only new lines, also after a restart.")
@click.option("-o", "--output", metavar="FILE", help="Model file to write at the end.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line instead of text."
)
def stream(file: str, output: str | None, state: str | None, as_json: bool, **options: Any) -> None:
    """Learn how often events happen from lines of CSV or JSON as they arrive, in bounded memory.

    FILE may be - for a pipe. Lines that cannot be used are counted and never stop the stream; the
    last line is read once it is complete.
    """
    from hplus.cli.stream_run import run_stream

    check_writable(output)
    if options["live"] and file != "-":
        raise click.UsageError("--live is for a pipe: give - as the file.")
    run_stream(file, output, state, as_json, options)
