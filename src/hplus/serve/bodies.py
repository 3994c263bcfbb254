"""Bodies of requests, read within limits."""

from __future__ import annotations

from fastapi import Request

from hplus.serve.parsing import MOST_BODY_BYTES, BadBodyError, decompressed

MOST_BYTES_IN_FLIGHT = 2**27
"""Bytes of all bodies that are being read at a time."""


class GoneError(Exception):
    """The client has gone before its body was complete."""


class BodyReader:
    """Reads bodies, all of which together have at most so many bytes in memory."""

    def __init__(self, most: int = MOST_BODY_BYTES) -> None:
        self.most, self.in_flight = most, 0

    async def read(self, request: Request) -> bytes:
        """The body of a request, decompressed."""
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip"):
            raise BadBodyError(
                415, f"Content-Encoding must be gzip or left out, got {encoding!r:.40}."
            )
        announced = request.headers.get("content-length", "0")
        if announced.isdigit() and int(announced) > self.most:
            raise BadBodyError(413, self._too_large)
        body = await self._whole(request)
        return decompressed(body, self.most) if encoding == "gzip" else body

    @property
    def _too_large(self) -> str:
        return f"a body must have at most {self.most} bytes: send several posts."

    async def _whole(self, request: Request) -> bytes:
        pieces, size = list[bytes](), 0
        try:
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise GoneError
                piece = message.get("body", b"")
                pieces.append(piece)
                size += len(piece)
                self.in_flight += len(piece)
                if size > self.most:
                    raise BadBodyError(413, self._too_large)
                if self.in_flight > MOST_BYTES_IN_FLIGHT:
                    raise BadBodyError(429, "too many bodies are being sent: try again later.")
                if not message.get("more_body", False):
                    return b"".join(pieces)
        finally:
            self.in_flight -= size
