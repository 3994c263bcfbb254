"""What a stranger, a slow client or a malformed request can do to the service: nothing."""

import asyncio
import gzip
import random
import re
import resource
import socket
from contextlib import ExitStack, closing
from pathlib import Path
from time import monotonic, sleep

import pytest
from serving_kit import JSON_LINES, read_all, running, statuses, until, until_text

from hplus.serve import protocol
from hplus.serve.guard import Guard
from hplus.serve.metrics import Metrics
from hplus.serve.parsing import MOST_BODY_BYTES
from hplus.serve.streaming_news import NewsResponse
from hplus.serve.subscribers import Subscribers
from hplus.serve.tokens import NO_TOKENS

LINE = '{"x": 0.1, "y": 0.2}\n'
HEAD = "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"


def test_without_tokens_only_names_of_this_machine_are_answered(serving):
    hosts = {"localhost": 200, "127.0.0.1:80": 200, "[::1]:80": 200, "": 421}
    hosts |= {"evil.example": 421, "localhost.evil.example:80": 421}
    for host, status in hosts.items():
        ask = f"GET /v1/status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        assert statuses(serving.send(ask.encode())) == [status], host


def test_other_sites_are_not_let_in(serving):
    _, _, headers = serving.ask("OPTIONS", "/v1/status", Origin="http://evil.example")
    _, _, more = serving.ask("GET", "/v1/status", Origin="http://evil.example")
    for found in (headers, more):
        assert not [name for name in found if name.lower().startswith("access-control")]
        assert found["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/v1/events", 405), ("DELETE", "/v1/status", 405),
     ("PUT", "/v1/events", 405), ("TRACE", "/", 404)],
)  # fmt: skip
def test_what_is_not_there_is_said_in_one_sentence(serving, method, path, status):
    found, answer, _ = serving.ask(method, path)
    assert (found, list(answer)) == (status, ["error"])


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ("", {"Content_Type": "text/plain"}, 415),
        ("", {"Content_Type": ""}, 415),
        ("", {"Content_Encoding": "br"}, 415),
        ("", {"Content_Encoding": "gzip, gzip"}, 415),
        ("", {"Content_Encoding": "gzip"}, 422),
        ("?source=a", {}, 422),
        ("?sequence=1", {}, 422),
        ("?source=a&sequence=-1", {}, 422),
        ("?source=a&sequence=1.5", {}, 422),
        ("?source=a&sequence=" + "9" * 30, {}, 422),
        ("?source=" + "a" * 201 + "&sequence=1", {}, 422),
        ("", {"Idempotency_Key": "k" * 256}, 422),
    ],
)
def test_a_post_that_cannot_be_taken_is_refused_and_nothing_is_kept(
    serving, query, headers, status
):
    before = serving.service.events
    found, answer = serving.post(LINE, query, **headers)
    assert (found, list(answer)) == (status, ["error"])
    assert serving.service.events == before


def test_a_post_without_any_event_is_refused_with_its_lines(serving):
    found, answer = serving.post('{"x": 9, "y": 9}\n')
    assert found == 422
    assert answer["rejected"] == [{"line": 1, "reason": "outside the window"}]


def test_large_bodies_are_refused_announced_or_not_and_also_compressed(serving):
    announced = f"{HEAD}Content-Length: {MOST_BODY_BYTES + 1}\r\n\r\n"
    assert statuses(serving.send(announced.encode(), 0.3)) == [413]
    with closing(serving.connected(0.5)) as connection:
        connection.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        try:
            for _ in range(MOST_BODY_BYTES // 0x100000 + 2):
                connection.sendall(piece)
        except OSError:
            pass  # the answer came before the end
        assert statuses(read_all(connection)) in ([413], [])
    bomb = gzip.compress(bytes(2 * MOST_BODY_BYTES))
    assert serving.post(bomb, Content_Encoding="gzip")[0] == 413


def test_long_heads_are_refused(serving):
    fits = "X-A: " + "a" * 30_000
    for extra, status in (
        (fits, 200),
        ("X-A: " + "a" * 40_000, 431),
        ("\r\n".join(f"X-{i}: a" for i in range(150)), 431),
    ):
        ask = f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{extra}\r\n\r\n"
        assert statuses(serving.send(ask.encode())) == [status]
    endless = b"GET /" + b"a" * 500_000
    assert statuses(serving.send(endless)) in ([431], [])


@pytest.mark.usefixtures("quick")
def test_who_sends_slowly_is_cut_off(tmp_path):
    with running(tmp_path) as client:
        assert statuses(client.send(b"")) == [408]
        assert statuses(client.send(b"GET / HTTP/1.1\r\nHost: loc")) == [408]
        assert statuses(client.send(f"{HEAD}Content-Length: 100\r\n\r\nabc".encode())) == [408]
        assert client.post(LINE)[0] == 200
        assert client.service.events == 1


def drip(connection, seconds):
    """Send a byte now and then, for so long."""
    end = monotonic() + seconds
    while monotonic() < end:
        connection.sendall(b"x")
        sleep(0.02)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("head", ["GET / HTTP/1.1\r\nX: ", f"{HEAD}Content-Length: 99\r\n\r\n"])
def test_who_sends_a_byte_now_and_then_is_cut_off_too(tmp_path, head):
    with running(tmp_path) as client, closing(client.connected()) as connection:
        connection.sendall(head.encode())
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            drip(connection, 5.0)


def test_a_thousand_idle_connections_keep_nobody_out(serving):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1000):
            stack.enter_context(closing(serving.connected()))
        assert serving.post(LINE)[0] == 200


def test_connections_that_ask_nothing_more_are_closed(tmp_path, monkeypatch):
    monkeypatch.setattr("hplus.serve.app.KEEP_ALIVE_SECONDS", 0.2)
    with running(tmp_path) as client, closing(client.connected(5.0)) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        began = monotonic()
        assert statuses(read_all(connection)) == [200]
        assert monotonic() - began < 4.0


def test_nothing_that_is_sent_is_run_or_unpickled():
    for path in Path(protocol.__file__).parent.glob("*.py"):
        assert not re.search(r"pickle|marshal|\b(eval|exec)\(", path.read_text("utf-8")), path


def test_a_bug_is_answered_without_a_trace(serving, monkeypatch):
    monkeypatch.setattr("hplus.serve.routes.status_of", lambda _: 1 / 0)
    status, found, _ = serving.ask("GET", "/v1/status")
    assert (status, list(found)) == (500, ["error"])
    assert "bug in hplus" in found["error"]
    assert "Error" not in found["error"]


def test_answers_do_not_wait_for_a_packet_to_be_full(serving, monkeypatch):
    found, made = [], protocol.GuardedProtocol.connection_made

    def connection_made(self, transport):
        made(self, transport)
        opened = transport.get_extra_info("socket")
        found.append(opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(protocol.GuardedProtocol, "connection_made", connection_made)
    serving.ask("GET", "/healthz")
    assert found == [1]


def test_too_many_connections_are_refused(serving, monkeypatch):
    until(lambda: serving.ask("GET", "/healthz")[0] == 200)
    monkeypatch.setattr(protocol.GuardedProtocol, "most_connections", 0)
    assert statuses(serving.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")) == [503]


def test_too_many_waiting_posts_are_refused_with_a_time_to_try_again(serving, monkeypatch):
    monkeypatch.setattr("hplus.serve.service.MOST_QUEUED_POSTS", 0)
    status, _, headers = serving.ask("POST", "/v1/events", LINE, Content_Type=JSON_LINES)
    assert (status, headers["Retry-After"]) == (429, "1")


def test_too_many_bytes_on_their_way_are_refused(serving, monkeypatch):
    monkeypatch.setattr("hplus.serve.bodies.MOST_BYTES_IN_FLIGHT", 10)
    assert serving.post(LINE)[0] == 429


def test_too_many_streams_are_refused_and_slow_ones_dropped(serving, monkeypatch):
    monkeypatch.setattr("hplus.serve.subscribers.MOST_SUBSCRIBERS", 1)
    ask = b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with closing(serving.connected(0.5)) as connection:
        connection.sendall(ask)
        until_text(connection, b"event: status")
        assert serving.ask("GET", "/v1/stream")[0] == 503
        monkeypatch.setattr("hplus.serve.subscribers.MOST_QUEUED", 0)
        before = serving.service.subscribers.dropped
        serving.post(LINE)
        assert b"event: events" not in read_all(connection)
    assert serving.service.subscribers.dropped == before + 1
    until(lambda: len(serving.service.subscribers) == 0)


def test_a_stream_whose_client_does_not_read_is_cut_off(monkeypatch):
    monkeypatch.setattr("hplus.serve.streaming_news.SEND_SECONDS", 0.02)
    cut = []

    async def send(message):
        if message["type"] == "http.response.body":
            await asyncio.sleep(60)

    async def receive():
        await asyncio.sleep(60)

    answer = NewsResponse(Subscribers(), {}, None)
    asyncio.run(answer({"hplus.abort": lambda: cut.append(1)}, receive, send))
    assert cut == [1]


def test_an_answer_that_is_not_read_is_cut_off(monkeypatch):
    monkeypatch.setattr("hplus.serve.guard.READ_SECONDS", 0.02)
    cut = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})

    async def send(message):
        await asyncio.sleep(60)

    scope = {
        "type": "http",
        "path": "/healthz",
        "method": "GET",
        "headers": [(b"host", b"localhost")],
    }
    scope["hplus.abort"] = lambda: cut.append(1)
    asyncio.run(Guard(app, NO_TOKENS, Metrics(None))(scope, None, send))
    assert cut == [1]


SMUGGLED = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length : 5\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: chunked\r\n folded: x\r\n",
        "X: a\rContent-Length: 5\r\n",
        "X\x00: a\r\n",
    ],
)
def test_requests_with_two_readings_are_refused_and_hide_no_other(serving, head):
    data = f"{HEAD}{head}\r\n0\r\n\r\n{SMUGGLED}".encode()
    found = serving.send(data, 2.0)
    assert set(statuses(found)) <= {400, 408, 422}
    assert b'"events"' not in found


@pytest.mark.parametrize("seed", range(4))
def test_malformed_requests_are_never_a_fault_of_the_service(serving, seed):
    from _malformed import malformed

    rng = random.Random(seed)
    for _ in range(40):
        found = statuses(serving.send(malformed(rng), 0.3))
        assert all(code < 500 or code in (503, 507) for code in found)
    assert serving.ask("GET", "/healthz")[0] == 200
