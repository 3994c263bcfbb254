"""Which event triggered which: declustering."""

from __future__ import annotations

from typing import final

import numpy as np
from numba import njit

from hplus._checks import Floats, Ints
from hplus._values import Value, value
from hplus.rates.excitation.conditional_rate import ConditionalRate
from hplus.rates.excitation.pair_rows import added_by_hats, knots_per_log

LEAST_PROBABILITY = 0.01
"""Parents that are less likely are not listed."""


@final
@value
class Parents(Value):
    """For each event since the window began: the probability of no parent, and likely parents.

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
def _likely(t, x, kind, first, rates, weights, reach, bearings, trigger, row, factors, least):
    """Pairs (child, parent, probability): the share of the rate that each earlier event adds."""
    lags, distances, table = trigger
    children, parents, shares = [], [], []
    per_log = knots_per_log(lags), knots_per_log(distances)
    for i in range(first, len(t)):
        for j in range(i - 1, -1, -1):
            lag = t[i] - t[j]
            if lag >= lags[-1]:
                break
            far, w, dx, dy = 0.0, weights[j], 0.0, 0.0
            if len(distances):
                dx, dy = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1]
                far = np.sqrt(dx * dx + dy * dy) / reach[j]
                if far >= distances[-1]:
                    continue
            if lag <= 0.0:
                continue
            k, low, high = added_by_hats(
                table[kind[j], kind[i]], lag, far, lags, distances, per_log, bearings, j, dx, dy
            )
            own = factors[row[j]]
            share = own[max(k, 0)] * low + own[min(k + 1, len(own) - 1)] * high
            share *= w / rates[i - first]
            if share >= least:
                children.append(i)
                parents.append(j)
                shares.append(share)
    return np.array(children, dtype=np.int64), np.array(parents, dtype=np.int64), np.array(shares)


def find_parents(known: ConditionalRate, start: float) -> Parents:
    """The likely parents of all events since the start."""
    rate, history = known.rate, known.sources
    inside = history.since(start)
    first = len(history) - len(inside)
    own = known.background_at(inside)
    rates = own + known.triggered_at(inside)
    row = np.zeros(len(history), dtype=np.int64)
    row[known.factors.which] = np.arange(1, len(known.factors.which) + 1)
    factors = np.vstack([np.ones((1, len(rate.trigger.lags) - 1)), known.factors.factors])
    weights, reach = rate.effects.productivity(history.marks), rate.effects.reach(history.marks)
    if history.in_place:
        weights = weights / reach**rate.trigger.axes
    children, parents, shares = _likely(
        history.times, history.plane, history.types, first, rates, weights, reach,
        history.each_bearing, rate.trigger.arrays, row, factors, LEAST_PROBABILITY,
    )  # fmt: skip
    background = own / rates
    most, likeliest = background.copy(), np.full(len(inside), -1)
    for child, parent, share in zip(children - first, parents, shares, strict=True):
        if share > most[child]:
            most[child], likeliest[child] = share, parent
    return Parents(np.arange(first, len(history)), background, children, parents, shares, likeliest)
