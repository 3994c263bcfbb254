"""FadingFactors: factors that change with the time since an event, averaged over spans of lags."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from hplus._checks import Floats, Ints
from hplus.rates.excitation.factor_law import FactorLaw
from hplus.rates.excitation.trigger import Trigger
from hplus.rates.excitation.visible import visible_lags


class FadingFactors(NamedTuple):
    """Factors whose correlation is `kept` from one lag to another that is ten times as long.

    In a span of time, `shares` (n, L) of what is expected of each event are those of hat functions.
    """

    trigger: Trigger
    kept: float

    def shares(self, times: Floats, types: Ints, start: float, end: float) -> Floats:
        """The shares of events at times (n,), 0 if nothing is expected of them."""
        trigger = self.trigger
        by_lag = (trigger.weights @ trigger.distance_integrals).sum(axis=1)
        found = visible_lags(trigger.lags, times, start, end) * by_lag[types]
        return found / np.maximum(found.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    def spread(self, shares: Floats) -> Floats:
        """The variance of mean factors over a span, relative to that at one lag, (n,)."""
        found = self._covariances(shares, shares)
        return np.where(found > 0.0, found, 1.0)

    def correlations(self, a: Floats, b: Floats) -> Floats:
        """Those of mean factors over two spans, (n,)."""
        found = self._covariances(a, b) / np.sqrt(self.spread(a) * self.spread(b))
        return np.minimum(found, 1.0)

    def left(self, shares: Floats, since: Floats) -> Floats:
        """How much of what is known at lags `since` (n,) counts in a span, (n,)."""
        decades = np.maximum(self._logs - np.log10(np.maximum(since, 1e-300))[:, None], 0.0)
        found: Floats = np.einsum("nl,nl->n", shares, self.kept**decades)
        return found

    def _covariances(self, a: Floats, b: Floats) -> Floats:
        between = np.abs(self._logs[:, None] - self._logs)
        found: Floats = np.einsum("nl,nl->n", a @ self.kept**between, b)
        return found

    @property
    def _logs(self) -> Floats:
        """The decimal logarithms of the lags at which hat functions are largest, (L,)."""
        return np.log10(self.trigger.lags[:-1])


def lasting_shapes(trigger: Trigger, law: FactorLaw, offspring: Floats, types: Ints) -> Floats:
    """The shapes of factors averaged over all lags, of events that trigger so many each, (n,)."""
    fading, all_types = FadingFactors(trigger, law.kept), np.arange(len(trigger.weights))
    begins, longest = np.zeros(len(all_types)), float(trigger.lags[-1])
    spread = fading.spread(fading.shares(begins, all_types, 0.0, longest))
    found: Floats = law.shapes(offspring) / spread[types]
    return found


def mean_factors(ranks: Floats, shapes: Floats, rates: Floats, spread: Floats) -> Floats:
    """Quantiles of factors Gamma(shapes, rates), whose variance is as much smaller as `spread`."""
    found: Floats = gammaincinv(shapes / spread, ranks) * (spread / rates)
    return found
