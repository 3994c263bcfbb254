"""One pass over the events of a file, what was read of it, and a sample of its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import NamedTuple, final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.files.feeds import TableError
from hplus.files.lines import TOO_LONG
from hplus.files.rows import BROKEN
from hplus.files.tables import Table, TableLike, as_table
from hplus.files.times import Zone
from hplus.studies.event_weights import weight_scale
from hplus.studies.frames import Frame, Placed
from hplus.studies.ranges import NO_EXTENT, Extent, range_arguments

MAX_SAMPLE = 200_000
"""Events that are kept one by one; of more, a random sample."""

FIRST_FACTOR, SECOND_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Odd factors that mix the bits of 64-bit numbers."""


@final
@value
class Reading(Value):
    """What was read of a file: its rows, those kept, and why others were not.

    Rows were `dropped` if a cell could not be read, and `left_out` on purpose: by a condition, the
    window or the observation period. `fingerprint` is the same for the same events in any order;
    "" in files of earlier versions, whose `dropped` has both.
    """

    file: str
    rows: int
    kept: int
    dropped: dict[str, int]
    fingerprint: str = ""
    left_out: dict[str, int] = field(default_factory=dict)

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


class Sample:
    """A random sample, of bounded size, of events X (n, d) and their times that come in chunks.

    An event is kept while its random number lies below a threshold, which is halved whenever too
    many are kept: every event has the same chance, wherever it is in the file.
    """

    def __init__(self, dimension: int, most: int = MAX_SAMPLE) -> None:
        self.X, self.seconds, self._u = np.zeros((0, dimension)), np.zeros(0), np.zeros(0)
        self._most, self._threshold = most, 1.0

    def add(self, X: Floats, seconds: Floats, u: Floats) -> None:
        """Events (n, d) and their times (n,), with independent uniform numbers (n,)."""
        kept = u < self._threshold
        self.X = np.concatenate([self.X, X[kept]])
        self.seconds = np.concatenate([self.seconds, seconds[kept]])
        self._u = np.concatenate([self._u, u[kept]])
        while len(self._u) > self._most:
            self._threshold /= 2.0
            kept = self._u < self._threshold
            self.X, self.seconds, self._u = self.X[kept], self.seconds[kept], self._u[kept]


def placed(table: Table, frame: Frame) -> Iterator[Placed]:
    """The rows of a file as points, chunk by chunk; rounded times are spread out."""
    zone = Zone.NEITHER
    for chunk in table.chunks(frame.of_events, frame.where):
        found = frame.points(chunk, zone)
        zone = found.zone
        if frame.clock is not None:
            rows = chunk.first + np.flatnonzero(found.rows)
            found.X[:, -1] = frame.clock.spread_out(found.X[:, -1], rows)
        yield found


Take = Callable[[Floats, Floats, Floats | None], None]
"""Takes events (n, d), their times (n,), and what each one counts (n,), None for 1."""


def read_events(table: Table, frame: Frame, add: Take) -> tuple[Reading, Extent]:
    """Pass the events of a file to `add`, chunk by chunk.

    Returns what was read, and its range.
    """
    rows = kept = total = 0
    dropped, left_out = Counter[str](), Counter[str]()
    extent = NO_EXTENT
    for part in placed(table, frame):
        add(part.X, part.seconds, part.weights)
        total += fingerprint_of(np.column_stack([part.X[:, : len(frame.columns)], part.seconds]))
        rows += len(part.rows)
        kept += len(part.X)
        dropped += part.dropped
        left_out += part.left_out
        extent = extent.including(part.low, part.high)
    rows += table.dropped.total() + table.left_out.total()
    dropped, left_out = dropped + table.dropped, table.left_out + left_out
    if kept == 0:
        raise TableError(nothing_usable(table, frame, rows, dropped + left_out, extent))
    fingerprint = f"{total % 2**64:016x}"
    return Reading(table.path, rows, kept, dict(dropped), fingerprint, dict(left_out)), extent


def fingerprint_of(X: Floats) -> int:
    """A sum of hashes of rows (n, d), which does not depend on their order."""
    mixed = np.zeros(len(X), dtype=np.uint64)
    for column in (X + 0.0).T:  # -0.0 becomes 0.0
        mixed = (mixed ^ np.ascontiguousarray(column).view(np.uint64)) * FIRST_FACTOR
        mixed = (mixed ^ (mixed >> np.uint64(31))) * SECOND_FACTOR
        mixed ^= mixed >> np.uint64(29)
    return int(mixed.sum(dtype=np.uint64))


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
    sample, rng = Sample(frame.window.dimension), np.random.RandomState(seed)
    table = as_table(source)
    scale = weight_scale(table, frame)

    def add(X: Floats, seconds: Floats, weights: Floats | None) -> None:
        u = rng.random_sample(len(X))
        if weights is not None and scale is not None:
            drawn = rng.random_sample(len(X)) * scale.largest < weights
            X, seconds, u = X[drawn], seconds[drawn], u[drawn]
        sample.add(X, seconds, u)

    found = read_events(table, frame, add)
    return Sampled(sample.X, *found, seconds=sample.seconds)


def _reasons(dropped: Mapping[str, int]) -> str:
    return "; ".join(f"{reason}: {count}" for reason, count in dropped.items())


def nothing_usable(
    table: Table, frame: Frame, rows: int, dropped: Counter[str], extent: Extent
) -> str:
    """Why no row could be used, and what to do."""
    if rows == 0:
        return f"{table.path} has a header but no rows: there is nothing to learn from."
    advice = "check the names of the columns"
    if frame.clock is not None and f"{frame.clock.column} is not a time" in dropped:
        advice = TIME_ADVICE
    if "outside the window" in dropped or "outside the observation period" in dropped:
        found = range_arguments(extent, len(frame.columns), frame.clock is not None)
        advice = f"the data span {', '.join(found)}"
    elif frame.where is not None and frame.where.reason in dropped:
        advice = "correct where=, or the names and quotes in it"
    if "outside the window" in dropped and _swapped(frame, extent):
        advice = (
            f"longitude and latitude look swapped, try columns={frame.columns[::-1]}, lonlat=True"
        )
    reasons = _reasons(dict(dropped.most_common(3)))
    return f"none of the {rows} rows of {table.path} can be used ({reasons}): {advice}."


def _swapped(frame: Frame, extent: Extent) -> bool:
    """Would a longitude and a latitude lie in the window the other way round?"""
    if frame.place is None or frame.region is None:
        return False
    middle = np.array([extent.low[[1, 0]] + extent.high[[1, 0]]]) / 2.0
    a, b = frame.region.bounds()
    X = frame.place.forward(middle)[0]
    return bool(np.all((a <= X) & (b >= X)))
