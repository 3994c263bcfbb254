"""One pass over the events of a file: binned and split for a fit, or a sample of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.files.feeds import TableError
from hplus.files.tables import Table, open_table
from hplus.files.times import Zone
from hplus.rates.statistic import Statistic, merged, with_another
from hplus.studies.frames import Frame, Placed
from hplus.studies.ranges import NO_EXTENT, Extent, range_arguments
from hplus.windows import Window

MAX_SAMPLE = 200_000
"""Events that are kept one by one; of more, a random sample."""


@final
@value
class Reading(Value):
    """What was read of a file: its rows, those kept, and why others were dropped."""

    file: str
    rows: int
    kept: int
    dropped: dict[str, int]

    @property
    def share_dropped(self) -> float:
        """Dropped rows, as a share of all."""
        return (self.rows - self.kept) / self.rows if self.rows else 0.0

    def check_dropped(self, most: float, advice: str = "") -> None:
        """Raise if more than this share of the rows of a file was dropped."""
        if self.share_dropped > most:
            outside = any(reason.startswith("outside") for reason in self.dropped)
            advice = advice or ("correct the window or period" if outside else "fix the file")
            raise TableError(
                f"{self.rows - self.kept} of {self.rows} rows of {self.file} cannot be used "
                f"({_reasons(self.dropped)}), which is more than most_dropped={most:g}: {advice}, "
                "or pass most_dropped=1 if the other rows are enough."
            )


TIME_ADVICE = (
    "times must be ISO 8601 or seconds since 1970; others, such as 03/04/2026, need form=, and "
    "plain numbers belong in columns="
)


class Sample:
    """A random sample, of bounded size, of events that come in chunks.

    An event is kept while its random number lies below a threshold, which is halved whenever too
    many are kept: every event has the same chance, wherever it is in the file.
    """

    def __init__(self, dimension: int, most: int = MAX_SAMPLE) -> None:
        self.X, self._u = np.zeros((0, dimension)), np.zeros(0)
        self._most, self._threshold = most, 1.0

    def add(self, X: Floats, u: Floats) -> None:
        """Events (n, d) with independent uniform numbers (n,)."""
        self.X = np.concatenate([self.X, X[u < self._threshold]])
        self._u = np.concatenate([self._u, u[u < self._threshold]])
        while len(self._u) > self._most:
            self._threshold /= 2.0
            kept = self._u < self._threshold
            self.X, self._u = self.X[kept], self._u[kept]


Statistics = tuple[Statistic, ...]
"""A statistic of each window that is learned separately."""

Parts = tuple[Statistics, ...]
"""Statistics of parts of the events, for each such window."""


def binned(windows: Sequence[Window], X: Floats) -> Statistics:
    """The statistics of events (n, d), whose columns are split among the windows."""
    ends = np.cumsum([window.dimension for window in windows])
    parts = zip(windows, np.split(X, ends[:-1], axis=1), strict=True)
    return tuple(Statistic.of(window, part) for window, part in parts)


def added(a: Statistics, b: Statistics) -> Statistics:
    """The statistics of the events of both."""
    return tuple(left + right for left, right in zip(a, b, strict=True))


class SplitEvents:
    """Events of a file, split into those to learn from and those held out.

    Of each there are the statistics, and a sample of the events themselves. Places and times are
    learned separately.
    """

    def __init__(self, frame: Frame, share: float, seed: int) -> None:
        self._windows: tuple[Window, ...] = (frame.window,)
        if frame.region is not None and frame.clock is not None:
            self._windows = (frame.region, frame.clock.window)
        d = frame.window.dimension
        self._share, self._rng = share, np.random.RandomState(seed)
        none = binned(self._windows, np.zeros((0, d)))
        self._learned: Parts = tuple((part,) for part in none)
        self._held: Parts = self._learned
        self.learned_sample, self.held_sample = Sample(d), Sample(d)

    def add(self, X: Floats) -> None:
        """Events (n, d), each held out with the same probability."""
        u, v = self._rng.random_sample((len(X), 2)).T
        out = u < self._share
        self._learned = self._with(self._learned, X[~out])
        self.learned_sample.add(X[~out], v[~out])
        if out.any():
            self._held = self._with(self._held, X[out])
            self.held_sample.add(X[out], v[out])

    @property
    def learned(self) -> Statistics:
        """The statistics of the events to learn from."""
        return tuple(map(merged, self._learned))

    @property
    def held(self) -> Statistics:
        """The statistics of the events held out."""
        return tuple(map(merged, self._held))

    def _with(self, parts: Parts, X: Floats) -> Parts:
        return tuple(map(with_another, parts, binned(self._windows, X)))


def placed(table: Table, frame: Frame) -> Iterator[Placed]:
    """The rows of a file as points, chunk by chunk; rounded times are spread out."""
    zone = Zone.NEITHER
    for chunk in table.chunks(frame.needed):
        found = frame.points(chunk, zone)
        zone = found.zone
        if frame.clock is not None:
            rows = chunk.first + np.flatnonzero(found.rows)
            found.X[:, -1] = frame.clock.spread_out(found.X[:, -1], rows)
        yield found


def read_events(
    table: Table,
    frame: Frame,
    add: Callable[[Floats], None],
    also: Callable[[Floats, Floats], None] = lambda X, seconds: None,
) -> tuple[Reading, Extent]:
    """Pass the events (n, d) of a file to `add`, chunk by chunk; what was read, and its range.

    `also` gets them with their times in seconds since 1970, before these are folded or spread.
    """
    rows = kept = 0
    dropped: Counter[str] = Counter()
    extent = NO_EXTENT
    for part in placed(table, frame):
        add(part.X)
        also(part.X, part.seconds)
        rows += len(part.rows)
        kept += len(part.X)
        dropped += part.dropped
        extent = extent.including(part.low, part.high)
    rows, dropped = rows + table.dropped.total(), dropped + table.dropped
    if kept == 0:
        raise TableError(_nothing(table, frame, rows, dropped, extent))
    return Reading(table.path, rows, kept, dict(dropped)), extent


class Sampled(NamedTuple):
    """Events of a file (n, d), what was read, and the range of its columns."""

    X: Floats
    reading: Reading
    extent: Extent


def sampled(path: str, frame: Frame, seed: int = 0) -> Sampled:
    """Events of a file in the window of a frame; of very many, a random sample."""
    sample, rng = Sample(frame.window.dimension), np.random.RandomState(seed)
    found = read_events(open_table(path), frame, lambda X: sample.add(X, rng.random_sample(len(X))))
    return Sampled(sample.X, *found)


def _reasons(dropped: Mapping[str, int]) -> str:
    return "; ".join(f"{reason}: {count}" for reason, count in dropped.items())


def _nothing(table: Table, frame: Frame, rows: int, dropped: Counter[str], extent: Extent) -> str:
    """Why no row could be used, and what to do."""
    if rows == 0:
        return f"{table.path} has a header but no rows: there is nothing to learn from."
    advice = "check the names of the columns"
    if frame.clock is not None and f"{frame.clock.column} is not a time" in dropped:
        advice = TIME_ADVICE
    if "outside the window" in dropped or "outside the observation period" in dropped:
        found = range_arguments(extent, len(frame.columns), frame.clock is not None)
        advice = f"the data span {', '.join(found)}"
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
