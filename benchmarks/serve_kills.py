"""hplus serve killed at random instants under load: no acknowledged event is lost, none doubled.

    python benchmarks/serve_kills.py [--kills 1000] [--quick]

The server takes posts from several clients, learns models and saves snapshots five times a second,
until it gets SIGKILL. Each client then sends the post again that was not answered. After every
start, and at the end, what the server holds must be what was acknowledged: the number of events and
a fingerprint of their positions. It is the server of `hplus serve`, with its page and the watch of
alerts. Servers are forked after everything was imported and compiled, so that kills hit the work
and not the start-up.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from typing import Any

import numpy as np
from _measure import finish, header, parser, row

from hplus import Box
from hplus.serve.app import server_of
from hplus.serve.live_app import live_app, watch_of
from hplus.serve.opening import opened_store
from hplus.serve.parsing import read_post
from hplus.serve.service import Service
from hplus.studies.events import fingerprint_of
from hplus.studies.frames import Frame
from hplus.studies.stream_answers import answering
from hplus.studies.streams import StreamStudy

FRAME = Frame(("x", "y"), Box((0, 0), (1, 1)))
CLIENTS, QUICK = 4, 20
LONGEST = 0.5
"""The longest time under load before a server is killed, in seconds."""

SECONDS = 0.2
"""Between models, and between snapshots."""


def serve(folder: str, listening: socket.socket) -> None:
    """Serve until the process is killed."""
    with opened_store(folder, StreamStudy(FRAME).begin()) as store:
        service = Service(store, SECONDS, SECONDS)
        watch = watch_of(service, folder)
        server = server_of(live_app(watch))
        service.start()
        watch.start()
        server.run([listening])


def forked(folder: str) -> tuple[int, int]:
    """The process of a server, and its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    child = os.fork()
    if child == 0:
        try:
            serve(folder, listening)
        finally:
            os._exit(1)
    listening.close()
    return child, port


class Sender:
    """A client with posts of its own, each of which it sends until it is answered."""

    def __init__(self, number: int) -> None:
        self.number, self.sequence, self.waiting = number, 0, b""
        self.rng = np.random.default_rng(number)
        self.acked, self.sum, self.again, self.stopped = 0, 0, 0, False

    def work(self, port: int) -> None:
        """Post until the server is gone, or the sender is told to stop."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            while self.waiting or not self.stopped:
                self._post(connection)
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()

    def _post(self, connection: http.client.HTTPConnection) -> None:
        if not self.waiting:
            X = self.rng.random((int(self.rng.integers(1, 200)), 2)).tolist()
            self.waiting = "".join(f'{{"x": {x}, "y": {y}}}\n' for x, y in X).encode()
        by_key = self.number % 2 == 0
        marks = {"Idempotency-Key": f"{self.number}-{self.sequence}"} if by_key else {}
        query = "" if by_key else f"?source={self.number}&sequence={self.sequence}"
        headers = {"Content-Type": "application/x-ndjson", **marks}
        connection.request("POST", f"/v1/events{query}", self.waiting, headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        assert answer.status == 200, found
        post = read_post(self.waiting, "lines", FRAME, "")
        assert found.get("duplicate") or found["accepted"] == len(post.X)
        self.again += bool(found.get("duplicate"))
        self.acked += len(post.X)
        self.sum += fingerprint_of(np.column_stack([post.X, post.seconds]))
        self.waiting, self.sequence = b"", self.sequence + 1


class Kills:
    """Servers on one folder, killed one after another, and the clients that survive them."""

    def __init__(self, folder: str) -> None:
        self.folder, self.rng = folder, random.Random(0)
        self.senders = [Sender(i) for i in range(CLIENTS)]
        self.found, self.wrong = Counter[str](), list[str]()

    def one(self) -> None:
        """Start a server, let it work for a while, kill it, and check the next one's memory."""
        child, port = forked(self.folder)
        before = self._status(child, port)
        if before is None:
            self.wrong.append("a server did not start")
            return
        self._check(before)
        threads = [threading.Thread(target=s.work, args=(port,)) for s in self.senders]
        for thread in threads:
            thread.start()
        time.sleep(self.rng.uniform(0.0, LONGEST))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for thread in threads:
            thread.join()
        self.found["killed"] += 1
        self.found["unanswered"] += sum(bool(s.waiting) for s in self.senders)

    def last(self) -> None:
        """Let all clients settle what was not answered, and compare what is there, bit for bit."""
        child, port = forked(self.folder)
        self._status(child, port)
        for sender in self.senders:
            sender.stopped = True
            sender.work(port)
        found = self._status(child, port)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.found["events"] = acked = sum(s.acked for s in self.senders)
        if found is None or found["events"] != acked:
            self.wrong.append(f"{found and found['events']} events, not {acked}")
        with opened_store(self.folder, StreamStudy(FRAME).begin()) as store:
            study: Any = store.machine
            expected = sum(s.sum for s in self.senders) % 2**64
            if study.study.fingerprint_ != expected:
                self.wrong.append("the events are not those that were acknowledged")

    def _check(self, status: dict[str, Any]) -> None:
        """At each start: all that was acknowledged, and at most what was not answered."""
        acked = sum(s.acked for s in self.senders)
        more = sum(s.waiting.count(b"\n") for s in self.senders)
        if not acked <= status["events"] <= acked + more:
            self.wrong.append(f"{status['events']} events, not {acked} and at most {more} more")

    def _status(self, child: int, port: int) -> dict[str, Any] | None:
        """The status of a server, once it has started."""
        end = time.monotonic() + 120
        while time.monotonic() < end and os.waitpid(child, os.WNOHANG) == (0, 0):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("GET", "/v1/status")
                found: dict[str, Any] = json.loads(connection.getresponse().read())
                connection.close()
                return found
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)
        return None


def warmed() -> None:
    """Import and compile all that a server needs, before any is forked."""
    study = StreamStudy(FRAME).begin()
    X = np.random.default_rng(0).random((1000, 2))
    study.learn_points(X, X[:, 1])
    study.events_ = 1000
    answering(study)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--kills", type=int, default=1000)
    asked = options.parse_args()
    warmed()
    header()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        kills = Kills(folder)
        for i in range(QUICK if asked.quick else asked.kills):
            kills.one()
            if i % 100 == 99:
                print(f"{i + 1} kills, {len(kills.wrong)} wrong", file=sys.stderr)
        kills.last()
    row("servers killed", kills.found["killed"])
    row("events lost or doubled", len(kills.wrong), most=0)
    row("events acknowledged", kills.found["events"])
    row("posts unanswered when the server was killed", kills.found["unanswered"])
    row("of these, taken before the kill and recognised", sum(s.again for s in kills.senders))
    print("\n".join(kills.wrong[:20]))
    finish()


if __name__ == "__main__":
    main()
