"""One seeded run of the store of hplus.serve with faults, and the law that it must obey.

The law: what a store holds is what was acknowledged, each post once. A post that was not
acknowledged may be there or not, but never twice, and a retry settles it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from _faulty_disk import CountMachine, FaultyDisk, PowerLossError

from hplus.serve.ledger import KEY_SECONDS, Answer, Refused
from hplus.serve.posts import Post
from hplus.serve.store import Store


class Sent(NamedTuple):
    """A post, its events, and what the client knows of it."""

    post: Post
    events: range
    first_clock: float


class Run:
    """A client, a store and a disk; `found` counts what has happened."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        errors, crashes = rng.choice([(0.0, 0.02), (0.02, 0.0), (0.01, 0.01), (0.05, 0.02)])
        self.disk = FaultyDisk(rng, errors, crashes)
        self.sent: list[Sent] = []
        self.acked: dict[int, Answer] = {}
        self.unknown: set[int] = set()
        self.gave_up: set[int] = set()
        self.events, self.sequences = 0, [0, 0]
        self.clock = 0.0
        self.found = dict.fromkeys(("crash", "kill", "refused", "again", "full"), 0)
        self.store: Store | None = None

    def go(self, steps: int) -> None:
        """Post, retry, save and crash at random, then heal all and check the law."""
        for _ in range(steps):
            self._surely(self._step)
        self.disk.errors = self.disk.crashes = 0.0
        self.disk.space = 10**9
        self.store = None
        self._surely(self._open)
        self.check()
        self._surely(self._settle)
        self.check()
        left = {i for i in self.unknown - self.gave_up if self.sent[i].post.key or self._sourced(i)}
        assert not left - set(self.acked), "a retry must settle a post"

    def check(self) -> None:
        """Acknowledged events are there once, others at most once, and no event is made up."""
        assert self.store is not None
        machine = self.store.machine
        assert isinstance(machine, CountMachine)
        for i, sent in enumerate(self.sent):
            here = {machine.counts[event] for event in sent.events}
            assert len(here) == 1, f"post {i} is there in part"
            allowed = {1} if i in self.acked else {0, 1} if i in self.unknown else {0}
            assert here <= allowed, f"post {i} is there {here} times"
        assert sum(machine.counts.values()) <= self.events

    def _surely(self, work: Callable[[], None]) -> None:
        """Do something; after a loss of power, or an error at the start, try again."""
        while True:
            try:
                work()
                return
            except PowerLossError:
                self.found["crash"] += 1
                self.store = None
                self.disk.lose_power()
                if work == self._step:
                    return
            except OSError:
                assert self.store is None  # only opening raises: what is posted is answered
                self.disk.space = 10**9

    def _open(self) -> None:
        if self.store is None:
            disk = self.disk
            self.store = Store(
                disk, CountMachine, lambda name: CountMachine.thawed(disk.read(name))
            )
            self.clock = clock = self.store.machine.clock  # time that was not written did not pass
            self.sent = [s._replace(first_clock=min(s.first_clock, clock)) for s in self.sent]
            self.check()

    def _step(self) -> None:
        self._open()
        assert self.store is not None
        rng = self.rng
        if self.store.broken or rng.random() < 0.05:
            self.found["kill"] += 1
            self.store = None  # kill -9: what was written is still seen
            return
        used = sum(len(inode.cached) for inode in self.disk.files.values())
        chance = rng.random()
        if chance < 0.05:
            self.disk.space = used + rng.randint(0, 400)
        elif chance < 0.15:
            self.disk.space = 10**9
        if rng.random() < 0.2:
            with suppress(OSError):
                self.store.snapshot()
        jumps = [0.001, 1.0, 60.0, 3600.0, 2 * KEY_SECONDS]
        self.clock += rng.choice(jumps) if chance > 0.9 else 0.1
        self._post(self._chosen())

    def _chosen(self) -> list[int]:
        """Posts to send together: new ones, retries, and duplicates, in any order."""
        rng = self.rng
        chosen = [self._new() for _ in range(rng.randint(0, 3))]
        again = [i for i in range(len(self.sent)) if self._may_retry(i)]
        chosen += rng.sample(again, min(len(again), rng.randint(0, 3)))
        if chosen and rng.random() < 0.2 and self._may_retry(chosen[0]):
            chosen.append(chosen[0])  # twice at the same time
        rng.shuffle(chosen)
        return chosen

    def _new(self) -> int:
        rng, n = self.rng, self.rng.randint(1, 3)
        events = range(self.events, self.events + n)
        self.events += n
        kind, source, sequence, key = rng.randint(0, 3), "", -1, ""
        if kind in (1, 3):
            which = rng.randint(0, 1)
            self.sequences[which] += rng.choice([1, 1, 1, 2])  # with gaps
            source, sequence = f"s{which}", self.sequences[which]
        if kind in (2, 3):
            key = f"k{len(self.sent)}"
        X = np.array(events, dtype=float)[:, None]
        post = Post(X, X[:, 0], source, sequence, key, f"d{len(self.sent)}", lines=n)
        self.sent.append(Sent(post, events, self.clock))
        return len(self.sent) - 1

    def _sourced(self, i: int) -> bool:
        return bool(self.sent[i].post.source)

    def _may_retry(self, i: int) -> bool:
        """Can a retry be told: by its source, or by a key that is remembered?"""
        sent = self.sent[i]
        fresh = bool(sent.post.key) and self.clock - sent.first_clock < KEY_SECONDS
        if not fresh and not sent.post.source:
            self.gave_up.add(i)
        return fresh or bool(sent.post.source)

    def _post(self, chosen: Sequence[int]) -> None:
        assert self.store is not None
        new = set(chosen) - self.unknown - set(self.acked)
        self.unknown |= new
        at = self.rng.uniform(-1e9, 1e9)  # the clock of the system jumps
        answers = self.store.commit([self.sent[i].post for i in chosen], self.clock, at)
        for i, answer in zip(chosen, answers, strict=True):
            if isinstance(answer, Refused):
                self.found["full" if answer.status == 507 else "refused"] += 1
                if not self.store.broken and list(chosen).count(i) == 1 and i in new:
                    self.unknown.discard(i)  # the answer says that nothing was taken
                continue
            self.found["again"] += answer.duplicate
            first = self.acked.setdefault(i, answer)
            post = self.sent[i].post
            if first is not answer and post.key and first.accepted:
                assert (answer.accepted, answer.offset) == (first.accepted, first.offset) or not (
                    self.clock - self.sent[i].first_clock < KEY_SECONDS
                ), "a key must replay the first answer"

    def _settle(self) -> None:
        """Retry all that was not acknowledged and can be told."""
        self._open()
        left = [i for i in sorted(self.unknown - set(self.acked)) if self._may_retry(i)]
        self._post(left)


def run(seed: int, steps: int = 12) -> dict[str, int]:
    """One run; an AssertionError tells what is wrong."""
    found = Run(seed)
    found.go(steps)
    return found.found | {"posts": len(found.sent), "events": found.events}
