"""The evidence of a watch in a file, so that a service that is started again goes on with it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import final
from zipfile import BadZipFile

import numpy as np

from hplus.alerts.overlapping_blocks import OverlappingBlocks
from hplus.alerts.watch import Watch
from hplus.serve.disk import Disk, write_all

WATCH_FILE, NEXT_WATCH_FILE = "watch.npz", ".hplus-watch.tmp"
"""The file, and what it is called while it is written."""

LONGEST_STOP = 86_400.0
"""Seconds after which evidence is too old to go on with."""


@final
class KeptWatch:
    """A watch with the ids of the alerts that go on, in a file of a disk.

    The file is not synced: one that a loss of power has torn is noticed, and left out.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def save(self, watch: Watch, names: Mapping[int, str], at: float) -> None:
        """Keep a watch as it is at some time in seconds since 1970."""
        numbers = np.array(list(names), dtype=np.float64)
        own = {"at": np.array(at), "numbers": numbers, "names": np.array(list(names.values()), "U")}
        data = io.BytesIO()
        np.savez(data, **watch.saved(), **own)  # type: ignore[arg-type]  # names are not options
        if NEXT_WATCH_FILE in self._disk.names():
            self._disk.remove(NEXT_WATCH_FILE)
        handle = self._disk.open(NEXT_WATCH_FILE)
        try:
            write_all(self._disk, handle, data.getbuffer())
        finally:
            self._disk.close(handle)
        self._disk.rename(NEXT_WATCH_FILE, WATCH_FILE)

    def load(
        self, blocks: OverlappingBlocks, alarms_per_week: float, memory: float, at: float
    ) -> tuple[Watch, dict[int, str]] | None:
        """The watch that was kept, and the ids of its alerts; None if it does not fit."""
        if WATCH_FILE not in self._disk.names():
            return None
        try:
            data = io.BytesIO(self._disk.read(WATCH_FILE))
            with np.load(data) as found:
                parts = {name: found[name] for name in found.files}
            names = dict(zip(parts["numbers"].astype(int).tolist(), parts["names"].tolist(),
                             strict=True))  # fmt: skip
            if not 0.0 <= at - float(parts["at"]) <= LONGEST_STOP:
                return None
            watch = Watch.restored(blocks, parts, alarms_per_week, memory)
        except (OSError, EOFError, ValueError, KeyError, BadZipFile):
            return None
        return None if watch is None else (watch, names)
