"""The factor of a sum of squares, a matrix R or the diagonal of one: f(x) = |Rᵀ k(centers, x)|²."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats, Ints, check_memory
from hplus._threads import one_thread_if_small
from hplus.kernels.base import BLOCK_ENTRIES, Kernel
from hplus.kernels.gradients import gradient_sum
from hplus.kernels.structured import distinct_rows, psd_root

Terms = tuple[Floats, Floats]
"""Centers (m, d) and a factor (m, r), or (m,) for a diagonal one."""


def values(kernel: Kernel, terms: Terms, X: Floats) -> Floats:
    """f(X[i]), shape (n,), non-negative however it rounds."""
    centers, factor = terms
    out = np.empty(len(X))
    for rows, K in kernel.blocks(X, centers, _block_entries(factor)):
        G = K @ factor if factor.ndim == 2 else K * factor
        np.einsum("ij,ij->i", G, G, out=out[rows])
    return out


def gradients(kernel: Kernel, terms: Terms, X: Floats) -> Floats:
    """∇f(X[i]), shape (n, d)."""
    centers, factor = terms
    out = np.empty(X.shape)
    for rows, K in kernel.blocks(X, centers, _block_entries(factor)):
        # ∇|Rᵀk|² = 2 (RRᵀk)ᵀ∇k
        C = (K @ factor) @ factor.T if factor.ndim == 2 else (K * factor) * factor
        out[rows] = 2.0 * gradient_sum(kernel, X[rows], centers, C)
    return out


def _block_entries(factor: Floats) -> int:
    """Gram entries per block, so that neither it nor its product with the factor is large."""
    rows, columns = factor.shape if factor.ndim == 2 else (len(factor), 1)
    return BLOCK_ENTRIES * rows // max(1, rows, columns)


def full(factor: Floats) -> Floats:
    """The factor as a matrix, shape (m, r)."""
    if factor.ndim == 2:
        return factor
    check_factor(len(factor), len(factor))
    return np.diag(factor)


def check_factor(rows: int, columns: int) -> None:
    check_memory(
        8.0 * rows * columns,
        f"A factor of {rows} x {columns} numbers",
        "reduce the sums of squares first with compressed()",
    )


def added(left: Terms, right: Terms) -> Terms:
    """The squares of both with equal centers merged; a diagonal factor if both are diagonal."""
    (C, F), (D, G) = left, right
    same = np.arange(len(C))
    centers, i, j = (C, same, same) if np.array_equal(C, D) else distinct_rows(C, D)
    if F.ndim == G.ndim == 1:
        diagonal = np.zeros(len(centers))
        # F²k² + G²k² = (√(F² + G²) k)²
        np.hypot.at(diagonal, np.concatenate([i, j]), np.concatenate([F, G]))
        return centers, diagonal
    F, G = full(F), full(G)
    check_factor(len(centers), F.shape[1] + G.shape[1])
    factor = np.zeros((len(centers), F.shape[1] + G.shape[1]))
    np.add.at(factor[:, : F.shape[1]], i, F)
    np.add.at(factor[:, F.shape[1] :], j, G)
    return centers, factor


def compressed(kernel: Kernel, terms: Terms, tolerance: float) -> Terms:
    """Fewer squares: those dropped are at most tolerance · tr(RᵀKR) · k(x, x) at any x.

    The columns are rotated to be orthogonal in the metric of K = k(centers, centers): a square
    (vᵀRᵀk(x))² is at most vᵀRᵀKRv · k(x, x), by Cauchy-Schwarz.
    """
    centers, factor = _without_zero_rows(*terms)
    if factor.ndim == 1:
        kept = _largest(factor**2 * kernel.diag(centers), tolerance)
        return centers[kept], factor[kept]
    with one_thread_if_small(len(centers)):
        # R = QT, QᵀKQ = LLᵀ, so that RᵀKR = (LᵀT)ᵀ(LᵀT)
        Q, T = np.linalg.qr(factor)
        L = psd_root(Q.T @ kernel.dot(centers, centers, Q))
        _, s, V = np.linalg.svd(L.T @ T, full_matrices=False)
        return centers, factor @ V[_largest(s**2, tolerance)].T


def _without_zero_rows(centers: Floats, factor: Floats) -> Terms:
    used = factor != 0.0 if factor.ndim == 1 else np.any(factor != 0.0, axis=1)
    return centers[used], factor[used]


def _largest(sizes: Floats, tolerance: float) -> Ints:
    """The indices of the largest sizes, all but a fraction `tolerance` of their sum."""
    order = np.argsort(sizes)
    dropped = np.cumsum(sizes[order]) <= tolerance * sizes.sum()
    return np.sort(order[~dropped])
