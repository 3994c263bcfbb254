"""The part of a Poisson process's step that comes from the integral of its rate; compiled."""

from __future__ import annotations

import numpy as np

from hplus.kernels.compiled import inner, spliced
from hplus.streaming.engine import atoms, layout, rules

LATE_EVENTS = 100.0
"""The sign of a gradient is that of its mean over about this many late events."""


@spliced
def drift(rule, constants, state, n, eta, beta):
    """Apply the part of the step that comes from ∫f, and return the weight of the event."""
    rows = state.rows
    w, k, drift = rows[atoms.CURRENT], rows[atoms.KERNEL], rows[atoms.DRIFT]
    if rule.budget == layout.GRID:
        atoms.add_multiple(w, -eta, drift, n)
    elif rule.gradient == rules.IN_F:
        w[0] -= eta
    elif rule.gradient == rules.IN_Z:
        events = state.counts[layout.EVENTS] - 1
        if (
            events % min(rule.refresh, 1 + int(1.0 / eta)) == 0
        ):  # f changes at most e-fold in between
            integrate(rule, constants.shares, state, n)
            atoms.multiply(state.matrices[atoms.INVERSE], n, rows[atoms.PROJECTION], drift)
        atoms.add_multiple(w, -eta, drift, n)
    else:
        integrate(rule, constants.shares, state, n)
        late, share = rows[atoms.LATE], 1.0 / min(state.numbers[layout.SEEN], LATE_EVENTS)
        for i in range(n):
            late[i] += share * (k[i] - late[i])
            w[i] -= eta / n * np.sign(rows[atoms.PROJECTION, i] - late[i])
        return eta / n
    return beta


@inner
def integrate(rule, shares, state, n):
    """rows[PROJECTION, i] = ∫(df/dz) k(x_i, ·)/∫f, over the nodes of the window."""
    w, density, q = state.rows[atoms.CURRENT], state.rows[atoms.SCRATCH], len(shares)
    for i in range(q):
        density[i] = 0.0
    for i in range(n):
        atoms.add_multiple(density, w[i], state.at_nodes[i], q)
    total, steepness = 0.0, 0.0
    for i in range(q):
        f = rules.prediction(rule.link, density[i], rule.cap)
        total += shares[i] * f
        density[i] = shares[i] * rules.link_slope(rule.link, f)
        steepness += density[i]
    state.numbers[layout.STEEPNESS] = steepness / total
    for i in range(n):
        state.rows[atoms.PROJECTION, i] = atoms.dot(state.at_nodes[i], density, q) / total
