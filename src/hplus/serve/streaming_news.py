"""NewsResponse: server-sent events, whose client is dropped if it does not read them."""

from __future__ import annotations

import asyncio
import json

from fastapi import Response
from starlette.types import Receive, Scope, Send

from hplus.serve.subscribers import Subscriber, Subscribers, TooManyError
from hplus.storage.files import Json

HEARTBEAT_SECONDS = 15.0
"""A comment is sent if there are no news for so long."""

SEND_SECONDS = 10.0
"""How long a client may take to read what was sent."""


class NewsResponse(Response):
    """The news of a service, as long as the client reads them."""

    media_type = "text/event-stream"

    def __init__(
        self, subscribers: Subscribers, first: Json, after: int | None, status_code: int = 200
    ) -> None:
        super().__init__(status_code=status_code)
        self.subscribers, self.first, self.after = subscribers, first, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        subscribers = self.subscribers
        try:
            with subscribers.subscribe(self.after) as subscriber:
                headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                first = _event(subscribers.number, "status", self.first)
                gone = asyncio.ensure_future(_gone(receive))
                gone.add_done_callback(lambda _: subscriber.wake())
                try:
                    await self._tell(subscriber, first, send, gone)
                finally:
                    gone.cancel()
        except TooManyError as error:
            body = json.dumps({"error": str(error)}).encode()
            head = [(b"content-type", b"application/json"), (b"retry-after", b"10")]
            await send({"type": "http.response.start", "status": 503, "headers": head})
            await send({"type": "http.response.body", "body": body})
        except TimeoutError:
            scope["hplus.abort"]()

    async def _tell(
        self, subscriber: Subscriber, first: bytes, send: Send, gone: asyncio.Future[None]
    ) -> None:
        """Send what comes, until the client is gone or too slow, or the service stops."""
        body: bytes | None = first
        while not gone.done() and body is not None:
            more = {"type": "http.response.body", "body": body, "more_body": True}
            await asyncio.wait_for(send(more), SEND_SECONDS)
            news = await subscriber.next(HEARTBEAT_SECONDS)
            if subscriber.lagging and news is None:
                body = None
            elif news is None:
                body = b": still here\n\n"
            else:
                body = _event(news.number, news.event, news.data)
        await asyncio.wait_for(send({"type": "http.response.body", "body": b""}), SEND_SECONDS)


def _event(number: int, event: str, data: Json) -> bytes:
    text = json.dumps(data, separators=(",", ":"))
    return f"id: {number}\nevent: {event}\ndata: {text}\n\n".encode()


async def _gone(receive: Receive) -> None:
    """Return when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
