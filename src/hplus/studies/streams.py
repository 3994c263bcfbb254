"""StreamStudy: a rate of events learned from lines as they come, and continued where it stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Self, final

import numpy as np

from hplus._checks import Bools, Floats
from hplus.estimators.base import Estimator
from hplus.storage import storable
from hplus.streaming.budgets import AUTO
from hplus.streaming.engine.layout import EXPOSURE, SEEN
from hplus.streaming.intensity import AUTO_REFIT, StreamingIntensity
from hplus.streaming.methods import Refit, as_method
from hplus.studies.frames import Frame
from hplus.studies.spans import CYCLES, Amount
from hplus.tables.cells import Zone
from hplus.tables.feeds import Feed
from hplus.tables.lines import Block, Layout, Lines, is_json, layout_of, read_lines
from hplus.tables.moments import moments
from hplus.tables.source import Chunk, Table, csv_table

AT_ONCE = 2000
"""Lines that are read and learned from at a time."""

FIRST_GAP = 1e-9
"""Cycles watched before the first event, at the least."""


@storable
@final
class StreamStudy(Estimator):
    """How often events happen and where, learned from lines of CSV or JSON in bounded memory.

    What is learned depends on the lines alone, bit for bit, however their bytes were cut and
    however often the study was saved and loaded in between.

    Parameters
    ----------
    frame : Frame
        Which columns are the axes of which window; `plan` makes one. Times are taken as they are,
        never spread: what is there at the start must not decide.
    method : str or method, default="spppot"
        Of `StreamingIntensity`.
    budget : int, optional
        Atoms that are kept at most.
    forget : Amount, optional
        What was seen counts half as much after so many events, or with a cycle after so much time.
    exposure : Amount, optional
        What all lines so far stand for together, such as 82 games. A cycle knows by itself: from
        the frame's start to the latest event.

    Attributes
    ----------
    model_ : StreamingIntensity
    offset_ : int
        Bytes taken, up to the end of a line.
    lines_ : int
        Lines taken, without the header.
    events_ : int
    dropped_ : dict
        Lines that were of no use, by reason.
    header_ : str
        The first line of CSV; "" for JSON lines.
    """

    def __init__(
        self,
        frame: Any,
        method: Any = "spppot",
        budget: Any = None,
        forget: Any = None,
        exposure: Any = None,
    ) -> None:
        self.frame = frame
        self.method = method
        self.budget = budget
        self.forget = forget
        self.exposure = exposure

    def begin(self) -> Self:
        """Forget all, and wait for the first line."""
        self._check_parameters()
        self.model_ = StreamingIntensity(
            self.frame.window, method=self.method, budget=self._budget(), forget=self._half_life()
        )
        self.offset_, self.lines_, self.events_ = 0, 0, 0
        self.dropped_: dict[str, int] = {}
        self.header_, self.kind_, self.offsets_ = "", "", ""
        self.latest_ = self.frame.clock.start if self.frame.clock else 0.0
        self.made_with_: dict[str, Any] = {}
        self._lines = Lines()
        self.__dict__.pop("_layout", None)
        return self

    def fit(self, path: str, y: None = None) -> Self:
        """Forget all, and take the whole lines of a file; "-" is the standard input."""
        self.begin()
        feed = Feed(path)
        while (data := feed.read()) != b"":
            self.take(data or b"")
        feed.close()
        return self

    def take(self, data: bytes) -> Self:
        """Learn from the lines in `data`; the last one waits for its end."""
        if not hasattr(self, "model_"):
            self.begin()
        if "_lines" not in self.__dict__:
            self._lines = Lines()
        self._lines.add(data)
        while (block := self._lines.next(AT_ONCE)) is not None:
            self.learn(block)
        return self

    def learn(self, block: Block, heard: Callable[[Floats], None] | None = None) -> int:
        """Learn from whole lines, and say how many events they held.

        `heard` is called with the events (n, d) before they are learned.
        """
        data = block.data
        if not self.kind_ and data:
            data = self._first(data)
        layout = self._read_as()
        chunk, dropped = read_lines(data, layout, self.frame.needed) if data else (None, Counter())
        lines = data.count(b"\n") + block.long
        if block.long:
            dropped["line longer than 1 MB"] += block.long
        events = 0 if chunk is None else self._learn_rows(chunk, dropped, heard)
        for reason, lost in dropped.items():
            self.dropped_[reason] = self.dropped_.get(reason, 0) + lost
        self.lines_ += lines
        self.events_ += events
        self.offset_ += block.size
        return events

    @property
    def watched(self) -> Amount:
        """How long or how often the window was watched; 1 of no unit if nobody said."""
        cycle = self._cycle
        if cycle and hasattr(self.model_, "state_"):
            return Amount(float(self.model_.state_[0]["numbers"][EXPOSURE]), cycle)
        return Amount(1.0, cycle) if self.exposure is None or cycle else self.exposure

    @property
    def rate(self) -> float:
        """Events in the window for one unit of what was watched."""
        if not hasattr(self.model_, "state_"):
            return 0.0
        # the integral of the rate, which its shape has no part in
        return float(self.model_.state_[0]["numbers"][SEEN]) / self.watched.amount

    @property
    def atoms(self) -> int:
        """Atoms that are kept."""
        return self.model_.n_atoms_ if hasattr(self.model_, "state_") else 0

    def table(self) -> Table:
        """The columns of its lines, with no rows."""
        if self.kind_ == "json":
            return Table("-", list(self.frame.needed), lambda *_: iter(()))
        return csv_table("-", self.header_.encode() + b"\n")

    def settings(self) -> dict[str, str]:
        """What has to stay the same while a stream goes on, in words."""
        frame = self.frame
        clock = None if frame.clock is None else frame.clock.replace(spread=0.0)
        parts = {"columns": frame.columns, "window": frame.region, "map": frame.place,
                 "time": clock, "method": self.method, "budget": self.budget,
                 "forget": self.forget}  # fmt: skip
        return {name: "none" if part in (None, ()) else str(part) for name, part in parts.items()}

    def _first(self, data: bytes) -> bytes:
        """The lines without the header, which is kept."""
        if is_json(data):
            self.kind_ = "json"
            return data
        header, rest = data.split(b"\n", 1)
        table = csv_table("the stream", header)
        for name in self.frame.needed:
            table.require(name)
        self.header_, self.kind_ = header.decode("utf-8", "replace"), "csv"
        return rest

    def _read_as(self) -> Layout:
        if self.kind_ == "json" or not self.kind_:
            return Layout((), is_json=True)
        layout: Layout | None = self.__dict__.get("_layout")
        if layout is None:
            layout = self._layout = layout_of("the stream", self.header_.encode())
        return layout

    def _learn_rows(self, chunk: Chunk, dropped: Counter[str], heard: Any) -> int:
        seconds = np.zeros(len(chunk))
        if self.frame.clock is not None:
            chunk, seconds = self._timed(chunk, dropped)
        found = self.frame.points(chunk)
        dropped += found.dropped
        if len(found.X) == 0:
            return 0
        if heard is not None:
            heard(found.X)
        self.model_.partial_fit(found.X, exposure=self._gaps(seconds[found.rows]))
        return len(found.X)

    def _timed(self, chunk: Chunk, dropped: Counter[str]) -> tuple[Chunk, Floats]:
        """The rows with their times as times, without those whose times make no sense."""
        clock = self.frame.clock
        assert clock is not None
        found = moments(chunk.columns[clock.column], clock.zone, clock.form)
        good = ~self._drop(found.wrong, dropped, f"{clock.column} is not a time")
        known = good & ~np.isnan(found.seconds)
        if not self.offsets_ and known.any():
            self.offsets_ = (Zone.AWARE if found.aware[known][0] else Zone.NAIVE).value
        other = known & (found.aware != (self.offsets_ == Zone.AWARE.value))
        good &= ~self._drop(other, dropped, f"{clock.column} is not {self.offsets_}, as the first")
        columns = dict(chunk.columns) | {clock.column: found.stamps()}
        kept = {name: column.filter(good) for name, column in columns.items()}
        return Chunk(kept, chunk.first, chunk.comma), found.seconds[good]

    @staticmethod
    def _drop(bad: Bools, dropped: Counter[str], reason: str) -> Bools:
        if bad.any():
            dropped[reason] += int(bad.sum())
        return bad

    def _gaps(self, seconds: Floats) -> Floats | None:
        """Cycles from the latest event before to each event; None without a cycle."""
        if not self._cycle:
            return None
        latest = np.maximum.accumulate(np.concatenate([[self.latest_], seconds]))
        gaps = np.diff(latest) / CYCLES[self._cycle]
        if not hasattr(self.model_, "state_"):
            gaps[0] = max(gaps[0], FIRST_GAP)
        self.latest_ = float(latest[-1])
        return gaps

    @property
    def _cycle(self) -> str:
        return self.frame.clock.cycle if self.frame.clock else ""

    def _budget(self) -> Any:
        if self.budget is None:
            return "auto"
        auto = AUTO_REFIT if isinstance(as_method(self.method), Refit) else AUTO
        return auto.replace(size=self.budget)

    def _half_life(self) -> float | None:
        if self.forget is None:
            return None
        if self._cycle:
            return self.forget.of(Amount(1.0, self._cycle))
        if self.forget.unit not in ("", "event"):
            raise ValueError(
                f"forget must be a number of events, got {self.forget}: times need a cycle."
            )
        return self.forget.amount

    def _check_parameters(self) -> None:
        if not isinstance(self.frame, Frame):
            raise TypeError(f"frame must be a Frame, got {self.frame!r:.60}.")
        if self.exposure is not None and self._cycle:
            raise ValueError(
                f"exposure must be left out with a cycle, which knows how many {self._cycle}s were "
                f"watched, got {self.exposure}."
            )
        if self.exposure is not None and self.forget is not None:
            raise ValueError("give exposure or forget, not both: what is forgotten was watched.")
