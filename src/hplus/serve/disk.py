"""Disk: the operations on files that durability rests on; a test can make any of them fail."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol, final

from hplus.storage.files import sync_folder

TEMPORARY = ".hplus-next.tmp"
"""A snapshot that is being written; one that is left was never finished."""


class Disk(Protocol):
    """Files of one folder, by their names; `write` may write less than it was given."""

    def names(self) -> list[str]:
        """The names of all files."""

    def read(self, name: str) -> bytes:
        """What a file holds."""

    def open(self, name: str) -> int:
        """A file to append to, created if there is none; its handle."""

    def write(self, handle: int, data: memoryview) -> int:
        """Append bytes, and return how many were written."""

    def truncate(self, handle: int, size: int) -> None:
        """Cut a file to a size."""

    def sync(self, handle: int) -> None:
        """Return once all that was written to the file is safe from a loss of power."""

    def close(self, handle: int) -> None:
        """Give up a handle."""

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in place of the file that has it."""

    def remove(self, name: str) -> None:
        """Delete a file."""

    def sync_names(self) -> None:
        """Return once all names are safe from a loss of power."""


@final
class FolderDisk:
    """The files of a folder of the operating system."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)

    def names(self) -> list[str]:
        """The names of all files."""
        return os.listdir(self.folder)

    def path(self, name: str) -> str:
        """Where a file is."""
        return os.path.join(self.folder, name)

    def read(self, name: str) -> bytes:
        """What a file holds."""
        with open(self.path(name), "rb") as file:
            return file.read()

    def open(self, name: str) -> int:
        """A file to append to, created if there is none; its handle."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self.path(name), flags, 0o644)

    def write(self, handle: int, data: memoryview) -> int:
        """Append bytes, and return how many were written."""
        return os.write(handle, data)

    def truncate(self, handle: int, size: int) -> None:
        """Cut a file to a size."""
        os.ftruncate(handle, size)

    def sync(self, handle: int) -> None:
        """Return once all that was written to the file is safe from a loss of power."""
        os.fsync(handle)

    def close(self, handle: int) -> None:
        """Give up a handle."""
        os.close(handle)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in place of the file that has it."""
        os.replace(self.path(old), self.path(new))

    def remove(self, name: str) -> None:
        """Delete a file."""
        os.remove(self.path(name))

    def sync_names(self) -> None:
        """Return once all names are safe from a loss of power."""
        from pathlib import Path

        sync_folder(Path(self.folder))


def write_all(disk: Disk, handle: int, data: memoryview) -> None:
    """Append all bytes, however many are written at once."""
    while len(data):
        written = disk.write(handle, data)
        if written <= 0:
            raise OSError("a write wrote nothing")
        data = data[written:]


def replace_whole(disk: Disk, name: str, pieces: Iterable[memoryview]) -> None:
    """Put a new file in place of another in one step, once it is safe on disk."""
    if TEMPORARY in disk.names():
        disk.remove(TEMPORARY)
    handle = disk.open(TEMPORARY)
    try:
        for piece in pieces:
            write_all(disk, handle, piece)
        disk.sync(handle)
    except OSError:
        with suppress(OSError):
            disk.truncate(handle, 0)  # to give the space back
        raise
    finally:
        disk.close(handle)
    disk.rename(TEMPORARY, name)
    disk.sync_names()
