"""Opening the state of a service: a folder that `hplus stream` may have begun."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hplus.serve.disk import FolderDisk
from hplus.serve.posted_study import StudyMachine
from hplus.serve.store import Store
from hplus.storage import load
from hplus.storage.files import sync_folder
from hplus.studies.snapshots import differences, locked
from hplus.studies.streams import StreamStudy


@contextmanager
def opened_store(folder: str | os.PathLike[str], asked: StreamStudy) -> Iterator[Store]:
    """The store in a folder, which is locked as long as it is open.

    A study that is kept there must have the settings of the one asked for.
    """
    path = Path(folder).resolve()
    if path.exists() and not path.is_dir():
        raise ValueError(f"{folder} must be a folder, got a file: name another.")
    if not path.is_dir():
        path.mkdir(parents=True)
        sync_folder(path.parent)
    lock = locked(path)
    try:
        disk = FolderDisk(path)

        def read(name: str) -> StudyMachine:
            return StudyMachine(_study(disk.path(name), path, asked))

        store = Store(disk, lambda: StudyMachine(asked), read)
        try:
            yield store
        finally:
            store.close()
    finally:
        os.close(lock)


def _study(path: str, folder: Path, asked: StreamStudy) -> StreamStudy:
    study = load(path)
    if not isinstance(study, StreamStudy):
        raise ValueError(f"{path} must hold a StreamStudy, got {type(study).__name__}.")
    if differ := differences(study, asked):
        raise SettingsError(
            f"{folder} holds a stream with {'; '.join(differ)}: give the same options, or another "
            "folder."
        )
    return study


class SettingsError(Exception):
    """A folder holds a stream with other settings."""
