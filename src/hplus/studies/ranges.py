"""The range of data as arguments of `plan`: a window and times around it, rounded outwards."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.studies.spans import SECONDS, moment


class Extent(NamedTuple):
    """The lowest and the highest value of each column, and of the times last, as in the file."""

    low: Floats
    high: Floats

    def including(self, low: Floats, high: Floats) -> Extent:
        """The extent with some more data."""
        return Extent(np.minimum(self.low, low), np.maximum(self.high, high))


FINEST_OF_SPAN = 0.01
"""The share of a period that is added at each end, at most: empty time there looks like silence."""

NO_EXTENT = Extent(np.array(np.inf), np.array(-np.inf))


def window_around(low: Floats, high: Floats) -> tuple[float, ...]:
    """A box around data: its lowest corner, then its highest, rounded outwards."""
    corners = []
    for bound, rounding in ((low, np.floor), (high, np.ceil)):
        for b, side in zip(bound, high - low, strict=True):
            step = 10.0 ** np.floor(np.log10(side if side > 0.0 else max(abs(b), 1.0)) - 1.0)
            edge = float(rounding(np.round(b / step, 9)) * step)
            if side == 0.0:
                edge += step if rounding is np.ceil else -step
            corners.append(float(f"{edge:.10g}"))
    return tuple(corners)


def times_around(low: float, high: float) -> tuple[str, str]:
    """A period around data: in whole days, or if it is short in whole hours, minutes or seconds."""
    dates = low % SECONDS["day"] == high % SECONDS["day"] == 0.0
    most = SECONDS["day"] if dates else FINEST_OF_SPAN * (high - low)
    step = next((SECONDS[u] for u in ("day", "h", "min") if SECONDS[u] <= most), 1.0)
    # the very end does not belong to a time
    first, last = np.floor(low / step) * step, np.ceil((high + 1e-3) / step) * step
    return moment(float(first)), moment(float(last))


def range_arguments(extent: Extent, columns: int, timed: bool, flip: bool = False) -> list[str]:
    """The range of some columns, and of the times if there are any, as arguments of a call.

    `flip` says that the columns are to be named the other way round.
    """
    found = []
    if columns:
        low, high = (bound[:columns][:: -1 if flip else 1] for bound in extent)
        found.append(f"window=({', '.join(f'{edge:.10g}' for edge in window_around(low, high))})")
    if timed:
        start, end = times_around(float(extent.low[-1]), float(extent.high[-1]))
        found.append(f"{start=}, {end=}")
    return found
