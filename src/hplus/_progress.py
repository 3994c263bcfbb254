"""Progress of a long fit, reported to a callback if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from hplus._checks import shown

Hook = Callable[[str, int, int], object]
"""Called as hook(stage, done, total)."""

T = TypeVar("T")

_HOOK: ContextVar[Hook | None] = ContextVar("hplus_progress", default=None)


@contextmanager
def progress(hook: Hook) -> Iterator[None]:
    """Within this context, fits call hook(stage, done, total) as they go.

    `stage` describes the current work; each stage of a fit occurs once, and its `done` goes from 0
    to `total`. A search that ends early skips the rest. A hook that raises an exception stops the
    fit and leaves the estimator unchanged.

    >>> from hplus import Intensity, Interval, progress
    >>> stages = {}
    >>> with progress(lambda stage, done, total: stages.update({stage: done / total})):
    ...     model = Intensity(Interval(0, 1)).fit([[0.2], [0.3], [0.9]])
    >>> list(stages)
    ['comparing smooth priors', 'growing trees', 'refining the grid', 'certifying the answer']
    >>> set(stages.values())
    {1.0}
    """
    if not callable(hook):
        raise TypeError(f"hook must be callable as hook(stage, done, total), got {shown(hook)}.")
    token = _HOOK.set(hook)
    try:
        yield
    finally:
        _HOOK.reset(token)


def step(stage: str, done: int, total: int) -> None:
    """Report to the hook, if there is one, that `done` of `total` are done, unless total is 0."""
    hook = _HOOK.get()
    if hook is not None and total > 0:
        hook(stage, done, total)


def each(stage: str, items: Iterable[T]) -> Iterator[T]:
    """Yield the items, with a step before each and after the last; not for loops with a break."""
    every = list(items)
    for done, item in enumerate(every):
        step(stage, done, len(every))
        yield item
    step(stage, len(every), len(every))


@contextmanager
def whole_or_not(estimator: object) -> Iterator[None]:
    """A fit that stops early, by a hook or an error, leaves the estimator unchanged.

    A fit that succeeds leaves nothing of an earlier one.
    """
    before = dict(vars(estimator))
    for name in before:
        if name.endswith("_") and not name.startswith("_"):
            delattr(estimator, name)
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
