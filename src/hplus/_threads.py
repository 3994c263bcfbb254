"""Tasks at the same time; and one BLAS thread for small matrices, where a second costs time."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from numbers import Integral
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from hplus._checks import Reals, shown

Found = TypeVar("Found")
Other = TypeVar("Other")

MAX_ONE_THREAD_SIDE = 1000
"""Matrices up to this size are handled by one thread."""

MANY_ELEMENTS = 1_000_000
"""Elements of an array from which on a loop over it is worth a thread."""


TURN_SECONDS = 1e-3
"""For how long one of two threads may keep the other from running Python; by default it is 5 ms,
for which a thread that calls one short FFT after the other would wait again and again."""


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # creating one takes 1.3 ms


@contextmanager
def one_thread_if_small(side: int) -> Iterator[None]:
    """Use one BLAS thread inside this context if matrices of this size are small."""
    if side > MAX_ONE_THREAD_SIDE:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


def check_jobs(n_jobs: int | None) -> int:
    """How many jobs may run at the same time: None is 1, and -1 as many as there are cores."""
    if n_jobs in (None, -1):
        return 1 if n_jobs is None else len(os.sched_getaffinity(0))
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs < 1:
        raise ValueError(
            "n_jobs must be a whole number of at least 1, or -1 for all cores, got "
            f"{shown(n_jobs)}."
        )
    return int(n_jobs)


def over_cores(work: Callable[[int], Found], count: int, size: int) -> list[Found]:
    """What work(0), ..., work(count - 1) return, on all cores if they loop over many elements.

    For compiled loops, which release the GIL; `size` is how many elements each one has.
    """
    if size < MANY_ELEMENTS:
        return [work(i) for i in range(count)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(work, range(count)))


Mapped = Callable[[Callable[[int], Reals], range], Iterable[Reals]]
"""Gives the arrays that work returns for each number, like the built-in `map`."""


@contextmanager
def mapping_over_cores(size: int) -> Iterator[Mapped]:
    """A `map` for work on arrays of many elements in all, on all cores, to be used many times."""
    cores = len(os.sched_getaffinity(0))
    if cores == 1 or size < MANY_ELEMENTS:
        yield map
        return
    with ThreadPoolExecutor(cores) as pool:
        yield pool.map


def ahead(items: Iterator[Found]) -> Iterator[Found]:
    """The items, each of which another thread computes while the one before is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def at_once(
    first: Callable[[], Found], second: Callable[[], Other], n_jobs: int | None
) -> tuple[Found, Other]:
    """What two tasks return; the first runs in this thread, which may show its progress.

    Threads suffice: most of the time is spent in FFTs and compiled loops, which release the GIL.
    """
    if n_jobs in (None, 1):
        return first(), second()
    with _short_turns(), ThreadPoolExecutor(1) as pool:
        other = pool.submit(second)
        return first(), other.result()


@contextmanager
def _short_turns() -> Iterator[None]:
    """Threads take turns more often inside this context, if they run on different cores."""
    before, cores = sys.getswitchinterval(), len(os.sched_getaffinity(0))
    sys.setswitchinterval(min(before, TURN_SECONDS) if cores > 1 else before)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
