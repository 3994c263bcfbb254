"""Time rescaling: events on a line at the share of all expected events up to each of them."""

from __future__ import annotations

from typing import final

import numpy as np
from scipy.stats import kstest, kstwo

from hplus._checks import Floats
from hplus._values import Value, value


@final
@value
class Rescaling(Value):
    """Sorted times Λ(t_i)/Λ(T), uniform on [0, 1] if the rate is right, and a test of that.

    `gaps` are n times the gaps between them, about exponential with mean 1; shape (n,) each. If
    counts have φ times the variance of Poisson counts (`variation`), the test is that of n/φ times.
    """

    times: Floats
    gaps: Floats
    statistic: float
    p_value: float
    variation: float = 1.0

    @property
    def size(self) -> int:
        """How many independent times the test is of."""
        return max(1, round(len(self.times) / self.variation))

    def varying(self, variation: float) -> Rescaling:
        """The same test of counts that vary so many times as much as Poisson counts."""
        found = self.replace(variation=variation)
        return found.replace(p_value=float(kstwo.sf(self.statistic, found.size)))


def rescale_time(increments: Floats) -> Rescaling:
    """Kolmogorov-Smirnov test of Λ(t_i)/Λ(T), from ∫λ before, between and after n events.

    `increments` has shape (n + 1,), in order of time.
    """
    total = np.cumsum(increments)
    times = total[:-1] / total[-1]
    test = kstest(times, "uniform")
    gaps = len(times) * increments[:-1] / total[-1]
    return Rescaling(times, gaps, float(test.statistic), float(test.pvalue))
