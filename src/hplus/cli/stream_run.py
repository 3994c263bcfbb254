"""The work of hplus stream: learn from lines, save snapshots, and then show them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic, perf_counter
from typing import Any

import click

from hplus import save
from hplus.cli.base import CommandError, note, note_dropped, note_left_out
from hplus.cli.fit import plan_arguments
from hplus.cli.live import View, view_of
from hplus.cli.summary import made_with
from hplus.files.feeds import Feed
from hplus.files.lines import Lines
from hplus.files.tables import start_table
from hplus.storage.slots import DamagedError
from hplus.studies.frames import Frame
from hplus.studies.plans import plan
from hplus.studies.previews import Preview
from hplus.studies.snapshots import Snapshots, differences
from hplus.studies.stream_facts import left_out_of
from hplus.studies.streams import StreamStudy
from hplus.wording import count

NO_END = "2100-01-01"
"""The end of the observation period of a cycle, by default."""

MIN_LINES = 20
"""Lines that are read at once, at least, if this many events are wanted."""

MOST_SAVING = 0.1
"""The largest share of the time that snapshots take, unless --every asks for them."""


def run_stream(
    file: str, output: str | None, state: str | None, as_json: bool, options: dict[str, Any]
) -> None:
    """Learn from a file or pipe until it ends; a signal stops it with exit code 130."""
    began = perf_counter()
    with ExitStack() as stack:
        feed = Feed(file, options["follow"])
        stack.callback(feed.close)
        snapshots = stack.enter_context(Snapshots(state)) if state else None
        study = _study(feed, snapshots, options)
        if snapshots is None:
            note("No snapshots are saved: give --state FOLDER to be able to resume.")
        view = stack.enter_context(view_of(as_json, safe=state is not None))
        run = StreamRun(study, feed, snapshots, view, options["every"], options["seconds"])
        with stop_signals() as stopped:
            run.go(stopped)
            interrupted = stopped()
    study.made_with_ = made_with(began, 0)
    _end(study, run, output, interrupted)
    if interrupted:
        raise click.exceptions.Exit(130)


def _study(feed: Feed, snapshots: Snapshots | None, options: dict[str, Any]) -> StreamStudy:
    """The study to continue, or a new one."""
    try:
        kept = None if snapshots is None else snapshots.newest()
    except DamagedError as error:
        raise CommandError(f"{error} Give another --state to start again.", 4) from error
    words = plan_arguments(options)
    if words["cycle"] and words["end"] is None:
        words["end"] = NO_END
    frame = _frame(feed, kept if options["live"] else None, words)
    method = options["method"] or ("tree" if kept is None else kept.method)
    asked = StreamStudy(
        frame, method, options["budget"], options["forget"], options["exposure"]
    ).begin()
    if kept is None or snapshots is None:
        return asked
    if differ := differences(kept, asked):
        raise CommandError(
            f"{snapshots.folder} holds a stream with {'; '.join(differ)}: give the same options, "
            "or another --state.",
            2,
        )
    kept.exposure = asked.exposure
    if hasattr(kept, "posted_") and not options["live"]:
        raise CommandError(
            f"{snapshots.folder} holds events that were posted to hplus serve: a file cannot be "
            "resumed there, but a pipe of new lines can be added with - and --live.",
            2,
        )
    if not options["live"]:
        feed.skip(kept.offset_, kept.header_)
    note(f"Resuming after {count(kept.events_)} events, at byte {kept.offset_}.")
    return kept


def _frame(feed: Feed, kept: StreamStudy | None, words: dict[str, Any]) -> Frame:
    """The frame of the input, from its first lines before they are learned."""
    try:
        return plan(start_table(feed.path, feed.peek()) if kept is None else kept.table(), **words)
    except ValueError:
        if feed.is_pipe:
            raise
        return plan(feed.path, **words)  # to say what all of the file spans


class StreamRun:
    """A running stream: it learns from lines, saves snapshots, and then shows them."""

    def __init__(
        self,
        study: StreamStudy,
        feed: Feed,
        snapshots: Snapshots | None,
        view: View,
        every: int | None,
        seconds: float,
    ) -> None:
        self.study, self.feed, self.snapshots, self.view = study, feed, snapshots, view
        self.every, self.seconds = every, seconds
        self.lines, self.preview = Lines(), Preview(study.model_)
        self.preview.update()
        self._events, self._offset, self._at = study.events_, study.offset_, monotonic()
        self._cost = 0.0

    def go(self, stopped: Callable[[], bool]) -> None:
        """Read all lines, until the end or a request to stop."""
        while not stopped():
            data = self.feed.read()
            self.lines.add(data or b"")
            while not stopped() and (block := self.lines.next(self._most())) is not None:
                self.study.learn(block, self.preview.score_events)
                self.view.tick(self.study)
                self._snapshot_if_due()
            if data == b"":
                break
            self.view.tick(self.study)
            self._snapshot_if_due()
        self._snapshot()

    def _most(self) -> int:
        """Lines to read at once: up to the next snapshot, but not line by line if some are bad."""
        if not self.study.kind_:
            return 1  # the header
        most = self.study.lines_at_once
        if self.every is None:
            return most
        due = self._events + self.every - self.study.events_
        return min(max(due, MIN_LINES), self.every, most)

    def _snapshot_if_due(self) -> None:
        if self._offset == self.study.offset_:
            self._at = monotonic()  # nothing has been waiting
        elif self._enough or monotonic() - self._at >= max(self.seconds, self._cost / MOST_SAVING):
            self._snapshot()

    @property
    def _enough(self) -> bool:
        """Have as many events come as were asked for?"""
        return self.every is not None and self.study.events_ - self._events >= self.every

    def _snapshot(self) -> None:
        """Save what was learned, and only then show it."""
        study, began = self.study, monotonic()
        if study.offset_ == self._offset:
            return
        if self.snapshots is not None:
            self.snapshots.save(study)
        loss = self.preview.loss()
        self.preview.update()
        self._events, self._offset, self._at = study.events_, study.offset_, monotonic()
        self._cost = self._at - began
        self.view.show(study, self.preview, loss)


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """SIGINT and SIGTERM as a request to stop, which can be polled; a second one does not wait."""
    asked: list[int] = []

    def ask(number: int, _: Any) -> None:
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(study: StreamStudy, run: StreamRun, output: str | None, interrupted: bool) -> None:
    note_dropped(study.dropped_, study.lines_, "lines")
    note_left_out(left_out_of(study))
    if run.lines.waiting and not interrupted:  # else there may be whole lines
        note(
            f"The last {count(run.lines.waiting)} bytes are an incomplete line, which was not read."
        )
    if output is not None:
        save(study, output, summary=study.facts())
        note(f"Saved {output}.")
