"""One BLAS thread for small matrices: a second one costs more time than it saves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

MAX_ONE_THREAD_SIDE = 1000
"""Matrices up to this size are handled by one thread."""


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
