"""The part of a Poisson process's step that comes from the integral of its rate; compiled."""

from __future__ import annotations

import numpy as np

from hplus.kernels.compiled import inner, spliced
from hplus.streaming.engine.atoms import (
    CURRENT,
    DRIFT,
    INVERSE,
    KERNEL,
    LATE,
    PROJECTION,
    SCRATCH,
    add_multiple,
    dot,
    multiply,
)
from hplus.streaming.engine.layout import EVENTS, GRID, SEEN, STEEPNESS
from hplus.streaming.engine.rules import IN_F, IN_Z, link_slope, prediction

LATE_EVENTS = 100.0
"""The sign of a gradient is that of its mean over about this many late events."""


@spliced
def drift(rule, constants, state, n, eta, beta):
    """Apply the part of the step that comes from ∫f, and return the weight of the event."""
    rows = state.rows
    w, k, drift = rows[CURRENT], rows[KERNEL], rows[DRIFT]
    if rule.budget == GRID:
        add_multiple(w, -eta, drift, n)
    elif rule.gradient == IN_F:
        w[0] -= eta
    elif rule.gradient == IN_Z:
        events = state.counts[EVENTS] - 1
        if (
            events % min(rule.refresh, 1 + int(1.0 / eta)) == 0
        ):  # f changes at most e-fold in between
            integrate(rule, constants.shares, state, n)
            multiply(state.matrices[INVERSE], n, rows[PROJECTION], drift)
        add_multiple(w, -eta, drift, n)
    else:
        integrate(rule, constants.shares, state, n)
        late, share = rows[LATE], 1.0 / min(state.numbers[SEEN], LATE_EVENTS)
        for i in range(n):
            late[i] += share * (k[i] - late[i])
            w[i] -= eta / n * np.sign(rows[PROJECTION, i] - late[i])
        return eta / n
    return beta


@inner
def integrate(rule, shares, state, n):
    """rows[PROJECTION, i] = ∫(df/dz) k(x_i, ·)/∫f, over the nodes of the window."""
    w, density, q = state.rows[CURRENT], state.rows[SCRATCH], len(shares)
    for i in range(q):
        density[i] = 0.0
    for i in range(n):
        add_multiple(density, w[i], state.at_nodes[i], q)
    total, steepness = 0.0, 0.0
    for i in range(q):
        f = prediction(rule.link, density[i], rule.cap)
        total += shares[i] * f
        density[i] = shares[i] * link_slope(rule.link, f)
        steepness += density[i]
    state.numbers[STEEPNESS] = steepness / total
    for i in range(n):
        state.rows[PROJECTION, i] = dot(state.at_nodes[i], density, q) / total
