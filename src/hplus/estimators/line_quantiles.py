"""Quantiles of a distribution on a line whose counts in intervals are known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from hplus._checks import Floats
from hplus.windows import Interval, Window

QUANTILE_CELLS, BISECTIONS = 256, 45
"""Quantiles are looked up in cells of the line, and then found by bisection."""


def quantiles_on_line(
    expected_count: Callable[[list[Interval]], Floats], window: Window, p: Floats
) -> Floats:
    """The points of a window with a share p (m,) of the expected count below them, (m,)."""
    low, high = window.bounds()
    edges = np.linspace(float(low[0]), float(high[0]), QUANTILE_CELLS + 1)
    cells = [Interval(a, b) for a, b in pairwise(edges.tolist())]
    below = np.concatenate([[0.0], np.cumsum(expected_count(cells))])
    cell = np.clip(np.searchsorted(below / below[-1], p) - 1, 0, QUANTILE_CELLS - 1)
    least, most = edges[cell], edges[cell + 1]
    for _ in range(BISECTIONS):
        middle = 0.5 * (least + most)
        parts = [Interval(a, b) for a, b in zip(edges[cell], middle, strict=True)]
        low_enough = below[cell] + expected_count(parts) < p * below[-1]
        least, most = np.where(low_enough, middle, least), np.where(low_enough, most, middle)
    return 0.5 * (least + most)
