"""One pass over a file of events: what a fit, a comparison and a picture need of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, final

import numpy as np

from hplus._checks import Floats
from hplus._values import Value, value
from hplus.rates.statistic import Statistic
from hplus.storage import storable
from hplus.studies.frames import Frame, Placed
from hplus.studies.spans import SECONDS, moment
from hplus.tables.cells import Zone
from hplus.tables.source import Table, TableError, open_table
from hplus.windows import Window

MOST_KEPT = 200_000
"""Events that are kept as they are, of each part; of more, some are drawn."""


@storable
@final
@value
class Reading(Value):
    """What was read of a file: rows, those kept, and why others were dropped."""

    file: str
    rows: int
    kept: int
    dropped: dict[str, int]

    @property
    def share_dropped(self) -> float:
        """Dropped rows, as a share of all."""
        return (self.rows - self.kept) / self.rows if self.rows else 0.0

    def refuse_beyond(self, most: float, advice: str = "mend the file") -> None:
        """Refuse a file of which more rows than this share were dropped."""
        if self.share_dropped > most:
            reasons = ", ".join(f"{n} {why}" for why, n in self.dropped.items())
            raise TableError(
                f"{self.rows - self.kept} of {self.rows} rows of {self.file} cannot be used "
                f"({reasons}), which is more than --most-dropped {most:g}: {advice}, or if only "
                "this part is wanted, say --most-dropped 1."
            )


class Sample:
    """A random sample of bounded size of events that come in chunks.

    Events are kept while their random number lies below a threshold, which is halved whenever too
    many are kept: every event has the same chance, wherever it stands in the file.
    """

    def __init__(self, dimension: int, most: int = MOST_KEPT) -> None:
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


def factors(frame: Frame) -> tuple[Window, ...]:
    """The windows that are learned apart: places and times, if a frame has both."""
    if frame.region is None or frame.clock is None:
        return (frame.window,)
    return frame.region, frame.clock.window


class Binned:
    """The statistics of events, one for each factor of a frame's window."""

    def __init__(self, windows: tuple[Window, ...]) -> None:
        empty = (np.zeros((0, window.dimension)) for window in windows)
        self.parts = tuple(map(Statistic.of, windows, empty))

    @property
    def events(self) -> int:
        """How many."""
        return self.parts[0].events

    def add(self, X: Floats, rng: Any) -> None:
        """Count events (n, d) in."""
        ends = np.cumsum([part.window.dimension for part in self.parts])
        pieces = np.split(X, ends[:-1], axis=1)
        self.parts = tuple(
            part + Statistic.of(part.window, piece, random_state=rng)
            for part, piece in zip(self.parts, pieces, strict=True)
        )

    def joined(self, other: Binned) -> tuple[Statistic, ...]:
        """The statistics of both."""
        return tuple(a + b for a, b in zip(self.parts, other.parts, strict=True))


class Events:
    """Events of a file, split into those to learn from and those held out."""

    def __init__(self, frame: Frame, share: float, seed: int) -> None:
        windows = factors(frame)
        self.share = share
        self.learned, self.held = Binned(windows), Binned(windows)
        d = frame.window.dimension
        self.known, self.unseen = Sample(d), Sample(d)
        self._rng = np.random.RandomState(seed)

    def add(self, X: Floats) -> None:
        """Events (n, d), each held out with the same probability."""
        u, v = self._rng.random_sample((len(X), 2)).T
        out = u < self.share
        self.learned.add(X[~out], self._rng)
        self.known.add(X[~out], v[~out])
        if out.any():
            self.held.add(X[out], self._rng)
            self.unseen.add(X[out], v[out])


def placed(table: Table, frame: Frame) -> Iterator[Placed]:
    """The rows of a file as points, chunk by chunk; times that were rounded are spread."""
    zones = set()
    for chunk in table.chunks(frame.needed):
        found = frame.points(chunk)
        if frame.clock is not None:
            rows = chunk.first + np.flatnonzero(found.rows)
            found.X[:, -1] = frame.clock.spread_out(found.X[:, -1], rows)
        zones |= {found.zone} - {Zone.NEITHER}
        if len(zones) > 1:
            raise TableError(
                f"times in {table.path} must all have an offset such as +02:00, or none, got both: "
                "convert them to one zone first."
            )
        yield found


def read_events(table: Table, frame: Frame, events: Any) -> Reading:
    """Add all events of a file to `events`, and say what was read."""
    rows = kept = 0
    dropped: Counter[str] = Counter()
    low, high = np.array(np.inf), np.array(-np.inf)
    for part in placed(table, frame):
        events.add(part.X)
        rows += len(part.X) + part.dropped.total()
        kept += len(part.X)
        dropped += part.dropped
        low, high = np.minimum(low, part.low), np.maximum(high, part.high)
    if table.broken:
        rows, dropped = rows + table.broken, dropped + Counter({"broken line": table.broken})
    if kept == 0:
        raise TableError(_nothing(table, frame, rows, dropped, low, high))
    return Reading(table.path, rows, kept, dict(dropped))


def _nothing(
    table: Table, frame: Frame, rows: int, dropped: Counter[str], low: Any, high: Any
) -> str:
    """Why no row could be used, and what to do."""
    if rows == 0:
        return f"{table.path} has a header but no rows: there is nothing to learn from."
    reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.most_common(3))
    advice = "check the names of the columns"
    if "outside the window" in dropped or "outside the time watched" in dropped:
        advice = f"the data's range is {range_option(frame, low, high)}"
    if "outside the window" in dropped and _swapped(frame, low, high):
        a, b = frame.columns
        advice = f"longitude and latitude look swapped, try --lonlat {b},{a}"
    return f"none of the {rows} rows of {table.path} can be used ({reasons}): {advice}."


def _swapped(frame: Frame, low: Floats, high: Floats) -> bool:
    """Would a longitude and a latitude lie in the window the other way round?"""
    if frame.place is None or frame.region is None:
        return False
    middle = np.array([[low[1] + high[1], low[0] + high[0]]]) / 2.0
    a, b = frame.region.bounds()
    X = frame.place.forward(middle)[0]
    return bool(np.all((a <= X) & (b >= X)))


def range_option(frame: Frame, low: Floats, high: Floats) -> str:
    """The range of the columns as options to paste."""
    d = len(frame.columns)
    parts = []
    if d:
        parts.append(window_option(low[:d], high[:d]))
    if frame.clock is not None:
        parts.append(times_option(float(low[-1]), float(high[-1])))
    return " ".join(parts)


def times_option(low: float, high: float) -> str:
    """A time around data as options to paste: whole days or, of a short time, whole seconds."""
    step = SECONDS["day"] if high - low > 2 * SECONDS["day"] else 1.0
    # what comes at the very end is not in a time
    first, last = np.floor(low / step) * step, np.ceil((high + 1e-3) / step) * step
    return f"--from {moment(float(first))} --to {moment(float(last))}"


def window_option(low: Floats, high: Floats) -> str:
    """A box around data as an option to paste, its corners rounded outwards."""
    corners = []
    for bound, rounding in ((low, np.floor), (high, np.ceil)):
        for b, side in zip(bound, high - low, strict=True):
            step = 10.0 ** np.floor(np.log10(side if side > 0.0 else max(abs(b), 1.0)) - 1.0)
            edge = float(rounding(np.round(b / step, 9)) * step)
            if side == 0.0:
                edge += step if rounding is np.ceil else -step
            corners.append(f"{edge:.10g}")
    return f"--window {','.join(corners)}"


def sample_events(path: str, frame: Frame, seed: int = 0) -> Floats:
    """Events of a file in the window of a frame, (n, d); of very many a random sample."""
    kept = Events(frame, 0.0, seed)
    read_events(open_table(path), frame, kept)
    return kept.known.X
