"""Dictionaries of a bounded number of atoms, without projections; compiled."""

from __future__ import annotations

import math

import numpy as np

from hplus.kernels.compiled import inner, spliced
from hplus.streaming.engine.atoms import BESIDE, BORN, CURRENT, KERNEL, append, delete, dot, find
from hplus.streaming.engine.layout import (
    ATOMS,
    EVENTS,
    FORGETRON,
    FORGETTING,
    MISTAKES,
    SMALLEST,
    UNLIMITED,
)


@spliced
def remember(rule, state, x, eta, beta):
    """Add an atom at x, or weight to the one there; beyond the size of the budget, remove one."""
    centers, rows, counts = state.centers, state.rows, state.counts
    n, w = counts[ATOMS], rows[CURRENT]
    at = -1 if rule.budget == FORGETRON else find(centers, 0, n, x)
    if at >= 0:
        w[at] += beta
        rows[BORN, at] = counts[EVENTS]
        return
    append(centers, rows, state.matrices, n, x, beta, counts[EVENTS])
    counts[ATOMS] += 1
    counts[MISTAKES] += 1
    if rule.budget == UNLIMITED or n < rule.size:
        return
    j = least(w, n + 1) if rule.budget == SMALLEST else least(rows[BORN], n + 1)
    if rule.budget == FORGETRON:
        f = dot(rows[BESIDE], w, n) + beta * rows[KERNEL, j]
        mu = np.sign(w[j]) * f / eta
        phi = _forgetron(state.numbers, counts[MISTAKES], abs(w[j]) / eta, mu)
        for i in range(n + 1):
            w[i] *= phi
    delete(centers, rows, state.matrices, state.at_nodes, n + 1, j)
    counts[ATOMS] -= 1


@inner
def _forgetron(numbers, mistakes, sigma, mu):
    """The largest φ <= 1 for which Dekel et al.'s bound on forgetting holds [dekel2008].

    sigma is the size of the weight that is removed, and mu the margin at its point.
    """
    a, b = sigma * sigma - 2.0 * sigma * mu, 2.0 * sigma
    c = numbers[FORGETTING] - 15.0 / 32.0 * mistakes
    phi = 1.0
    if a + b + c > 0.0:
        phi = -2.0 * c / (b + math.sqrt(max(b * b - 4.0 * a * c, 0.0)))
    numbers[FORGETTING] += (sigma * phi) ** 2 + 2.0 * sigma * phi * (1.0 - phi * mu)
    return phi


@inner
def least(row, n):
    """The place of the entry with the smallest absolute value."""
    j = 0
    for i in range(1, n):
        if abs(row[i]) < abs(row[j]):
            j = i
    return j
