"""hplus serve: a service that takes events by HTTP and answers with rates."""

from __future__ import annotations

from typing import Any

import click

from hplus.cli.base import command, json_option, note
from hplus.cli.fit import frame_options
from hplus.cli.options import amount_option

DURABLE = """
\b
A post is answered once its events are on disk, so that neither kill -9 nor a loss of power loses
an event that was acknowledged. Send source and sequence, or an Idempotency-Key, and no retry is
counted twice.

\b
  curl localhost:8000/v1/events -H 'Content-Type: text/csv' --data-binary @events.csv
  curl 'localhost:8000/v1/rate?x=0.3&y=0.8'
  curl 'localhost:8000/v1/expect?for=1h,1d&grid=4x4'
  curl localhost:8000/v1/status

\b
Without --time, counts are per day that the service has run. The folder given as --state is one of
hplus stream: it answers hplus expect, predict, info, check, report and sample.
"""


@command(
    "hplus serve --state hits --columns x,y --window 0,0,1,1",
    "hplus serve --state calls --columns lon,lat --window=-74.3,40.5,-73.7,40.9 \\\n"
    "      --time at --from 2026-01-01 --cycle week --forget 8w",
    "hplus serve --state hits --columns x,y --window 0,0,1,1 --host 0.0.0.0 --token-file tokens",
    more=DURABLE,
)
@click.option("--state", required=True, metavar="DIR", help="Folder for the log and snapshots.")
@frame_options
@click.option("--forget", callback=amount_option, metavar="AMOUNT", help=(
    "Half-life of events: with --time, a time such as 8w; otherwise a number of events."
))  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
              help="Port to listen on; 0 for any that is free.")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help=(
    "Address to listen on. Any other than this machine's own needs tokens, and TLS in front."
))  # fmt: skip
@click.option("--token-file", metavar="FILE", help=(
    "File with lines such as 'write TOKEN', 'read TOKEN' or 'both TOKEN'; or set the variables "
    "HPLUS_WRITE_TOKEN and HPLUS_READ_TOKEN."
))  # fmt: skip
@click.option("--refresh", type=click.FloatRange(0.05), default=2.0, show_default=True,
              help="Seconds between models, at least.")  # fmt: skip
@click.option("--snapshot", type=click.FloatRange(0.05), default=30.0, show_default=True,
              help="Seconds between snapshots, at least.")  # fmt: skip
@click.option("--title", metavar="TEXT", default="", help="Title of the live page.")
@click.option("--alarms-per-week", type=click.FloatRange(0.0, 1000.0, min_open=True), default=1.0,
              show_default=True, metavar="N", help=(
    "False alarms a week that are accepted; fewer means that changes are found later."
))  # fmt: skip
@click.option("--webhook", metavar="URL", help=(
    "Address to which alerts are posted, signed with the variable HPLUS_WEBHOOK_SECRET."
))  # fmt: skip
@json_option
def serve(**options: Any) -> None:
    """Take events by HTTP, keep them safe, and answer how many to expect, where and when."""
    note("Starting …")  # which takes seconds when it is the first time
    from hplus.cli.serve_run import run_service

    run_service(options)
