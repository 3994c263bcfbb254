"""The loop of every stream, with three choices: loss × link × budget; compiled.

z ← (1 - ηλ) z - η g, f = link(z), and then the budget decides what is kept [math, Eq. 5.1].
Everything that changes is in arrays, so that a stream continues where it stopped, in chunks of any
size.
"""

from __future__ import annotations

import math

from hplus.kernels.compiled import compiled, kernel_row, spliced
from hplus.streaming.engine.atoms import (
    AVERAGE,
    BESIDE,
    BORN,
    CURRENT,
    KERNEL,
    TOTAL,
    add_multiple,
    dot,
    scale,
)
from hplus.streaming.engine.compensator import drift
from hplus.streaming.engine.feature_rows import fourier_row, interpolate, regenerated_row, spread
from hplus.streaming.engine.layout import (
    ATOMS,
    CAPPED,
    CHANGES,
    EVENTS,
    EXPOSURE,
    FORGETRON,
    FOURIER,
    GRID,
    PROJECTED,
    REFRESHED,
    REGENERATED,
    SEEN,
    STEEPNESS,
)
from hplus.streaming.engine.memory import least, remember
from hplus.streaming.engine.pursuit import project
from hplus.streaming.engine.rules import (
    IDENTITY,
    IN_F,
    LEAST_RATE,
    PROCESS,
    link_slope,
    prediction,
    reach,
    slope,
    step_size,
)

MAX_CHANGES = 2048
"""Changes of a dictionary after which P is recomputed."""


@compiled
def run(rule, constants, state, X, y, sizes, gaps, values, start):
    """Learn from the events X[start:]; returns the place of the first event not learned from.

    `sizes` are k(x, x), and `gaps` the exposure before each event; z(x) before learning from x is
    written to `values`.

    Stops early if there is no room for another atom, if P is to be recomputed, or if a second-order
    step needs its preconditioner: the caller does that and calls again.
    """
    rows, numbers, counts = state.rows, state.numbers, state.counts
    w = rows[CURRENT]
    for t in range(start, len(X)):
        if _must_stop(rule, len(state.centers), counts):
            return t
        x, n = X[t], counts[ATOMS]
        kept = age(rule.half_life, numbers, gaps[t])
        numbers[SEEN] += 1.0
        _look(rule, constants, state, x, n)
        z = interpolate(constants.grid, x, w) if rule.budget == GRID else dot(rows[KERNEL], w, n)
        values[t] = z
        eta, beta = _step(rule, numbers, counts, y[t], z, sizes[t])
        kept = kept if rule.fading else max(1.0 - eta * rule.decay, 0.0)
        if kept < 1.0:
            scale(w, kept, n)
        if rule.fading:
            if kept < 1.0:
                scale(rows[TOTAL], kept, rows.shape[1])
            spread(constants.grid, x, rows[TOTAL])
        if rule.loss == PROCESS:
            beta = drift(rule, constants, state, n, eta, beta)
        if rule.budget >= FOURIER:
            first, last, factor = _range(rule, counts, n)
            add_multiple(w[first:], beta * factor, rows[KERNEL, first:], last - first)
        elif rule.budget >= PROJECTED:
            project(rule, state, x, sizes[t], eta, beta)
        elif beta != 0.0:
            remember(rule, state, x, eta, beta)
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
    if counts[ATOMS] == capacity or counts[CHANGES] >= MAX_CHANGES:
        return True
    if rule.damping == 0.0 or counts[REFRESHED] == counts[EVENTS]:
        return False
    return counts[EVENTS] % rule.refresh == 0


@spliced
def age(half_life, numbers, gap):
    """Advance time: events count half as much after a half-life. Returns the share that is kept."""
    kept = 1.0 if half_life == math.inf else 2.0 ** (-gap / half_life)
    numbers[SEEN] *= kept
    if kept < 1.0:
        numbers[EXPOSURE] = kept * numbers[EXPOSURE] + (1.0 - kept) * half_life / math.log(2.0)
    else:
        numbers[EXPOSURE] += gap
    return kept


@spliced
def _look(rule, constants, state, x, n):
    """Evaluate the kernel between x and the atoms, or the features of x, into the row KERNEL.

    The row BESIDE gets the kernel at the nodes of the window, whose mean is the first atom; for a
    full Forgetron, the kernel between its oldest atom and the others.
    """
    k, beside = state.rows[KERNEL], state.rows[BESIDE]
    if rule.budget == FOURIER:
        fourier_row(state.centers, x, constants.params[0], k)
        return
    if rule.budget == REGENERATED:
        regenerated_row(constants.params, rule.seed, n, x, k)
        return
    centers, m, at, out = state.centers, n, x, k
    full = rule.budget == FORGETRON and n >= rule.size
    for turn in range(2 if rule.background or full else 1):
        if turn == 1:
            out = beside
            if full:
                at = state.centers[least(state.rows[BORN], n)]
            else:
                centers, m = constants.nodes, len(constants.nodes)
        kernel_row(constants.ops, constants.params, centers, m, at, state.stack)
        for i in range(m):
            out[i] = state.stack[0, i]
    if rule.background:
        k[0] = dot(beside, constants.shares, len(constants.nodes))


@spliced
def _step(rule, numbers, counts, y, z, kxx):
    """The step size η and the weight β of k(x, ·) in the step, both limited."""
    counts[EVENTS] += 1
    f = prediction(rule.link, z, rule.cap)
    eta = step_size(rule.schedule, rule.step, numbers[SEEN])
    held = rule.link != IDENTITY and abs(z) > rule.cap
    if rule.loss == PROCESS and eta * kxx * max(numbers[STEEPNESS], 1.0) > 1.0:
        eta, held = 1.0 / (kxx * max(numbers[STEEPNESS], 1.0)), True
    if rule.loss == PROCESS and rule.link == IDENTITY:
        f = max(f, LEAST_RATE)
    g = slope(rule.loss, rule.low, rule.high, rule.width, y, f)
    beta = -eta * (g if rule.gradient == IN_F else g * link_slope(rule.link, f))
    most = reach(rule.loss, rule.link, y, z, rule.cap)
    if abs(beta) * kxx > most:
        beta, held = math.copysign(most / kxx, beta), True
    counts[CAPPED] += held
    return eta, beta


@spliced
def _range(rule, counts, n):
    """The range of the n weights that a step changes, and a factor if it stands for all of them."""
    if rule.budget != REGENERATED:
        return 0, n, 1.0
    blocks = n // rule.size
    first = (counts[EVENTS] - 1) % blocks * rule.size
    return first, first + rule.size, float(blocks)
