"""hplus demo --live: vehicle thefts of New York, replayed against a service on this machine."""

from __future__ import annotations

import gzip
import webbrowser
from bisect import bisect_right
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple

from hplus import datasets
from hplus.cli.base import note
from hplus.cli.serve_run import PACKAGES, at_work, listener
from hplus.cli.stream_run import NO_END
from hplus.files.chunked_table import Table
from hplus.files.extras import needed
from hplus.storage.files import Json
from hplus.studies.plans import plan
from hplus.studies.spans import Amount, seconds_of
from hplus.studies.streams import StreamStudy
from hplus.wording import count

if TYPE_CHECKING:
    from hplus.serve.app import HplusServer

FRAME: Json = {
    "columns": ("lon", "lat"),
    "window": (-74.27, 40.49, -73.68, 40.93),
    "time": "datetime",
    "start": "2014-01-01",
    "end": NO_END,
    "cycle": "week",
}
"""Where and when vehicles could be stolen."""

LIVE_FROM = "2017-01-01"
"""Thefts before this day are learned from at once, later ones are replayed."""

LINES_A_POST, SECONDS_A_POST = 4000, 0.25
"""Lines of a post before the replay, and seconds from one post to the next during it."""


class DatedLine(NamedTuple):
    """A line of CSV, and its time in seconds since 1970."""

    seconds: float
    line: str


def live_demo(speed: Amount, port: int, opened: bool) -> None:
    """Serve, replay and open the page, until a signal comes."""
    for package in PACKAGES:
        needed(package, "serve", "hplus demo --live")
    from hplus.serve.app import server_of
    from hplus.serve.live_app import live_app, watch_of
    from hplus.serve.opening import opened_store
    from hplus.serve.service import Service

    pace = speed.to("s")
    with TemporaryDirectory(prefix="hplus-demo-") as folder:
        frame = plan(Table("the posts", ["lon", "lat", "datetime"], lambda *_: iter(())), **FRAME)
        with opened_store(folder, StreamStudy(frame, "tree").begin()) as store:
            service = Service(store)
            watch = watch_of(service, folder)
            app = live_app(watch, title="Vehicle thefts in New York")
            server, listening = server_of(app), listener("127.0.0.1", port)
            found = int(listening.getsockname()[1])
            stopping = Event()
            feeder = Thread(target=_feed, args=(server, found, pace, opened, stopping), daemon=True)
            with at_work(service, watch):
                feeder.start()
                try:
                    server.run([listening])
                finally:
                    stopping.set()
                    feeder.join()


def _feed(server: HplusServer, port: int, pace: float, opened: bool, stopping: Event) -> None:
    """Post the thefts: those before the replay in large posts, then as time passes."""
    while not server.started:
        if stopping.wait(0.05):
            return
    note(f"The live page is at http://127.0.0.1:{port}/ (stop with Ctrl-C).")
    header, lines = thefts()
    began = seconds_of("start", LIVE_FROM)
    past = [row for row in lines if row.seconds < began]
    for i in range(0, len(past), LINES_A_POST):
        if stopping.is_set():
            return
        _post(port, header, past[i : i + LINES_A_POST])
    note(f"Learned from {count(len(past))} thefts of 2014 to 2016; now 2017, {pace:,.0f} times "
         "as fast as it was.")  # fmt: skip
    if opened:
        webbrowser.open(f"http://127.0.0.1:{port}/")
    for group in paced(lines[len(past) :], began, pace, stopping):
        _post(port, header, group)
    note("That was 2017.")


def paced(
    lines: list[DatedLine],
    began: float,
    pace: float,
    stopping: Event,
    clock: Callable[[], float] = monotonic,
) -> Iterator[list[DatedLine]]:
    """Lines in groups, each when its time has come on a clock that runs `pace` times as fast."""
    start, at = clock(), 0
    while at < len(lines) and not stopping.wait(SECONDS_A_POST):
        now = began + pace * (clock() - start)
        ready = bisect_right(lines, now, key=lambda row: row.seconds) - at
        if ready:
            yield lines[at : at + ready]
            at += ready


def thefts() -> tuple[str, list[DatedLine]]:
    """The header of the file, and its lines in the order of time."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "thefts.csv.gz"
        datasets.copy("thefts", str(path))
        header, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    rows = [DatedLine(seconds_of("datetime", line.split(",")[0]), line) for line in lines]
    return header, sorted(rows)


def _post(port: int, header: str, rows: list[DatedLine]) -> None:
    """Post lines, again if the service is busy."""
    body = "\n".join([header, *(row.line for row in rows)]).encode() + b"\n"
    for _ in range(20):
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("POST", "/v1/events", body, {"Content-Type": "text/csv"})
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        sleep(0.5)
