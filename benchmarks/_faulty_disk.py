"""A disk in memory that fails as disks do, and a small machine, to try the store of hplus.serve."""

from __future__ import annotations

import errno
import json
import random
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from hplus.serve.ledger import Ledger
from hplus.serve.posts import PostGroup


class PowerLossError(BaseException):
    """The machine stops in the middle of an operation."""


class Inode:
    """Bytes of a file as programs see them, and those that are on the medium.

    `lost` are parts that a failed sync gave up: programs see them, no later sync writes them.
    """

    def __init__(self) -> None:
        self.cached, self.durable = bytearray(), bytearray()
        self.lost: list[tuple[int, int]] = []

    def written(self, end: int) -> bytearray:
        """What a successful sync of the first `end` bytes puts on the medium."""
        found = self.cached[:end]
        for a, b in self.lost:
            found[a : min(b, end)] = bytes(max(min(b, end) - a, 0))
        return found


class FaultyDisk:
    """Files by name; each operation may fail, be cut short, or be the last before a power loss."""

    def __init__(self, rng: random.Random, errors: float, crashes: float) -> None:
        self.rng, self.errors, self.crashes = rng, errors, crashes
        self.space = 10**9
        self.files: dict[str, Inode] = {}
        self._safe: dict[str, Inode] = {}
        self._history: list[dict[str, Inode]] = []
        self._handles: dict[int, Inode] = {}
        self._next = 0

    def names(self) -> list[str]:
        return list(self.files)

    def read(self, name: str) -> bytes:
        return bytes(self.files[name].cached)

    def open(self, name: str) -> int:
        self._step("open")
        if name not in self.files:
            self._rename_to({**self.files, name: Inode()})
        self._next += 1
        self._handles[self._next] = self.files[name]
        return self._next

    def write(self, handle: int, data: memoryview) -> int:
        inode, rng = self._handles[handle], self.rng
        size = len(data)
        if rng.random() < 0.1:
            size = rng.randint(1, size)  # a short write
        free = self.space - sum(len(inode.cached) for inode in self.files.values())
        if free <= 0:
            raise OSError(errno.ENOSPC, "no space left on device")
        size = min(size, free)
        if rng.random() < self.crashes:
            inode.cached += data[: rng.randint(0, size)]
            raise PowerLossError
        if rng.random() < self.errors:
            inode.cached += data[: rng.randint(0, size)]
            raise OSError(errno.EIO, "input/output error")
        inode.cached += data[:size]
        return size

    def truncate(self, handle: int, size: int) -> None:
        self._step("truncate")
        inode = self._handles[handle]
        del inode.cached[size:]
        inode.lost = [(a, min(b, size)) for a, b in inode.lost if a < size]

    def sync(self, handle: int) -> None:
        inode = self._handles[handle]
        if self.rng.random() < self.crashes:
            if self.rng.random() < 0.5:
                inode.durable = inode.written(len(inode.cached))
            raise PowerLossError
        if self.rng.random() < self.errors:
            if self.rng.random() < 0.7:
                inode.lost.append((min(len(inode.durable), len(inode.cached)), len(inode.cached)))
            raise OSError(errno.EIO, "input/output error")
        inode.durable = inode.written(len(inode.cached))

    def close(self, handle: int) -> None:
        self._handles.pop(handle, None)

    def rename(self, old: str, new: str) -> None:
        self._step("rename")
        files = dict(self.files)
        files[new] = files.pop(old)
        self._rename_to(files)

    def remove(self, name: str) -> None:
        self._step("remove")
        self._rename_to({n: inode for n, inode in self.files.items() if n != name})

    def sync_names(self) -> None:
        self._step("sync_names")
        self._safe, self._history = self.files, []

    def lose_power(self) -> None:
        """Keep what is on the medium, and perhaps some of what was on its way there."""
        self.files = dict(self.rng.choice([self._safe, *self._history, self.files]))
        for inode in self.files.values():
            found = inode.durable
            if len(inode.cached) > len(found):
                found = inode.written(self.rng.randint(len(found), len(inode.cached)))
                blank = self.rng.randint(0, len(found) - len(inode.durable))
                if self.rng.random() < 0.3:  # the size came to the medium before the bytes
                    found[len(found) - blank :] = bytes(blank)
            elif self.rng.random() < 0.5:
                found = inode.written(len(inode.cached))
            inode.cached, inode.durable, inode.lost = bytearray(found), bytearray(found), []
        self._safe, self._history, self._handles = self.files, [], {}

    def _rename_to(self, files: dict[str, Inode]) -> None:
        self._history.append(self.files)
        self.files = files

    def _step(self, what: str) -> None:
        if self.rng.random() < self.crashes:
            raise PowerLossError
        if self.rng.random() < self.errors:
            raise OSError(errno.EIO, f"{what}: input/output error")


class FrozenCounts(NamedTuple):
    """Counts as they were."""

    position: int
    text: bytes

    def pieces(self) -> Iterable[memoryview]:
        yield memoryview(self.text)


class CountMachine:
    """How often each event was taken: all that a law of counting needs."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.ledger, self.position, self.clock, self.zone = Ledger(), 0, 0.0, ""

    @property
    def order(self) -> int:
        return self.position

    def apply(self, group: PostGroup, end: int) -> None:
        for post in group.posts:
            self.counts.update(map(int, post.X[:, 0].tolist()))
            self.ledger.note(post, group.clock, end)
        self.position, self.clock = end, group.clock

    def frozen(self) -> FrozenCounts:
        counts, ledger = list(self.counts.items()), self.ledger.packed().decode()
        known = [counts, self.position, self.clock, ledger]
        return FrozenCounts(self.position, json.dumps(known).encode())

    @classmethod
    def thawed(cls, text: bytes) -> CountMachine:
        machine = cls()
        counts, machine.position, machine.clock, ledger = json.loads(text)
        machine.counts, machine.ledger = Counter(dict(counts)), Ledger.unpacked(ledger.encode())
        return machine
