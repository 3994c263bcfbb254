"""The methods that every fitted estimator of a rate has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hplus._checks import Floats, check_count, check_fraction, check_positive, check_random_state
from hplus.estimators.base import Estimator, check_fitted, check_weights
from hplus.estimators.column_names import check_names
from hplus.rates.by_region import as_regions, one_or_all, rate_unit
from hplus.rates.fitted import FittedRate
from hplus.rates.mixed_poisson import mixed_poisson_quantile
from hplus.windows import Window


class RateEstimator(Estimator):
    """An estimator with a `window` and, once fitted, a `rate_` that its answers come from."""

    window: Any
    rate_: FittedRate

    def predict(self, X: Any) -> Floats:
        """The rate at each point of the window, per unit of `unit_`, shape (n,)."""
        X = self._points(X)
        return self.rate_.function(X)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Floats, Floats]:
        """Bounds (low, high) that contain the rate at each point with probability `level`."""
        X = self._points(X)
        return self.rate_.interval(X, check_fraction("level", level))

    def expected_count(self, regions: Window | Sequence[Window], *, exposure: float = 1.0) -> Any:
        """E∫λ over the part of a region in the window, or each of several, for an exposure E."""
        E = check_positive("exposure", exposure)
        check_fitted(self)
        counts = E * self.rate_.integrals(as_regions(self.window, regions))
        return one_or_all(regions, counts)

    def count_interval(
        self, regions: Window | Sequence[Window], level: float = 0.9, *, exposure: float = 1.0
    ) -> tuple[Any, Any]:
        """Bounds (low, high) that contain the count of a region with probability `level`.

        The count of new events in that exposure: the chance of counts is included.
        """
        tail = 0.5 * (1.0 - check_fraction("level", level))
        E = check_positive("exposure", exposure)
        check_fitted(self)
        means = E * self.rate_.count_draws(as_regions(self.window, regions))
        low, high = (mixed_poisson_quantile(means, p) for p in (tail, 1.0 - tail))
        return one_or_all(regions, low), one_or_all(regions, high)

    def score(self, X: Any, y: None = None, sample_weight: Any = None) -> float:
        """The mean of log(λ/∫λ) over events: free of exposure, higher is better."""
        X = self._points(X)
        with np.errstate(divide="ignore"):
            logs = np.log(self.rate_.function(X)) - np.log(self.rate_.integral())
        weights = check_weights("sample_weight", sample_weight, len(X))
        return float(np.average(logs, weights=weights))

    def log_likelihood(self, X: Any, exposure: float = 1.0) -> float:
        """Σ log(E λ(x_i)) - E∫λ of events observed during an exposure E."""
        X, E = self._points(X), check_positive("exposure", exposure)
        with np.errstate(divide="ignore"):
            logs = np.log(E * self.rate_.function(X))
        return float(logs.sum() - E * self.rate_.integral())

    def sample(self, n_paths: int = 1, random_state: Any = None) -> list[Floats]:
        """Random patterns of events for one unit of exposure, (n_i, d) each."""
        check_fitted(self)
        rng = check_random_state(random_state)
        total, function = self.rate_.integral(), self.rate_.on_grid
        counts = rng.poisson(total, size=check_count("n_paths", n_paths))
        return np.split(function.sample(int(counts.sum()), rng), np.cumsum(counts)[:-1])

    def peak(self) -> tuple[Floats, float]:
        """The point of the window with the highest rate, shape (d,), and the rate there."""
        check_fitted(self)
        return self.rate_.on_grid.peak()

    @property
    def unit_(self) -> str:
        """The unit of the rate, such as "1/km²"; "" if the window has none."""
        return rate_unit(self.window)

    def _points(self, X: Any) -> Floats:
        check_fitted(self)
        check_names(self, X, reset=False)
        return self.window.require("X", X)
