"""One pass over the events of a file, what was read of it, and a sample of its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import PurePath
from typing import NamedTuple, final

import numpy as np

from hplus._checks import Floats
from hplus._threads import ahead
from hplus._values import Value, value
from hplus.files.chunked_table import Table
from hplus.files.feeds import TableError
from hplus.files.lines import TOO_LONG
from hplus.files.rows import BROKEN
from hplus.files.tables import TableLike, as_table
from hplus.files.times import Zone
from hplus.rates.lattice import Codes
from hplus.rates.row_keys import key_sum, row_keys
from hplus.studies.event_weights import weight_scale
from hplus.studies.frames import OUTSIDE_PERIOD, Frame
from hplus.studies.placed_rows import Placed
from hplus.studies.ranges import NO_EXTENT, Extent, range_arguments


@final
@value
class Reading(Value):
    """What was read of a file: its rows, those kept, and why others were not.

    Rows were `dropped` if a cell could not be read, and `left_out` on purpose: by a condition, the
    window or the observation period. `skipped` says which files could not be read, and why, where
    that was allowed. `copies` is the share of events that are copies of others in every column that
    was read. `fingerprint` is the same for the same events in any order;
    "" in files of earlier versions, whose `dropped` has both.
    """

    file: str
    rows: int
    kept: int
    dropped: dict[str, int]
    fingerprint: str = ""
    left_out: dict[str, int] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    copies: float = 0.0

    def same_events(self, other: Reading) -> bool:
        """Are the kept events the same? By their content; of old files, by the name."""
        if not self.fingerprint:
            return PurePath(other.file).name == PurePath(self.file).name
        return (other.kept, other.fingerprint) == (self.kept, self.fingerprint)

    @property
    def share_dropped(self) -> float:
        """Dropped rows, as a share of those that were not left out on purpose.

        Of lines that could not be read at all it is not known: they are a share of all.
        """
        broken = sum(self.dropped.get(reason, 0) for reason in (BROKEN, TOO_LONG))
        lost = sum(self.dropped.values()) - broken
        return max(lost / max(lost + self.kept, 1), broken / max(self.rows, 1))

    def check_dropped(self, most: float, advice: str = "") -> None:
        """Raise if more than this share of the rows that are meant was dropped."""
        if self.share_dropped > most:
            advice = advice or "fix the file"
            lost = sum(self.dropped.values())
            meant = self.rows - sum(self.left_out.values())
            raise TableError(
                f"{lost} of {meant} rows of {self.file} cannot be used "
                f"({_reasons(self.dropped)}), which is more than most_dropped={most:g}: {advice}, "
                "or pass most_dropped=1 if the other rows are enough."
            )


TIME_ADVICE = (
    "times must be ISO 8601 or seconds since 1970; others, such as 03/04/2026, need form=, and "
    "numbers since another date need time_unit= and origin="
)


def placed(
    table: Table, frame: Frame, zone: Zone = Zone.NEITHER, *, read_ahead: bool = False
) -> Iterator[Placed]:
    """The rows of a file as points, chunk by chunk; `zone` is that of rows before.

    To `read_ahead` takes another thread.
    """
    chunks = table.chunks(frame.of_events, frame.where)
    for chunk in ahead(chunks) if read_ahead else chunks:
        found = frame.points(chunk, zone)
        zone = found.zone
        yield found


class OutsidePeriodError(TableError):
    """All rows that are meant lie outside the observation period."""


Take = Callable[[Placed, Codes], None]
"""Takes events, and a key of each (n,)."""


class Tallied:
    """What was read of a file, or of parts of it: rows, those kept, and why others were not."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self.rows = self.kept = self.total = 0
        self.dropped, self.left_out = Counter[str](), Counter[str]()
        self.extent, self.skipped = NO_EXTENT, tuple[str, ...]()

    def read(
        self, table: Table, take: Take, zone: Zone = Zone.NEITHER, *, read_ahead: bool = False
    ) -> None:
        """Pass the events of a table to `take`, chunk by chunk."""
        for part in placed(table, self._frame, zone, read_ahead=read_ahead):
            self.add(part, take)
        self.miss(table.dropped, table.left_out)

    def add(self, part: Placed, take: Take) -> None:
        """Pass the events of a chunk to `take`."""
        columns = len(self._frame.columns)
        keys = row_keys(part.X[:, :columns], part.seconds)
        take(part, keys)
        self.total = (self.total + key_sum(keys)) % 2**64
        self.rows += len(part.rows)
        self.kept += len(part.X)
        self.dropped += part.dropped
        self.left_out += part.left_out
        self.extent = self.extent.including(part.low, part.high)

    def miss(self, dropped: Counter[str], left_out: Counter[str]) -> None:
        """Rows that a pass did not give."""
        self.rows += dropped.total() + left_out.total()
        self.dropped += dropped
        self.left_out += left_out

    def absorb(self, other: Tallied) -> None:
        """What was read of another part."""
        self.rows, self.kept = self.rows + other.rows, self.kept + other.kept
        self.total = (self.total + other.total) % 2**64
        self.dropped, self.left_out = self.dropped + other.dropped, self.left_out + other.left_out
        self.extent = self.extent.including(*other.extent)
        self.skipped += other.skipped

    def reading(self, file: str) -> Reading:
        """What was read, or why nothing of it can be used."""
        if self.kept == 0:
            why = self.dropped + self.left_out
            left = OUTSIDE_PERIOD in why and "outside the window" not in why
            kind = OutsidePeriodError if left else TableError
            raise kind(nothing_usable(file, self._frame, self.rows, why, self.extent))
        # in an order that does not depend on that of the rows
        dropped, left_out = (dict(sorted(c.items())) for c in (self.dropped, self.left_out))
        fingerprint, skipped = f"{self.total:016x}", tuple(sorted(self.skipped))
        return Reading(file, self.rows, self.kept, dropped, fingerprint, left_out, skipped)


def fingerprint_of(X: Floats) -> int:
    """A sum of hashes of rows (n, d), which does not depend on their order."""
    return key_sum(row_keys(X))


class Sampled(NamedTuple):
    """Events of a file (n, d), what was read, and the range of its columns.

    `seconds` (n,) are the times of the events, if the file has times.
    """

    X: Floats
    reading: Reading
    extent: Extent
    seconds: Floats


def sampled(source: TableLike, frame: Frame, seed: int = 0) -> Sampled:
    """Events of a file or table in the window of a frame; of very many, a random sample.

    Events with weights are drawn in proportion to them.
    """
    # here, since these modules import this one
    from hplus.studies.split_events import SplitEvents
    from hplus.studies.splits import Split

    table, tallied = as_table(source), Tallied(frame)
    events = SplitEvents(frame, Split(0.0), seed, weight_scale(table, frame), counted=False)
    tallied.read(table, lambda part, keys: events.add(part.X, part.seconds, part.weights, keys))
    reading, drawn = tallied.reading(table.path), events.learned_sample
    return Sampled(drawn.X, reading, tallied.extent, drawn.seconds)


def _reasons(dropped: Mapping[str, int]) -> str:
    return "; ".join(f"{reason}: {count}" for reason, count in dropped.items())


def nothing_usable(
    file: str,
    frame: Frame,
    rows: int,
    dropped: Counter[str],
    extent: Extent,
    known_advice: str = "",
) -> str:
    """Why no row could be used, and what to do; by default that follows from the reasons."""
    if rows == 0:
        return f"{file} has a header but no rows: there is nothing to learn from."
    advice = "check the names of the columns"
    if frame.clock is not None and f"{frame.clock.column} is not a time" in dropped:
        advice = TIME_ADVICE
    if "outside the window" in dropped or OUTSIDE_PERIOD in dropped:
        found = range_arguments(extent, len(frame.columns), frame.clock is not None)
        advice = f"the data span {', '.join(found)}"
    elif frame.where is not None and frame.where.reason in dropped:
        advice = "correct where=, or the names and quotes in it"
    if "outside the window" in dropped and _swapped(frame, extent):
        advice = (
            f"longitude and latitude look swapped, try columns={frame.columns[::-1]}, lonlat=True"
        )
    reasons = _reasons(dict(dropped.most_common(3)))
    return f"none of the {rows} rows of {file} can be used ({reasons}): {known_advice or advice}."


def _swapped(frame: Frame, extent: Extent) -> bool:
    """Would a longitude and a latitude lie in the window the other way round?"""
    if frame.place is None or frame.region is None:
        return False
    middle = np.array([extent.low[[1, 0]] + extent.high[[1, 0]]]) / 2.0
    a, b = frame.region.bounds()
    X = frame.place.forward(middle)[0]
    return bool(np.all((a <= X) & (b >= X)))
