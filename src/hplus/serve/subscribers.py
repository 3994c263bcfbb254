"""Subscribers: who is told of new events and models, through queues that are never long."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, final

from hplus.storage.files import Json

MOST_QUEUED = 64
"""News that wait for a subscriber; one with more is dropped."""

MOST_REMEMBERED = 1024
"""News that can be sent again to a subscriber who comes back."""

MOST_SUBSCRIBERS = 256


class News(NamedTuple):
    """Something that happened: a number that grows, a name, and what is told."""

    number: int
    event: str
    data: Json


class TooManyError(RuntimeError):
    """No more subscribers can be served."""


class Subscriber:
    """The news that wait for one subscriber; `lagging` once there were too many."""

    def __init__(self) -> None:
        self.waiting: deque[News] = deque()
        self.lagging = False
        self._woken = asyncio.Event()

    def tell(self, news: News) -> None:
        """Add to the queue, unless it is full."""
        if len(self.waiting) >= MOST_QUEUED:
            self.lagging = True
        else:
            self.waiting.append(news)
        self._woken.set()

    def wake(self) -> None:
        """End a wait for news."""
        self._woken.set()

    def drop(self) -> None:
        """Tell no more."""
        self.lagging = True
        self.waiting.clear()
        self.wake()

    async def next(self, seconds: float) -> News | None:
        """The next news, None if there are none for so long or if the subscriber is dropped."""
        if not self.waiting and not self.lagging:
            self._woken.clear()
            try:
                await asyncio.wait_for(self._woken.wait(), seconds)
            except TimeoutError:
                return None
        return self.waiting.popleft() if self.waiting else None


@final
class Subscribers:
    """All subscribers; every method but `publish` is for the thread of the event loop."""

    def __init__(self) -> None:
        self.number, self.dropped = 0, 0
        self._all: set[Subscriber] = set()
        self._past: deque[News] = deque(maxlen=MOST_REMEMBERED)
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._all)

    def begin(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        """Tell news from now on in the thread of an event loop, with numbers after this one."""
        self._loop, self.number = loop, number

    def publish(self, event: str, data: Json) -> None:
        """Tell all subscribers, from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, event, data)

    @contextmanager
    def subscribe(self, after: int | None = None) -> Iterator[Subscriber]:
        """The news from now on, or after those with some number, as far as they are remembered."""
        if len(self._all) >= MOST_SUBSCRIBERS:
            raise TooManyError(f"at most {MOST_SUBSCRIBERS} streams are open at a time.")
        subscriber = Subscriber()
        if after is not None:
            missed = [news for news in self._past if news.number > after]
            subscriber.waiting.extend(missed[-MOST_QUEUED:])
        self._all.add(subscriber)
        try:
            yield subscriber
        finally:
            self._all.discard(subscriber)

    def close(self) -> None:
        """Drop all subscribers."""
        for subscriber in list(self._all):
            subscriber.drop()

    def _tell(self, event: str, data: Json) -> None:
        self.number += 1
        news = News(self.number, event, data)
        self._past.append(news)
        for subscriber in list(self._all):
            subscriber.tell(news)
            if subscriber.lagging:
                self._all.discard(subscriber)
                self.dropped += 1
