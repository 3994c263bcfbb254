"""Ledger: which posts were taken, so that a retry is never counted twice."""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import NamedTuple, final

from hplus.serve.posts import Post, Rejected, listed
from hplus.storage.files import Json

KEY_SECONDS = 86_400.0
"""How long a key is remembered, in seconds that the service has run."""

MOST_KEYS, MOST_SOURCES, MOST_RANGES = 500_000, 100_000, 1_000_000
"""Bounds of memory: keys at a time, sources, and ranges of all their sequences."""


class Taken(NamedTuple):
    """The first answer to a post with a key."""

    clock: float
    digest: str
    accepted: int
    rejected: tuple[Rejected, ...]
    offset: int


class Answer(NamedTuple):
    """What a post is answered with, once it is on disk."""

    accepted: int
    rejected: tuple[Rejected, ...]
    offset: int
    duplicate: bool = False

    def document(self) -> Json:
        """The answer as JSON."""
        shown = {
            "accepted": self.accepted,
            "rejected": listed(self.rejected),
            "offset": self.offset,
        }
        return shown | ({"duplicate": True} if self.duplicate else {})


class Refused(NamedTuple):
    """Why a post was not taken: a status of HTTP, a sentence, and when to try again."""

    status: int
    reason: str
    retry_after: int = 0


@final
class Ledger:
    """Sequences of each source as ranges, for ever, and keys with their answers for a day."""

    def __init__(self) -> None:
        self.sources: dict[str, list[int]] = {}
        self.keys: dict[str, Taken] = {}
        self._ranges = 0

    def known(self, post: Post, offset: int) -> Answer | Refused | None:
        """The answer to a post that was taken before, None if it is new."""
        taken = self.keys.get(post.key) if post.key else None
        if taken is not None and taken.digest != post.digest:
            return Refused(422, "Idempotency-Key was used for another body: choose a new one.")
        if taken is not None:
            return Answer(taken.accepted, taken.rejected, taken.offset, duplicate=True)
        if post.source and self._holds(post.source, post.sequence):
            return Answer(0, (), offset, duplicate=True)
        return self._full(post)

    def note(self, post: Post, clock: float, offset: int) -> None:
        """Remember a post, and forget keys that are older than a day."""
        if post.source:
            self._add(post.source, post.sequence)
        if post.key:
            found = Taken(clock, post.digest, len(post.X), post.rejected, offset)
            self.keys[post.key] = found
        while self.keys:  # in the order of their clocks
            oldest = next(iter(self.keys))
            if clock - self.keys[oldest].clock <= KEY_SECONDS:
                break
            del self.keys[oldest]

    def copy(self) -> Ledger:
        """Another ledger that knows the same."""
        ledger = Ledger()
        ledger.sources = {name: list(edges) for name, edges in self.sources.items()}
        ledger.keys, ledger._ranges = dict(self.keys), self._ranges
        return ledger

    def packed(self) -> bytes:
        """All of it as bytes."""
        keys = [[name, *taken] for name, taken in self.keys.items()]
        return json.dumps([self.sources, keys], separators=(",", ":")).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> Ledger:
        """The ledger that `packed` made bytes of."""
        ledger = cls()
        ledger.sources, keys = json.loads(data)
        for name, clock, digest, accepted, rejected, offset in keys:
            pairs = tuple(Rejected(*pair) for pair in rejected)
            ledger.keys[name] = Taken(clock, digest, accepted, pairs, offset)
        ledger._ranges = sum(len(edges) // 2 for edges in ledger.sources.values())
        return ledger

    def _full(self, post: Post) -> Refused | None:
        if post.key and len(self.keys) >= MOST_KEYS:
            return Refused(
                429,
                f"{MOST_KEYS} keys of the last day are remembered and no more: send source and "
                "sequence instead, which need no memory.",
                3600,
            )
        new = post.source and post.source not in self.sources
        if (new and len(self.sources) >= MOST_SOURCES) or (
            post.source and self._ranges >= MOST_RANGES
        ):
            return Refused(
                422,
                f"at most {MOST_SOURCES} sources with {MOST_RANGES} gaps in their sequences are "
                "remembered: number the posts of each source without gaps.",
            )
        return None

    def _holds(self, source: str, sequence: int) -> bool:
        return bisect_right(self.sources.get(source, ()), sequence) % 2 == 1

    def _add(self, source: str, sequence: int) -> None:
        """Add one number to the ranges [a, b) of a source, which are kept as a, b, a, b, ..."""
        edges = self.sources.setdefault(source, [])
        i = bisect_right(edges, sequence)
        if i % 2:
            return
        before = len(edges)
        joins_left = i > 0 and edges[i - 1] == sequence
        joins_right = i < len(edges) and edges[i] == sequence + 1
        if joins_left and joins_right:
            del edges[i - 1 : i + 1]
        elif joins_left:
            edges[i - 1] = sequence + 1
        elif joins_right:
            edges[i] = sequence
        else:
            edges[i:i] = [sequence, sequence + 1]
        self._ranges += (len(edges) - before) // 2
