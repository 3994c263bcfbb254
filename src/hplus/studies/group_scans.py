"""The events of several groups from one pass over a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hplus._threads import check_jobs
from hplus.files.chunked_table import Table
from hplus.files.conditions import Condition, Tally
from hplus.files.scanning import scan_parts
from hplus.files.times import Zone
from hplus.studies.scans import EventScan, stopped, zone_of


def scan_groups(
    table: Table,
    scans: Sequence[EventScan],
    shared: Condition | None,
    n_jobs: int | None = None,
    skip_bad: bool = False,
) -> None:
    """Add the events of a table to scans, each of the rows for which its condition holds.

    `shared` is a part of all their conditions, by which files are filtered while they are read.
    """
    wanted = list(dict.fromkeys(name for scan in scans for name in scan.frame.asked_for))
    zone = zone_of(table, scans[0].frame.replace(where=shared))
    for scan in scans:
        scan.read.skipped += table.skipped

    def work(part: Table) -> list[EventScan]:
        return _of_part(part, wanted, shared, scans, zone)

    for _, found in scan_parts(table, wanted, work, check_jobs(n_jobs)):
        if isinstance(found, list):
            for scan, own in zip(scans, found, strict=True):
                scan.absorb(own)
        elif skip_bad:
            for scan in scans:
                scan.read.skipped += (str(found),)
        else:
            raise stopped(found, scans[0], len(table.parts))


def _of_part(
    part: Table,
    wanted: list[str],
    shared: Condition | None,
    scans: Sequence[EventScan],
    zone: Zone,
) -> list[EventScan]:
    """The scans of a part of a table."""
    found, unread = [scan.another() for scan in scans], Tally()
    tallies = [Tally() for _ in scans]
    for chunk in part.read(wanted, unread, shared):
        for scan, tally in zip(found, tallies, strict=True):
            where = scan.frame.where
            assert where is not None
            own = where.chosen(chunk, tally)
            if len(own):
                scan.read.add(scan.frame.points(own, zone), scan.take)
    for scan, tally in zip(found, tallies, strict=True):
        assert scan.frame.where is not None
        left_out = Counter({scan.frame.where.reason: unread.left_out.total()})
        scan.read.miss(tally.dropped + unread.dropped, tally.left_out + left_out)
    return found
