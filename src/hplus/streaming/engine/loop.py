"""The loop of every stream, with three choices: loss × link × budget; compiled.

z ← (1 - ηλ) z - η g, f = link(z), and then the budget decides what is kept [math, Eq. 5.1].
Everything that changes is in arrays, so that a stream continues where it stopped, in chunks of any
size.
"""

from __future__ import annotations

import math

from hplus.kernels.compiled import compiled, kernel_row, spliced
from hplus.streaming.engine import atoms, layout, rules
from hplus.streaming.engine.compensator import drift
from hplus.streaming.engine.feature_rows import fourier_row, interpolate, regenerated_row, spread
from hplus.streaming.engine.memory import least, remember
from hplus.streaming.engine.pursuit import project

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
    w, on_grid = rows[atoms.CURRENT], rule.budget == layout.GRID
    for t in range(start, len(X)):
        if _must_stop(rule, len(state.centers), counts):
            return t
        x, n = X[t], counts[layout.ATOMS]
        kept = age(rule.half_life, numbers, gaps[t])
        numbers[layout.SEEN] += 1.0
        _look(rule, constants, state, x, n)
        z = interpolate(constants.grid, x, w) if on_grid else atoms.dot(rows[atoms.KERNEL], w, n)
        values[t] = z
        eta, beta = _step(rule, numbers, counts, y[t], z, sizes[t])
        kept = kept if rule.fading else max(1.0 - eta * rule.decay, 0.0)
        if kept < 1.0:
            atoms.scale(w, kept, n)
        if rule.fading:
            if kept < 1.0:
                atoms.scale(rows[atoms.TOTAL], kept, rows.shape[1])
            spread(constants.grid, x, rows[atoms.TOTAL])
        if rule.loss == rules.PROCESS:
            beta = drift(rule, constants, state, n, eta, beta)
        if rule.budget >= layout.FOURIER:
            first, last, factor = _range(rule, counts, n)
            atoms.add_multiple(w[first:], beta * factor, rows[atoms.KERNEL, first:], last - first)
        elif rule.budget >= layout.PROJECTED:
            project(rule, state, x, sizes[t], eta, beta)
        elif beta != 0.0:
            remember(rule, state, x, eta, beta)
        if rule.averaging >= 0.0:
            share = min((1.0 + rule.averaging) / (numbers[layout.SEEN] + rule.averaging), 1.0)
            mean = rows[atoms.AVERAGE]
            for i in range(counts[layout.ATOMS]):
                mean[i] += share * (w[i] - mean[i])
    return len(X)


@spliced
def _must_stop(rule, capacity, counts):
    if rule.budget >= layout.FOURIER:
        return False
    if counts[layout.ATOMS] == capacity or counts[layout.CHANGES] >= MAX_CHANGES:
        return True
    if rule.damping == 0.0 or counts[layout.REFRESHED] == counts[layout.EVENTS]:
        return False
    return counts[layout.EVENTS] % rule.refresh == 0


@spliced
def age(half_life, numbers, gap):
    """Advance time: events count half as much after a half-life. Returns the share that is kept."""
    kept = 1.0 if half_life == math.inf else 2.0 ** (-gap / half_life)
    numbers[layout.SEEN] *= kept
    if kept < 1.0:
        recent = (1.0 - kept) * half_life / math.log(2.0)
        numbers[layout.EXPOSURE] = kept * numbers[layout.EXPOSURE] + recent
    else:
        numbers[layout.EXPOSURE] += gap
    return kept


@spliced
def _look(rule, constants, state, x, n):
    """Evaluate the kernel between x and the atoms, or the features of x, into the row KERNEL.

    The row BESIDE gets the kernel at the nodes of the window, whose mean is the first atom; for a
    full Forgetron, the kernel between its oldest atom and the others.
    """
    k, beside = state.rows[atoms.KERNEL], state.rows[atoms.BESIDE]
    if rule.budget == layout.FOURIER:
        fourier_row(state.centers, x, constants.params[0], k)
        return
    if rule.budget == layout.REGENERATED:
        regenerated_row(constants.params, rule.seed, n, x, k)
        return
    centers, m, at, out = state.centers, n, x, k
    full = rule.budget == layout.FORGETRON and n >= rule.size
    for turn in range(2 if rule.background or full else 1):
        if turn == 1:
            out = beside
            if full:
                at = state.centers[least(state.rows[atoms.BORN], n)]
            else:
                centers, m = constants.nodes, len(constants.nodes)
        kernel_row(constants.ops, constants.params, centers, m, at, state.stack)
        for i in range(m):
            out[i] = state.stack[0, i]
    if rule.background:
        k[0] = atoms.dot(beside, constants.shares, len(constants.nodes))


@spliced
def _step(rule, numbers, counts, y, z, kxx):
    """The step size η and the weight β of k(x, ·) in the step, both limited."""
    counts[layout.EVENTS] += 1
    f = rules.prediction(rule.link, z, rule.cap)
    eta = rules.step_size(rule.schedule, rule.step, numbers[layout.SEEN])
    held = rule.link != rules.IDENTITY and abs(z) > rule.cap
    if rule.loss == rules.PROCESS and eta * kxx * max(numbers[layout.STEEPNESS], 1.0) > 1.0:
        eta, held = 1.0 / (kxx * max(numbers[layout.STEEPNESS], 1.0)), True
    if rule.loss == rules.PROCESS and rule.link == rules.IDENTITY:
        f = max(f, rules.LEAST_RATE)
    g = rules.slope(rule.loss, rule.low, rule.high, rule.width, y, f)
    beta = -eta * (g if rule.gradient == rules.IN_F else g * rules.link_slope(rule.link, f))
    most = rules.reach(rule.loss, rule.link, y, z, rule.cap)
    if abs(beta) * kxx > most:
        beta, held = math.copysign(most / kxx, beta), True
    counts[layout.CAPPED] += held
    return eta, beta


@spliced
def _range(rule, counts, n):
    """The range of the n weights that a step changes, and a factor if it stands for all of them."""
    if rule.budget != layout.REGENERATED:
        return 0, n, 1.0
    blocks = n // rule.size
    first = (counts[layout.EVENTS] - 1) % blocks * rule.size
    return first, first + rule.size, float(blocks)
