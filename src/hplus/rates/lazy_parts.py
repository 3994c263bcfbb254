"""Events in collections of Dask: a statistic of each partition, added in a tree.

Nothing but counts leaves a partition, and a task that runs twice, or again after a worker died,
gives the same counts. Dask is not imported unless there is such a collection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import shown

if TYPE_CHECKING:
    from hplus.rates.statistic import Statistic
    from hplus.windows import Window

ADDED_AT_ONCE = 8
"""Statistics that one task adds up."""


class Task(Protocol):
    """A partition that is not computed yet."""

    def compute(self) -> ArrayLike:
        """Its rows."""


class ChunkLearner(Protocol):
    """What learns from events chunk by chunk."""

    def partial_fit(self, X: object, *, times: object = None) -> object:
        """Learn from events."""


LearnerType = TypeVar("LearnerType", bound=ChunkLearner)


def is_lazy(X: object) -> bool:
    """Is it a collection of Dask?"""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def partitions(name: str, X: object) -> list[Task]:
    """The partitions of an array or data frame of Dask, each with whole rows, not computed yet."""
    if hasattr(X, "rechunk") and hasattr(X, "ndim") and X.ndim > 1:
        X = X.rechunk({1: -1})
    if not hasattr(X, "to_delayed"):
        raise TypeError(f"{name} must be an array or data frame of Dask, as X is, got {shown(X)}.")
    found = X.to_delayed()
    return list(getattr(found, "flat", found))


def lazy_statistic(window: Window, X: object, sample_weight: object = None) -> Statistic:
    """The statistic of the events in a collection of Dask, computed by its scheduler."""
    from dask.delayed import delayed

    from hplus.rates.statistic import Statistic, merged

    parts = partitions("X", X)
    weights: list[Task | None] = [None] * len(parts)
    if sample_weight is not None:
        weights = [*partitions("sample_weight", sample_weight)]
        if len(weights) != len(parts):
            raise ValueError(
                f"sample_weight must have the {len(parts)} partitions of X, got {len(weights)}: "
                "repartition it."
            )
    count, add = delayed(Statistic.of), delayed(merged)
    found = [count(window, part, own) for part, own in zip(parts, weights, strict=True)]
    while len(found) > 1:
        found = [add(found[i : i + ADDED_AT_ONCE]) for i in range(0, len(found), ADDED_AT_ONCE)]
    statistic: Statistic = found[0].compute()
    return statistic


def learn_lazily(model: LearnerType, X: object, exposure: object, times: object) -> LearnerType:
    """Call `partial_fit` for each partition, of which only one is computed at a time."""
    if exposure is not None:
        raise ValueError(
            f"exposure must be None for a collection of Dask, got {shown(exposure)}: call "
            "partial_fit for each partition with its own."
        )
    parts = partitions("X", X)
    when = [None] * len(parts) if times is None else partitions("times", times)
    for part, own in zip(parts, when, strict=True):
        rows = part.compute()
        if np.shape(rows)[0]:
            model.partial_fit(rows, times=None if own is None else own.compute())
    return model
