"""Rows of a chunk as points of a window, and why others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hplus._checks import Bools, Floats
from hplus.files.times import Zone


class Placed(NamedTuple):
    """Points (n, d) of the rows that could be placed, which rows those are, and why others not.

    Others are `dropped` if a cell cannot be read, and `left_out` if they lie outside the window or
    the observation period. `seconds` (n,) are the times of the points, or say of which trial they
    are, and `weights` (n,) what each one counts, None if all count 1. `low` and `high` are the
    range of the columns, and of the times, as the file has them; `zone` is that of the first time
    so far.
    """

    X: Floats
    rows: Bools
    dropped: Counter[str]
    left_out: Counter[str]
    seconds: Floats
    weights: Floats | None
    low: Floats
    high: Floats
    zone: Zone


def drop(dropped: Counter[str], good: Bools, bad: Bools, reason: str) -> Bools:
    """Rows that are still good; each of the others is counted once, under its first reason."""
    if not bad.any():
        return good
    lost = int(np.sum(good & bad))
    if lost:
        dropped[reason] += lost
    return good & ~bad


def range_of(columns: Sequence[Floats]) -> tuple[Floats, Floats]:
    if len(columns[0]) == 0:
        d = len(columns)
        return np.full(d, np.inf), np.full(d, -np.inf)
    return np.array([c.min() for c in columns]), np.array([c.max() for c in columns])
