"""A sum of Markov fields in blocks of time, seen through weighted observations; compiled.

The state is (level, smooth field, its slope, slow field, fast field), and the log rate of a block
is the sum of all but the slope. Costs are linear in the number of blocks.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hplus._checks import Floats, Ints

STATES = 5
"""Level, smooth field and slope, slow field, fast field."""

SEEN = np.array([1.0, 1.0, 0.0, 1.0, 1.0])
"""How much of each state is in the log rate."""

compiled = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def moved(step: Floats, noise: Floats, P: Floats, half: Floats) -> None:
    """P becomes F P Fᵀ + Q; all states but the smooth field and its slope move by themselves."""
    for j in range(STATES):
        for i in (0, 3, 4):
            half[i, j] = step[i, i] * P[i, j]
        half[1, j] = step[1, 1] * P[1, j] + step[1, 2] * P[2, j]
        half[2, j] = step[2, 1] * P[1, j] + step[2, 2] * P[2, j]
    for i in range(STATES):
        for j in (0, 3, 4):
            P[i, j] = half[i, j] * step[j, j] + noise[i, j]
        P[i, 1] = half[i, 1] * step[1, 1] + half[i, 2] * step[1, 2] + noise[i, 1]
        P[i, 2] = half[i, 1] * step[2, 1] + half[i, 2] * step[2, 2] + noise[i, 2]


@compiled
def forward(F: Floats, Q: Floats, kind: Ints, start: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Variances before each block is seen: of its log rate (n,), and with all states (n, 5).

    F and Q (k, 5, 5) are the transitions of each kind of step, `kind` (n,) the kind before each
    block, `start` (5,) the variances of the first one, w (n,) the precision of each observation.
    """
    n, J = len(w), STATES
    variance, gain = np.empty(n), np.empty((n, J))
    P, half = np.diag(start), np.empty((J, J))
    for b in range(n):
        if b > 0:
            moved(F[kind[b]], Q[kind[b]], P, half)
        ph = gain[b]
        for i in range(J):
            ph[i] = P[i, 0] + P[i, 1] + P[i, 3] + P[i, 4]
        s = ph[0] + ph[1] + ph[3] + ph[4]
        variance[b] = s
        if w[b] > 0.0:
            scale = w[b] / (1.0 + s * w[b])
            for i in range(J):
                for j in range(J):
                    P[i, j] -= ph[i] * ph[j] * scale
    return variance, gain


@compiled
def smoothed(
    F: Floats, kind: Ints, w: Floats, variance: Floats, gain: Floats, seen: Floats
) -> Floats:
    """The mean log rate of each block (n,) given all observations `seen` of precision w."""
    n = len(w)
    mean, surprise = np.empty(n), np.zeros(n)
    a0, a1, a2, a3, a4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for b in range(n):
        f, g = F[kind[b]], gain[b]
        a1, a2 = f[1, 1] * a1 + f[1, 2] * a2, f[2, 1] * a1 + f[2, 2] * a2
        a3, a4 = f[3, 3] * a3, f[4, 4] * a4
        mean[b] = a0 + a1 + a3 + a4
        if w[b] > 0.0:
            x = (seen[b] - mean[b]) * w[b] / (1.0 + variance[b] * w[b])
            a0, a1, a2, a3, a4 = (
                a0 + g[0] * x,
                a1 + g[1] * x,
                a2 + g[2] * x,
                a3 + g[3] * x,
                a4 + g[4] * x,
            )
            surprise[b] = x
    r0, r1, r2, r3, r4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for b in range(n - 1, -1, -1):
        g = gain[b]
        if w[b] > 0.0:
            d = g[0] * r0 + g[1] * r1 + g[2] * r2 + g[3] * r3 + g[4] * r4
            x = surprise[b] - d * w[b] / (1.0 + variance[b] * w[b])
            r0, r1, r3, r4 = r0 + x, r1 + x, r3 + x, r4 + x
        mean[b] += g[0] * r0 + g[1] * r1 + g[2] * r2 + g[3] * r3 + g[4] * r4
        f = F[kind[b]]
        r1, r2 = f[1, 1] * r1 + f[2, 1] * r2, f[1, 2] * r1 + f[2, 2] * r2
        r3, r4 = f[3, 3] * r3, f[4, 4] * r4
    return mean


@compiled
def smoothed_variance(F: Floats, kind: Ints, w: Floats, variance: Floats, gain: Floats) -> Floats:
    """The variance of the log rate of each block (n,) given all observations of precision w."""
    n, J = len(w), STATES
    found = np.empty(n)
    N, keep = np.zeros((J, J)), np.empty((J, J))
    for b in range(n - 1, -1, -1):
        if b < n - 1:
            step = F[kind[b + 1]]
            N = step.T @ N @ step
        if w[b] > 0.0:
            scale = w[b] / (1.0 + variance[b] * w[b])
            for i in range(J):
                for j in range(J):
                    keep[i, j] = (1.0 if i == j else 0.0) - gain[b, i] * SEEN[j] * scale
            N = keep.T @ N @ keep
            for i in range(J):
                for j in range(J):
                    N[i, j] += SEEN[i] * SEEN[j] * scale
        found[b] = max(variance[b] - gain[b] @ N @ gain[b], 0.0)
    return found


@compiled
def simulated(F: Floats, roots: Floats, kind: Ints, start: Floats, noise: Floats) -> Floats:
    """Log rates (m, n) drawn without observations; noise (m, n, 5) is standard normal."""
    m, n, J = noise.shape
    found = np.empty((m, n))
    a, moved = np.empty(J), np.empty(J)
    for path in range(m):
        for i in range(J):
            a[i] = np.sqrt(start[i]) * noise[path, 0, i]
        for b in range(n):
            if b > 0:
                step, root = F[kind[b]], roots[kind[b]]
                for i in range(J):
                    moved[i] = 0.0
                    for k in range(J):
                        moved[i] += step[i, k] * a[k] + root[i, k] * noise[path, b, k]
                for i in range(J):
                    a[i] = moved[i]
            found[path, b] = a[0] + a[1] + a[3] + a[4]
    return found
