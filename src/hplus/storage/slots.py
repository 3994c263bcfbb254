"""The two files of a folder that snapshots are written to in turn, for whoever reads them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from hplus.storage.models import load, read_summary

SLOTS = ("stream-a.hplus", "stream-b.hplus")
"""Two files, written in turn: while one is replaced, the other is intact."""


class DamagedError(ValueError):
    """A folder has snapshots, but none can be read."""


def newest_file(folder: str | os.PathLike[str]) -> Path:
    """The file of the newest snapshot in a folder, of a stream that may be running."""
    return snapshot_files(folder)[0]


def load_newest(folder: str | os.PathLike[str]) -> Any:
    """The model of the newest snapshot in a folder that is not damaged."""
    *newer, oldest = snapshot_files(folder)
    for path in newer:
        with suppress(ValueError):
            return load(path)
    return load(oldest)


def snapshot_files(folder: str | os.PathLike[str]) -> list[Path]:
    """The files of the snapshots in a folder that can be read, the newest first.

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
            # files of earlier versions have no summary
            offsets[path] = int((read_summary(path) or {}).get("offset", -1))
        except (OSError, ValueError) as error:
            broken.append(str(error))
    if not offsets:
        raise DamagedError(f"no snapshot in {folder} can be read: {'; '.join(broken)}")
    return sorted(offsets, key=lambda path: offsets[path], reverse=True)
