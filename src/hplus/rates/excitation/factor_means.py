"""Factors of events in times to come: means over spans of lags, as factors change with the lag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, ndtr

from hplus._checks import Floats, Ints
from hplus.rates.excitation.factor_law import FactorLaw
from hplus.rates.excitation.trigger import Trigger
from hplus.rates.excitation.visible import visible_lags

JITTER = 1e-9
"""Added to the diagonal of correlations of spans, two of which may be of the same lags."""


class FactorsAhead(NamedTuple):
    """Factors at hat functions of lags: their means and deviations (n, L), and correlations (L, L).

    The correlation is `kept` from one lag to another that is ten times as long.
    """

    means: Floats
    deviations: Floats
    correlations: Floats

    def over(self, shares: Floats) -> tuple[Floats, Floats]:
        """Means (s, n) of factors averaged over spans, and their covariances (n, s, s).

        `shares` (s, n, L) of what is expected in each span are those of hat functions.
        """
        weighted = np.swapaxes(shares * self.deviations, 0, 1)
        covariances = weighted @ self.correlations @ np.swapaxes(weighted, 1, 2)
        return np.sum(shares * self.means, axis=2), covariances


def factors_ahead(
    trigger: Trigger,
    law: FactorLaw,
    means: Floats,
    known: tuple[Floats, Floats, Floats],
    since: Floats,
) -> FactorsAhead:
    """Factors with means (n, L), given k, N and E of events at lags `since`, (n,) each.

    They vary like Gamma(k + N, k + E); N and E fade at each knot between that lag and the hat
    function.
    """
    knots = trigger.lags[:-1]
    between = np.arange(len(knots)) - 1 - np.searchsorted(knots, since, side="right")[:, None]
    left = law.fade(trigger.lags) ** np.maximum(between, 0)
    k, count, expected = (each[:, None] for each in known)
    deviations = np.sqrt(k + count * left) / (k + expected * left)
    return FactorsAhead(means, deviations, _correlations(trigger, law))


def _correlations(trigger: Trigger, law: FactorLaw) -> Floats:
    logs = np.log10(trigger.lags[:-1])
    found: Floats = law.kept ** np.abs(logs[:, None] - logs)
    return found


def lag_shares_in(trigger: Trigger, times: Floats, types: Ints, start: float, end: float) -> Floats:
    """The shares of hat functions in what events at times (n,) trigger in a span, (n, L).

    They are 0 if nothing is expected.
    """
    by_lag = (trigger.weights @ trigger.distance_integrals).sum(axis=1)
    found = visible_lags(trigger.lags, times, start, end) * by_lag[types]
    return found / np.maximum(found.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def lasting_shapes(trigger: Trigger, law: FactorLaw, offspring: Floats, types: Ints) -> Floats:
    """The shapes of factors averaged over all lags, of events that trigger so many each, (n,)."""
    every, longest = np.arange(len(trigger.weights)), float(trigger.lags[-1])
    shares = lag_shares_in(trigger, np.zeros(len(every)), every, 0.0, longest)
    spread = np.einsum("tl,lk,tk->t", shares, _correlations(trigger, law), shares)
    found: Floats = law.shapes(offspring) / np.where(spread > 0.0, spread, 1.0)[types]
    return found


def drawn_means(
    means: Floats, covariances: Floats, rngs: Sequence[np.random.Generator], n: int
) -> Iterator[Floats]:
    """n draws of gamma variables with means (s, m) and covariances (m, s, s): for each s, (n, m).

    Those for one s depend on its own random numbers and those before.
    """
    variances = np.einsum("mss->sm", covariances)
    scales = np.sqrt(np.where(variances > 0.0, variances, 1.0)).T
    alike = covariances / scales[:, :, None] / scales[:, None, :]
    none = np.einsum("mss->ms", alike) == 0.0
    identity = np.eye(len(means))
    roots = np.linalg.cholesky(alike + (JITTER + none[:, :, None]) * identity)
    normals: list[Floats] = []
    for s, rng in enumerate(rngs):
        normals.append(rng.standard_normal((n, means.shape[1])))
        normal = sum((roots[:, s, r] * z for r, z in enumerate(normals)), np.zeros(1))
        yield gamma_quantiles(ndtr(normal), means[s], variances[s])


def gamma_quantiles(ranks: Floats, means: Floats, variances: Floats) -> Floats:
    """Quantiles of gamma variables with means and variances (m,), at ranks (n, m).

    They are 1 where the variance is 0, as nothing is expected there.
    """
    some = variances > 0.0
    mean, variance = np.where(some, means, 1.0), np.where(some, variances, 1.0)
    found = gammaincinv(mean**2 / variance, ranks) * (variance / mean)
    return np.where(some, found, 1.0)
