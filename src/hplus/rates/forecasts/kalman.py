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

Triangle = tuple[float, ...]
"""The upper triangle of a covariance of the states, row by row: 15 numbers in registers."""

compiled = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def _moved(step: Floats, noise: Floats, P: Triangle) -> Triangle:
    """F P Fᵀ + Q; all states but the smooth field and its slope move by themselves."""
    p00, p01, p02, p03, p04, p11, p12, p13, p14, p22, p23, p24, p33, p34, p44 = P
    a, b, c, d = step[1, 1], step[1, 2], step[2, 1], step[2, 2]
    e, f = step[3, 3], step[4, 4]
    return (
        p00 + noise[0, 0],
        a * p01 + b * p02,
        c * p01 + d * p02,
        e * p03,
        f * p04,
        a * a * p11 + 2.0 * a * b * p12 + b * b * p22 + noise[1, 1],
        a * c * p11 + (a * d + b * c) * p12 + b * d * p22 + noise[1, 2],
        e * (a * p13 + b * p23),
        f * (a * p14 + b * p24),
        c * c * p11 + 2.0 * c * d * p12 + d * d * p22 + noise[2, 2],
        e * (c * p13 + d * p23),
        f * (c * p14 + d * p24),
        e * e * p33 + noise[3, 3],
        e * f * p34,
        f * f * p44 + noise[4, 4],
    )


@compiled
def _known(P: Triangle, g: Floats, k: float) -> Triangle:
    """P - k g gᵀ."""
    p00, p01, p02, p03, p04, p11, p12, p13, p14, p22, p23, p24, p33, p34, p44 = P
    g0, g1, g2, g3, g4 = g[0], g[1], g[2], g[3], g[4]
    k0, k1, k2, k3, k4 = k * g0, k * g1, k * g2, k * g3, k * g4
    return (
        p00 - k0 * g0,
        p01 - k0 * g1,
        p02 - k0 * g2,
        p03 - k0 * g3,
        p04 - k0 * g4,
        p11 - k1 * g1,
        p12 - k1 * g2,
        p13 - k1 * g3,
        p14 - k1 * g4,
        p22 - k2 * g2,
        p23 - k2 * g3,
        p24 - k2 * g4,
        p33 - k3 * g3,
        p34 - k3 * g4,
        p44 - k4 * g4,
    )


@compiled
def _seen(P: Triangle, ph: Floats) -> float:
    """The variance of the log rate; its covariances with all states are put into ph (5,)."""
    p00, p01, p02, p03, p04, p11, p12, p13, p14, _, p23, p24, p33, p34, p44 = P
    ph[0] = p00 + p01 + p03 + p04
    ph[1] = p01 + p11 + p13 + p14
    ph[2] = p02 + p12 + p23 + p24
    ph[3] = p03 + p13 + p33 + p34
    ph[4] = p04 + p14 + p34 + p44
    return ph[0] + ph[1] + ph[3] + ph[4]


@compiled
def forward(F: Floats, Q: Floats, kind: Ints, start: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Variances before each block is seen: of its log rate (n,), and with all states (n, 5).

    F and Q (k, 5, 5) are the transitions of each kind of step, `kind` (n,) the kind before each
    block, `start` (5,) the variances of the first one, w (n,) the precision of each observation.
    """
    n = len(w)
    variance, gain = np.empty(n), np.empty((n, STATES))
    p0, p1, p2, p3, p4 = start[0], start[1], start[2], start[3], start[4]
    P: Triangle = (p0, 0.0, 0.0, 0.0, 0.0, p1, 0.0, 0.0, 0.0, p2, 0.0, 0.0, p3, 0.0, p4)
    for b in range(n):
        if b > 0:
            P = _moved(F[kind[b]], Q[kind[b]], P)
        variance[b] = _seen(P, gain[b])
        if w[b] > 0.0:
            P = _known(P, gain[b], w[b] / (1.0 + variance[b] * w[b]))
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


@compiled
def rates_and_slopes(z: Floats, bend: float) -> tuple[Floats, Floats]:
    """log(1 + e^(c + sz))/log(1 + e^c) of each z (n,), and its slope, 1 at z = 0; c = bend."""
    top = max(bend, 0.0) + np.log1p(np.exp(-abs(bend)))
    speed = top * (1.0 + np.exp(-bend))
    rate, slope = np.empty(len(z)), np.empty(len(z))
    for i in range(len(z)):
        x = bend + speed * z[i]
        e = np.exp(-abs(x))
        rate[i] = (max(x, 0.0) + np.log1p(e)) / top
        slope[i] = speed / top * (1.0 if x > 0.0 else e) / (1.0 + e)
    return rate, slope
