"""Snapshots of a stream in a folder: the last two, each complete or absent, for one process."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np

from hplus.storage import load, save
from hplus.storage.files import sync_folder
from hplus.storage.slots import SLOTS, DamagedError
from hplus.studies.frames import Frame
from hplus.studies.streams import StreamStudy


class Snapshots:
    """The last two snapshots of a stream in a folder, which is locked while this is open.

    A snapshot holds the model, the number of bytes read and all counts. It is on disk, safe from a
    loss of power, once `save` returns; a process that is killed earlier leaves the previous one.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).resolve()
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{folder} must be a folder for snapshots, got a file: name another.")
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True)
            sync_folder(self.folder.parent)
        self._lock = locked(self.folder)
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
    differ = [name for name in now if before[name] != now[name]]
    corners = _corners(kept.frame), _corners(asked.frame)
    if "window" in differ and all(corners) and corners[0] != corners[1]:
        before["window"], now["window"] = corners
        differ = [name for name in differ if name != "map"]  # which follows from the window
    return [f"{name} {before[name]}, not {now[name]}" for name in differ]


def _corners(frame: Frame) -> str:
    """A window as the option that gives it, such as "-74.3,40.5,-73.7,40.9"; "" if it is no box."""
    if frame.region is None or frame.region.box_bounds() is None:
        return ""
    ends = frame.own(np.array(frame.region.bounds()))
    return ",".join(f"{end:.9g}" for end in ends.ravel())


def _study(path: Path) -> StreamStudy:
    study = load(path)
    if not isinstance(study, StreamStudy):
        raise ValueError(f"{path} must hold a StreamStudy, got {type(study).__name__}.")
    return study


def locked(folder: Path) -> int:
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
