"""Bytes as they come: from a file, from a file that grows, or from a pipe."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path
from time import sleep
from typing import Any

from hplus.tables.lines import LONGEST
from hplus.tables.source import COMPRESSED, TableError, opened, reading

PIECE = 2**20
"""Bytes that are read at a time."""

PATIENCE = 0.2
"""Seconds after which a reader that waits says that nothing came."""


class Feed:
    """The bytes of a file, or of the standard input for "-", in pieces.

    With `follow` a file has no end: what is added to it later comes too.
    """

    def __init__(self, path: str, follow: bool = False) -> None:
        self.path, self.follow, self.is_pipe = path, follow, path == "-"
        self.name = "the standard input" if self.is_pipe else path
        self._position, self._pending = 0, b""
        self._file: Any = sys.stdin.buffer if self.is_pipe else self._open()
        if follow and not self._is_plain:
            raise ValueError(f"only a file that is not compressed can be followed, got {path}.")

    def _open(self) -> Any:
        with reading(self.path):
            with open(self.path, "rb") as file:
                start = file.read(4)
            if start == b"PAR1":
                raise TableError(
                    f"{self.path} is a Parquet file: a stream needs CSV or JSON lines."
                )
            return (
                opened(self.path) if start.startswith(tuple(COMPRESSED)) else open(self.path, "rb")
            )

    @property
    def _is_plain(self) -> bool:
        """Is it a file in which one can go anywhere?"""
        return not self.is_pipe and hasattr(self._file, "peek")

    def read(self, most: int = PIECE) -> bytes | None:
        """The next bytes; None if none came for a while, b"" at the end."""
        if self._pending:
            data, self._pending = self._pending[:most], self._pending[most:]
            return data
        if self.is_pipe:
            fd = self._file.fileno()
            ready = select.select([fd], [], [], PATIENCE)[0]
            return os.read(fd, most) if ready else None
        with reading(self.path):
            data = bytes(self._file.read(most))
        self._position += len(data)
        if data or not self.follow:
            return data
        if self._size() < self._position:
            raise TableError(f"{self.path} became shorter than what was read of it.")
        sleep(PATIENCE)
        return None

    def peek(self) -> bytes:
        """The bytes to come, as far as they are known, and at least one whole line."""
        start = b""
        while b"\n" not in start:
            data = self.read()
            if data == b"" or len(start) > LONGEST:
                raise TableError(
                    f"{self.name} is empty: a stream needs a header, or a JSON object, and lines."
                )
            start += data or b""
        self._pending = start
        return start

    def skip(self, size: int, header: str) -> None:
        """Go on after `size` bytes, refused unless that many are there, below the same header."""
        if self._is_plain and self._size() < size:
            raise self._too_short(size, self._size())
        start, left = b"", size
        while left and not (self._is_plain and b"\n" in start):
            data = self.read(min(left, PIECE))
            if data == b"":
                raise self._too_short(size, size - left)
            if data:
                start, left = start + data[: LONGEST - len(start)], left - len(data)
        if header and start.split(b"\n")[0].decode("utf-8", "replace") != header:
            raise TableError(
                f"{self.name} must begin with the header {header[:60]!r}, got "
                f"{start[:60].decode('utf-8', 'replace')!r}: give the same input or another state."
            )
        if left:
            self._file.seek(size)
            self._position = size

    def close(self) -> None:
        """Let go of the file."""
        if not self.is_pipe:
            self._file.close()

    def _size(self) -> int:
        return Path(self.path).stat().st_size

    def _too_short(self, size: int, got: int) -> TableError:
        return TableError(
            f"{self.name} must hold the {size} bytes that were taken of it before, got {got}: give "
            "the same input or another state."
        )
