"""How much weight each of several rates gets, by what they predict of events held out."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats

MAX_WEIGHT_STEPS, LAST_WEIGHT_STEP = 500, 1e-5
"""Steps towards the best weights at most, and the change of the weights in the last one."""

SAME_DENSITY = 1e-6
"""Relative difference up to which two models are the same."""

MIN_STACK_WEIGHT = 0.02
"""A rate of less weight is left out."""

MIN_GAIN_ERRORS, MIN_GAIN_NATS = 1.0, 3.0
"""Standard errors, and nats over all events, by which a mixture must predict better than its first
rate alone: its weights are chosen on the same events."""


def stacking_weights(
    densities: Floats, counts: Floats, least_errors: float = MIN_GAIN_ERRORS
) -> Floats:
    """Weights (m,) of the mixture that predicts best: largest Σ counts·log(weights @ densities).

    `densities` (m, n) are those of m models at n places, `counts` (n,) the events there. A mixture
    must predict better than the first model by `least_errors` standard errors and MIN_GAIN_NATS, or
    that gets all the weight.
    """
    m = len(densities)
    if np.allclose(densities[0], densities[-1], rtol=SAME_DENSITY, atol=0.0):
        if m == 1:
            return np.ones(1)
        return np.append(stacking_weights(densities[:-1], counts, least_errors), 0.0)
    relative = densities / densities.max(axis=0)
    weights = np.full(m, 1.0 / m)
    for _ in range(MAX_WEIGHT_STEPS):
        shares = weights[:, None] * relative
        new = (shares / shares.sum(axis=0)) @ counts / counts.sum()
        change, weights = float(np.abs(new - weights).max()), new
        if change < LAST_WEIGHT_STEP:
            break
    weights = np.where(weights < MIN_STACK_WEIGHT, 0.0, weights)
    weights /= weights.sum()
    gains = np.log(weights @ relative) - np.log(relative[0])
    gain = float(np.average(gains, weights=counts))
    variance = float(np.average((gains - gain) ** 2, weights=counts))
    n = float(counts.sum())
    if n * gain < max(least_errors * np.sqrt(n * variance), MIN_GAIN_NATS):
        return np.eye(m)[0]
    return weights
