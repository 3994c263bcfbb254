"""Hat functions of time lags summed over earlier events, by prefix sums instead of pairs.

A hat function is linear between knots, so its sum over the events of one segment follows from two
sums, of weights and of weights times times. Prefix sums are kept in pairs of floats: their
differences over few events would otherwise lose every digit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

SPLITTER = 134217729.0
"""2²⁷ + 1: splits a float into two halves whose products are exact."""


@njit(cache=True, nogil=True, inline="always")
def _two_sum(a, b):
    """a + b as the nearest float and what is left over."""
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


@njit(cache=True, nogil=True, inline="always")
def _two_product(a, b):
    """a·b as the nearest float and what is left over."""
    p = a * b
    x = SPLITTER * a
    ah = x - (x - a)
    al = a - ah
    y = SPLITTER * b
    bh = y - (y - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


@njit(cache=True, nogil=True)
def _prefix_sums(times, weights):
    """Σ w_j and Σ w_j t_j over the events before each one, as pairs of floats (m + 1, 2)."""
    m = len(times)
    S0, S1 = np.zeros((m + 1, 2)), np.zeros((m + 1, 2))
    for j in range(m):
        s, e = _two_sum(S0[j, 0], weights[j])
        S0[j + 1, 0], S0[j + 1, 1] = _two_sum(s, e + S0[j, 1])
        p, q = _two_product(weights[j], times[j])
        s, e = _two_sum(S1[j, 0], p)
        S1[j + 1, 0], S1[j + 1, 1] = _two_sum(s, e + q + S1[j, 1])
    return S0, S1


@njit(cache=True, nogil=True, inline="always")
def _between(S, a, b):
    """The sum over events a to b - 1, as a pair of floats."""
    d, e = _two_sum(S[b, 0], -S[a, 0])
    return d, e + S[b, 1] - S[a, 1]


@njit(cache=True, nogil=True)
def add_line_rows(targets, times, weights, knots, rows):
    """Add Σ_j w_j φ_l(t_i - t_j) over earlier events j to rows[i, lo].

    Both sequences of times are sorted. φ_0 is constant up to the first knot, φ_l has its peak at
    knot l, and beyond the last knot all are 0.
    """
    K, m = len(knots) - 1, len(times)
    if len(targets) == 0:
        return
    origin = targets[0] if m == 0 else min(targets[0], times[0])
    S0, S1 = _prefix_sums(times - origin, weights)
    first = np.zeros(K + 1, dtype=np.int64)
    end = 0
    for i in range(len(targets)):
        t = targets[i]
        while end < m and times[end] < t:
            end += 1
        upper = end
        for lo in range(K + 1):
            # the first event with a lag below the knot
            while first[lo] < end and t - times[first[lo]] >= knots[lo]:
                first[lo] += 1
            lower = min(first[lo], upper)
            if lower < upper:
                n, n_rest = _between(S0, lower, upper)
                if lo == 0:
                    rows[i, 0] += n
                else:
                    # Σ w (t - t_j - k) / width, the share of the right hat
                    a, a_rest = _two_sum(t - origin, -knots[lo - 1])
                    p, p_rest = _two_product(a, n)
                    q, q_rest = _between(S1, lower, upper)
                    d, d_rest = _two_sum(p, -q)
                    lag = d + (d_rest + p_rest + a * n_rest + a_rest * n - q_rest)
                    # rounding may leave the share a last digit outside its range
                    right = min(max(lag / (knots[lo] - knots[lo - 1]), 0.0), n)
                    rows[i, lo - 1] += n - right
                    if lo < K:
                        rows[i, lo] += right
            upper = lower
