"""Products over parts for all pairs of rows, and sums over pairs; compiled.

Pairs (r, c), c <= r, are numbered row by row: r(r + 1)/2 + c.
"""

from __future__ import annotations

from functools import partial

from numba import njit

from hplus.kernels.compiled import exp_nonpositive

BLOCK = 2048
"""Pairs handled at a time, so that they stay in cache."""

in_vectors = partial(
    njit, cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"}
)
"""Compiled with sums in vector instructions."""


@in_vectors()
def multiply_factors(D, a, s, F, K):
    """F[j] = (1 - a_j) + a_j exp(-D[j]/(2 s_j²)), and K multiplied by all of them, in place."""
    for start in range(0, len(K), BLOCK):
        end = min(start + BLOCK, len(K))
        for j in range(len(D)):
            rate, weight = -0.5 / s[j] ** 2, a[j]
            for i in range(start, end):
                F[j, i] = exp_nonpositive(rate * D[j, i]) * weight + (1.0 - weight)
            for i in range(start, end):
                K[i] *= F[j, i]


@in_vectors()
def fill_lower(K, A):
    """The lower half of A (n, n) from numbers of pairs."""
    start = 0
    for r in range(len(A)):
        for c in range(r + 1):
            A[r, c] = K[start + c]
        start += r + 1


@in_vectors()
def pull_of_pairs(A, alpha, K, G):
    """G = (A - α αᵀ)·K for pairs, twice for r != c; A (n, n) is read in its lower half."""
    start = 0
    for r in range(len(A)):
        for c in range(r):
            G[start + c] = 2.0 * (A[r, c] - alpha[r] * alpha[c]) * K[start + c]
        G[start + r] = (A[r, r] - alpha[r] ** 2) * K[start + r]
        start += r + 1


@in_vectors()
def sums_by_factor(G, F, D, a, ratios, pulls):
    """ratios[j] = Σ G/F[j] and pulls[j] = Σ G/F[j]·(F[j] - (1 - a_j))·D[j] over pairs."""
    ratios[:] = 0.0
    pulls[:] = 0.0
    for start in range(0, len(G), BLOCK):
        end = min(start + BLOCK, len(G))
        for j in range(len(D)):
            rest, ratio, pull = 1.0 - a[j], 0.0, 0.0
            for i in range(start, end):
                q = G[i] / F[j, i]
                ratio += q
                pull += q * (F[j, i] - rest) * D[j, i]
            ratios[j] += ratio
            pulls[j] += pull
