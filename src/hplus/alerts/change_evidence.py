"""The evidence that counts at many places have changed, tick by tick; compiled.

At a place where m events are expected in a tick and n are seen, the evidence that the rate became
f times as high at some time so far is the Shiryaev-Roberts statistic

    R ← (R + m) q(n) / p(n),        p, q negative binomial with means m, f m and one shape a

If p is what counts follow, the mean of R is the number of events expected so far, whatever the
rates do: so R >= h happens, on average, at most once in h expected events. The shape a and the
factor a/b of the expected count are learned at each place from its own counts, which fade.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

HUGE_EVIDENCE = 1e200
"""Evidence grows no more from here."""

OWN_FACTOR_SHAPE = 1.0
"""The factor of a place is a Gamma variable of this shape and of mean 1 before its own counts."""

CERTAIN_SHAPE = 1e8
"""From this shape on, counts are Poisson."""

compiled = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def gather(counts, means, factors, fade, now, known, evidence, score, since):
    """One tick at every place: update `known`, `evidence`, `score` and `since` where they are.

    counts, means (places,) of the tick; `known` (places, 2) holds a and b; the evidence and the
    cumulative sums are (places, factors), `since` (places, factors, 3) holds when and at which
    counts and means so far a rise of the likelihood began, and `score` its present value.
    """
    for p in range(len(counts)):
        if means[p] <= 0.0:
            continue
        n, a = counts[p], known[p, 0]
        m = means[p] * a / known[p, 1]
        for k in range(len(factors)):
            f = factors[k]
            loss = (f - 1.0) * m
            if a < CERTAIN_SHAPE:
                loss = (n + a) * math.log1p(loss / (a + m))
            gain = (n * math.log(f) if n else 0.0) - loss
            evidence[p, k] = min((evidence[p, k] + m) * math.exp(gain), HUGE_EVIDENCE)
            if score[p, k] + gain <= 0.0:
                score[p, k] = 0.0
                since[p, k, 0], since[p, k, 1], since[p, k, 2] = now, 0.0, 0.0
            else:
                score[p, k] += gain
                since[p, k, 1] += n
                since[p, k, 2] += m
        known[p, 0] = OWN_FACTOR_SHAPE + fade * (a - OWN_FACTOR_SHAPE) + n
        known[p, 1] = OWN_FACTOR_SHAPE + fade * (known[p, 1] - OWN_FACTOR_SHAPE) + means[p]


@compiled
def gather_known(counts, means, factors, chances, limits, stays, before, evidence, score, since):
    """What `gather` does where rates are known exactly and are the same in every tick.

    `stays` (places, factors) is the likelihood ratio of a tick without an event, and `before` when
    the tick began. Returns whether the evidence has reached its limit anywhere.
    """
    reached = False
    for p in range(len(counts)):
        n, m, total = counts[p], means[p], 0.0
        if m <= 0.0:
            continue
        for k in range(len(factors)):
            ratio, gain = stays[p, k], (1.0 - factors[k]) * m
            if n:
                ratio *= factors[k] ** n
                gain += n * math.log(factors[k])
            evidence[p, k] = min((evidence[p, k] + m) * ratio, HUGE_EVIDENCE)
            total += chances[k] * evidence[p, k]
            if score[p, k] == 0.0 and gain > 0.0:
                since[p, k, 0], since[p, k, 1], since[p, k, 2] = before, 0.0, 0.0
            if score[p, k] + gain > 0.0:
                score[p, k] += gain
                since[p, k, 1] += n
                since[p, k, 2] += m
            else:
                score[p, k] = 0.0
        reached |= total >= limits[p]
    return reached


@compiled
def gather_many(
    start, per_tick, cells, first, starts, places, means, factors, chances, limits, held, floors,
    tick, now, evidence, score, since,
):  # fmt: skip
    """Ticks of equal means that are known exactly, from `start` on, until the evidence reaches its
    limit at a place, or a score drops to its floor at a place and factor of `held` (open, 2);
    returns how many ticks and events are done.

    Events are in `cells`, from `first` on, `per_tick` of them in each tick; those of cell c are in
    places[starts[c] : starts[c + 1]].
    """
    counts, i, reached = np.zeros(len(means)), start, False
    stays = np.exp(means.reshape(-1, 1) * (1.0 - factors))
    while i < len(per_tick) and not reached:
        counts[:] = 0.0
        for event in range(first, first + per_tick[i]):
            for at in range(starts[cells[event]], starts[cells[event] + 1]):
                counts[places[at]] += 1.0
        first += per_tick[i]
        reached = gather_known(
            counts, means, factors, chances, limits, stays, now + (i - start) * tick, evidence,
            score, since,
        )  # fmt: skip
        for j in range(len(held)):
            reached |= score[held[j, 0], held[j, 1]] <= floors[j]
        i += 1
    for p in range(len(means)):
        for k in range(len(factors)):
            if means[p] > 0.0 and score[p, k] == 0.0:
                since[p, k, 0] = now + (i - start) * tick
                since[p, k, 1], since[p, k, 2] = 0.0, 0.0
    return i, first
