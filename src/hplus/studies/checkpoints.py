"""Checkpoints of a scan: what was read so far, so that an interrupted scan can go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic

from hplus.files.chunked_table import Table
from hplus.files.scanning import part_name
from hplus.storage import load, save
from hplus.studies.event_summary import EventSummary, described, include, summary_of
from hplus.studies.scans import EventScan, scan_events

SECONDS_BETWEEN = 30.0
"""Seconds between two checkpoints, if parts take less."""

FILE_NAME = "scan.hplus"


def scan_with_checkpoints(
    table: Table,
    scan: EventScan,
    folder: str,
    n_jobs: int | None = None,
    skip_bad: bool = False,
    clock: Callable[[], float] = monotonic,
) -> None:
    """Scan a table, and keep what was read in a folder; a scan that was interrupted goes on there.

    Files that were read and have changed since, or that are named otherwise, would count twice or
    not at all: parts are known by name and size.
    """
    at = Path(folder) / FILE_NAME
    Path(folder).mkdir(parents=True, exist_ok=True)
    done = set[str]()
    if at.exists():
        known = load(at)
        if not isinstance(known, EventSummary) or known.described != described(scan):
            raise ValueError(
                f"checkpoint={folder} must be that of the same fit, got one of other options: give "
                "another folder, or remove it."
            )
        done = set(known.done)
        _check_done(table, done, folder)
        include(scan, known)
    last = clock()

    def after(part: Table, scan: EventScan) -> None:
        nonlocal last
        done.add(part_name(part))
        if clock() - last >= SECONDS_BETWEEN:
            save(summary_of(scan, tuple(done)), at)
            last = clock()

    try:
        scan_events(table, scan, n_jobs, skip_bad, frozenset(done), after)
    finally:
        if done:
            save(summary_of(scan, tuple(done)), at)


def _check_done(table: Table, done: set[str], folder: str) -> None:
    """An error if a part that was read is no longer there as it was."""
    lost = done - {part_name(part) for part in table.parts}
    if lost:
        raise ValueError(
            f"checkpoint={folder} has counted {min(lost)}, which is no longer among the files as "
            "it was: give another folder to begin again."
        )
