"""Events in collections of Dask: a statistic of each partition, added in a tree.

Nothing but counts leaves a partition, and a task that runs twice, or again after a worker died,
gives the same counts. Dask is not imported unless there is such a collection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from hplus._checks import shown

if TYPE_CHECKING:
    from hplus.rates.statistic import Statistic
    from hplus.windows import Window

ADDED_AT_ONCE = 8
"""Statistics that one task adds up."""


def is_lazy(X: object) -> bool:
    """Is it a collection of Dask?"""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def partitions(name: str, X: Any) -> list[Any]:
    """The partitions of an array or data frame of Dask, each with whole rows, not computed yet."""
    if hasattr(X, "rechunk") and X.ndim > 1:
        X = X.rechunk({1: -1})
    if not is_lazy(X):
        raise TypeError(f"{name} must be an array or data frame of Dask, as X is, got {shown(X)}.")
    return list(getattr(X.to_delayed(), "flat", X.to_delayed()))


def lazy_statistic(window: Window, X: Any, sample_weight: Any = None) -> Statistic:
    """The statistic of the events in a collection of Dask, computed by its scheduler."""
    from dask.delayed import delayed

    from hplus.rates.statistic import Statistic, merged

    parts = partitions("X", X)
    weights: list[Any] = [None] * len(parts)
    if sample_weight is not None:
        weights = partitions("sample_weight", sample_weight)
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


def computed(X: Any, *others: Any) -> Iterator[tuple[Any, ...]]:
    """The partitions of collections of Dask together, one after another."""
    from dask.base import compute

    columns = [partitions("X", X), *(partitions("times", other) for other in others)]
    for parts in zip(*columns, strict=True):
        yield compute(*parts)  # type: ignore[no-untyped-call]


class ChunkLearner(Protocol):
    """What learns from events chunk by chunk."""

    def partial_fit(self, X: Any, *, times: Any = None) -> Any:
        """Learn from events."""


LearnerType = TypeVar("LearnerType", bound=ChunkLearner)


def learn_lazily(model: LearnerType, X: Any, exposure: Any, times: Any) -> LearnerType:
    """Call `partial_fit` for each partition, of which only one is computed at a time."""
    if exposure is not None:
        raise ValueError(
            f"exposure must be None for a collection of Dask, got {shown(exposure)}: call "
            "partial_fit for each partition with its own."
        )
    for part, *when in computed(X, *([] if times is None else [times])):
        if len(part):
            model.partial_fit(part, times=when[0] if when else None)
    return model
