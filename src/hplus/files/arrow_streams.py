"""Streams of Arrow record batches in the bytes of a file or a pipe (Arrow IPC, Feather)."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hplus.files.chunked_table import Table
from hplus.files.conditions import Condition, Tally
from hplus.files.extras import arrow
from hplus.files.feeds import Feed, reading
from hplus.files.rows import Chunk
from hplus.files.typed_tables import BatchReader

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STREAM_START, FILE_START = b"\xff\xff\xff\xff", b"ARROW1\x00\x00"
"""The first bytes of a stream of record batches, and those that a file has before its stream."""


def is_arrow(start: bytes) -> bool:
    """Do the bytes of record batches begin like this?"""
    return start.startswith((STREAM_START, FILE_START))


class _Bytes(io.RawIOBase):
    """The bytes of a feed, for readers that expect a file."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = None
        while data is None:
            data = self._feed.read(len(view))
        view[: len(data)] = data
        return len(data)


class ArrowReader:
    """Reads columns of record batches, as they arrive; only a second pass opens a file again."""

    def __init__(self, feed: Feed) -> None:
        self._path, self._opened = feed.path, [_batches(feed)]
        self.names, self.kinds = self._opened[0].names, self._opened[0].kinds

    def __call__(self, wanted: list[str], tally: Tally, where: Condition | None) -> Iterator[Chunk]:
        """Chunks of some columns."""
        batches = self._opened.pop() if self._opened else _batches(Feed(self._path))
        yield from batches(wanted, tally, where)


def arrow_table(feed: Feed) -> Table:
    """The table in the record batches of an open file or pipe."""
    reader = ArrowReader(feed)
    return Table(feed.name, reader.names, reader, kinds=reader.kinds)


def _batches(feed: Feed) -> BatchReader:
    bytes_of = io.BufferedReader(_Bytes(feed))
    with reading(feed.name):
        if feed.peek().startswith(FILE_START):
            bytes_of.read(len(FILE_START))
        return BatchReader(arrow().ipc.open_stream(bytes_of), feed.name)
