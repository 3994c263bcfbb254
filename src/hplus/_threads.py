"""One BLAS thread around small matrices: a second one costs more than it gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

SMALL = 1000
"""Side of the matrices that are worked on by one thread."""


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # a new one costs 1.3 ms


@contextmanager
def one_thread_if_small(side: int) -> Iterator[None]:
    """Work on matrices of this side with one BLAS thread if they are small."""
    if side > SMALL:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
