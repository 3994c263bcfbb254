"""Who may do what: tokens for reading and for writing, at every address and in any spelling."""

import hmac

import pytest
from asgi_kit import AppClient
from serving_kit import FRAME, running, statuses

from hplus.serve.live_app import live_app, watch_of
from hplus.serve.opening import opened_store
from hplus.serve.page_routes import page_files
from hplus.serve.service import Service
from hplus.serve.tokens import Tokens, read_tokens, tokens_of
from hplus.studies.streams import StreamStudy

READ, WRITE = "r" * 32, "w" * 32
PAGE = [f"/v1/page/{name}" for name in ("view", "picture", "recent", "history", "spots")]
LINE = '{"x": 0.1, "y": 0.2}\n'


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A client of a service with one token for reading and one for writing."""
    tokens = tokens_of([("read", READ), ("write", WRITE)])
    with running(tmp_path_factory.mktemp("guarded"), tokens) as client:
        yield client


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
        said = "not known" if given and given.startswith("Bearer") and given[7:] else "needed"
        assert public or said in found["error"]
        assert public or answer["WWW-Authenticate"].startswith("Bearer")


def test_a_token_for_reading_cannot_write_and_the_other_way_round(guarded):
    status, found = guarded.post(LINE, Authorization=f"Bearer {READ}")
    assert (status, found["error"][:33]) == (403, "this token is not for writing: us")
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


@pytest.mark.parametrize("given", ["", "x", READ, WRITE, READ[:-1] + "x"])
def test_every_token_is_compared_in_constant_time_whatever_was_given(monkeypatch, given):
    compared, compare = [], hmac.compare_digest

    def compare_digest(a, b):
        compared.append((len(a), len(b)))
        return compare(a, b)

    monkeypatch.setattr("hplus.serve.tokens.hmac.compare_digest", compare_digest)
    tokens_of([("read", READ), ("write", WRITE), ("both", "b" * 32)]).refusal(given, "read")
    assert compared == [(32, 32)] * 4


def test_every_address_of_the_page_that_holds_data_needs_a_token(tmp_path):
    tokens = tokens_of([("read", READ), ("write", WRITE)])
    with opened_store(tmp_path, StreamStudy(FRAME).begin()) as store:
        watch = watch_of(Service(store, learns=False), tmp_path)
        app = live_app(watch, tokens)
        for path in ("/v1/alerts", "/v1/alerts/alert-1/acknowledge", *PAGE):
            for method in ("GET", "POST", "HEAD"):
                assert AppClient(app).ask(method, path).status_code == 401, path
        for path in page_files():
            assert AppClient(app).get(path).status_code == 200, path
        watch.log.close()
