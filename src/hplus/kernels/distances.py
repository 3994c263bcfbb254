"""Squared distances between two sets of points, fast and without cancellation."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from hplus._checks import Floats

MAX_DIRECT_COLUMNS = 6
"""With up to this many columns, differences are as fast as BLAS, given the exp that follows."""

MIN_EXPANDED_FRACTION = 1e-5
"""Below this fraction of |x|² + |z|², |x|² + |z|² - 2x·z is replaced by a sum of differences."""

ROWS_AT_A_TIME = 64
"""Rows completed at a time, to stay in cache."""


def squared_distances(X: Floats, Z: Floats) -> Floats:
    """D[i, j] = |X[i] - Z[j]|², shape (n, m), a new array; exactly symmetric if `Z is X`."""
    if X.shape[1] <= MAX_DIRECT_COLUMNS or len(X) == 0 or len(Z) == 0:
        return cdist(X, Z, "sqeuclidean")
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is recomputed
        D, largest = _expanded(X, Z)
    _repair(D, X, Z, MIN_EXPANDED_FRACTION * largest)
    return D


def shared_origin(X: Floats, Z: Floats) -> Floats:
    """A point to subtract from X and Z without rounding, shape (d,); 0 on axes that have none."""
    low = np.minimum(X.min(axis=0, initial=np.inf), Z.min(axis=0, initial=np.inf))
    high = np.maximum(X.max(axis=0, initial=-np.inf), Z.max(axis=0, initial=-np.inf))
    # y - x is exact for 0 <= x <= y <= 2x
    return np.where(high / 2.0 <= low, low, np.where(low / 2.0 >= high, high, 0.0))


def _expanded(X: Floats, Z: Floats) -> tuple[Floats, float]:
    """|x|² + |z|² - 2 x·z about the mean of Z, shape (n, m), and the largest |x|² + |z|²."""
    origin = Z.mean(axis=0)
    A = X - origin
    B = A if Z is X else Z - origin
    a = np.einsum("ij,ij->i", A, A)
    b = np.einsum("ij,ij->i", B, B)
    largest = a.max() + b.max()
    if Z is not X:
        # one product of (-2x, |x|², 1) and (z, 1, |z|²)
        left = np.column_stack([-2.0 * A, a, np.ones(len(A))])
        return left @ np.column_stack([B, np.ones(len(B)), b]).T, largest
    D = A @ A.T
    D *= -2.0
    for i in range(0, len(D), ROWS_AT_A_TIME):
        # both squares at once: added one by one they round differently above and below the diagonal
        D[i : i + ROWS_AT_A_TIME] += a[i : i + ROWS_AT_A_TIME, None] + b
    return D, largest


def _repair(D: Floats, X: Floats, Z: Floats, threshold: float) -> None:
    """Recompute from differences what is not clearly above `threshold`, NaN included."""
    if D.min() > threshold:
        return
    near = ~(threshold < D)
    if 20 * np.count_nonzero(near) > D.size:
        D[:] = cdist(X, Z, "sqeuclidean")
        return
    i, j = np.nonzero(near)
    C = X[i]
    C -= Z[j]
    D[i, j] = np.einsum("ij,ij->i", C, C)
