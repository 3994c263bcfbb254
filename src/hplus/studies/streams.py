"""StreamStudy: a rate of events learned from lines as they arrive, which can be resumed."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike, fspath
from typing import Any, Self, final

import numpy as np

from hplus._checks import Floats, Ints
from hplus.estimators.base import Estimator
from hplus.files.chunked_table import Table
from hplus.files.conditions import Tally
from hplus.files.feeds import Feed
from hplus.files.lines import TOO_LONG, Lines, WholeLines
from hplus.files.rows import Chunk, Layout
from hplus.files.rows_alone import read_alone
from hplus.files.tables import TableLike, as_table, is_json, layout_of, start_table
from hplus.files.times import Zone
from hplus.streaming.budgets import AUTO, AUTO_REFIT
from hplus.streaming.engine.layout import EXPOSURE
from hplus.streaming.intensity import StreamingIntensity
from hplus.streaming.methods import Refit, Tree, as_method
from hplus.studies.events import fingerprint_of
from hplus.studies.frames import check_frame
from hplus.studies.spans import Amount
from hplus.studies.stream_facts import stream_facts, stream_settings
from hplus.studies.stream_times import StreamTimes

MAX_LINES, MAX_TREE_LINES = 2000, 2**17
"""Lines that are read and learned from at a time; more by trees, which only count."""


@final
class StreamStudy(Estimator):
    """How often events happen and where, learned from lines of CSV or JSON in bounded memory.

    What is learned depends on the lines alone, bit for bit, however their bytes were cut and
    however often the study was saved and loaded in between.

    Parameters
    ----------
    frame : Frame
        Which columns are the axes of which window; see `plan`. Times are never spread out: that
        would depend on the lines that are there at the start.
    method : str or method, default="tree"
        The method of `StreamingIntensity`.
    budget : int, optional
        The largest number of atoms, of a method that has atoms.
    forget : Amount, optional
        The half-life of events. With a column of times it is a time: "tree" goes by these in any
        order, other methods need a cycle. Otherwise a number of events, in the order of lines.
    exposure : Amount, optional
        The exposure of all lines so far, for example 82 games. With a cycle it is the time from the
        frame's start to the latest event.

    Attributes
    ----------
    model_ : StreamingIntensity
        With "tree", of all events without an exposure: `stream_answers.answering` gives rates.
    offset_ : int
        Bytes read, up to the end of a line.
    lines_ : int
        Lines read, without the header.
    events_ : int
    dropped_, left_out_ : dict
        Lines that could not be read, and those left out by a condition or the window, by reason.
    header_ : str
        The first line of CSV; "" for JSON lines.
    """

    posted_: tuple[int, float, Ints, int]  # of hplus.serve: offset, clock, ledger, models

    def __init__(
        self,
        frame: Any,
        method: Any = "tree",
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
        """Start again, before the first line."""
        self._check_parameters()
        self.model_ = StreamingIntensity(
            self.frame.window,
            method=self.method,
            budget=self._budget(),
            forget=self.times.half_life,
        )
        self.offset_, self.lines_, self.events_ = 0, 0, 0
        self.dropped_: dict[str, int] = {}
        self.left_out_: dict[str, int] = {}
        self.header_, self.kind_, self.offsets_, self.fingerprint_ = "", "", "", 0
        self.latest_ = self.frame.clock.start if self.frame.clock else 0.0
        self.made_with_: dict[str, Any] = {}
        self._lines = Lines()
        return self

    def fit(self, source: TableLike, y: None = None) -> Self:
        """Start again, and learn from the whole lines of a file; "-" is the standard input.

        Or from the rows of a data frame, an Arrow table or a dict of arrays.
        """
        self.begin()
        if not isinstance(source, str | PathLike):
            return self.partial_fit(source)
        feed = Feed(str(fspath(source)))
        while (data := feed.read()) != b"":
            self.take(data or b"")
        feed.close()
        return self

    def partial_fit(self, table: TableLike, y: None = None) -> Self:
        """Learn from the rows of a data frame, an Arrow table or a dict of arrays, and go on."""
        if not hasattr(self, "model_"):
            self.begin()
        for chunk in as_table(table).chunks(self.frame.asked_for):
            self.lines_ += len(chunk)
            tally = Tally()
            self.events_ += self._learn_chunk(chunk, tally)
            self._count_lost(tally)
        return self

    def take(self, data: bytes) -> Self:
        """Learn from the lines in `data`; an incomplete last line waits for its end."""
        if not hasattr(self, "model_"):
            self.begin()
        if "_lines" not in self.__dict__:
            self._lines = Lines()
        self._lines.add(data)
        while (block := self._lines.next(self.lines_at_once)) is not None:
            self.learn(block)
        return self

    def learn(self, block: WholeLines, heard: Callable[[Floats], None] | None = None) -> int:
        """Learn from whole lines, and return how many events they held; `heard` gets them first."""
        data = block.data
        data = self._without_header(data) if data and not self.kind_ else data
        tally = Tally()
        events = self._learn_lines(data, tally, heard) if data else 0
        tally.dropped[TOO_LONG] += block.long
        self._count_lost(tally)
        self.lines_ += data.count(b"\n") + block.long
        self.events_ += events
        self.offset_ += block.size
        return events

    def learn_points(self, X: Floats, seconds: Floats) -> None:
        """Learn from events (n, d) of the window with times (n,), but count no lines."""
        if self.by_trees:
            self.model_.partial_fit(X, times=self.times.ages(seconds))
        else:
            first = not hasattr(self.model_, "state_")
            gaps = self.times.gaps(seconds, self.latest_, first)
            self.model_.partial_fit(X, exposure=gaps)
        if self.frame.clock is not None:
            self.latest_ = max(self.latest_, float(seconds.max()))
        if hasattr(self, "fingerprint_"):  # not in a state of an earlier version
            own = np.column_stack([X[:, : len(self.frame.columns)], seconds])
            self.fingerprint_ = (self.fingerprint_ + fingerprint_of(own)) % 2**64

    @property
    def total_exposure(self) -> Amount:
        """The exposure: of a cycle, or as given; 1 without a unit if it is not known."""
        cycle = self.frame.cycle
        if cycle and hasattr(self.model_, "state_"):
            numbers = None if self.by_trees else self.model_.state_[0]["numbers"]
            known = self.times.cycles(self.latest_) if numbers is None else numbers[EXPOSURE]
            return Amount(float(known), cycle)
        return Amount(1.0, cycle) if self.exposure is None or cycle else self.exposure

    @property
    def watched(self) -> Amount:
        """The former name of `total_exposure`."""
        return self.total_exposure

    @property
    def rate(self) -> float:
        """Events in the window per unit of exposure."""
        if not hasattr(self.model_, "state_"):
            return 0.0
        # the integral of the rate does not depend on its shape
        return self.model_.effective_events_ / self.total_exposure.amount

    @property
    def atoms(self) -> int:
        """The number of atoms, or of cells."""
        return self.model_.n_atoms_ if hasattr(self.model_, "state_") else 0

    @property
    def kept_in(self) -> str:
        """What is kept of events: "cells" or "atoms"."""
        return "cells" if self.by_trees else "atoms"

    @property
    def lines_at_once(self) -> int:
        """Lines that are best learned from together."""
        return MAX_TREE_LINES if self.by_trees else MAX_LINES

    @property
    def by_trees(self) -> bool:
        """Is the method "tree", which keeps cells and not atoms?"""
        return isinstance(as_method(self.method), Tree)

    @property
    def fingerprint(self) -> str:
        """That of all events, as in a `Reading`; "" in files of earlier versions."""
        return f"{self.fingerprint_:016x}" if hasattr(self, "fingerprint_") else ""

    @property
    def times(self) -> StreamTimes:
        """What times mean for exposure and forgetting."""
        return StreamTimes(self.frame, self.forget, self.by_trees)

    def facts(self) -> dict[str, Any]:
        """What was learned so far, as numbers and text."""
        return stream_facts(self)

    def table(self) -> Table:
        """A table with the columns of the stream and no rows."""
        if self.kind_ == "json":
            return Table("-", self.frame.asked_for, lambda *_: iter(()))
        return start_table("-", self.header_.encode() + b"\n")

    def settings(self) -> dict[str, str]:
        """The settings that must stay the same when a stream is resumed, as text."""
        return stream_settings(self)

    def _without_header(self, data: bytes) -> bytes:
        """The lines without the header, which is kept."""
        if is_json(data):
            self.kind_ = "json"
            return data
        header, rest = data.split(b"\n", 1)
        table = start_table("the stream", header + b"\n")
        for name in self.frame.asked_for:
            table.require(name)
        self.header_, self.kind_ = header.decode("utf-8", "replace"), "csv"
        return rest

    def _learn_lines(
        self, data: bytes, tally: Tally, heard: Callable[[Floats], None] | None
    ) -> int:
        is_csv, header = self.kind_ != "json", self.header_.encode()
        layout = layout_of("the stream", header) if is_csv else Layout((), is_json=True)
        chunk, lost = read_alone(data, layout, self.frame.asked_for)
        tally.dropped += lost
        return self._learn_chunk(chunk, tally, heard)

    def _learn_chunk(
        self, chunk: Chunk, tally: Tally, heard: Callable[[Floats], None] | None = None
    ) -> int:
        """Learn from rows, and return how many events they held; others are tallied."""
        if self.frame.where is not None:
            chunk = self.frame.where.chosen(chunk, tally, alone=True)
        found = self.frame.points(chunk, Zone(self.offsets_ or Zone.NEITHER), alone=True)
        self.offsets_ = "" if found.zone is Zone.NEITHER else found.zone.value
        tally.dropped += found.dropped
        tally.left_out += found.left_out
        if len(found.X) == 0:
            return 0
        if heard is not None:
            heard(found.X)
        self.learn_points(found.X, found.seconds)
        return len(found.X)

    def _count_lost(self, tally: Tally) -> None:
        """Add the lines without an event, by reason."""
        if not hasattr(self, "left_out_"):  # a state of an earlier version
            self.left_out_ = {}
        for known, new in ((self.dropped_, tally.dropped), (self.left_out_, tally.left_out)):
            for reason, lost in (+new).items():
                known[reason] = known.get(reason, 0) + lost

    def _budget(self) -> Any:
        if self.budget is None:
            return "auto"
        auto = AUTO_REFIT if isinstance(as_method(self.method), Refit) else AUTO
        return auto.replace(size=self.budget)

    def _check_parameters(self) -> None:
        check_frame(self.frame, self.exposure)
        if self.frame.weight:
            raise ValueError(
                f"weight must be left out of a stream, got {self.frame.weight!r}: use EventStudy."
            )
        if self.by_trees and self.budget is not None:
            raise ValueError(f'budget must be left out for method="tree", got {self.budget}.')
        if self.exposure is not None and self.forget is not None:
            raise ValueError("give exposure= or forget=, not both.")
