"""Products with tall matrices of features, in blocks of rows that stay in cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hplus._checks import Floats
from hplus.kernels.base import BLOCK_ENTRIES


def values_of(features: Floats, weights: Floats) -> Floats:
    """Φw (n,) for weights w (m,); the squared norms of the rows of ΦR for a factor R (m, rank)."""
    values = features @ weights
    return values if weights.ndim == 1 else np.einsum("ij,ij->i", values, values)


def weighted_gram(U: Floats, a: Floats, V: Floats) -> Floats:
    """(a∘U)ᵀV, for U (n, r), V (n, m) and a of shape (n, 1) or (n, r)."""
    total = np.zeros((U.shape[1], V.shape[1]))
    for rows in _blocks(V):
        total += (U[rows] * a[rows]).T @ V[rows]
    return total


def row_products(U: Floats, V: Floats, W: Floats, groups: Floats | None = None) -> Floats:
    """Σ_k U_ik (VWᵀ)_ik over the groups of columns k, for U (n, r), V (n, m) and W (r, m).

    `groups` (r, G) is 1 where a column belongs to a group; by default there is one group. The
    result has shape (n, G).
    """
    groups = np.ones((U.shape[1], 1)) if groups is None else groups
    out = np.empty((len(U), groups.shape[1]))
    for rows in _blocks(V):
        np.matmul((V[rows] @ W.T) * U[rows], groups, out=out[rows])
    return out


def products_gram(U: Floats, V: Floats, weights: Floats) -> Floats:
    """Σ_kl weights_kl (u_k∘v_l)(u_k∘v_l)ᵀ over the columns of U (n, r) and V (n, m)."""
    N = (U[:, :, None] * V[:, None, :]).reshape(len(U), -1)
    return (N * weights.ravel()) @ N.T


def _blocks(V: Floats) -> Iterator[slice]:
    height = max(256, BLOCK_ENTRIES // max(1, V.shape[1]))
    return (slice(start, start + height) for start in range(0, len(V), height))
