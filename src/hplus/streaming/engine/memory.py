"""Dictionaries of a bounded number of atoms, without projections; compiled."""

from __future__ import annotations

import math

import numpy as np

from hplus.kernels.compiled import inner, spliced
from hplus.streaming.engine import atoms, layout


@spliced
def remember(rule, state, x, eta, beta):
    """Add an atom at x, or weight to the one there; beyond the size of the budget, remove one."""
    centers, rows, counts = state.centers, state.rows, state.counts
    n, w = counts[layout.ATOMS], rows[atoms.CURRENT]
    at = -1 if rule.budget == layout.FORGETRON else atoms.find(centers, 0, n, x)
    if at >= 0:
        w[at] += beta
        rows[atoms.BORN, at] = counts[layout.EVENTS]
        return
    atoms.append(centers, rows, state.matrices, n, x, beta, counts[layout.EVENTS])
    counts[layout.ATOMS] += 1
    counts[layout.MISTAKES] += 1
    if rule.budget == layout.UNLIMITED or n < rule.size:
        return
    j = least(w, n + 1) if rule.budget == layout.SMALLEST else least(rows[atoms.BORN], n + 1)
    if rule.budget == layout.FORGETRON:
        f = atoms.dot(rows[atoms.BESIDE], w, n) + beta * rows[atoms.KERNEL, j]
        mu = np.sign(w[j]) * f / eta
        phi = _forgetron(state.numbers, counts[layout.MISTAKES], abs(w[j]) / eta, mu)
        for i in range(n + 1):
            w[i] *= phi
    atoms.delete(centers, rows, state.matrices, state.at_nodes, n + 1, j)
    counts[layout.ATOMS] -= 1


@inner
def _forgetron(numbers, mistakes, sigma, mu):
    """The largest φ <= 1 for which Dekel et al.'s bound on forgetting holds [dekel2008].

    sigma is the size of the weight that is removed, and mu the margin at its point.
    """
    a, b = sigma * sigma - 2.0 * sigma * mu, 2.0 * sigma
    c = numbers[layout.FORGETTING] - 15.0 / 32.0 * mistakes
    phi = 1.0
    if a + b + c > 0.0:
        phi = -2.0 * c / (b + math.sqrt(max(b * b - 4.0 * a * c, 0.0)))
    numbers[layout.FORGETTING] += (sigma * phi) ** 2 + 2.0 * sigma * phi * (1.0 - phi * mu)
    return phi


@inner
def least(row, n):
    """The place of the entry with the smallest absolute value."""
    j = 0
    for i in range(1, n):
        if abs(row[i]) < abs(row[j]):
            j = i
    return j
