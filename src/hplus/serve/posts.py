"""Posts: events that came together, with what tells a retry, as they are written to the log."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats

LENGTH = struct.Struct("<I")
"""The bytes of the head of a group, before it."""


class Rejected(NamedTuple):
    """A line that holds no event, counted from 1, and why."""

    line: int
    reason: str


class Post(NamedTuple):
    """Events X (n, d) of one request with `seconds` (n,) as in `Placed`, and its other lines.

    A `source` with a `sequence`, or a `key`, tells a retry; `digest` is that of the body.
    """

    X: Floats
    seconds: Floats
    source: str = ""
    sequence: int = -1
    key: str = ""
    digest: str = ""
    lines: int = 0
    dropped: Mapping[str, int] = {}
    left_out: Mapping[str, int] = {}
    zone: str = ""
    rejected: tuple[Rejected, ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 256 + self.X.nbytes + self.seconds.nbytes + 64 * len(self.rejected)


class PostGroup(NamedTuple):
    """Posts that are written and synced together; `clock` are seconds that the service has run.

    `models` is how many models had been learned by then.
    """

    posts: tuple[Post, ...]
    clock: float
    at: float = 0.0
    models: int = 0


def encode(group: PostGroup) -> bytes:
    """A group as bytes: a head in JSON, and the numbers."""
    posts = [_head(post) for post in group.posts]
    known = {"clock": group.clock, "at": group.at, "models": group.models, "posts": posts}
    head = json.dumps(known, separators=(",", ":")).encode()
    numbers = [part for post in group.posts for part in (post.X, post.seconds)]
    return b"".join([LENGTH.pack(len(head)), head, *(_bytes(part) for part in numbers)])


def decode(payload: bytes) -> PostGroup:
    """The group that `encode` made bytes of."""
    (length,) = LENGTH.unpack_from(payload)
    head = json.loads(payload[LENGTH.size : LENGTH.size + length])
    numbers = np.frombuffer(payload, dtype="<f8", offset=LENGTH.size + length)
    posts, at = [], 0
    for known in head["posts"]:
        n, d = known.pop("shape")
        X = numbers[at : at + n * d].reshape(n, d)
        seconds = numbers[at + n * d : at + n * (d + 1)]
        at += n * (d + 1)
        rejected = tuple(Rejected(*pair) for pair in known.pop("rejected", ()))
        posts.append(Post(X, seconds, rejected=rejected, **known))
    return PostGroup(tuple(posts), head["clock"], head["at"], head.get("models", 0))


def _head(post: Post) -> dict[str, object]:
    """All but the numbers, without what is as by default."""
    defaults = Post._field_defaults
    known = {
        name: part
        for name, part in zip(post._fields[2:], post[2:], strict=True)
        if part != defaults[name]
    }
    return {"shape": post.X.shape, **known}


def _bytes(part: Floats) -> bytes:
    return np.ascontiguousarray(part, dtype="<f8").tobytes()


def listed(rejected: Sequence[Rejected]) -> list[dict[str, object]]:
    """Rejected lines as an answer shows them."""
    return [{"line": line, "reason": reason} for line, reason in rejected]
