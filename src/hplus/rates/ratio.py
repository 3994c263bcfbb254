"""The ratio of two rates of one window, with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from hplus._checks import Bools, Floats, check_fraction
from hplus.rates.by_region import as_regions, one_or_all
from hplus.rates.fitted import FittedRate
from hplus.windows import Window


@final
@dataclass(frozen=True, eq=False)
class RateRatio:
    """The ratio λ_a(x)/λ_b(x) of two rates on one window, learned independently: `a / b`.

    Both rates are per unit of their own exposure. Where `b` is 0, which happens only with models by
    squares, the ratio is infinite, or NaN if `a` is 0 too.

    >>> import numpy as np
    >>> from hplus import Intensity, Interval
    >>> day, rng = Interval(0, 24), np.random.RandomState(0)
    >>> before = Intensity(day).fit(24 * rng.beta(2, 2, size=(300, 1)), exposure=30)
    >>> after = Intensity(day).fit(24 * rng.beta(2, 2, size=(600, 1)), exposure=30)
    >>> ratio = after / before
    >>> round(ratio.count_ratio(day), 6)
    2.0
    >>> bool(ratio.differs([[12.0]])[0])
    True
    """

    window: Window
    above: FittedRate = field(repr=False)
    below: FittedRate = field(repr=False)

    def predict(self, X: Any) -> Floats:
        """The ratio at each point of the window, shape (n,), never below 0."""
        X = self.window.require("X", X)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.above.function(X) / self.below.function(X)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Floats, Floats]:
        """Bounds (low, high) that contain the ratio at each point with probability `level`.

        The distances of both log rates from their bounds are added as those of independent
        variables, by the root of their squares.
        """
        X, level = self.window.require("X", X), check_fraction("level", level)
        above, below = self.above.log_band(X, level), self.below.log_band(X, level)
        return above.times(below.inverse()).bounds

    def differs(self, X: Any, level: float = 0.9) -> Bools:
        """Is 1 outside the bounds of the ratio at a point? shape (n,)."""
        low, high = self.predict_interval(X, level)
        return (low > 1.0) | (high < 1.0)

    def count_ratio(self, regions: Window | Sequence[Window]) -> Any:
        """The ratio of the expected counts of a region, or of each of several; NaN for 0/0."""
        listed = as_regions(self.window, regions)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = self.above.integrals(listed) / self.below.integrals(listed)
        return one_or_all(regions, ratios)

    def count_ratio_interval(
        self, regions: Window | Sequence[Window], level: float = 0.9
    ) -> tuple[Any, Any]:
        """Bounds (low, high) that contain the ratio of expected counts with probability `level`.

        From the ratios of all pairs of draws of the expected counts, without the chance of counts.
        """
        tail = 0.5 * (1.0 - check_fraction("level", level))
        listed = as_regions(self.window, regions)
        draws = (rate.count_draws(listed) for rate in (self.above, self.below))
        ends = np.array([_log_ratio_ends(a, b, tail) for a, b in zip(*draws, strict=True)])
        low, high = np.exp(ends.reshape(-1, 2)).T
        return one_or_all(regions, low), one_or_all(regions, high)


def _log_ratio_ends(above: Floats, below: Floats, tail: float) -> Floats:
    """Quantiles of the log of a ratio, from all pairs of draws; NaN if a pair has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.subtract.outer(np.log(above), np.log(below))
    return np.full(2, np.nan) if np.isnan(logs).any() else np.quantile(logs, [tail, 1.0 - tail])
