"""How many events hplus serve takes durably on one core, how soon it answers, and its memory.

    python benchmarks/serve_throughput.py [--quick] [--part speed|waits|memory]

The server runs on one core and the clients on another, if there are two; all connections stay open.
It is the server of `hplus serve`, with its page and the watch of alerts.
First as many posts as it takes, of 100 events in JSON lines and of 10,000 in CSV; then posts of 100
at half the rate asked for, with their times and those of questions meanwhile; then 10 million
events in 200,000 places, and 10 million of which a fifth are at new places, at a bit more than the
rate asked for. The same posts go to a server that learns no model, and to one that does not sync.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from _measure import finish, header, parser, row

CONNECTIONS = 8
"""Clients that post at a time."""

RATES = {"lines": 20_000, "csv": 200_000}
"""Events per second that are asked for."""

KINDS = {"lines": "application/x-ndjson", "csv": "text/csv"}


def serve(folder: str, port: Any, learns: bool, syncs: bool) -> None:
    """The server, in a process of its own on one core."""
    from hplus import Box
    from hplus.serve.app import server_of
    from hplus.serve.live_app import live_app, watch_of
    from hplus.serve.long_running import prepare_process
    from hplus.serve.opening import opened_store
    from hplus.serve.service import Service
    from hplus.studies.frames import Frame
    from hplus.studies.streams import StreamStudy

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    study = StreamStudy(Frame(("x", "y"), Box((0, 0), (1, 1)))).begin()
    with opened_store(folder, study) as store:
        if not syncs:
            store._disk.sync = lambda _: None  # type: ignore[method-assign]
        service = Service(store, 2.0, 30.0, learns)
        prepare_process(service)
        listening = socket.create_server(("127.0.0.1", 0))
        watch = watch_of(service, folder)
        service.start()
        watch.start()
        port.value = listening.getsockname()[1]
        server_of(live_app(watch)).run([listening])


class Running:
    """A server that runs: its port and its process."""

    def __init__(self, port: int, pid: int) -> None:
        self.port, self.pid = port, pid

    def seconds(self) -> float:
        """CPU time that the process has taken."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        """Memory that the process holds."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * 4096 / 2**20

    def most_megabytes(self) -> float:
        """The most memory that the process has held."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def status(self) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/v1/status")
        return json.loads(connection.getresponse().read())


@contextmanager
def running(learns: bool = True, syncs: bool = True) -> Iterator[Running]:
    context = get_context("spawn")
    port = context.Value("i", 0)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        process = context.Process(target=serve, args=(folder, port, learns, syncs))
        process.start()
        while port.value == 0:
            time.sleep(0.05)
        try:
            yield Running(port.value, process.pid or 0)
        finally:
            process.kill()
            process.join()


def bodies(kind: str, events: int, seed: int = 0) -> list[bytes]:
    """Some bodies of so many events each."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(20):
        X = np.clip(rng.normal(0.5, 0.15, (events, 2)), 0, 1).round(6).tolist()
        if kind == "csv":
            found.append(("x,y\n" + "".join(f"{x},{y}\n" for x, y in X)).encode())
        else:
            found.append("".join(f'{{"x": {x}, "y": {y}}}\n' for x, y in X).encode())
    return found


class Poster(threading.Thread):
    """Posts bodies, in turn or when they are due, and notes how long each answer took."""

    def __init__(self, port: int, kind: str, given: list[bytes], plan: Callable[[int], float],
                 posts: int, name: str) -> None:  # fmt: skip
        super().__init__()
        self.port, self.kind, self.given, self.plan = port, kind, given, plan
        self.posts, self.source, self.times = posts, name, list[float]()

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        for i in range(self.posts):
            wait = self.plan(i) - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            began = max(time.perf_counter() + min(wait, 0.0), 0.0)  # late is slow, too
            path = f"/v1/events?source={self.source}&sequence={i}"
            body = self.given[i % len(self.given)]
            connection.request("POST", path, body, {"Content-Type": KINDS[self.kind]})
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text
            self.times.append(time.perf_counter() - began)
        connection.close()


def flood(
    server: Running, kind: str, events: int, posts: int, name: str, seed: int = 0
) -> tuple[float, float]:
    """Events per second, by the clock and by the CPU time of the server, as fast as it answers."""
    given, began, spent = bodies(kind, events, seed), time.perf_counter(), server.seconds()
    each = posts // CONNECTIONS
    posters = [
        Poster(server.port, kind, given, lambda _: 0.0, each, f"{name}{i}")
        for i in range(CONNECTIONS)
    ]
    _together(posters)
    total = each * CONNECTIONS * events
    return total / (time.perf_counter() - began), total / (server.seconds() - spent)


def steady(
    server: Running, rate: float, seconds: float, name: str
) -> tuple[list[float], list[float]]:
    """Times of posts of 100 events at a rate, and of questions meanwhile."""
    given, gap = bodies("lines", 100), CONNECTIONS * 100 / rate
    start, posts = time.perf_counter() + 0.5, int(seconds / gap)
    posters = [
        Poster(server.port, "lines", given,
               lambda n, i=i: start + (n + i / CONNECTIONS) * gap, posts, f"{name}{i}")
        for i in range(CONNECTIONS)
    ]  # fmt: skip
    asked: list[float] = []
    asker = threading.Thread(target=_ask, args=(server.port, start + seconds, asked))
    asker.start()
    _together(posters)
    asker.join()
    return [t for poster in posters for t in poster.times], asked


def _ask(port: int, end: float, times: list[float]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    paths = ("/v1/rate?x=0.4&y=0.6", "/v1/expect?for=1h,1d", "/v1/status")
    while time.perf_counter() < end:
        for path in paths:
            began = time.perf_counter()
            connection.request("GET", path)
            connection.getresponse().read()
            times.append(time.perf_counter() - began)
            time.sleep(0.05)


def _together(posters: list[Poster]) -> None:
    for poster in posters:
        poster.start()
    for poster in posters:
        poster.join()


def p99(times: list[float]) -> float:
    return 1e3 * float(np.quantile(times, 0.99))


def learned(server: Running) -> None:
    """Wait until there is a model, so that nothing is compiled while it is measured."""
    flood(server, "lines", 100, 80, "first")
    while server.status()["model"] is None:
        time.sleep(0.2)
    for path in ("/v1/rate?x=0.4&y=0.6", "/v1/expect?for=1h,1d"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("GET", path)
        connection.getresponse().read()


def speeds(quick: bool) -> None:
    """As many posts as are taken, also without a model and without syncing."""
    posts, large = (400, 40) if quick else (6000, 400)
    found: dict[tuple[bool, bool], list[float]] = {}
    for learns, syncs in ((True, True), (False, True), (True, False)):
        with running(learns, syncs) as server:
            if learns:
                learned(server)
            small, small_cpu = flood(server, "lines", 100, posts, "small")
            csv, csv_cpu = flood(server, "csv", 10_000, large, "large")
            found[learns, syncs] = [small, small_cpu, csv, csv_cpu]
    names = ("posts of 100, events/s", "posts of 100, events per CPU second",
             "CSV of 10,000, events/s", "CSV of 10,000, events per CPU second")  # fmt: skip
    bounds = (RATES["lines"], -np.inf, RATES["csv"], -np.inf)
    for i, (name, least) in enumerate(zip(names, bounds, strict=True)):
        row(name, round(found[True, True][i]), least=least)
        row(f"{name}: without a model, ratio", found[False, True][i] / found[True, True][i])
        row(f"{name}: without sync, ratio", found[True, False][i] / found[True, True][i])


def waits(quick: bool) -> None:
    """How long posts and questions take at half the rate asked for, with few and many places."""
    with running() as server:
        learned(server)
        for places in ("2,000", "200,000"):
            times, asked = steady(server, RATES["lines"] / 2, 5.0 if quick else 60.0, places)
            name = f"{places} places"
            row(f"{name}: post of 100 at half the rate, ms at most in 99 %", p99(times), most=50.0)
            row(f"{name}: median, ms", 1e3 * float(np.median(times)))
            row(f"{name}: questions meanwhile, ms at most in 99 %", p99(asked), most=100.0)
            flood(server, "csv", 10_000, 40, "many")
            time.sleep(5.0)  # for a model that knows them


def memories(quick: bool) -> None:
    """Memory over many events, at places that come back and at ever new ones."""
    memory("in 200,000 places", 8 if quick else 104, new_places=False)
    memory("a fifth at new places", 8 if quick else 104, new_places=True)


PARTS = {"speed": speeds, "waits": waits, "memory": memories}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--part", choices=PARTS, help="measure only this")
    given = options.parse_args()
    header()
    for name, part in PARTS.items():
        if given.part in (None, name):
            part(given.quick)
    finish()


def memory(name: str, posts: int, new_places: bool) -> None:
    """How memory grows over many events; new places are new cells of the statistic."""
    with running() as server:
        learned(server)
        sizes = []
        for part in range(10):
            _paced(server, posts, f"part{part}-", part if new_places else 0)
            sizes.append(server.megabytes())
        events, most = server.status()["events"], server.most_megabytes()
    row(f"{name}: events", events)
    row(f"{name}: MB after a tenth of them", sizes[0])
    row(f"{name}: MB after all", sizes[-1])
    row(f"{name}: MB at the most", most)
    row(f"{name}: growth over the last half, ratio", sizes[-1] / sizes[4], most=1.1)


def _paced(server: Running, posts: int, name: str, seed: int) -> None:
    """Posts of 10,000 events of CSV, a bit faster than the rate asked for."""
    given, gap = bodies("csv", 10_000, seed), CONNECTIONS * 10_000 / (1.25 * RATES["csv"])
    start = time.perf_counter()
    _together(
        [
            Poster(server.port, "csv", given, lambda n, i=i: start + (n + i / CONNECTIONS) * gap,
                   posts // CONNECTIONS, f"{name}{i}")
            for i in range(CONNECTIONS)
        ]
    )  # fmt: skip


if __name__ == "__main__":
    main()
