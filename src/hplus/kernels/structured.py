"""Kernels given by a feature map or a matrix."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import final

import numpy as np

from hplus._checks import (
    Floats,
    Ints,
    check_count,
    check_nonnegative,
    check_positive,
    frozen_array,
)
from hplus._threads import one_thread_if_small
from hplus._values import value
from hplus.kernels.base import Kernel
from hplus.kernels.leaf import Correlation, Leaf


@final
@value
class Constant(Leaf):
    """k = value > 0: the constant functions."""

    value: float = 1.0

    def check(self) -> None:
        self._set(value=check_positive("value", self.value))

    def evaluate(self, X: Floats, Z: Floats) -> Floats:
        return np.full((len(X), len(Z)), self.value)

    def evaluate_diag(self, X: Floats) -> Floats:
        return np.full(len(X), self.value)

    def is_nonnegative(self) -> bool:
        return True

    def squared(self) -> Kernel:
        return self.replace(value=self.value**2)

    def feature_count(self, dimension: int) -> int | None:
        return 1

    def evaluate_features(self, X: Floats) -> Floats:
        return np.full((len(X), 1), np.sqrt(self.value))


@final
@value
class Linear(Leaf):
    """k = x·z: the linear functions."""

    def evaluate(self, X: Floats, Z: Floats) -> Floats:
        return X @ Z.T

    def evaluate_diag(self, X: Floats) -> Floats:
        return np.einsum("ij,ij->i", X, X)

    def is_nonnegative(self) -> bool:
        return False

    def squared(self) -> Kernel:
        return Polynomial(2, offset=0.0, columns=self.columns)

    def feature_count(self, dimension: int) -> int | None:
        return len(self.axes(dimension))

    def evaluate_features(self, X: Floats) -> Floats:
        return X.copy()


@final
@value
class Polynomial(Leaf):
    """k = (x·z + offset)^degree: the polynomials of that degree."""

    degree: int
    offset: float = 1.0

    def check(self) -> None:
        self._set(
            degree=check_count("degree", self.degree),
            offset=check_nonnegative("offset", self.offset),
        )

    def evaluate(self, X: Floats, Z: Floats) -> Floats:
        K = X @ Z.T
        K += self.offset
        return np.power(K, self.degree, out=K)

    def evaluate_diag(self, X: Floats) -> Floats:
        return (np.einsum("ij,ij->i", X, X) + self.offset) ** self.degree

    def is_nonnegative(self) -> bool:
        return self.degree % 2 == 0

    def squared(self) -> Kernel:
        return self.replace(degree=2 * self.degree)

    def feature_count(self, dimension: int) -> int | None:
        axes = len(self.axes(dimension)) + (self.offset > 0)
        return comb(axes + self.degree - 1, self.degree)

    def evaluate_features(self, X: Floats) -> Floats:
        # (x·z + c)^p = Σ_|m|=p p!/(m_0!…m_d!) Π (x_j z_j)^m_j over (x, √c) and (z, √c)
        if self.offset > 0:
            X = np.hstack([X, np.full((len(X), 1), np.sqrt(self.offset))])
        monomials = combinations_with_replacement(range(X.shape[1]), self.degree)
        columns = [multinomial(m) ** 0.5 * X[:, list(m)].prod(axis=1) for m in monomials]
        return np.stack(columns, axis=1)


@final
@value
class Nugget(Correlation):
    """k = 1 where two points are equal, 0 elsewhere: noise of variance 1."""

    def evaluate(self, X: Floats, Z: Floats) -> Floats:
        _, i, j = distinct_rows(X, Z)
        return (i[:, None] == j).astype(np.float64)

    def squared(self) -> Kernel:
        return self


@final
@value
class Finite(Leaf):
    """k(i, j) = matrix[i, j] on the set {0, …, L-1}; points are one column of these numbers.

    The matrix must be symmetric positive semi-definite; it may be singular.
    """

    matrix: Floats

    def check(self) -> None:
        K = frozen_array("matrix", self.matrix)
        if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) == 0:
            raise ValueError(f"matrix must be square and not empty, got shape {K.shape}.")
        half = K / 2.0 + K.T / 2.0
        least, largest = float(np.linalg.eigvalsh(half)[0]), np.abs(K).max()
        symmetric = np.abs(K - half).max() <= 1e-12 * largest
        if not symmetric or least < -1e-10 * largest:
            kind = "a symmetric" if symmetric else "an asymmetric"
            raise ValueError(
                f"matrix must be symmetric positive semi-definite, got {kind} matrix; the "
                f"smallest eigenvalue of its symmetric part is {least:.6g}."
            )
        self._set(matrix=frozen_array("matrix", half))

    def index(self, X: Floats) -> Ints:
        """The points as integers below L."""
        rule = f"X must be one column of whole numbers from 0 to {len(self.matrix) - 1} for Finite"
        if X.shape[1] != 1:
            raise ValueError(f"{rule}, got {X.shape[1]} columns: choose one with columns=[j].")
        x = X[:, 0]
        bad = np.flatnonzero(~((x >= 0) & (x < len(self.matrix)) & (x == np.floor(x))))
        if len(bad):
            raise ValueError(f"{rule}, got {x[bad[0]]:.6g} in row {bad[0]}.")
        return x.astype(np.int64)

    def evaluate(self, X: Floats, Z: Floats) -> Floats:
        return self.matrix[np.ix_(self.index(X), self.index(Z))]

    def evaluate_diag(self, X: Floats) -> Floats:
        return np.diag(self.matrix)[self.index(X)]

    def is_nonnegative(self) -> bool:
        return bool(self.matrix.min() >= 0.0)

    def squared(self) -> Kernel:
        return self.replace(matrix=self.matrix**2)

    def feature_count(self, dimension: int) -> int | None:
        return psd_root(self.matrix).shape[1]

    def evaluate_features(self, X: Floats) -> Floats:
        return psd_root(self.matrix)[self.index(X)]


def psd_root(K: Floats) -> Floats:
    """L with L Lᵀ = K, shape (m, rank), for K symmetric and positive semi-definite."""
    with one_thread_if_small(len(K)):
        s, P = np.linalg.eigh(K)
    kept = s > len(s) * np.finfo(float).eps * s.max(initial=0.0)
    return P[:, kept] * np.sqrt(s[kept])


def multinomial(monomial: tuple[int, ...]) -> float:
    """p!/(m_0!…m_d!), the coefficient of a monomial given as its p factors."""
    return factorial(len(monomial)) / prod(map(factorial, Counter(monomial).values()))


def distinct_rows(X: Floats, Z: Floats) -> tuple[Floats, Ints, Ints]:
    """The distinct rows of X and Z, and the index of each row of X and of Z among them."""
    rows = np.vstack([X, Z]) + 0.0  # -0.0 becomes 0.0
    rows, inverse = np.unique(rows, axis=0, return_inverse=True)
    i, j = np.split(inverse.ravel(), [len(X)])
    return rows, i, j
