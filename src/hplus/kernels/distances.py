"""Squared distances between two sets of points, fast and without cancellation."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from hplus._checks import Floats

DIRECT_COLUMNS = 6
"""Up to this many columns, differences are as fast as BLAS beside the exp that follows."""

CANCELLATION = 1e-5
"""Below this share of |x|² + |z|², a distance from |x|² + |z|² - 2x·z is computed again."""


def squared_distances(X: Floats, Z: Floats) -> Floats:
    """D[i, j] = |X[i] - Z[j]|², shape (n, m), a new array; exactly symmetric if `Z is X`."""
    if X.shape[1] <= DIRECT_COLUMNS or len(X) == 0 or len(Z) == 0:
        return cdist(X, Z, "sqeuclidean")
    origin = Z.mean(axis=0)
    A = X - origin
    B = A if Z is X else Z - origin
    a = np.einsum("ij,ij->i", A, A)
    b = np.einsum("ij,ij->i", B, B)
    # |x - z|² = |x|² + |z|² - 2 x·z
    D = A @ B.T
    D *= -2.0
    D += a[:, None]
    D += b
    _repair(D, A, B, CANCELLATION * (a.max() + b.max()))
    return D


def _repair(D: Floats, A: Floats, B: Floats, threshold: float) -> None:
    """Compute again, from differences, what is not clearly above `threshold` (NaN included)."""
    near = ~(threshold < D)
    count = np.count_nonzero(near)
    if 20 * count > D.size:
        D[:] = cdist(A, B, "sqeuclidean")
    elif count:
        i, j = np.nonzero(near)
        C = A[i]
        C -= B[j]
        D[i, j] = np.einsum("ij,ij->i", C, C)
