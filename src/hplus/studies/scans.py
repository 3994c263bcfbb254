"""EventScan: all that a study keeps of events, from one pass over files that may be in parts."""

from __future__ import annotations

from collections.abc import Callable

from hplus._threads import check_jobs
from hplus.files.chunked_table import Table
from hplus.files.feeds import TableError
from hplus.files.scanning import scan_parts
from hplus.files.times import Zone
from hplus.rates.lattice import Codes
from hplus.rates.weight_units import in_units
from hplus.studies.event_weights import WeightScale, scaled_weights
from hplus.studies.events import Tallied
from hplus.studies.frames import Frame
from hplus.studies.outlooks import Occurrences
from hplus.studies.placed_rows import Placed
from hplus.studies.split_events import SplitEvents
from hplus.studies.splits import Split


class EventScan:
    """Events in statistics and samples, by time, and what was read of their files.

    Scans of parts are joined by `absorb`: in any order, they are the scan of all events at once.
    """

    def __init__(
        self, frame: Frame, split: Split, seed: int, scale: WeightScale | None = None
    ) -> None:
        self.frame = frame
        self.events, self.times = SplitEvents(frame, split, seed, scale), Occurrences(frame)
        self.read = Tallied(frame)

    def take(self, part: Placed, keys: Codes) -> None:
        """Events of a chunk, and a key of each."""
        self.events.add(part.X, part.seconds, part.weights, keys)
        scale, units = self.events.scale, None
        if part.weights is not None and scale is not None:
            units = in_units(scaled_weights(part.weights, scale), len(part.X))
        self.times.add(part.X, part.seconds, units)

    def absorb(self, other: EventScan) -> None:
        """The events of another part, whose scan must not be used afterwards."""
        self.events.absorb(other.events)
        self.times.absorb(other.times)
        self.read.absorb(other.read)

    def another(self) -> EventScan:
        """A scan of the same kind, without events."""
        found = EventScan(self.frame, self.events.split, self.events.seed)
        found.events = self.events.another()
        return found

    def of_part(
        self, part: Table, zone: Zone = Zone.NEITHER, *, read_ahead: bool = False
    ) -> EventScan:
        """The scan of a part of a table."""
        found = self.another()
        found.read.read(part, found.take, zone, read_ahead=read_ahead)
        return found


def scan_events(
    table: Table,
    scan: EventScan,
    n_jobs: int | None = None,
    skip_bad: bool = False,
    done: frozenset[str] = frozenset(),
    after: Callable[[Table, EventScan], None] = lambda part, scan: None,
) -> None:
    """Add the events of all parts of a table to a scan, but for those that are `done`.

    `after` is called with each part that was added. A part that cannot be read is an
    error that says how much was read, or is left out with `skip_bad`.
    """
    zone = zone_of(table, scan.frame)
    scan.read.skipped += table.skipped
    wanted, jobs = scan.frame.asked_for, check_jobs(n_jobs)
    alone = jobs > 1 and len(table.parts) == 1

    def work(part: Table) -> EventScan:
        return scan.of_part(part, zone, read_ahead=alone)

    for part, found in scan_parts(table, wanted, work, jobs, done):
        if isinstance(found, EventScan):
            scan.absorb(found)
            after(part.table, scan)
        elif skip_bad:
            scan.read.skipped += (str(found),)
        else:
            raise stopped(found, scan, len(table.parts))


def zone_of(table: Table, frame: Frame) -> Zone:
    """Whether the first time of a table has a UTC offset, by which all others are judged."""
    if frame.clock is None:
        return Zone.NEITHER
    first = table.first_rows(frame.of_events, frame.where)
    return Zone.NEITHER if first is None else frame.points(first).zone


def stopped(error: TableError, scan: EventScan, parts: int) -> TableError:
    """An error that says how much had been read."""
    if parts == 1 or not scan.read.rows:
        return error
    said = str(error).rstrip(".")
    return TableError(
        f"{said}; {scan.read.rows:,} rows of other parts had been read: repair or remove it, or "
        "skip_bad= leaves it out."
    )
