"""How far a long fit has come, told to whoever asks; silent otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from hplus._checks import shown

Hook = Callable[[str, int, int], Any]
"""Called as hook(stage, done, total)."""

T = TypeVar("T")

_HOOK: ContextVar[Hook | None] = ContextVar("hplus_progress", default=None)


@contextmanager
def progress(hook: Hook) -> Iterator[None]:
    """Within this context fits call hook(stage, done, total) as they go.

    `stage` says in words what is done; each stage of a fit comes once, and its `done` goes from 0
    to `total`. A search that ends early skips the rest. A hook that raises stops the fit and leaves
    the estimator as it was.

    >>> from hplus import Intensity, Interval, progress
    >>> stages = {}
    >>> with progress(lambda stage, done, total: stages.update({stage: done / total})):
    ...     model = Intensity(Interval(0, 1)).fit([[0.2], [0.3], [0.9]])
    >>> stages
    {'comparing smooth priors': 1.0, 'refining the grid': 1.0, 'certifying the answer': 1.0}
    """
    if not callable(hook):
        raise TypeError(f"hook must be callable as hook(stage, done, total), got {shown(hook)}.")
    token = _HOOK.set(hook)
    try:
        yield
    finally:
        _HOOK.reset(token)


def step(stage: str, done: int, total: int) -> None:
    """Tell the hook, if there is one, that `done` of `total` are done; nothing for a total of 0."""
    hook = _HOOK.get()
    if hook is not None and total > 0:
        hook(stage, done, total)


def each(stage: str, items: Iterable[T]) -> Iterator[T]:
    """The items one by one, with a step before each and after the last: for loops without break."""
    every = list(items)
    for done, item in enumerate(every):
        step(stage, done, len(every))
        yield item
    step(stage, len(every), len(every))


@contextmanager
def whole_or_not(estimator: Any) -> Iterator[None]:
    """A fit that is stopped half-way, by a hook or an error, leaves the estimator as it was.

    One that is not leaves nothing of an earlier fit.
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
