"""The engine of every stream: one compiled loop, three choices: loss × link × budget.

z ← (1 - ηλ) z - η g, f = link(z), and then the budget's rule for what is kept [math, Eq. 5.1]. All
that changes is in arrays, so that a stream goes on where it stopped, in chunks of any size.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.kernels.compiled import compiled, inner, kernel_row, spliced
from hplus.streaming.atoms import (
    AVERAGE,
    BESIDE,
    BORN,
    CORRECTION,
    CURRENT,
    DIAGONAL,
    DIRECTION,
    DRIFT,
    INVERSE,
    KERNEL,
    LATE,
    PROJECTION,
    SCATTER,
    SCRATCH,
    add_multiple,
    append,
    delete,
    dot,
    extend_inverse,
    find,
    multiply,
    project_out,
)
from hplus.streaming.features import fourier_row, interpolate, regenerated_row
from hplus.streaming.rules import (
    IDENTITY,
    IN_F,
    IN_Z,
    LEAST,
    PROCESS,
    link_slope,
    prediction,
    room,
    slope,
    step_size,
)

# budgets: dictionaries, then functions with a fixed number of weights
UNLIMITED, OLDEST, SMALLEST, FORGETRON, PROJECTED, SUBSPACE, FOURIER, REGENERATED, GRID = range(9)
# counts
EVENTS, ATOMS, CHANGES, REFRESHED, CAPPED, EXCESS, MISTAKES = range(7)
# numbers
SEEN, EXPOSURE, SPENT, WORST, FORGETTING, STEEPNESS = range(6)

WINDOW = 100.0
"""Late events over which the sign of a gradient is taken: that of one event is no guide."""

REBUILD = 2048
"""Changes of a dictionary after which P is computed afresh."""


class Rule(NamedTuple):
    """What a stream does, as numbers; the codes are those of `rules` and of this module."""

    loss: int
    low: float
    high: float
    width: float
    link: int
    gradient: int
    cap: float
    schedule: int
    step: float
    decay: float
    averaging: float
    budget: int
    tolerance: float
    relative: int
    size: int
    jitter: float
    half_life: float
    fading: int
    background: int
    refresh: int
    damping: float
    seed: int


class Around(NamedTuple):
    """What does not change: the kernel's program, the nodes of a window with their shares, a grid.

    `grid` has the rows corner, spacing and number of nodes on each axis.
    """

    ops: Ints
    params: Floats
    nodes: Floats
    shares: Floats
    grid: Floats


class State(NamedTuple):
    """What changes. `centers` (room, d), `rows` (ROWS, room), `matrices` (0 to 3, room, room),
    `at_nodes` (room, nodes) the kernel between atoms and nodes, `stack` the kernel's scratch.
    """

    centers: Floats
    rows: Floats
    matrices: Floats
    at_nodes: Floats
    numbers: Floats
    counts: Ints
    stack: Floats


@compiled
def run(rule, around, state, X, y, sizes, gaps, values, start):
    """Learn from the events X[start:]; the place of the first that was not learned from.

    `sizes` are k(x, x), `gaps` the times between events; z(x) before x was learned from is left
    in `values`.

    It stops before the end where there is no room for another atom, where P is to be computed
    afresh or a second-order step needs its matrix: the caller sees to it and comes again.
    """
    rows, numbers, counts = state.rows, state.numbers, state.counts
    w = rows[CURRENT]
    for t in range(start, len(X)):
        if _must_stop(rule, len(state.centers), counts):
            return t
        x, n = X[t], counts[ATOMS]
        kept = _age(rule.half_life, numbers, gaps[t])
        _look(rule, around, state, x, n)
        z = interpolate(around.grid, x, w) if rule.budget == GRID else dot(rows[KERNEL], w, n)
        values[t] = z
        eta, beta = _step(rule, numbers, counts, y[t], z, sizes[t])
        kept = kept if rule.fading else max(1.0 - eta * rule.decay, 0.0)
        if kept < 1.0:
            for i in range(n):
                w[i] *= kept
        if rule.loss == PROCESS:
            beta = _drift(rule, around, state, n, eta, beta)
        if rule.budget >= FOURIER:
            first, last, factor = _range(rule, counts, n)
            add_multiple(w[first:], beta * factor, rows[KERNEL, first:], last - first)
        elif rule.budget >= PROJECTED:
            _project(rule, state, x, sizes[t], eta, beta)
        elif beta != 0.0:
            _remember(rule, state, x, eta, beta)
        if rule.averaging >= 0.0:
            share = min((1.0 + rule.averaging) / (numbers[SEEN] + rule.averaging), 1.0)
            mean = rows[AVERAGE]
            for i in range(counts[ATOMS]):
                mean[i] += share * (w[i] - mean[i])
    return len(X)


@spliced
def _must_stop(rule, capacity, counts):
    if rule.budget >= FOURIER:
        return False
    if counts[ATOMS] == capacity or counts[CHANGES] >= REBUILD:
        return True
    due = counts[EVENTS] % rule.refresh == 0 and counts[REFRESHED] != counts[EVENTS]
    return rule.damping > 0.0 and due


@spliced
def _age(half_life, numbers, gap):
    """What was seen counts half as much after a half-life."""
    kept = 1.0 if half_life == math.inf else 2.0 ** (-gap / half_life)
    numbers[SEEN] = kept * numbers[SEEN] + 1.0
    if kept < 1.0:
        numbers[EXPOSURE] = kept * numbers[EXPOSURE] + (1.0 - kept) * half_life / math.log(2.0)
    else:
        numbers[EXPOSURE] += gap
    return kept


@spliced
def _look(rule, around, state, x, n):
    """What is known of x: the kernel at the atoms or the features in the row KERNEL.

    In the row BESIDE the kernel at the nodes of the window, the mean of which is the first atom;
    for a Forgetron that is full, the kernel between its oldest atom and the others.
    """
    k, beside = state.rows[KERNEL], state.rows[BESIDE]
    if rule.budget == FOURIER:
        fourier_row(state.centers, x, around.params[0], k)
        return
    if rule.budget == REGENERATED:
        regenerated_row(around.params, rule.seed, n, x, k)
        return
    centers, m, at, out = state.centers, n, x, k
    full = rule.budget == FORGETRON and n >= rule.size
    for turn in range(2 if rule.background or full else 1):
        if turn == 1:
            out = beside
            if full:
                at = state.centers[_least(state.rows[BORN], n)]
            else:
                centers, m = around.nodes, len(around.nodes)
        kernel_row(around.ops, around.params, centers, m, at, state.stack)
        for i in range(m):
            out[i] = state.stack[0, i]
    if rule.background:
        k[0] = dot(beside, around.shares, len(around.nodes))


@spliced
def _step(rule, numbers, counts, y, z, kxx):
    """The size η of the step and the weight β of k(x, ·) in it, held down if they are too large."""
    counts[EVENTS] += 1
    f = prediction(rule.link, z, rule.cap)
    eta = step_size(rule.schedule, rule.step, rule.decay, numbers[SEEN])
    held = rule.link != IDENTITY and abs(z) > rule.cap
    if rule.loss == PROCESS and eta * kxx * max(numbers[STEEPNESS], 1.0) > 1.0:
        eta, held = 1.0 / (kxx * max(numbers[STEEPNESS], 1.0)), True
    if rule.loss == PROCESS and rule.link == IDENTITY:
        f = max(f, LEAST)
    g = slope(rule.loss, rule.low, rule.high, rule.width, y, f)
    beta = -eta * (g if rule.gradient == IN_F else g * link_slope(rule.link, f))
    most = room(rule.loss, rule.link, y, z, rule.cap)
    if abs(beta) * kxx > most:
        beta, held = math.copysign(most / kxx, beta), True
    counts[CAPPED] += held
    return eta, beta


@spliced
def _drift(rule, around, state, n, eta, beta):
    """The part of a process's step that comes from ∫f; the weight of the event is returned."""
    rows = state.rows
    w, k, drift = rows[CURRENT], rows[KERNEL], rows[DRIFT]
    if rule.budget == GRID:
        add_multiple(w, -eta, drift, n)
    elif rule.gradient == IN_F:
        w[0] -= eta
    elif rule.gradient == IN_Z:
        events = state.counts[EVENTS] - 1
        if events % min(rule.refresh, 1 + events // 8) == 0:
            integrate(rule, around.shares, state, n)
            multiply(state.matrices[INVERSE], n, rows[PROJECTION], drift)
        add_multiple(w, -eta, drift, n)
    else:
        integrate(rule, around.shares, state, n)
        late, share = rows[LATE], 1.0 / min(state.numbers[SEEN], WINDOW)
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


@spliced
def _range(rule, counts, n):
    """Which of n weights a step changes, and how much more if they stand for all."""
    if rule.budget != REGENERATED:
        return 0, n, 1.0
    blocks = n // rule.size
    first = (counts[EVENTS] - 1) % blocks * rule.size
    return first, first + rule.size, float(blocks)


@spliced
def _project(rule, state, x, kxx, eta, beta):
    """z + β k(x, ·) with a new atom or without; then atoms go while the tolerance allows it."""
    rows, matrices, counts = state.rows, state.matrices, state.counts
    n, w, k, a = counts[ATOMS], rows[CURRENT], rows[KERNEL], rows[PROJECTION]
    tolerance = rule.tolerance * (abs(beta) * math.sqrt(kxx) if rule.relative else 1.0)
    at, spent, first = find(state.centers, rule.background, n, x), 0.0, rule.background
    if at < 0 or rule.damping > 0.0:
        multiply(matrices[INVERSE], n, k, a)
    if rule.damping > 0.0:
        _correct(rows, matrices, n, eta, 1.0 / state.numbers[SEEN])
    if at >= 0:
        w[at] += beta
    elif beta != 0.0 and kxx > 0.0:
        s = max(kxx * (1.0 + rule.jitter) - dot(k, a, n), kxx * rule.jitter)
        cost = beta * beta * s
        if rule.budget == SUBSPACE:
            absorbed = n - first >= rule.size or s <= tolerance * kxx
        else:
            absorbed = cost <= tolerance * tolerance and _is_cheapest(rows, first, n, s, cost)
        if absorbed:
            add_multiple(w, beta, a, n)
            spent = cost
        else:
            append(state.centers, rows, matrices, n, x, beta, counts[EVENTS])
            extend_inverse(matrices[INVERSE], rows[DIAGONAL], n, a, s)
            counts[ATOMS] += 1
            counts[CHANGES] += 1
            rows[LATE, n] = dot(a, rows[LATE], n)
            for q in range(state.at_nodes.shape[1]):
                state.at_nodes[n, q] = rows[BESIDE, q]
    if rule.budget == PROJECTED:
        _prune(state, first, rule.size, spent, tolerance * tolerance)


@inner
def _is_cheapest(rows, first, n, s, cost):
    """Would every other atom cost more than the new one?"""
    w, diagonal, a, cheaper = rows[CURRENT], rows[DIAGONAL], rows[PROJECTION], 0
    factor = 1.0 / s
    for i in range(first, n):
        cheaper += w[i] * w[i] < cost * (diagonal[i] + a[i] * a[i] * factor)
    return cheaper == 0


@spliced
def _prune(state, first, size, spent, most):
    """Leave out the cheapest atoms while all that is left out stays within the tolerance."""
    counts, w, diagonal = state.counts, state.rows[CURRENT], state.rows[DIAGONAL]
    while True:
        n, cheap = counts[ATOMS], 0
        for i in range(first, n):
            cheap += w[i] * w[i] <= (most - spent) * diagonal[i]
        if cheap == 0 and n - first <= size:
            break
        j = first
        for i in range(first, n):
            if w[i] * w[i] * diagonal[j] < w[j] * w[j] * diagonal[i]:
                j = i
        spent += w[j] * w[j] / diagonal[j]
        counts[EXCESS] += cheap == 0
        project_out(state.rows, state.matrices, n, j)
        delete(state.centers, state.rows, state.matrices, state.at_nodes, n, j)
        counts[ATOMS] -= 1
        counts[CHANGES] += 1
    state.numbers[SPENT] += math.sqrt(spent)
    state.numbers[WORST] = max(state.numbers[WORST], math.sqrt(spent))


@inner
def _correct(rows, matrices, n, eta, share):
    """From the step of first order to that of second order, on the atoms that are there.

    γ = a - drift are the weights of -g. Their mean outer product G is kept, and η (C - I) γ added,
    C = P (G + δP)⁻¹ as of the last refresh.
    """
    gamma, out, G = rows[DIRECTION], rows[SCRATCH], matrices[SCATTER]
    for i in range(n):
        gamma[i] = rows[PROJECTION, i] - rows[DRIFT, i]
    for i in range(n):
        row, factor = G[i], share * gamma[i]
        for j in range(n):
            row[j] += factor * gamma[j] - share * row[j]
    multiply(matrices[CORRECTION], n, gamma, out)
    for i in range(n):
        rows[CURRENT, i] += eta * (out[i] - gamma[i])


@spliced
def _remember(rule, state, x, eta, beta):
    """A new atom, or more weight for the one at x; past the budget's size one goes."""
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
    j = _least(w, n + 1) if rule.budget == SMALLEST else _least(rows[BORN], n + 1)
    if rule.budget == FORGETRON:
        f = dot(rows[BESIDE], w, n) + beta * rows[KERNEL, j]
        mu = np.sign(w[j]) * f / eta
        phi = _forgetron(state.numbers, counts[MISTAKES], abs(w[j]) / eta, mu)
        for i in range(n + 1):
            w[i] *= phi
    delete(centers, rows, state.matrices, state.at_nodes, n + 1, j)
    counts[ATOMS] -= 1


@inner
def _least(row, n):
    """Where the smallest size stands."""
    j = 0
    for i in range(1, n):
        if abs(row[i]) < abs(row[j]):
            j = i
    return j


@inner
def _forgetron(numbers, mistakes, sigma, mu):
    """The largest φ <= 1 with which Dekel et al.'s bound on forgetting holds [dekel2008].

    sigma is the size of the weight that goes and mu the margin at its point.
    """
    a, b = sigma * sigma - 2.0 * sigma * mu, 2.0 * sigma
    c = numbers[FORGETTING] - 15.0 / 32.0 * mistakes
    phi = 1.0
    if a + b + c > 0.0:
        phi = -2.0 * c / (b + math.sqrt(max(b * b - 4.0 * a * c, 0.0)))
    numbers[FORGETTING] += (sigma * phi) ** 2 + 2.0 * sigma * phi * (1.0 - phi * mu)
    return phi
