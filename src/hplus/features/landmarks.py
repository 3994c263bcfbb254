"""Kernels projected onto k(z, ·) at landmarks z among the data, random or selected."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dpstrf

from hplus._checks import (
    Floats,
    Ints,
    Seed,
    as_points,
    check_count,
    check_finite,
    check_memory,
    check_positive,
    check_random_state,
    frozen_array,
)
from hplus._threads import one_thread_if_small
from hplus._values import Value, value
from hplus.features.base import FeatureMap, weighted_rows
from hplus.kernels import Kernel

MIN_EIGENVALUE_RATIO = 1e-12
"""Eigenvalues of k(Z, Z) below this fraction of the largest are rounding errors."""

MAX_PIVOT_WORK = 5e11
"""The largest n m² for which m of n points are selected: half a minute."""

PIVOT_BLOCK = 32
"""Candidates for pivots considered together."""


@final
@value
class NystroemMap(FeatureMap):
    """φ(x) = rootᵀ k(centers, x), so that x -> φ(x)·v is the function Σ_j (root v)_j k(c_j, ·).

    ΦΦᵀ is the projection of k onto the span of the k(c_j, ·): exact there, and never above k.
    """

    kernel: Kernel
    centers: Floats
    root: Floats

    def __post_init__(self) -> None:
        centers, root = frozen_array("centers", self.centers), frozen_array("root", self.root)
        if centers.ndim != 2 or root.ndim != 2 or len(centers) != len(root):
            raise ValueError(
                f"centers and root must be matrices with equal numbers of rows, got shapes "
                f"{centers.shape} and {root.shape}."
            )
        self._set(centers=centers, root=root)

    @property
    def shape(self) -> tuple[int, int]:
        return self.centers.shape[1], self.root.shape[1]

    def evaluate(self, X: Floats) -> Floats:
        return self.kernel.dot(X, self.centers, self.root)


@final
@value
class Nystroem(Value):
    """Project the kernel onto k(z, ·) at `landmarks` points z drawn from the data.

    Distinct rows with a positive weight are equally likely, so repeating or reordering rows changes
    nothing.

    >>> from hplus.kernels import Gaussian
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> features = Nystroem(10, random_state=0)(Gaussian(0.5), X)
    >>> bool(np.abs(features(X) @ features(X).T - Gaussian(0.5)(X)).max() < 1e-3)
    True

    Parameters
    ----------
    landmarks : int
        Number of points; all distinct points if there are no more than that.
    random_state : int, RandomState or None, default=None
    """

    landmarks: int
    random_state: Seed = None

    def __post_init__(self) -> None:
        check_random_state(self.random_state)
        self._set(landmarks=check_count("landmarks", self.landmarks))

    def __call__(
        self, kernel: Kernel, X: Any, sample_weight: ArrayLike | None = None
    ) -> NystroemMap:
        """The feature map on landmarks among the rows of X (n, d) with a positive weight."""
        rows = self.rows(weighted_rows(check_finite("X", as_points("X", X)), sample_weight))
        return NystroemMap(kernel, rows, _inverse_root(kernel(rows)))

    def rows(self, X: Floats) -> Floats:
        """The landmarks among the rows of X (n, d)."""
        rows = np.unique(X + 0.0, axis=0)  # -0.0 becomes 0.0
        if len(rows) > self.landmarks:
            rng = check_random_state(self.random_state)
            rows = rows[np.sort(rng.choice(len(rows), self.landmarks, replace=False))]
        return rows


@final
@value
class Pivots(Value):
    """Project the kernel onto k(z, ·) at data points z selected greedily (pivoted Cholesky).

    The next z is where k(x, x) exceeds the projection most, until no row exceeds it by more than
    `tolerance` times the largest k(x, x). A smooth kernel needs few points, and a kernel with
    finitely many features no more points than features. The cost is n m² for m points, and the
    first j features span the first j points.

    Parameters
    ----------
    tolerance : float, default=1e-9
    """

    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        self._set(tolerance=check_positive("tolerance", self.tolerance))

    def __call__(
        self, kernel: Kernel, X: Any, sample_weight: ArrayLike | None = None
    ) -> NystroemMap:
        """The feature map on rows of X (n, d) with a positive weight."""
        X = weighted_rows(check_finite("X", as_points("X", X)), sample_weight)
        rows = np.unique(X + 0.0, axis=0)  # -0.0 becomes 0.0
        with one_thread_if_small(len(rows)):
            pivots, L = pivoted_cholesky(kernel, rows, self.tolerance)
            # φ(x) = L⁻¹ k(z, x), L (m, m) the rows of the pivots
            root = solve_triangular(L[pivots], np.eye(len(pivots)), lower=True).T
        return NystroemMap(kernel, rows[pivots], root)


def pivoted_cholesky(kernel: Kernel, X: Floats, tolerance: float) -> tuple[Ints, Floats]:
    """Pivots (m,) and L (n, m) with k(X, X) = L Lᵀ up to `tolerance` k_max in every entry.

    L[pivots] is lower triangular. Of the rows with the largest remainders, a block takes those
    that stay within a factor of ten of the largest when the others are projected out.
    """
    n = len(X)
    rest = np.array(kernel.diag(X), dtype=np.float64)
    if not np.isfinite(rest).all():
        raise OverflowError("kernel values of the data overflow: rescale the points.")
    least = tolerance * rest.max(initial=0.0)
    L, pivots = np.empty((n, PIVOT_BLOCK)), np.empty(0, dtype=np.int64)
    while len(pivots) < n and rest.max() > least:
        m = len(pivots)
        rows = np.argsort(-rest, kind="stable")[: min(PIVOT_BLOCK, n - m)]
        worst = X[rows]
        remainder = kernel.gram(worst, worst) - L[rows, :m] @ L[rows, :m].T
        C, order, rank, _ = dpstrf(remainder, tol=max(least, 0.1 * rest[rows[0]]), lower=1)
        chosen = rows[order[:rank] - 1]
        if rank == 0:
            break
        _check_work(n, m + rank)
        L = _widened(L, m + rank)
        new = kernel.gram(X, X[chosen]) - L[:, :m] @ L[chosen, :m].T
        C = np.tril(C[:rank, :rank])
        L[:, m : m + rank] = solve_triangular(C, new.T, lower=True).T
        L[chosen, m : m + rank] = C
        pivots = np.concatenate([pivots, chosen])
        rest -= np.einsum("ij,ij->i", L[:, m : m + rank], L[:, m : m + rank])
        rest[pivots] = 0.0
    return pivots, L[:, : len(pivots)]


def _check_work(n: int, m: int) -> None:
    """An error if the selection would take minutes."""
    if float(n) * m**2 > MAX_PIVOT_WORK:
        raise ValueError(
            f"kernel distinguishes more than {m} of the {n} rows, too many to use all points: set "
            "landmarks, for example landmarks=500."
        )


def _widened(L: Floats, width: int) -> Floats:
    """L with room for `width` columns."""
    if L.shape[1] >= width:
        return L
    check_memory(
        16.0 * len(L) * width,
        f"A factor of {len(L)} points with {width} columns",
        "set landmarks, for example landmarks=500",
    )
    wider = np.empty((len(L), max(width, min(2 * L.shape[1], len(L)))))
    wider[:, : L.shape[1]] = L
    return wider


def _inverse_root(K: Floats) -> Floats:
    """R (m, rank) with K R Rᵀ K = K: R Rᵀ is the pseudo-inverse of K."""
    if not np.isfinite(K).all():
        raise OverflowError("kernel values of the landmarks overflow: rescale the points.")
    with one_thread_if_small(len(K)):
        s, P = eigh(K)
    kept = s > MIN_EIGENVALUE_RATIO * s[-1]
    # the largest first: the first features matter most
    return (P[:, kept] / np.sqrt(s[kept]))[:, ::-1]
