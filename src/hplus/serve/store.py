"""Store: what was posted, in a log, snapshots and a ledger: each acknowledged post exactly once."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Lock
from typing import Protocol, final

from hplus.serve.disk import Disk, replace_whole
from hplus.serve.ledger import Answer, Ledger, Refused
from hplus.serve.posts import Post, PostGroup, decode, encode
from hplus.serve.segments import PostLog, SyncError
from hplus.storage.slots import SLOTS, DamagedError

NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What the operating system says if a disk, a quota or a limit is full."""

RETRY_SECONDS = 5
"""When to try again after a write was refused."""


class Frozen(Protocol):
    """What a machine was at some moment, which goes on being that."""

    @property
    def position(self) -> int:
        """The offset in the log of the first frame that is not in it."""

    def pieces(self) -> Iterable[memoryview]:
        """The contents of a snapshot."""


class Machine(Protocol):
    """What is learned from posts, and from nothing else."""

    ledger: Ledger
    position: int
    clock: float

    @property
    def order(self) -> int:
        """A number that grows from one snapshot to the next."""

    @property
    def zone(self) -> str:
        """Whether times have a UTC offset, "" as long as there are none."""

    def apply(self, group: PostGroup, end: int) -> None:
        """Learn from a frame that ends at an offset."""

    def frozen(self) -> Frozen:
        """What it is now."""


@final
class Store:
    """A machine with a log and two snapshots on a disk.

    `commit` is for one thread, `snapshot` for any. `broken` says why nothing is written any
    more, until the store is opened again.
    """

    def __init__(
        self, disk: Disk, new: Callable[[], Machine], read: Callable[[str], Machine]
    ) -> None:
        self._disk, self._lock, self._saving, self.broken = disk, Lock(), Lock(), ""
        disk.sync_names()  # a snapshot that can be seen may have a name that is not safe yet
        found = _snapshots(disk, read)
        best = max(found, key=lambda slot: found[slot].order, default=SLOTS[1])
        self.machine = found[best] if found else new()
        self._next = SLOTS[1 - SLOTS.index(best)]
        self._saved = {slot: machine.position for slot, machine in found.items()}
        self.log, self.replayed = PostLog(disk), 0
        known = self.machine.position
        for end, payload in self.log.replay(known):
            self.machine.apply(decode(payload), end)
            self.replayed += 1
        self._safe = self.log.end == known
        with suppress(OSError):
            self._settle()

    @property
    def offset(self) -> int:
        """The end of the log."""
        return self.log.end

    @property
    def unsaved(self) -> int:
        """Bytes of the log that no snapshot holds."""
        return self.log.end - max(self._saved.values(), default=0)

    def commit(
        self, posts: Sequence[Post], clock: float, at: float, models: int = 0
    ) -> list[Answer | Refused]:
        """Write posts that are new, together, and answer all; without posts, the clock alone."""
        try:
            self._settle()
        except OSError as error:
            return [_not_written(error)] * len(posts)
        answers: dict[int, Answer | Refused] = {}
        fresh, later = list[int](), list[int]()
        taken, zone = set[tuple[str, str | int]](), self.machine.zone
        for i, post in enumerate(posts):
            marks = _marks(post)
            if marks & taken:
                later.append(i)
                continue
            known = self.machine.ledger.known(post, self.log.end) or _unlike(post, zone)
            if known is not None:
                answers[i] = known
                continue
            fresh.append(i)
            taken, zone = taken | marks, zone or post.zone
        group = PostGroup(tuple(posts[i] for i in fresh), clock, at, models)
        refused = self._write(group) if fresh or not posts else None
        for i in fresh:
            answers[i] = refused or Answer(len(posts[i].X), posts[i].rejected, self.log.end)
        for i in later:
            known = refused or self.machine.ledger.known(posts[i], self.log.end)
            assert known is not None
            answers[i] = known
        return [answers[i] for i in range(len(posts))]

    def frozen(self) -> Frozen:
        """What is known now."""
        with self._lock:
            return self.machine.frozen()

    def snapshot(self) -> Frozen:
        """Save what is known now, and remove the part of the log that no snapshot needs."""
        with self._saving:
            frozen = self.frozen()
            if frozen.position > max(self._saved.values(), default=0):
                replace_whole(self._disk, self._next, frozen.pieces())
                self._saved[self._next] = frozen.position
                self._next = SLOTS[1 - SLOTS.index(self._next)]
                if len(self._saved) == len(SLOTS):
                    self.log.drop_before(min(self._saved.values()))
        return frozen

    def close(self) -> None:
        """Give up the log."""
        self.log.close()

    def _settle(self) -> None:
        """Save what was read from the log when the store was opened.

        It may be there to be read and yet not be safe, if an error of the disk came before.
        """
        if not self._safe:
            self.snapshot()
            self._safe = True

    def _write(self, group: PostGroup) -> Refused | None:
        """Write a group and learn from it, or say why not."""
        if self.broken:
            return Refused(503, self.broken)
        try:
            end = self.log.append(encode(group))
        except SyncError as error:
            self.broken = (
                f"the disk could not confirm a write ({error}): no more posts are taken until the "
                "service is started again."
            )
            return Refused(503, self.broken)
        except OSError as error:
            return _not_written(error)
        with self._lock:
            self.machine.apply(group, end)
        return None


def _not_written(error: OSError) -> Refused:
    full = error.errno in NO_SPACE
    said = "the disk is full" if full else f"the disk cannot be written ({error})"
    return Refused(507 if full else 503, f"{said}: nothing was taken.", RETRY_SECONDS)


def _snapshots(disk: Disk, read: Callable[[str], Machine]) -> dict[str, Machine]:
    """The snapshots that can be read, by slot."""
    found: dict[str, Machine] = {}
    broken: list[str] = []
    for slot in sorted(set(SLOTS) & set(disk.names())):
        try:
            found[slot] = read(slot)
        except (OSError, ValueError) as error:
            broken.append(str(error))
    if broken and not found:
        raise DamagedError(f"no snapshot can be read: {'; '.join(broken)}")
    return found


def _marks(post: Post) -> set[tuple[str, str | int]]:
    """What a retry of a post has in common with it."""
    key = {("key", post.key)} if post.key else set()
    return key | ({(f"source {post.source}", post.sequence)} if post.source else set())


def _unlike(post: Post, zone: str) -> Refused | None:
    """Refuse times without a UTC offset after times with one, and the other way round."""
    if post.zone and zone and post.zone != zone:
        return Refused(422, "times must have a UTC offset in all posts or in none, got both.")
    return None
