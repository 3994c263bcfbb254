"""Snapshots of a stream in a folder: the last two, each complete or absent, for one process."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, Self

from hplus.storage import load, save
from hplus.storage.files import sync_folder
from hplus.storage.models import read_summary
from hplus.studies.streams import StreamStudy

SLOTS = ("stream-a.hplus", "stream-b.hplus")
"""Two files, written in turn: while one is replaced, the other is intact."""


class DamagedError(ValueError):
    """A folder has snapshots, but none can be read."""


def newest_file(folder: str | os.PathLike[str]) -> Path:
    """The file of the newest snapshot in a folder, of a stream that may be running.

    It needs no lock: a snapshot is replaced in one step.
    """
    known = [path for slot in SLOTS if (path := Path(folder) / slot).exists()]
    if not known:
        raise FileNotFoundError(
            f"{folder} must hold the snapshots of a stream, got a folder without any: give that of "
            "a stream, or a model file."
        )
    offsets: dict[Path, int] = {}
    broken: list[str] = []
    for path in known:
        try:
            offsets[path] = int((read_summary(path) or {})["offset"])
        except (OSError, ValueError, KeyError) as error:
            broken.append(str(error))
    if not offsets:
        raise DamagedError(f"no snapshot in {folder} can be read: {'; '.join(broken)}")
    return max(offsets, key=lambda path: offsets[path])


class Snapshots:
    """The last two snapshots of a stream in a folder, which is locked while this is open.

    A snapshot holds the model, the number of bytes read and all counts. It is on disk, safe from a
    loss of power, once `save` returns; a process that is killed earlier leaves the previous one.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).resolve()
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True)
            sync_folder(self.folder.parent)
        self._lock = _locked(self.folder)
        self._next = SLOTS[0]
        for left in self.folder.glob(".hplus-*.tmp"):  # of a process that was killed
            left.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        os.close(self._lock)

    def newest(self) -> StreamStudy | None:
        """The study to resume, None if there is none yet; a damaged file is skipped."""
        found: dict[str, StreamStudy] = {}
        broken: dict[str, str] = {}
        for slot in SLOTS:
            path = self.folder / slot
            if path.exists():
                try:
                    found[slot] = _study(path)
                except (OSError, ValueError) as error:
                    broken[slot] = str(error)
        if broken and not found:
            raise DamagedError(
                f"no snapshot in {self.folder} can be read: {'; '.join(broken.values())}"
            )
        if not found:
            return None
        best = max(found, key=lambda slot: found[slot].offset_)
        self._next = SLOTS[1 - SLOTS.index(best)]
        for said in broken.values():
            warnings.warn(
                f"{said} The previous snapshot, at byte {found[best].offset_}, is used instead.",
                stacklevel=2,
            )
        return found[best]

    def save(self, study: StreamStudy) -> None:
        """Replace the older snapshot by the study; it is safe when this returns."""
        save(study, self.folder / self._next, summary=study.facts())
        self._next = SLOTS[1 - SLOTS.index(self._next)]


def differences(kept: StreamStudy, asked: StreamStudy) -> list[str]:
    """The settings in which two studies of a stream differ."""
    before, now = kept.settings(), asked.settings()
    return [f"{name} {before[name]}, not {now[name]}" for name in now if before[name] != now[name]]


def _study(path: Path) -> StreamStudy:
    study = load(path)
    if not isinstance(study, StreamStudy):
        raise ValueError(f"{path} must hold a StreamStudy, got {type(study).__name__}.")
    return study


def _locked(folder: Path) -> int:
    """A lock on the folder, released when the process ends, however it ends."""
    import fcntl

    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise ValueError(
            f"{folder} can be used by one process at a time, and another one is using it: stop "
            "that one, or give another folder."
        ) from None
    return lock
