"""Kernel orthogonal matching pursuit: add a point, remove atoms within a tolerance; compiled."""

from __future__ import annotations

import math

from hplus.kernels.compiled import inner, spliced
from hplus.streaming.engine import atoms, layout


@spliced
def project(rule, state, x, kxx, eta, beta):
    """z + β k(x, ·), with a new atom or without; then remove atoms within the tolerance."""
    rows, matrices, counts = state.rows, state.matrices, state.counts
    n, w = counts[layout.ATOMS], rows[atoms.CURRENT]
    k, a = rows[atoms.KERNEL], rows[atoms.PROJECTION]
    tolerance = rule.tolerance * (abs(beta) * math.sqrt(kxx) if rule.relative else 1.0)
    first, spent = rule.background, 0.0
    at = atoms.same_point(state.centers, first, n, x, k, kxx)
    if at < 0 or rule.damping > 0.0:
        atoms.multiply(matrices[atoms.INVERSE], n, k, a)
    if rule.damping > 0.0:
        held = _correct(rows, matrices, n, eta, 1.0 / state.numbers[layout.SEEN])
        counts[layout.CAPPED] += held
    if at >= 0:
        w[at] += beta
    elif beta != 0.0 and kxx > 0.0:
        s = max(kxx * (1.0 + rule.jitter) - atoms.dot(k, a, n), kxx * rule.jitter)
        cost = beta * beta * s
        if rule.budget == layout.SUBSPACE:
            absorbed = n - first >= rule.size or s <= tolerance * kxx
        else:
            absorbed = cost <= tolerance * tolerance and _is_cheapest(rows, first, n, s, cost)
        if absorbed:
            atoms.add_multiple(w, beta, a, n)
            spent = cost
        else:
            atoms.append(state.centers, rows, matrices, n, x, beta, counts[layout.EVENTS])
            atoms.extend_inverse(matrices[atoms.INVERSE], rows[atoms.DIAGONAL], n, a, s)
            counts[layout.ATOMS] += 1
            counts[layout.CHANGES] += 1
            rows[atoms.LATE, n] = atoms.dot(a, rows[atoms.LATE], n)
            for q in range(state.at_nodes.shape[1]):
                state.at_nodes[n, q] = rows[atoms.BESIDE, q]
    if rule.budget == layout.PROJECTED:
        spent = _prune(state, first, rule.size, spent, tolerance * tolerance)
    state.numbers[layout.SPENT] += math.sqrt(spent)
    state.numbers[layout.WORST] = max(state.numbers[layout.WORST], math.sqrt(spent))


@inner
def _is_cheapest(rows, first, n, s, cost):
    """Would removing any other atom cost more than removing the new one?"""
    w, diagonal, a, cheaper = rows[atoms.CURRENT], rows[atoms.DIAGONAL], rows[atoms.PROJECTION], 0
    factor = 1.0 / s
    for i in range(first, n):
        cheaper += w[i] * w[i] < cost * (diagonal[i] + a[i] * a[i] * factor)
    return cheaper == 0


@spliced
def _prune(state, first, size, spent, most):
    """Remove the cheapest atoms while their total cost, which is returned, is at most `most`."""
    counts, w, diagonal = state.counts, state.rows[atoms.CURRENT], state.rows[atoms.DIAGONAL]
    while True:
        n, cheap = counts[layout.ATOMS], 0
        for i in range(first, n):
            cheap += w[i] * w[i] <= (most - spent) * diagonal[i]
        if cheap == 0 and n - first <= size:
            break
        j = first
        for i in range(first, n):
            if w[i] * w[i] * diagonal[j] < w[j] * w[j] * diagonal[i]:
                j = i
        spent += w[j] * w[j] / diagonal[j]
        counts[layout.EXCESS] += cheap == 0
        atoms.project_out(state.rows, state.matrices, n, j)
        atoms.delete(state.centers, state.rows, state.matrices, state.at_nodes, n, j)
        counts[layout.ATOMS] -= 1
        counts[layout.CHANGES] += 1
    return spent


@inner
def _correct(rows, matrices, n, eta, share):
    """Turn a first-order step into a second-order one, on the existing atoms.

    γ = a - drift are the weights of -g. Updates their mean outer product G and adds η (C - I) γ,
    with C = P (G + δP)⁻¹ from the last refresh, limited where it would change f(x) more than
    e-fold; returns whether it was.
    """
    gamma, out, G = rows[atoms.DIRECTION], rows[atoms.SCRATCH], matrices[atoms.SCATTER]
    for i in range(n):
        gamma[i] = rows[atoms.PROJECTION, i] - rows[atoms.DRIFT, i]
    for i in range(n):
        row, factor = G[i], share * gamma[i]
        for j in range(n):
            row[j] += factor * gamma[j] - share * row[j]
    atoms.multiply(matrices[atoms.CORRECTION], n, gamma, out)
    for i in range(n):
        out[i] -= gamma[i]
    change = eta * abs(atoms.dot(rows[atoms.KERNEL], out, n))
    atoms.add_multiple(rows[atoms.CURRENT], eta / max(change, 1.0), out, n)
    return change > 1.0
