"""Service: one thread that writes posts, one that learns models and saves snapshots."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition, Event, Thread
from typing import NamedTuple, final

from hplus._checks import Floats
from hplus.serve.ledger import Answer, Refused
from hplus.serve.posted_study import FrozenStudy, StudyMachine
from hplus.serve.posts import Post
from hplus.serve.ready_trees import make_ready
from hplus.serve.store import Frozen, Store
from hplus.serve.subscribers import Subscribers
from hplus.storage.files import Json
from hplus.studies.event_study import EventStudy
from hplus.studies.frames import Frame
from hplus.studies.stream_answers import answering

MOST_QUEUED_POSTS, MOST_QUEUED_BYTES = 1024, 2**26
"""Posts that wait to be written, and their bytes; more are refused."""

MOST_GROUP_BYTES = 2**24
"""Bytes of posts after which no more are written and synced with them."""

MOST_RECENT_POSTS, MOST_RECENT_EVENTS = 512, 200
"""Posts of which the last events are kept for who shows them, and how many of each."""

NEWS_SECONDS = 0.2
"""How often subscribers are told of events, at most."""

MOST_SHARE = 0.2
"""The share of the time that learning models may take, at most."""

FIRST_WAIT = 0.05
"""Seconds before the first model is learned."""

FIRST_MODEL = (
    "the first model is being learned. After hplus is installed, this takes up to half a minute "
    "once, while code is compiled."
)
"""What is said before there is a model."""

TICK_SECONDS = 60.0
"""How often the clock is written if no post comes, where it is the exposure."""

SNAPSHOT_BYTES = 2**25
"""Bytes of the log after which a snapshot is due, whatever the time."""


class Model(NamedTuple):
    """What was learned from the events up to an offset.

    `version` grows by one each time, and by a few when the service is started again.
    """

    version: int
    study: EventStudy
    events: int
    offset: int
    at: float
    seconds: float


class RecentEvents(NamedTuple):
    """Events (n, d) of a post, the offset after it, and when it came in seconds since 1970.

    `seconds` (n,) are the times of the events themselves, if they have any.
    """

    offset: int
    at: float
    X: Floats
    seconds: Floats


class _Waiting(NamedTuple):
    post: Post
    answer: Future[Answer | Refused]


@final
class Service:
    """Takes posts, learns from them in the background, and holds the newest model.

    `model` is None until there is something to learn from; `why_not` says what is missing.
    """

    def __init__(
        self,
        store: Store,
        refresh_seconds: float = 2.0,
        snapshot_seconds: float = 30.0,
        learns: bool = True,
    ) -> None:
        assert isinstance(store.machine, StudyMachine)
        self.store, self.machine = store, store.machine
        self.refresh_seconds, self.snapshot_seconds = refresh_seconds, snapshot_seconds
        self.learns, self.subscribers = learns, Subscribers()
        self.model: Model | None = None
        self.why_not = FIRST_MODEL
        self.trouble = ""
        self.recent: deque[RecentEvents] = deque(maxlen=MOST_RECENT_POSTS)
        self.heard: Callable[[RecentEvents], None] | None = None
        self.learned: Callable[[int], None] | None = None
        self.models, self._before = 0, _models_before(self.machine)
        self.posts, self.duplicates, self.refused, self.groups = 0, 0, 0, 0
        self._queue: deque[_Waiting] = deque()
        self._queued_bytes, self._stopping = 0, Event()
        self._ready = Condition()
        self._began, self._clock = time.monotonic(), self.machine.clock
        self._saved_at, self._learned_to = self._began, -1
        self._untold, self._told_at = 0, 0.0
        self._tick = TICK_SECONDS if self.frame.clock is None else None
        self._threads = [
            Thread(target=run, daemon=True) for run in (self._write_all, self._learn_all)
        ]

    @property
    def frame(self) -> Frame:
        """Which columns are which axes."""
        return self.machine.study.frame

    @property
    def events(self) -> int:
        """Events on disk."""
        return self.machine.study.events_

    @property
    def clock(self) -> float:
        """Seconds that the service has run, in all; no jump of the system's clock changes it."""
        return self._clock + time.monotonic() - self._began

    @property
    def version(self) -> int:
        """The version of the newest model; 0 if there has never been one."""
        return self._before + self.models

    @property
    def queued(self) -> int:
        """Posts that wait to be written."""
        return len(self._queue)

    def start(self) -> None:
        """Start both threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Write what waits, save a snapshot, and end."""
        self._stopping.set()
        with self._ready:
            self._ready.notify_all()
        for thread in self._threads:
            thread.join()
        if self._tick is not None:
            self.store.commit([], self.clock, time.time(), self.version)
        try:
            self.store.snapshot()
        finally:
            self.store.close()

    def submit(self, post: Post) -> Future[Answer | Refused]:
        """The answer to a post, once it is on disk; a full queue refuses it at once."""
        answer: Future[Answer | Refused] = Future()
        with self._ready:
            full = (
                len(self._queue) >= MOST_QUEUED_POSTS
                or self._queued_bytes + post.size > MOST_QUEUED_BYTES
            )
            if full or self._stopping.is_set():
                status, said = (429, "too many posts wait") if full else (503, "the service stops")
                self.refused += 1
                answer.set_result(Refused(status, f"{said}: try again later.", 1))
                return answer
            self._queue.append(_Waiting(post, answer))
            self._queued_bytes += post.size
            self._ready.notify()
        return answer

    def events_since(self, offset: int) -> list[RecentEvents]:
        """Posts after an offset, as far as they are remembered, the oldest first."""
        return [found for found in list(self.recent) if found.offset > offset]

    def _write_all(self) -> None:
        """Write posts in groups, until the service stops and none is left."""
        while (group := self._next_group()) is not None:
            posts = [waiting.post for waiting in group]
            at = time.time()
            try:
                answers = self.store.commit(posts, self.clock, at, self.version)
            except Exception as error:  # the thread must go on, and whoever waits must hear
                self.store.broken = f"a post could not be taken ({type(error).__name__})."
                answers = [Refused(503, self.store.broken)] * len(posts)
            self._tell(group, answers, at)

    def _next_group(self) -> list[_Waiting] | None:
        """Posts to be written together, none if only time has passed; None at the end."""
        with self._ready:
            while not self._queue:
                if self._stopping.is_set():
                    return None
                if not self._ready.wait(NEWS_SECONDS if self._untold else self._tick):
                    if not self._untold:
                        return []
                    self._publish()
            group, size = list[_Waiting](), 0
            while self._queue and (not group or size < MOST_GROUP_BYTES):
                group.append(self._queue.popleft())
                size += group[-1].post.size
            self._queued_bytes -= size
            return group

    def _tell(self, group: list[_Waiting], answers: list[Answer | Refused], at: float) -> None:
        """Answer all posts of a group, and tell subscribers of events, unless they just were."""
        for waiting, answer in zip(group, answers, strict=True):
            if isinstance(answer, Refused):
                self.refused += 1
            elif answer.duplicate:
                self.duplicates += 1
            else:
                self._untold += answer.accepted
                self.recent.append(self._told_of(waiting.post, answer.offset, at))
            if waiting.answer.set_running_or_notify_cancel():  # someone still waits
                waiting.answer.set_result(answer)
        self.posts += len(group)
        self.groups += 1
        if self._untold and time.monotonic() - self._told_at >= NEWS_SECONDS:
            self._publish()

    def _publish(self) -> None:
        """Tell subscribers how many events came since they were told."""
        told = {"accepted": self._untold, "events": self.events, "offset": self.store.offset}
        self._untold, self._told_at = 0, time.monotonic()
        self.subscribers.publish("events", told)

    def _told_of(self, post: Post, offset: int, at: float) -> RecentEvents:
        """The last events of a post, for who shows them; who watches hears all of them."""
        if self.heard is not None:
            self.heard(RecentEvents(offset, at, post.X, post.seconds))
        X, seconds = (part[-MOST_RECENT_EVENTS:].copy() for part in (post.X, post.seconds))
        return RecentEvents(offset, at, X, seconds)

    def _learn_all(self) -> None:
        """Save snapshots and learn models when they are due, until the service stops."""
        wait = FIRST_WAIT
        while not self._stopping.wait(wait):
            began = time.monotonic()
            try:
                self._save_and_learn(began)
            except Exception as error:  # the thread must go on: the next model may be learned
                self.trouble = f"no model could be learned ({type(error).__name__}: {error})"
            took = 0.0 if self.models <= 1 else time.monotonic() - began  # at first, it compiles
            wait = max(self.refresh_seconds, took / MOST_SHARE)

    def _save_and_learn(self, now: float) -> None:
        frozen: Frozen | None = None
        due = now - self._saved_at >= self.snapshot_seconds or self.store.unsaved >= SNAPSHOT_BYTES
        if due and self.store.unsaved:
            try:
                frozen = self.store.snapshot()
                self._saved_at, self.trouble = time.monotonic(), ""
            except OSError as error:
                self.trouble = f"no snapshot can be saved: {error}"
        if self.learns and self._learned_to != self.store.offset:
            frozen = frozen or self.store.frozen()
            assert isinstance(frozen, FrozenStudy)
            self._learn(frozen)
            self._learned_to = frozen.position

    def _learn(self, frozen: FrozenStudy) -> None:
        began, study = time.monotonic(), frozen.study
        self.why_not = FIRST_MODEL if study.events_ else self.why_not
        try:
            answers = answering(study)
            make_ready(answers)
        except ValueError as error:
            self.why_not = str(error)
            return
        version = self.version + 1
        took = time.monotonic() - began
        self.model = Model(version, answers, study.events_, frozen.position, time.time(), took)
        told: Json = {"version": version, "events": study.events_, "offset": frozen.position}
        self.models += 1
        self.subscribers.publish("model", told)
        if self.learned is not None:
            self.learned(self.models)


def _models_before(machine: StudyMachine) -> int:
    """A number that no model of an earlier process has had.

    The log says how many there were when its last frame was begun: one may have been learned while
    it was written, and one after that.
    """
    return machine.models + (2 if machine.position else 0)
