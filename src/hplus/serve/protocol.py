"""The protocol of uvicorn with limits: of connections, of heads of requests, and of waiting."""

from __future__ import annotations

import asyncio
import json
import socket
from asyncio.events import TimerHandle

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

MOST_CONNECTIONS = 2048
"""Connections that are open at a time."""

MOST_HEAD_BYTES, MOST_HEADERS = 2**15, 100
"""Bytes of the first line and the headers of a request, and how many headers there may be."""

HEAD_SECONDS, BODY_SECONDS = 10.0, 30.0
"""How long the head of a request may take to come, and then its body."""


class GuardedProtocol(HttpToolsProtocol):
    """A connection that is closed when it asks for too much, or keeps the service waiting."""

    head_seconds, body_seconds = HEAD_SECONDS, BODY_SECONDS
    most_connections = MOST_CONNECTIONS

    _timer: TimerHandle | None = None
    _in_head, _head_bytes, _headers, _over = True, 0, 0, False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or refuse it if there are too many."""
        super().connection_made(transport)
        # asyncio does so itself only if it has made the socket that listens
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > self.most_connections:
            self._end(503, "too many connections are open: try again later.")
        else:
            self._wait(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._wait(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read some bytes, unless the connection has been refused."""
        if self._over:
            return
        super().data_received(data)
        if self._in_head and not self._over:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._end(431, f"headers must have at most {MOST_HEAD_BYTES} bytes.")

    def on_message_begin(self) -> None:
        """Wait for the head of a request."""
        super().on_message_begin()
        self._in_head, self._head_bytes, self._headers = True, 0, 0
        self.scope["hplus.abort"] = self.abort  # type: ignore[typeddict-unknown-key]
        self._wait(self.head_seconds)

    def on_url(self, url: bytes) -> None:
        """Part of the first line."""
        self._head_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._head_bytes += len(name) + len(value) + 4
        self._headers += 1
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Hand the request over, and wait for its body."""
        self._in_head = False
        if self._head_bytes > MOST_HEAD_BYTES or self._headers > MOST_HEADERS:
            self._end(431, f"headers must be at most {MOST_HEADERS}, of {MOST_HEAD_BYTES} bytes.")
            return
        self._head_bytes = 0
        self._wait(self.body_seconds)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Part of the body."""
        if not self._over:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete: it is no longer the client who keeps anyone waiting."""
        self._wait(None)
        if not self._over:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._end(400, "the request is not valid HTTP.")

    def abort(self) -> None:
        """Close the connection without waiting for what was not sent yet."""
        self.transport.abort()

    def _wait(self, seconds: float | None) -> None:
        """Begin to wait for the client for so long, or stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        self._end(408, "the request took too long to come.")

    def _end(self, status: int, reason: str) -> None:
        """Answer, unless an answer has begun, and close the connection."""
        self._over = True
        self._wait(None)
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            body = json.dumps({"error": reason}).encode()
            head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            head += "connection: close\r\n\r\n"
            self.transport.write(STATUS_LINE[status] + head.encode() + body)
        self.transport.close()
