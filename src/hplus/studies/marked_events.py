"""Events of a file one by one, with marks and types, those before the observation period too."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hplus._checks import Bools, Floats, Ints
from hplus.files.cells import numbers, texts
from hplus.files.feeds import TableError
from hplus.files.rows import Chunk
from hplus.files.tables import Table, open_table
from hplus.files.times import MAX_SECONDS, Zone
from hplus.studies.events import Reading, fingerprint_of, nothing_usable
from hplus.studies.frames import Frame, Placed
from hplus.studies.ranges import NO_EXTENT
from hplus.studies.spans import moment

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


class Labels(NamedTuple):
    """Which rows of a chunk have a mark and a type, and what these are, (n,) each."""

    good: Bools
    marks: Floats
    types: Words


def read_marked(
    path: str | Table,
    frame: Frame,
    mark: str = "",
    kind: str = "",
    span: tuple[float, float] | None = None,
) -> MarkedEvents:
    """The events of a file in one pass; rows that cannot be used are counted by reason.

    From `span`, in seconds since 1970: by default all until the end of the observation period, of
    which those before its start are history.
    """
    clock = frame.clock
    assert clock is not None
    table = path if isinstance(path, Table) else open_table(path)
    named = [name for name in (mark, kind) if name]
    for name in named:
        table.require(name)
    low, high = span or (-MAX_SECONDS, clock.end)
    anytime = frame.replace(clock=clock.replace(start=low, end=high))
    points, marks, types = (
        [np.zeros((0, frame.window.dimension))],
        [np.zeros(0)],
        [np.zeros(0, "O")],
    )
    dropped: Counter[str] = Counter()
    rows, total, extent, zone = 0, 0, NO_EXTENT, Zone.NEITHER
    for chunk in table.chunks([*frame.needed, *named]):
        found = anytime.points(chunk, zone)
        labels = _labels(chunk, np.flatnonzero(found.rows), mark, kind, dropped)
        dropped += found.dropped
        rows, zone, extent = rows + len(chunk), found.zone, extent.including(found.low, found.high)
        points.append(_points(frame, chunk, found, labels.good, high))
        marks.append(labels.marks[labels.good])
        types.append(labels.types[labels.good])
        total += fingerprint_of(np.column_stack([found.X[:, :-1], found.seconds])[labels.good])
    rows, dropped, X = rows + table.dropped.total(), dropped + table.dropped, np.concatenate(points)
    if len(X) == 0:
        raise TableError(nothing_usable(table, anytime, rows, dropped, extent))
    reading = Reading(table.path, rows, len(X), dict(dropped), f"{total % 2**64:016x}")
    numbers_, words = np.concatenate(marks), np.concatenate(types)
    return MarkedEvents(X, numbers_ if mark else None, words.astype(str) if kind else None, reading)


def _points(frame: Frame, chunk: Chunk, found: Placed, good: Bools, end: float) -> Floats:
    """Events on the frame's own axis of time; rounded times are spread out, up to the end."""
    clock = frame.clock
    assert clock is not None
    X, rows = found.X[good], chunk.first + np.flatnonzero(found.rows)[good]
    last = float(clock.axis(np.array([end]))[0])
    X[:, -1] = clock.spread_out(clock.axis(found.seconds[good]), rows, last)
    return X


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
