"""Webhook: alerts sent to an address, signed, and sent again until they arrive."""

from __future__ import annotations

import hashlib
import hmac
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from typing import final
from urllib.parse import urlsplit

from hplus.serve.alert_log import AlertLog

FIRST_RETRY, LONGEST_RETRY = 1.0, 300.0
"""Seconds until a message is sent again, which doubles each time, and at most."""

SEND_TIMEOUT = 10.0
"""Seconds that an address has to answer."""

IDLE_SECONDS = 0.5
"""How often to look for a message to send."""

Sender = Callable[[str, bytes, dict[str, str]], bool]
"""Posts a body with headers to an address; did it arrive?"""


def signature(secret: str, at: int, body: bytes) -> str:
    """HMAC-SHA256 of the time and the body, in hexadecimal digits."""
    text = str(at).encode() + b"." + body
    return hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


def check_address(url: str) -> str:
    """The address, if it is one of HTTP without a password."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.password:
        raise ValueError(f"a webhook must look like https://example.org/alerts, got {url!r}.")
    return url


@final
class Webhook:
    """Sends what waits in a log, in order, and notes what has arrived.

    A message has an id that stays the same when it is sent again. It has arrived if the address
    answers with a status from 200 to 299.
    """

    def __init__(
        self, log: AlertLog, url: str, secret: str = "", send: Sender | None = None
    ) -> None:
        self._log, self._url, self._secret = log, check_address(url), secret
        self._send = send or post
        self.due, self.failures = 0.0, 0

    def attempt(self, now: float) -> float:
        """Send what is due at a time in seconds since 1970, and return when to try again."""
        while now >= self.due and (message := self._log.waiting()) is not None:
            name, content = message
            body = json.dumps({"id": name, **content}, separators=(",", ":")).encode()
            if self._send(self._url, body, self._headers(name, body, int(now))):
                self._log.delivered(name)
                self.failures = 0
            else:
                self.due = now + min(FIRST_RETRY * 2.0 ** min(self.failures, 60), LONGEST_RETRY)
                self.failures += 1
        return max(self.due, now + IDLE_SECONDS)

    def _headers(self, name: str, body: bytes, at: int) -> dict[str, str]:
        found = {"Content-Type": "application/json", "X-Hplus-Id": name}
        if self._secret:
            signed = signature(self._secret, at, body)
            found["X-Hplus-Signature"] = f"t={at},v1={signed}"
        return found


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An address that answers with another one has not taken the message."""

    def redirect_request(self, *_: object) -> None:
        return None


def post(url: str, body: bytes, headers: dict[str, str]) -> bool:
    """Post a body; did it arrive?"""
    request = urllib.request.Request(url, body, headers, method="POST")
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=SEND_TIMEOUT) as answer:
            return 200 <= int(answer.status) < 300
    except (OSError, HTTPException, ValueError):
        return False
