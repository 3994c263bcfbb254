"""StudyMachine: the study of a stream that learns from posts, and is kept with their ledger."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import NamedTuple, final

import numpy as np

from hplus.serve.ledger import Ledger
from hplus.serve.posts import Post, PostGroup
from hplus.storage.models import contents
from hplus.streaming.copies import copied
from hplus.studies.spans import SECONDS, Amount
from hplus.studies.streams import StreamStudy

LEAST_SECONDS = 1e-3
"""The shortest exposure."""


class FrozenStudy(NamedTuple):
    """A study as it was, with the ledger of its posts."""

    study: StreamStudy
    position: int
    clock: float
    models: int
    ledger: Ledger

    def pieces(self) -> Iterable[memoryview]:
        """The contents of a file that `hplus stream` and all that reads its state can open."""
        packed = self.ledger.packed()
        words = np.frombuffer(packed + b" " * (-len(packed) % 8), np.int64)
        self.study.posted_ = (self.position, self.clock, words, self.models)
        for piece in contents(self.study, self.study.facts()):
            if (view := memoryview(piece)).nbytes:
                yield view.cast("B")


@final
class StudyMachine:
    """A study that learns from posts; its `posted_` holds the ledger when it is saved."""

    def __init__(self, study: StreamStudy) -> None:
        self.study, self.ledger, self.position, self.clock = study, Ledger(), 0, 0.0
        self.models = 0
        if hasattr(study, "posted_"):
            self.position, self.clock, words, *models = study.posted_  # earlier versions: no models
            self.ledger, self.models = Ledger.unpacked(words.tobytes()), sum(models)
        self._days_before = _days_before(study, self.clock)

    @property
    def order(self) -> int:
        """A number that grows from one snapshot to the next."""
        return self.study.offset_

    @property
    def zone(self) -> str:
        """Whether times have a UTC offset, "" as long as there are none."""
        return self.study.offsets_

    def apply(self, group: PostGroup, end: int) -> None:
        """Learn from a frame that ends at an offset."""
        for post in group.posts:
            _learn(self.study, post)
            self.ledger.note(post, group.clock, end)
        self.study.offset_ += end - self.position
        self.position, self.clock = end, group.clock
        self.models = max(self.models, group.models)

    def frozen(self) -> FrozenStudy:
        """The study as it is now, in a copy that learns no more."""
        study = copy.copy(self.study)
        study.model_ = copied(study.model_)
        study.dropped_, study.left_out_ = dict(study.dropped_), dict(study.left_out_)
        if self._days_before is not None:
            days = max(self.clock, LEAST_SECONDS) / SECONDS["day"]
            study.exposure = Amount(self._days_before + days, "day")
        return FrozenStudy(study, self.position, self.clock, self.models, self.ledger.copy())


def _days_before(study: StreamStudy, clock: float) -> float | None:
    """Days of exposure before the service ran; None if they are not known, or times tell them."""
    if study.frame.clock is not None or study.forget is not None:
        return None
    if study.exposure is None:
        return None if study.events_ else 0.0
    if study.exposure.unit not in SECONDS:
        return None
    return max(study.exposure.to("day") - clock / SECONDS["day"], 0.0)


def _learn(study: StreamStudy, post: Post) -> None:
    study.kind_ = study.kind_ or "json"
    study.offsets_ = study.offsets_ or post.zone
    study.lines_ += post.lines
    study.events_ += len(post.X)
    for known, new in ((study.dropped_, post.dropped), (study.left_out_, post.left_out)):
        for reason, lost in new.items():
            known[reason] = known.get(reason, 0) + lost
    if len(post.X):
        study.learn_points(post.X, post.seconds)
