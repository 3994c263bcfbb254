"""Rows that come in chunks, since they are too many for memory: checked, sampled and scaled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from hplus._checks import Floats, check_finite
from hplus.estimators.base import Estimator, check_per_row, check_points, merge_repeated
from hplus.estimators.targets import check_targets
from hplus.losses import Loss
from hplus.rates.lazy_parts import Task, partitions
from hplus.rates.row_keys import row_keys

Chunk = TypeVar("Chunk")

MAX_SAMPLED_ROWS = 20_000
"""Distinct rows from which landmarks, kernel and penalty are learned, at most."""

Chunks = Iterable[tuple[object, ...]]
"""Chunks (X, y) or (X, y, sample_weight), to be gone through several times."""

Rows = tuple[Floats, Floats, Floats]
"""Points (n, d), targets (n,) and weights (n,)."""


class RowSample(NamedTuple):
    """Distinct rows, sorted, with their weights; what is known of all rows beside them.

    `mean` is that of y, `total` the sum of all weights, and `share` about the share of the distinct
    rows that the sample has.
    """

    X: Floats
    y: Floats
    weights: Floats
    mean: float
    total: float
    share: float


def started(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Chunks from the first one on; refused if they can be gone through only once."""
    first = iter(chunks)
    if first is chunks:
        raise ValueError(
            "chunks are gone through several times, so they must not be a generator or another "
            f"iterator, got {type(chunks).__name__}: give a list, or an object whose __iter__ "
            "starts again."
        )
    return first


@dataclass(frozen=True)
class CheckedChunks:
    """Chunks as rows of floats, checked for an estimator, as often as they are asked for."""

    estimator: Estimator
    chunks: Chunks
    loss: Loss

    def __iter__(self) -> Iterator[Rows]:
        for number, chunk in enumerate(started(self.chunks)):
            if not isinstance(chunk, tuple) or len(chunk) not in (2, 3):
                raise ValueError(
                    "chunks must be tuples (X, y) or (X, y, sample_weight), got "
                    f"{type(chunk).__name__} as number {number}."
                )
            yield self._checked(*chunk)

    def _checked(self, given: object, targets: object, sample_weight: object = None) -> Rows:
        reset = not hasattr(self.estimator, "n_features_in_")
        X = check_points(self.estimator, given, reset=reset)
        y = check_targets(targets, X, several=False)
        self.loss.require(y)
        if sample_weight is None:
            return X, y, np.ones(len(X))
        w = check_per_row("sample_weight", sample_weight, len(X))
        if np.any(w < 0.0):
            raise ValueError(f"sample_weight must be non-negative, got {w.min():.6g}.")
        return X, y, w


def sampled_rows(rows: Iterable[Rows]) -> RowSample:
    """A sample of the distinct rows, by hashes of what they hold: in any order the same."""
    found: Rows | None = None
    total = weighted = 0.0
    share = 1.0
    for X, y, w in rows:
        total, weighted = total + float(w.sum()), weighted + float(w @ y)
        if found is not None:
            X, y, w = (np.concatenate(both) for both in zip(found, (X, y, w), strict=True))
        found = merge_repeated(X, y, w)
        found, share = _fewest(found, share)
    if found is None or not total > 0.0:
        raise ValueError("chunks must hold a row with a positive weight, got none.")
    return RowSample(*found, weighted / total, total, share)


def _fewest(rows: Rows, share: float) -> tuple[Rows, float]:
    """The rows with the smallest keys, in the same order; they are such a share of all."""
    X, y, w = rows
    if len(X) <= MAX_SAMPLED_ROWS:
        return rows, share
    keys = row_keys(np.column_stack([X, y]))
    last = np.sort(keys)[MAX_SAMPLED_ROWS - 1]
    kept = keys <= last
    return (X[kept], y[kept], w[kept]), float(last) / 2.0**64


@dataclass(frozen=True)
class LazyChunks:
    """The partitions of collections of Dask, computed one at a time whenever they are asked for."""

    X: list[Task]
    y: list[Task]
    sample_weight: list[Task] | None

    @classmethod
    def of(cls, X: object, y: object, sample_weight: object = None) -> LazyChunks:
        """The chunks of rows X, targets and weights, which must have the same partitions."""
        weights = None if sample_weight is None else partitions("sample_weight", sample_weight)
        found = cls(partitions("X", X), partitions("y", y), weights)
        sizes = {len(part) for part in (found.X, found.y, weights or found.X)}
        if len(sizes) > 1:
            raise ValueError(
                f"X, y and sample_weight must have the same partitions, got {sorted(sizes)} of "
                "them: repartition them."
            )
        return found

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        columns = [self.X, self.y, *([] if self.sample_weight is None else [self.sample_weight])]
        for parts in zip(*columns, strict=True):
            chunk = tuple(part.compute() for part in parts)
            if np.shape(chunk[0])[0]:
                yield chunk


@dataclass(frozen=True)
class ScaledRows:
    """Rows with targets y/level and weights that add up to `level`."""

    rows: Iterable[Rows]
    level: float
    total: float

    def __iter__(self) -> Iterator[Rows]:
        for X, y, w in self.rows:
            yield X, check_finite("y", y / self.level), w * (self.level / self.total)
