"""Which event triggered which: declustering."""

from __future__ import annotations

from typing import final

import numpy as np
from numba import njit

from hplus._checks import Floats, Ints
from hplus._values import Value, value
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.excited_rate import ExcitedRate

LEAST_PROBABILITY = 0.01
"""Parents that are less likely are not listed."""


@final
@value
class Parents(Value):
    """For each event of the window: the probability that it was not triggered, and likely parents.

    `background` (n,) are probabilities, `events` (n,) the rows of the events in the order of time.
    `children` and `parents` (k,) are pairs of such rows with `probabilities` (k,) of at least 1 %,
    and `likeliest` (n,) is the row of the likeliest parent, or -1 if the background is likelier.
    """

    events: Ints
    background: Floats
    children: Ints
    parents: Ints
    probabilities: Floats
    likeliest: Ints


@njit(cache=True, nogil=True)
def _likely(t, x, kind, first, rates, weights, reach, lags, distances, table, least):
    """Pairs (child, parent, probability): the share of the rate that each earlier event adds."""
    L, D = len(lags) - 1, max(len(distances) - 1, 1)
    children, parents, shares = [], [], []
    for i in range(first, len(t)):
        for j in range(i - 1, -1, -1):
            lag = t[i] - t[j]
            if lag >= lags[L]:
                break
            if lag <= 0.0:
                continue
            lo = np.searchsorted(lags, lag, side="right") - 1
            u = 1.0 if lo < 0 else (lag - lags[lo]) / (lags[lo + 1] - lags[lo])
            d, v, w = 0, 0.0, weights[j]
            if len(distances):
                s = reach[j]
                far = np.sqrt((x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2) / s
                if far >= distances[D]:
                    continue
                d = np.searchsorted(distances, far, side="right") - 1
                v = 1.0 if d < 0 else (far - distances[d]) / (distances[d + 1] - distances[d])
                w /= s * s
            total = 0.0
            for q in range(2):
                for r in range(2):
                    ll, dd = lo + q, d + r
                    if 0 <= ll < L and 0 <= dd < D:
                        total += (
                            (u if q else 1.0 - u)
                            * (v if r else 1.0 - v)
                            * table[kind[j], kind[i], ll, dd]
                        )
            share = w * total / rates[i - first]
            if share >= least:
                children.append(i)
                parents.append(j)
                shares.append(share)
    return np.array(children, dtype=np.int64), np.array(parents, dtype=np.int64), np.array(shares)


def find_parents(rate: ExcitedRate, history: Catalogue, start: float) -> Parents:
    """The likely parents of all events since the start."""
    inside = history.since(start)
    first = len(history) - len(inside)
    rates = rate.conditional(inside, history)
    own = np.zeros(len(inside))
    for kind in range(rate.types):
        some = inside.types == kind
        part = inside.picked(some)
        own[some] = rate.background.at(part.times, part.places, kind)
    children, parents, shares = _likely(
        history.times, history.places, history.types, first, rates,
        rate.effects.productivity(history.marks), rate.effects.reach(history.marks),
        rate.trigger.lags, rate.trigger.distances, rate.trigger.weights, LEAST_PROBABILITY,
    )  # fmt: skip
    background = own / rates
    most, likeliest = background.copy(), np.full(len(inside), -1)
    for child, parent, share in zip(children - first, parents, shares, strict=True):
        if share > most[child]:
            most[child], likeliest[child] = share, parent
    return Parents(np.arange(first, len(history)), background, children, parents, shares, likeliest)
