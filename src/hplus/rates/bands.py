"""Bounds of rates on the log scale."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from hplus._checks import Floats

MAX_LOG_FACTOR = 100.0
"""Log of the factor by which a rate may be off: where it is more, nothing is known."""


class LogBand(NamedTuple):
    """The center of a log rate, and how far its bounds lie below and above it, shape (n,) each."""

    center: Floats
    below: Floats
    above: Floats

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The bounds of the rate."""
        return np.exp(self.center - self.below), np.exp(self.center + self.above)

    def inverse(self) -> LogBand:
        """The band of 1/rate."""
        return LogBand(-self.center, self.above, self.below)

    def times(self, other: LogBand) -> LogBand:
        """The band of a product of independent rates: distances add by the root of their squares.

        The center is NaN for 0 times infinity.
        """
        below, above = (
            np.minimum(np.hypot(a, b), MAX_LOG_FACTOR)
            for a, b in ((self.below, other.below), (self.above, other.above))
        )
        with np.errstate(invalid="ignore"):
            return LogBand(self.center + other.center, below, above)


def band_of_few(ratios: Floats, level: float) -> tuple[float, float]:
    """The band of draws (k,) relative to an estimate, no narrower than a lognormal one around it.

    Few draws tell little of the tails, and the mode of skewed draws may lie outside their middle.
    """
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(ratios, [tail, 1.0 - tail])
    logs = np.log(np.maximum(ratios, np.exp(-MAX_LOG_FACTOR)))
    spread = min(float(ndtri(1.0 - tail) * np.std(logs, ddof=1)), MAX_LOG_FACTOR)
    return min(float(low), float(np.exp(-spread))), max(float(high), float(np.exp(spread)))
