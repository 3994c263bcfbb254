"""What a stranger, a slow client or a malformed request can do to the service: nothing."""

import asyncio
import gzip
import random
import re
import socket
from contextlib import ExitStack, closing

import pytest
from serving_kit import JSON_LINES, read_all, running, until, until_text

from hplus.serve import protocol
from hplus.serve.guard import Guard
from hplus.serve.metrics import Metrics
from hplus.serve.parsing import MOST_BODY_BYTES
from hplus.serve.streaming_news import NewsResponse
from hplus.serve.subscribers import Subscribers
from hplus.serve.tokens import Tokens, read_tokens, tokens_of

READ, WRITE = "r" * 32, "w" * 32
LINE = '{"x": 0.1, "y": 0.2}\n'
HEAD = "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A client of a service with one token for reading and one for writing."""
    tokens = tokens_of([("read", READ), ("write", WRITE)])
    with running(tmp_path_factory.mktemp("guarded"), tokens) as client:
        yield client


def statuses(data):
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]


def paths(client):
    """All that the service answers, with a method."""
    found = client.ask("GET", "/v1/openapi.json", Authorization=f"Bearer {READ}")[1]["paths"]
    listed = [(method.upper(), path) for path, ways in found.items() for method in ways]
    return [*listed, ("GET", "/v1/openapi.json")]


@pytest.mark.parametrize("given", [None, "Bearer ", "Bearer x", f"Basic {READ}", f"Bearer {READ}x"])
def test_every_address_needs_a_token_but_for_health(guarded, given):
    headers = {} if given is None else {"Authorization": given}
    for method, path in paths(guarded):
        public = path in ("/healthz", "/readyz")
        status, found, answer = guarded.ask(method, path, **headers)
        assert status == (200 if public else 401), path
        assert public or (found["error"] and answer["WWW-Authenticate"].startswith("Bearer"))


def test_a_token_for_reading_cannot_write_and_the_other_way_round(guarded):
    assert guarded.post(LINE, Authorization=f"Bearer {READ}")[0] == 403
    assert guarded.post(LINE, Authorization=f"Bearer {WRITE}")[0] == 200
    assert guarded.ask("GET", "/v1/status", Authorization=f"Bearer {WRITE}")[0] == 403
    assert guarded.ask("GET", "/v1/status", Authorization=f"bearer {READ}")[0] == 200
    assert guarded.ask("POST", "/v1/expect", "{}", Authorization=f"Bearer {READ}")[0] == 503
    assert guarded.ask("POST", "/v1/anything", "{}", Authorization=f"Bearer {READ}")[0] == 403
    assert guarded.ask("GET", "/v1/status", Cookie=f"hplus-token={READ}")[0] == 200


@pytest.mark.parametrize(
    "path",
    ["//v1/status", "/v1//status", "/v1/status/", "/v1/../v1/status", "/%2e%2e/v1/status",
     "/v1/status.", "/V1/status", "/healthz/../v1/status", "/healthz/..%2fv1/status",
     "/v1/%73tatus", "/../../../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/healthz%00"],
)  # fmt: skip
def test_no_spelling_of_a_path_leads_past_the_token_or_to_a_file(guarded, serving, path):
    ask = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    assert statuses(guarded.send(ask))[0] in (400, 401)
    found = serving.send(ask)
    assert statuses(found)[0] in (200, 307, 400, 404)
    assert b"root:" not in found


def test_tokens_come_from_a_file_and_the_environment(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# who\nread {READ}\nboth {'b' * 32}\n")
    tokens = read_tokens(str(path), {"HPLUS_WRITE_TOKEN": WRITE})
    expected = {READ: (0, 403), WRITE: (403, 0), "b" * 32: (0, 0), "": (401, 401), "é": (401, 401)}
    for token, found in expected.items():
        assert (tokens.refusal(token, "read"), tokens.refusal(token, "write")) == found
    assert not Tokens()
    assert not read_tokens(None, {})
    for bad in ("read short", "admin " + READ, READ, ""):
        path.write_text(bad)
        with pytest.raises(ValueError, match=r"token|lines"):
            read_tokens(str(path), {})


def test_tokens_are_not_repeated_in_answers_or_logs(guarded, capfd):
    answers = [guarded.ask("GET", f"/v1/status?token={READ}", Authorization=f"Bearer {READ}x")]
    answers.append(guarded.ask("GET", "/v1/nothing", Authorization=f"Bearer {READ}"))
    assert READ not in str(answers)
    assert READ not in "".join(capfd.readouterr())


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


def test_idle_connections_keep_nobody_out(serving):
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(closing(serving.connected()))
        assert serving.post(LINE)[0] == 200


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
    asyncio.run(Guard(app, Tokens(), Metrics(None))(scope, None, send))
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
