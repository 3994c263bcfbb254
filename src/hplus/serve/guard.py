"""Guard: what every request must pass before it is looked at, and what every answer says."""

from __future__ import annotations

import asyncio
import json
import time
from http.cookies import CookieError, SimpleCookie

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hplus.serve.metrics import Metrics
from hplus.serve.tokens import READ, WRITE, Tokens

PUBLIC = ("/healthz", "/readyz")
"""Paths that need no token."""

QUESTIONS = ("/v1/expect",)
"""Paths that may be posted to by who can read."""

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""What a browser may call this machine; others could be names that point to it by deceit."""

USES = {READ: "reading", WRITE: "writing"}
"""What tokens are for, in words."""

READ_SECONDS = 30.0
"""How long a client may take to read a part of an answer."""

COOKIE = "hplus-token"
"""A cookie that stands for the header, for what cannot send headers."""

SAFE_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
]


class Guard:
    """Checks the token and the host of requests, and counts and times their answers."""

    def __init__(
        self, app: ASGIApp, tokens: Tokens, metrics: Metrics, public: tuple[str, ...] = PUBLIC
    ) -> None:
        self.app, self.tokens, self.metrics, self.public = app, tokens, metrics, public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *SAFE_HEADERS]
            try:
                async with asyncio.timeout(READ_SECONDS):
                    await send(message)
            except TimeoutError:
                scope["hplus.abort"]()

        refused = self._refused(scope)
        try:
            if refused:
                await _refuse(answer, *refused)
            else:
                await self.app(scope, receive, answer)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.answered(route, status, time.perf_counter() - began)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the reason, if a request is refused."""
        headers = dict(scope["headers"])
        if not self.tokens:
            host = headers.get(b"host", b"").decode("latin-1").rpartition(":")
            name = host[0] if host[1] and host[2].isdigit() else "".join(host)
            if name.lower() not in LOCAL_NAMES:
                return 421, "without tokens, the service answers only to localhost."
        if scope["path"] in self.public:
            return None
        reads = scope["method"] in ("GET", "HEAD") or scope["path"] in QUESTIONS
        use = READ if reads else WRITE
        given = presented(headers)
        status = self.tokens.refusal(given, use)
        if status == 401:
            said = "this token is not known" if given else "a token is needed"
            return 401, f"{said}: send Authorization: Bearer TOKEN."
        return (403, f"this token is not for {USES[use]}: use another one.") if status else None


def presented(headers: dict[bytes, bytes]) -> str:
    """The token of a request, "" if it has none."""
    kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if kind.lower() == "bearer":
        return token.strip()
    try:
        cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"),
               (b"content-length", str(len(body)).encode())]  # fmt: skip
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="hplus"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
