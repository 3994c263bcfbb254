"""Events of a file one by one, with marks and types, those before the observation period too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hplus._checks import Bools, Floats, Ints
from hplus.files.cells import numbers, texts
from hplus.files.feeds import TableError
from hplus.files.rows import Chunk
from hplus.files.tables import TableLike, as_table
from hplus.files.times import MAX_SECONDS, Zone
from hplus.rates.row_keys import FIRST_FACTOR, SECOND_FACTOR
from hplus.studies.events import Reading, fingerprint_of, nothing_usable
from hplus.studies.frames import Frame
from hplus.studies.ranges import NO_EXTENT
from hplus.studies.spans import SECONDS, Clock, moment
from hplus.wording import counted

Words = NDArray[np.object_]


class MarkedEvents(NamedTuple):
    """Events (n, d), time last and in the unit of the clock since its start, and what was read.

    `marks` and `types` (n,) are None if no column was named.
    """

    X: Floats
    marks: Floats | None
    types: NDArray[np.str_] | None
    reading: Reading

    def picked(self, which: Bools | Ints) -> MarkedEvents:
        """Some of the events."""
        marks = None if self.marks is None else self.marks[which]
        types = None if self.types is None else self.types[which]
        return MarkedEvents(self.X[which], marks, types, self.reading)

    def distinct(self) -> MarkedEvents:
        """The events that are no copies of others."""
        columns = [self.X, *(c for c in (self.marks, self.types) if c is not None)]
        codes = [np.unique(column, return_inverse=True, axis=0)[1] for column in columns]
        return self.picked(np.unique(np.column_stack(codes), return_index=True, axis=0)[1])


class Labels(NamedTuple):
    """Which rows of a chunk have a mark and a type, and what these are, (n,) each."""

    good: Bools
    marks: Floats
    types: Words


def read_marked(
    source: TableLike,
    frame: Frame,
    mark: str = "",
    kind: str = "",
    span: tuple[float, float] | None = None,
    *,
    quiet: bool = False,
) -> MarkedEvents:
    """The events of a file or table in one pass; rows that cannot be used are counted by reason.

    From `span`, in seconds since 1970: by default all until the end of the observation period, of
    which those before its start are history. If it may be `quiet`, a file without events of that
    time is no error.
    """
    clock = frame.clock
    assert clock is not None
    table = as_table(source)
    named = [name for name in (mark, kind) if name]
    for name in named:
        table.require(name)
    low, high = span or (-MAX_SECONDS, clock.end)
    anytime = frame.replace(clock=clock.replace(start=low, end=high))
    parts: list[tuple[Floats, Ints, Floats, Words]] = [_no_rows(frame.window.dimension)]
    dropped, left_out = Counter[str](), Counter[str]()
    rows, total, extent, zone = 0, 0, NO_EXTENT, Zone.NEITHER
    for chunk in table.chunks([*frame.needed, *named], frame.where):
        found = anytime.points(chunk, zone)
        at = np.flatnonzero(found.rows)
        good, marks, types = _labels(chunk, at, mark, kind, dropped)
        dropped, left_out = dropped + found.dropped, left_out + found.left_out
        rows, zone, extent = rows + len(chunk), found.zone, extent.including(found.low, found.high)
        points = np.column_stack([found.X[good, :-1], found.seconds[good]])
        parts.append((points, chunk.first + at[good], marks[good], types[good]))
        total += fingerprint_of(points)
    rows += table.dropped.total() + table.left_out.total()
    dropped, left_out = dropped + table.dropped, table.left_out + left_out
    kept = sum(len(part[0]) for part in parts)
    if kept == 0 and not (quiet and _only_other_times(frame, dropped + left_out)):
        why = dropped + left_out
        advice = mark_advice(mark, dropped)
        raise TableError(nothing_usable(table.path, anytime, rows, why, extent, advice))
    X, order, values, words = map(np.concatenate, zip(*parts, strict=True))
    mark_of_file = f"{total % 2**64:016x}"
    reading = Reading(table.path, rows, kept, dict(dropped), mark_of_file, dict(left_out))
    labels = values if mark else None, words.astype(str) if kind else None
    events = MarkedEvents(X, *labels, reading)
    copies = 1.0 - len(events.distinct().X) / max(kept, 1)
    spread = np.column_stack([X[:, :-1], spread_in_order(clock, X[:, -1], order, high)])
    return events._replace(X=spread, reading=reading.replace(copies=copies))


def _no_rows(dimension: int) -> tuple[Floats, Ints, Floats, Words]:
    empty = np.zeros(0)
    return np.zeros((0, dimension)), empty.astype(np.int64), empty, empty.astype(np.object_)


def _only_other_times(frame: Frame, dropped: Counter[str]) -> bool:
    """Were all rows left out because they are of another time, or not meant?"""
    others = {"outside the observation period", frame.where.reason if frame.where else ""}
    return set(dropped) <= others


def spread_in_order(clock: Clock, seconds: Floats, rows: Ints, end: float) -> Floats:
    """Times of rows on the clock's axis, (n,); rounded ones at random over what they stand for.

    Equal times keep the order of their rows, or the reverse if the file has the latest first: an
    aftershock must not come before its main shock. A row is always moved in the same way.
    """
    at, last = clock.axis(seconds), float(clock.axis(np.array([end]))[0])
    if not clock.spread:
        return at
    u = _uniform(rows)
    later = at + u * np.clip(last - at, 0.0, clock.spread / SECONDS[clock.unit])
    backwards = len(at) > 1 and np.sum((rows - rows.mean()) * (at - at.mean())) < 0.0
    found = np.empty(len(at))
    found[np.lexsort((-rows if backwards else rows, at))] = later[np.lexsort((u, at))]
    return found


def _uniform(rows: Ints) -> Floats:
    """Numbers from 0 to 1 that look random, one for each row number."""
    mixed = (rows.astype(np.uint64) + np.uint64(1)) * FIRST_FACTOR
    mixed = (mixed ^ (mixed >> np.uint64(31))) * SECOND_FACTOR
    mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _labels(chunk: Chunk, at: Ints, mark: str, kind: str, dropped: Counter[str]) -> Labels:
    """Marks and types of the rows `at`; those without are counted by reason."""
    marks, types, reasons = np.zeros(len(at)), np.full(len(at), "", dtype="O"), {}
    if mark:
        cells = numbers(chunk.as_numbers(mark))
        marks = cells.values[at]
        reasons = {f"no {mark}": cells.missing[at], f"{mark} is not a number": cells.wrong[at]}
    if kind:
        types = np.array(texts(chunk.columns[kind]), dtype="O")[at]
        reasons[f"no {kind}"] = np.array([word is None for word in types], dtype=bool)
    good = np.ones(len(at), dtype=bool)
    for reason, bad in reasons.items():
        if np.any(good & bad):
            dropped[reason] += int(np.sum(good & bad))
        good &= ~bad
    return Labels(good, marks, types)


def mark_advice(mark: str, dropped: Mapping[str, int]) -> str:
    """What to do if most rows were dropped because their marks are no numbers; "" otherwise."""
    wrong = dropped.get(f"{mark} is not a number", 0)
    if 2 * wrong <= sum(dropped.values()):
        return ""
    return "name a column of numbers as mark=, or give types of events as kind="


def check_known_types(events: MarkedEvents, kind: str, known: Sequence[str]) -> None:
    """Raise if later events have types that those of the fit did not have."""
    if events.types is None:
        return
    new = events.types[~np.isin(events.types, known)]
    if len(new):
        first = next(iter(np.unique(new).tolist()))
        raise TableError(
            f"column {kind!r} of {events.reading.file} must have types of the fit, "
            f"{', '.join(known):.200}, got {counted(len(new), 'row')} of others, such as "
            f"{first!r}: leave these rows out, or fit again with events of all types."
        )


def check_observed(events: MarkedEvents, frame: Frame) -> None:
    """Raise unless some events lie in the observation period."""
    clock, times = frame.clock, events.X[:, -1]
    assert clock is not None
    if not np.any(times >= 0.0):
        last = clock.words(times.max(keepdims=True))[0]
        raise TableError(
            f"{events.reading.file} has no events from {moment(clock.start)} to "
            f"{moment(clock.end)}, only earlier ones, until {last}: correct start= and end=."
        )
