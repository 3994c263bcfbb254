"""Alerts stay as they are known across restarts, and a webhook gets each message once."""

import hashlib
import hmac
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hplus.serve.alert_log import ALERTS_FILE, AlertLog
from hplus.serve.disk import FolderDisk
from hplus.serve.webhook import LONGEST_RETRY, Webhook, signature


def alert(number, end=None, name="<script>alert(1)</script>"):
    return {"id": f"alert-{number}", "end": end, "observed": 9, "place": {name: [0.0, 1.0]}}


@pytest.fixture
def disk(tmp_path):
    return FolderDisk(tmp_path)


def test_alerts_and_acknowledgements_survive_a_restart(disk):
    log = AlertLog(disk)
    assert log.tell(alert(1))
    assert not log.tell(alert(1) | {"observed": 12})
    assert log.acknowledge("alert-1", "2026-01-01 10:00")["acknowledged"] == "2026-01-01 10:00"
    assert log.acknowledge("alert-1", "2026-01-02 10:00")["acknowledged"] == "2026-01-01 10:00"
    assert log.acknowledge("alert-9", "2026-01-02 10:00") is None
    assert log.tell(alert(1, "later"))
    log.tell(alert(2))
    log.close()
    for _ in range(2):
        log = AlertLog(disk)
        newest, oldest = log.newest(10)
        assert (newest["id"], newest["acknowledged"]) == ("alert-2", None)
        assert oldest == alert(1, "later") | {"acknowledged": "2026-01-01 10:00"}
        assert log.open_ids() == ["alert-2"]
        log.close()


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_line_that_was_not_written_to_its_end_is_left_out(disk, tmp_path, cut):
    log = AlertLog(disk)
    log.tell(alert(1))
    log.tell(alert(2))
    log.close()
    path = tmp_path / ALERTS_FILE
    path.write_bytes(path.read_bytes()[:-cut])
    log = AlertLog(disk)
    assert list(log.alerts) == ["alert-1"]
    log.tell(alert(3))
    log.close()
    assert list(AlertLog(disk).alerts) == ["alert-1", "alert-3"]


@contextmanager
def receiver(answers=lambda: 200):
    """An address, and the requests that came to it."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = answers()
            if status == 200:
                got.append((dict(self.headers), body))
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/alerts", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_webhook_that_is_down_for_an_hour_gets_every_alert_once(disk):
    clock, down = 0.0, [503, 302, 500]
    with receiver(lambda: down[int(clock) % 3] if clock < 3600.0 else 200) as (url, got):
        log = AlertLog(disk, keep_outbox=True)
        webhook, tries = Webhook(log, url, "secret"), []
        while clock < 2 * 3600.0:
            if clock in (0.0, 1800.0, 3000.0, 4000.0):
                log.tell(alert(int(clock)))
            if clock == 3300.0:
                log.tell(alert(0, "ended"))
                log.close()
                log = AlertLog(disk, keep_outbox=True)  # the service is started again
                webhook = Webhook(log, url, "secret")
            if clock >= webhook.due:
                tries.append(clock)
                webhook.attempt(clock)
            clock += 100.0
        ids = [json.loads(body)["id"] for _, body in got]
        assert ids == ["alert-0-opened", "alert-1800-opened", "alert-3000-opened",
                       "alert-0-ended", "alert-4000-opened"]  # fmt: skip
        assert log.waiting() is None
        log.close()
    headers, body = got[0]
    said = dict(part.split("=") for part in headers["X-Hplus-Signature"].split(","))
    signed = hmac.new(b"secret", said["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert signed == said["v1"] == signature("secret", int(said["t"]), body)
    assert signature("other", int(said["t"]), body) != signed
    assert headers["X-Hplus-Id"] == "alert-0-opened"
    assert json.loads(body)["alert"] == alert(0)


def test_retries_wait_twice_as_long_each_time(disk):
    log, sent = AlertLog(disk, keep_outbox=True), []
    log.tell(alert(1))
    webhook = Webhook(log, "http://localhost/", send=lambda *_: bool(sent.append(1)))
    waits, now = [], 0.0
    for _ in range(12):
        webhook.attempt(now)
        waits.append(webhook.due - now)
        now = webhook.due
    assert waits[:5] == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert waits[-1] == LONGEST_RETRY
    assert len(sent) == 12
    log.close()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "example.org", "ftp://x/", "http://a:b@c/"])
def test_a_webhook_must_be_an_address_of_http(disk, url):
    log = AlertLog(disk)
    with pytest.raises(ValueError, match="webhook must look like"):
        Webhook(log, url)
    log.close()
