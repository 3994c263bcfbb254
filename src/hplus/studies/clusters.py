"""The files of a study read by a Dask cluster: a scan of each part, joined in a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hplus.files.chunked_table import Table
from hplus.files.extras import needed
from hplus.files.feeds import TableError
from hplus.files.scanning import checked_part
from hplus.files.times import Zone
from hplus.studies.event_study import EventStudy
from hplus.studies.event_summary import EventSummary, include, summary_of
from hplus.studies.event_weights import weight_scale
from hplus.studies.grouped_study import GroupedStudy
from hplus.studies.scans import EventScan, zone_of

if TYPE_CHECKING:
    from distributed import Client

JOINED_AT_ONCE = 8
"""Scans of parts that one task joins."""


def fit_on_cluster(study: EventStudy, table: Table, address: str) -> EventStudy:
    """Fit a study to a table whose parts the workers of a cluster can read by the same paths.

    `address` is "local" for workers on this machine, or that of a scheduler.
    """
    if table.is_pipe:
        raise ValueError("dask= needs files that workers can open, got a pipe: save it first.")
    scan = study.new_scan(weight_scale(table, study.frame))
    with _client(address) as client:
        include(scan, summary_on_cluster(scan, table, client, study.skip_bad))
    scan.read.skipped += table.skipped
    return study.learn(scan, table.path)


def fit_groups_on_cluster(grouped: GroupedStudy, table: Table, address: str) -> GroupedStudy:
    """Fit a study of groups, each group by a task of a cluster, whose workers read the files."""

    def fit_all(studies: Sequence[EventStudy], table: Table) -> Sequence[EventStudy]:
        with _client(address) as client:
            tasks = [client.submit(_fitted, study, table, pure=False) for study in studies]
            return [task.result() for task in tasks]

    return grouped.fit(table, fit_all=fit_all)


def _fitted(study: EventStudy, table: Table) -> EventStudy:
    return study.fit(table)


def summary_on_cluster(
    scan: EventScan, table: Table, client: Client, skip_bad: bool = False
) -> EventSummary:
    """What scans of all parts of a table keep, each by a task, joined in a tree."""
    zone = zone_of(table, scan.frame)
    tasks = [
        client.submit(summarised, scan, part, table.kinds, zone, skip_bad, pure=False)
        for part in table.parts
    ]
    while len(tasks) > 1:
        some = (tasks[i : i + JOINED_AT_ONCE] for i in range(0, len(tasks), JOINED_AT_ONCE))
        tasks = [client.submit(joined, scan, few, pure=False) for few in some]
    found: EventSummary = tasks[0].result()
    return found


def summarised(
    scan: EventScan, part: Table, kinds: dict[str, str], zone: Zone, skip_bad: bool
) -> EventSummary:
    """What a scan of a part keeps; nothing of one that cannot be read, if that is allowed."""
    try:
        checked_part(part, kinds, scan.frame.asked_for)
        return summary_of(scan.of_part(part, zone))
    except TableError as error:
        if not skip_bad:
            raise
        nothing = scan.another()
        nothing.read.skipped = (str(error),)
        return summary_of(nothing)


def joined(scan: EventScan, summaries: Sequence[EventSummary]) -> EventSummary:
    """What scans of several parts keep together."""
    together = scan.another()
    for summary in summaries:
        include(together, summary)
    return summary_of(together)


@contextmanager
def _client(address: str) -> Iterator[Client]:
    """A client of a cluster, which is closed at the end if it was started here."""
    distributed = needed("distributed", "dask", "Reading on a cluster")
    if address != "local":
        with distributed.Client(address, timeout="10s") as client:
            yield client
        return
    with (
        distributed.LocalCluster(dashboard_address=None) as cluster,
        cluster.get_client() as client,
    ):
        yield client
