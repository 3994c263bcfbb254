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
def forward(F: Floats, Q: Floats, kind: Ints, start: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Variances before each block is seen: of its log rate (n,), and with all states (n, 5).

    F and Q (k, 5, 5) are the transitions of each kind of step, `kind` (n,) the kind before each
    block, `start` (5,) the variances of the first one, w (n,) the precision of each observation.
    """
    n, J = len(w), STATES
    variance, gain = np.empty(n), np.empty((n, J))
    P, FP, ph = np.diag(start), np.empty((J, J)), np.empty(J)
    for b in range(n):
        if b > 0:
            step, noise = F[kind[b]], Q[kind[b]]
            for i in range(J):
                for j in range(J):
                    FP[i, j] = step[i, 0] * P[0, j]
                    for k in range(1, J):
                        FP[i, j] += step[i, k] * P[k, j]
            for i in range(J):
                for j in range(i + 1):
                    p = noise[i, j]
                    for k in range(J):
                        p += FP[i, k] * step[j, k]
                    P[i, j] = p
                    P[j, i] = p
        s = 0.0
        for i in range(J):
            ph[i] = P[i, 0] + P[i, 1] + P[i, 3] + P[i, 4]
        s = ph[0] + ph[1] + ph[3] + ph[4]
        variance[b] = s
        gain[b] = ph
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
    n, J = len(w), STATES
    mean, surprise = np.empty(n), np.zeros(n)
    a, moved = np.zeros(J), np.zeros(J)
    for b in range(n):
        if b > 0:
            step = F[kind[b]]
            for i in range(J):
                moved[i] = 0.0
                for k in range(J):
                    moved[i] += step[i, k] * a[k]
            a[:] = moved
        mean[b] = a[0] + a[1] + a[3] + a[4]
        if w[b] > 0.0:
            surprise[b] = (seen[b] - mean[b]) * w[b] / (1.0 + variance[b] * w[b])
            a += gain[b] * surprise[b]
    r, q = np.zeros(J), np.zeros(J)
    for b in range(n - 1, -1, -1):
        if b < n - 1:
            step = F[kind[b + 1]]
            for i in range(J):
                q[i] = 0.0
                for k in range(J):
                    q[i] += step[k, i] * r[k]
        r[:] = q
        if w[b] > 0.0:
            add = surprise[b] - np.dot(gain[b], q) * w[b] / (1.0 + variance[b] * w[b])
            r += SEEN * add
        mean[b] += np.dot(gain[b], r)
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
                a[:] = moved
            found[path, b] = a[0] + a[1] + a[3] + a[4]
    return found
