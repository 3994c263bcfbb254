"""What a process that answers for weeks needs of Python and of the C library."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hplus.serve.service import Service

SWITCH_SECONDS = 0.0005
"""How long a thread that learns may keep those waiting that answer."""

MMAP_THRESHOLD, LARGE_BLOCK = -3, 2**20
"""The name of a setting of glibc's malloc, and bytes from which on a block is given back."""


FROZEN_AT = (1, 10)
"""Models of a process after which what there is by then is no longer looked through for garbage:
the first, when what learns is compiled, and a later one, when what answers is, too."""


def prepare_process(service: Service) -> None:
    """Let threads of a process that serves take turns quickly, and memory be given back."""
    sys.setswitchinterval(SWITCH_SECONDS)
    give_back_large_blocks()
    leave_out_of_collections()
    service.learned = _learned


def _learned(models: int) -> None:
    """Note that this process has learned so many models."""
    if models in FROZEN_AT:
        leave_out_of_collections()


def give_back_large_blocks() -> None:
    """Give large blocks back when they are freed, where the C library is glibc.

    By itself it begins to keep them after the first is freed: then learning from ever more events
    leaves holes of ever more sizes.
    """
    try:
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BLOCK)
    except (AttributeError, OSError, TypeError):
        return  # another C library


def leave_out_of_collections() -> None:
    """Never look again for garbage among the objects that there are now.

    Modules and compiled code stay as long as the process: to look through all of them takes a
    tenth of a second, in which nobody is answered.
    """
    gc.collect()
    gc.freeze()
