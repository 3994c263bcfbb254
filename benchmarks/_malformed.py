"""Requests that are malformed in many ways, from a seeded generator."""

from __future__ import annotations

import gzip
import random

METHODS = ("POST", "GET", "PUT", "HEAD", "OPTIONS", "BREW", "", "POST POST", "get")
PATHS = ("/v1/events", "/v1/rate", "/v1/expect", "/v1/peaks", "/v1/status", "/metrics", "/", "//",
         "/v1/openapi.json", "*", "http://x/", "/%ff%00", "/v1/expect?grid=9x9&for=1d",
         "/v1/rate?x=0.1&y=0.2", "/v1/events?source=a&sequence=1")  # fmt: skip
PAGE = ("/v1/page/picture", "/v1/page/recent", "/v1/page/history", "/v1/page/view",
        "/v1/page/spots", "/v1/alerts", "/v1/alerts/x/acknowledge", "/page/../../etc/passwd",
        "/page/%2e%2e/%2e%2e/etc/passwd")  # fmt: skip
KINDS = ("application/json", "application/x-ndjson", "text/csv", "text/plain", "x", 'a/b;charset="')
NAMES = ("Idempotency-Key", "Last-Event-ID", "Cookie", "Expect")
ODD = ("a", "9" * 30, "100-continue", 'k="', "\xe9")
QUERIES = ("for", "grid", "from", "level", "format", "x", "y", "source", "sequence", "low", "high",
           "width", "height", "after", "most", "span")  # fmt: skip
VALUES = ("0,0", "1,1", "-inf,-inf", "inf,inf", "1e308,1e308", "16", "week",
          "1d", "0x0", "-1", "nan", "1e999", "%00", "%f0%9f", "a" * 300, "9" * 40, "[]", "{}",
          "")  # fmt: skip
BODIES = (b"", b"[", b"{}", b"[{}]", b"[[[[", b"x,y\n", b"x,y\n1,2,3\n", b"x,y\n\"1,2\n",
          b'{"x":1e400,"y":0}\n', b'{"x":"\\ud800","y":0}\n', b'[{"x":0.1,"y":0.2}]', b"null",
          b"\xff\xfe", b"\x00",
          b"x;y\n0,1;0,2\n", b'{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1]]]}',
          b'{"type":"Polygon","coordinates":[[[0,0],[1,0],[0,1],[1,1],[0,0]]]}',
          b'{"type":"FeatureCollection","features":[{"geometry":{"type":"GeometryCollection"}}]}',
          b'{"type":"Polygon","coordinates":[[[1e308,0],[1,1e308],[-1e308,1]]]}',
          b'{"type":"Polygon","coordinates":[[["a",0],[1,0],[1,1]]]}', b'"\\u0000"')  # fmt: skip


def malformed(rng: random.Random) -> bytes:
    """One request, or what may have been one."""
    body = rng.choice(BODIES)
    if rng.random() < 0.3:
        body = _mutated(rng, body * rng.randint(1, 3))
    head = _head(rng, body)
    if rng.random() < 0.1:
        body = gzip.compress(body)[: rng.randint(0, 40)]
    data = head + body
    if rng.random() < 0.15:
        data = _mutated(rng, data)
    return data[: rng.randint(0, len(data))] if rng.random() < 0.1 else data


def _head(rng: random.Random, body: bytes) -> bytes:
    """A first line and headers, most of them as they should be."""

    def odd(share: float) -> bool:
        return rng.random() < share

    path = rng.choice(PATHS if odd(0.1) else PAGE if odd(0.2) else PATHS[:5])
    if odd(0.5):
        words = [f"{rng.choice(QUERIES)}={rng.choice(VALUES)}" for _ in range(rng.randint(1, 4))]
        path += ("&" if "?" in path else "?") + "&".join(words)
    posted = path.startswith((PATHS[0], PAGE[6])) or (path.startswith(PATHS[2]) and odd(0.7))
    method = rng.choice(METHODS) if odd(0.05) else "POST" if posted else "GET"
    length = rng.choice([0, -1, 5, 10**20]) if odd(0.05) else len(body)
    lines = [
        f"{method} {path} HTTP/{'9' if odd(0.02) else '1.1'}",
        f"Host: {rng.choice(['', 'x']) if odd(0.03) else 'localhost'}",
        f"Content-Type: {rng.choice(KINDS if odd(0.2) else KINDS[:3])}",
        "Transfer-Encoding: chunked" if odd(0.05) else f"Content-Length: {length}",
        "Connection: close",
    ]
    if odd(0.1):
        lines.append(f"Content-Encoding: {rng.choice(['gzip', 'br', 'identity', ''])}")
    if odd(0.2):
        lines.append(f"{rng.choice(NAMES)}: {rng.choice(ODD)}")
    if odd(0.05):
        rng.shuffle(lines)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _mutated(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, cut out or doubled."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 5)):
        at = rng.randint(0, len(found))
        if rng.random() < 0.5:
            found[at : at + 1] = bytes([rng.randint(0, 255)])
        elif rng.random() < 0.5:
            del found[at : at + rng.randint(1, 10)]
        else:
            found[at:at] = found[at : at + rng.randint(1, 10)]
    return bytes(found)
