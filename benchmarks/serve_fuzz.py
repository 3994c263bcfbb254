"""Malformed requests to hplus serve: none is a crash or an error of the service.

    python benchmarks/serve_fuzz.py [--requests 100000] [--idle 1000] [--quick]

Requests from a seeded generator: heads and bodies that are cut, changed and combined, to all
addresses of a service that has a model. Meanwhile many connections are open that send nothing.
"""

from __future__ import annotations

import http.client
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial

import numpy as np
from _malformed import malformed
from _measure import finish, header, parser, row
from serve_kills import forked

QUICK, BLOCK, CLIENTS = 2000, 100, 40
ANSWER_SECONDS = 1.0
"""How long an answer is waited for that may never come, as a request may be incomplete."""


def sent(port: int, data: bytes) -> list[int]:
    """The statuses of what is answered to some bytes."""
    found = b""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=5)) as connection:
        try:
            connection.sendall(data)
            connection.settimeout(ANSWER_SECONDS)
            while piece := connection.recv(65536):
                found += piece
        except OSError:
            pass
    return [int(part[:3]) for part in found.split(b"HTTP/1.1 ")[1:]]


def block(port: int, seed: int) -> tuple[Counter[int], list[bytes]]:
    """The statuses of some malformed requests, and the requests that were a fault."""
    rng, found, faults = random.Random(seed), Counter[int](), list[bytes]()
    for _ in range(BLOCK):
        data = malformed(rng)
        codes = sent(port, data)
        found.update(codes)
        if any(code >= 500 and code not in (503, 507) for code in codes):
            faults.append(data)
    assert asked(port, "/healthz")[0] == 200
    return found, faults


def asked(port: int, path: str) -> tuple[int, float]:
    """The status of an answer, and how long it took."""
    began = time.perf_counter()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
    return answer.status, time.perf_counter() - began


def learned(port: int) -> None:
    """Wait until a server has a model."""
    X = np.random.default_rng(0).random((500, 2)).tolist()
    body = "x,y\n" + "".join(f"{x},{y}\n" for x, y in X)
    while True:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                connection.request("POST", "/v1/events", body, {"Content-Type": "text/csv"})
                connection.getresponse().read()
            break
        except OSError:
            time.sleep(0.1)
    while asked(port, "/v1/rate?x=0.5&y=0.5")[0] != 200:
        time.sleep(0.5)


def ended(child: int) -> None:
    """End a server."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--requests", type=int, default=100_000)
    options.add_argument("--idle", type=int, default=1000)
    given = options.parse_args()
    requests = QUICK if given.quick else given.requests
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    header()
    with tempfile.TemporaryDirectory(dir=".") as folder, ExitStack() as stack:
        child, port = forked(folder)
        stack.callback(ended, child)
        learned(port)
        found, faults = Counter[int](), list[bytes]()
        with ThreadPoolExecutor(CLIENTS) as pool:
            for i, part in enumerate(pool.map(partial(block, port), range(requests // BLOCK))):
                found.update(part[0])
                faults += part[1]
                if i % 100 == 99:
                    print(f"{(i + 1) * BLOCK} requests, {len(faults)} faults", file=sys.stderr)
        for _ in range(given.idle):
            stack.enter_context(closing(socket.create_connection(("127.0.0.1", port), timeout=5)))
        slowest = max(asked(port, "/v1/status")[1] for _ in range(20))
        alive = os.waitpid(child, os.WNOHANG) == (0, 0)
    row("malformed requests", requests)
    row("crashes and errors of the service", len(faults) + (not alive), most=0)
    row("answers", sum(found.values()))
    row("of these, refused", sum(n for code, n in found.items() if code >= 400))
    row(f"with {given.idle} idle connections, slowest of 20 answers, ms", 1e3 * slowest, most=1000)
    print(dict(sorted(found.items())))
    print("\n".join(repr(data[:300]) for data in faults[:10]))
    finish()


if __name__ == "__main__":
    main()
