"""PostLog: frames that are appended and synced, in files that follow one another.

A frame is a group of posts with its length, its offset and a checksum. One frame is synced before
the next is written, so that a crash can only tear the last one, and a frame that is damaged before
an intact one was damaged later. Files are named by their number and the offset of their first
frame; what a file holds beyond the start of the next one is what a crash left, and is ignored.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple, final

from hplus.serve.disk import Disk, write_all

FRAME = struct.Struct("<4sIQI")
MAGIC = b"h+1\n"
"""What every frame begins with."""

MOST_SEGMENT_BYTES = 2**26
"""Bytes after which the next frame goes to a new file."""

SEGMENT = re.compile(r"log-(\d{8})-(\d{20})\.posts")


class Segment(NamedTuple):
    """A file of the log: its number, and the offset of its first frame."""

    number: int
    start: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"log-{self.number:08d}-{self.start:020d}.posts"


class LogError(ValueError):
    """The log cannot be read to its end."""


@final
class PostLog:
    """Frames in the files of a disk; `end` is the offset after the last one."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        found = filter(None, (SEGMENT.fullmatch(name) for name in disk.names()))
        self.segments = sorted(Segment(int(m[1]), int(m[2])) for m in found)
        self.end, self.torn = 0, 0
        self._handle: int | None = None
        self._size = 0

    @property
    def start(self) -> int:
        """The offset of the first frame that is kept."""
        return self.segments[0].start if self.segments else 0

    def replay(self, position: int) -> Iterator[tuple[int, bytes]]:
        """The frames from a position on, each with the offset of its end; `end` is set by this."""
        self.end = position
        if self.segments and self.start > position:
            raise LogError(
                f"the log begins at offset {self.start}, after that of the snapshot, {position}: "
                "restore the files log-*.posts from a backup."
            )
        for i, segment in enumerate(self.segments):
            following = self.segments[i + 1].start if i + 1 < len(self.segments) else None
            if following is not None and following <= self.end:
                continue
            data = self._disk.read(segment.name)
            yield from self._frames(segment, data, following)
            if following is not None and self.end != following:
                raise LogError(
                    f"{segment.name} is damaged at offset {self.end}: restore it from a backup."
                )

    def append(self, payload: bytes) -> int:
        """Write a frame and sync it; the offset of its end.

        If writing fails, nothing has changed. If syncing fails, what is on disk is unknown: the
        log must be opened again before it is used.
        """
        if self._handle is None:
            self._begin_segment()
        assert self._handle is not None
        head = FRAME.pack(MAGIC, len(payload), self.end, 0)[:-4]
        frame = head + struct.pack("<I", zlib.crc32(payload, zlib.crc32(head))) + payload
        try:
            write_all(self._disk, self._handle, memoryview(frame))
        except OSError:
            self._cut()
            raise
        try:
            self._disk.sync(self._handle)
        except OSError as error:
            raise SyncError(str(error)) from error
        self.end, self._size = self.end + len(frame), self._size + len(frame)
        if self._size >= MOST_SEGMENT_BYTES:
            self.close()
        return self.end

    def drop_before(self, position: int) -> None:
        """Remove files that hold nothing from a position on."""
        kept = [i for i, following in enumerate(self.segments[1:]) if following.start > position]
        first = kept[0] if kept else max(len(self.segments) - 1, 0)
        gone = self.segments[:first]
        del self.segments[:first]  # in place: another thread may append one
        for segment in gone:
            self._disk.remove(segment.name)

    def close(self) -> None:
        """Give up the file that is written to; the next frame begins another one."""
        if self._handle is not None:
            self._disk.close(self._handle)
            self._handle = None

    def _cut(self) -> None:
        """Undo a frame that was written in part."""
        assert self._handle is not None
        try:
            self._disk.truncate(self._handle, self._size)
        except OSError as error:
            raise SyncError(str(error)) from error

    def _begin_segment(self) -> None:
        number = self.segments[-1].number + 1 if self.segments else 0
        segment = Segment(number, self.end)
        handle = self._disk.open(segment.name)
        try:
            self._disk.sync_names()
        except OSError as error:
            self._disk.close(handle)
            raise SyncError(str(error)) from error
        self._handle, self._size = handle, 0
        self.segments.append(segment)

    def _frames(
        self, segment: Segment, data: bytes, following: int | None
    ) -> Iterator[tuple[int, bytes]]:
        """The frames of a file from `end` on, before the start of the next file."""
        at = self.end - segment.start
        while following is None or self.end < following:
            payload = _payload(data, at, self.end)
            if payload is None:
                break
            at += FRAME.size + len(payload)
            self.end = segment.start + at
            yield self.end, payload
        if following is None and at < len(data):
            self._check_tail(segment, data, at)
            self.torn = len(data) - at

    def _check_tail(self, segment: Segment, data: bytes, at: int) -> None:
        """Raise if an intact frame follows a damaged one, which is no trace of a crash."""
        place = data.find(MAGIC, at + 1)
        while place >= 0:
            if _payload(data, place, segment.start + place) is not None:
                raise LogError(
                    f"{segment.name} is damaged at offset {self.end}, before frames that are "
                    "intact: restore it from a backup."
                )
            place = data.find(MAGIC, place + 1)


class SyncError(OSError):
    """What was written may or may not be on disk."""


def _payload(data: bytes, at: int, offset: int) -> bytes | None:
    """The payload of an intact frame, None if there is none."""
    if at < 0 or at + FRAME.size > len(data):
        return None
    magic, length, own, checksum = FRAME.unpack_from(data, at)
    begin = at + FRAME.size
    if magic != MAGIC or own != offset or begin + length > len(data):
        return None
    payload = data[begin : begin + length]
    head = data[at : begin - 4]
    return payload if zlib.crc32(payload, zlib.crc32(head)) == checksum else None
