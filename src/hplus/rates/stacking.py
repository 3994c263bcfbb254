"""How much weight each of several rates gets, by what they predict of events held out."""

from __future__ import annotations

import numpy as np

from hplus._checks import Bools, Floats

MAX_WEIGHT_STEPS, LAST_WEIGHT_STEP = 500, 1e-5
"""Steps towards the best weights at most, and the change of the weights in the last one."""

SAME_DENSITY = 1e-6
"""Relative difference up to which two models are the same."""

MIN_STACK_WEIGHT = 0.02
"""A rate of less weight is left out."""

MIN_GAIN_ERRORS, MIN_GAIN_NATS = 1.0, 3.0
"""Standard errors, and nats over all events, by which a mixture must predict better with a rate
than without it: its weights are chosen on the same events."""


def stacking_weights(
    densities: Floats, counts: Floats, least_errors: float = MIN_GAIN_ERRORS
) -> Floats:
    """Weights (m,) of the mixture that predicts best: largest Σ counts·log(weights @ densities).

    `densities` (m, n) are those of m models at n places, `counts` (n,) the events there. A model
    other than the first gets weight only if the mixture predicts better with it than without it, by
    `least_errors` standard errors and MIN_GAIN_NATS.
    """
    m = len(densities)
    if m > 1 and np.allclose(densities[0], densities[-1], rtol=SAME_DENSITY, atol=0.0):
        return np.append(stacking_weights(densities[:-1], counts, least_errors), 0.0)
    relative = densities / densities.max(axis=0)
    used = np.ones(m, dtype=bool)
    weights = _best_weights(relative, counts, used)
    while used[1:].any():
        rivals = [used & (np.arange(m) != i) for i in np.flatnonzero(used[1:]) + 1]
        fewer = [_best_weights(relative, counts, rival) for rival in rivals]
        lost = [_gain(relative, counts, weights, other) for other in fewer]
        least = int(np.argmin([nats for nats, _ in lost]))
        nats, error = lost[least]
        if nats >= max(least_errors * error, MIN_GAIN_NATS):
            break
        used, weights = rivals[least], fewer[least]
    return weights


def _best_weights(relative: Floats, counts: Floats, used: Bools) -> Floats:
    """The weights of the models in use that predict best, without those that hardly matter."""
    weights = used / used.sum()
    for _ in range(MAX_WEIGHT_STEPS):
        shares = weights[:, None] * relative
        new = (shares / shares.sum(axis=0)) @ counts / counts.sum()
        change, weights = float(np.abs(new - weights).max()), new
        if change < LAST_WEIGHT_STEP:
            break
    weights = np.where(weights < MIN_STACK_WEIGHT, 0.0, weights)
    return weights / weights.sum()


def _gain(relative: Floats, counts: Floats, weights: Floats, other: Floats) -> tuple[float, float]:
    """The nats by which a mixture predicts all events better than another, and their error."""
    gains = np.log(weights @ relative) - np.log(other @ relative)
    n, mean = float(counts.sum()), float(np.average(gains, weights=counts))
    variance = float(np.average((gains - mean) ** 2, weights=counts))
    return n * mean, float(np.sqrt(n * variance))
