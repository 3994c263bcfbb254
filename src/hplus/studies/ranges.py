"""The range of data as arguments of `plan`: a window and times around it, rounded outwards."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.studies.frames import Frame
from hplus.studies.spans import SECONDS, moment


class Extent(NamedTuple):
    """The lowest and the highest value of each column, and of the times last, as in the file."""

    low: Floats
    high: Floats

    def including(self, low: Floats, high: Floats) -> Extent:
        """The extent with some more data."""
        return Extent(np.minimum(self.low, low), np.maximum(self.high, high))


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
    """A time around data: whole days or, of a short time, whole seconds."""
    step = SECONDS["day"] if high - low > 2 * SECONDS["day"] else 1.0
    # the very end does not belong to a time
    first, last = np.floor(low / step) * step, np.ceil((high + 1e-3) / step) * step
    return moment(float(first)), moment(float(last))


def window_argument(low: Floats, high: Floats) -> str:
    """A box around data, as in a call."""
    return f"window=({', '.join(f'{corner:.10g}' for corner in window_around(low, high))})"


def times_arguments(low: float, high: float) -> str:
    """A time around data, as in a call."""
    start, end = times_around(low, high)
    return f"{start=}, {end=}"


def range_arguments(frame: Frame, extent: Extent) -> str:
    """The range of a frame's columns and times, as in a call."""
    d, parts = len(frame.columns), []
    if d:
        parts.append(window_argument(extent.low[:d], extent.high[:d]))
    if frame.clock is not None:
        parts.append(times_arguments(float(extent.low[-1]), float(extent.high[-1])))
    return ", ".join(parts)
