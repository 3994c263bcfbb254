"""Bytes of a file, of a file that grows, or of a pipe, decompressed."""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import IO, Any

from hplus.files.extras import arrow
from hplus.files.lines import MAX_LINE_BYTES

PIECE_BYTES = 2**20
"""Bytes that are read at a time by default."""

PATIENCE = 0.2
"""Seconds after which a reader that waits reports that nothing came."""

PARQUET = b"PAR1"

PIPE_NAME = "the standard input"
"""What messages call a pipe."""

COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
"""The first bytes of compressed files."""


class TableError(ValueError):
    """A file cannot be read, or does not hold what was asked for."""


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn whatever goes wrong into one sentence that names the file."""
    try:
        yield
    except TableError:
        raise
    except PermissionError as error:
        raise TableError(f"{path} cannot be read: permission denied.") from error
    except (OSError, EOFError, arrow().ArrowException) as error:
        said = " ".join(str(error).split()).split(". ")[0]
        raise TableError(f"{path} cannot be read: {said[:200].rstrip('.')}.") from error


def _widen(pipe: IO[bytes]) -> None:
    """Let a pipe hold as many bytes as are read at a time, where the system allows it."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIECE_BYTES)


class Feed:
    """The bytes of a file, or of the standard input for "-", in pieces.

    With `follow` a file has no end: bytes added to it later are read too.
    """

    def __init__(self, path: str, follow: bool = False) -> None:
        self.path, self.follow, self.is_pipe = path, follow, path == "-"
        self.name = PIPE_NAME if self.is_pipe else path
        self._position, self._pending, self.start = 0, b"", b""
        self._file: Any = sys.stdin.buffer if self.is_pipe else self._open()
        if self.is_pipe:
            _widen(self._file)
        if follow and (self.is_pipe or self._packing):
            raise ValueError(f"follow= needs a file that is not compressed, got {path}.")

    def _open(self) -> IO[bytes] | Any:
        if not Path(self.path).exists():
            raise TableError(f"{self.path} does not exist: check the name and the folder.")
        if Path(self.path).is_dir():
            raise TableError(f"{self.path} is a folder: name a file in it.")
        with reading(self.path):
            file = open(self.path, "rb")  # noqa: SIM115
            self.start = file.read(4)
            file.seek(0)
            return arrow().input_stream(file, compression=self._packing) if self._packing else file

    @property
    def _packing(self) -> str | None:
        return next((kind for magic, kind in COMPRESSED.items() if self.start.startswith(magic)),
                    None)  # fmt: skip

    def read(self, most: int = PIECE_BYTES) -> bytes | None:
        """The next bytes; None if none came for a while, b"" at the end."""
        if self._pending:
            data, self._pending = self._pending[:most], self._pending[most:]
            return data
        if self.is_pipe:
            return self._read_pipe(most)
        if self.start == PARQUET:
            raise TableError(f"{self.path} is a Parquet file: a stream needs CSV or JSON lines.")
        with reading(self.path):
            data = bytes(self._file.read(most))
        self._position += len(data)
        if data or not self.follow:
            return data
        if self._size() < self._position:
            raise TableError(f"{self.path} became shorter than the part already read.")
        sleep(PATIENCE)
        return None

    def _read_pipe(self, most: int) -> bytes | None:
        try:
            descriptor = self._file.fileno()
        except (io.UnsupportedOperation, AttributeError):  # a stand-in for the standard input
            return bytes(self._file.read(most))
        data, patience = b"", PATIENCE
        while len(data) < most and select.select([descriptor], [], [], patience)[0]:
            piece = os.read(descriptor, most - len(data))
            if not piece:  # the end, which comes again after what was read before it
                return data
            data, patience = data + piece, 0.0
        return data or None

    def peek(self) -> bytes:
        """The next bytes, without consuming them: at least a line, or all that are left."""
        start = b""
        while b"\n" not in start.lstrip() and len(start) <= MAX_LINE_BYTES:
            data = self.read()
            if data == b"" or (data is None and self.follow):
                break
            start += data or b""
        self._pending = start
        return start

    def read_all(self) -> bytes:
        """All bytes up to the end."""
        pieces = []
        while (data := self.read()) != b"":
            pieces.append(data or b"")
        self.close()
        return b"".join(pieces)

    def skip(self, size: int, header: str) -> None:
        """Continue after `size` bytes, which must exist and begin with the same header."""
        seekable = not self.is_pipe and not self._packing
        if seekable and self._size() < size:
            raise self._too_short(size, self._size())
        start, left = b"", size
        while left and not (seekable and b"\n" in start):
            data = self.read(min(left, PIECE_BYTES))
            if data == b"":
                raise self._too_short(size, size - left)
            if data:
                start, left = start + data[: MAX_LINE_BYTES - len(start)], left - len(data)
        if header and start.split(b"\n")[0].decode("utf-8", "replace") != header:
            raise TableError(
                f"{self.name} must begin with the header {header[:60]!r}, got "
                f"{start[:60].decode('utf-8', 'replace')!r}: give the same input or another state."
            )
        if left:
            self._file.seek(size)
            self._position = size

    def close(self) -> None:
        """Close the file."""
        if not self.is_pipe and hasattr(self, "_file"):
            self._file.close()

    __del__ = close

    def _size(self) -> int:
        return Path(self.path).stat().st_size

    def _too_short(self, size: int, got: int) -> TableError:
        return TableError(
            f"{self.name} must hold the {size} bytes that were read before, got {got}: give the "
            "same input or another state."
        )
