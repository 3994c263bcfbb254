"""Kernels as frozen values, and their algebra: sum, product, positive scaling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, final

import numpy as np

from hplus._checks import (
    Floats,
    as_floats,
    as_points,
    check_finite,
    check_memory,
    check_positive,
    shown,
)
from hplus._values import Value, value

BLOCK_ENTRIES = 2**19
"""Entries of a Gram matrix computed at a time in products with it: 4 MiB, to stay in cache."""

MAX_BLOCK_ENTRIES = 2**23
"""The same, at most, for points with many columns: 64 MiB."""

MIN_COMPILED_PARTS, MIN_COMPILED_ENTRIES = 8, 2**16
"""Parts of an expression, and entries of a Gram matrix, from which on compiled code is faster."""


@value
class Kernel(Value, ABC):
    """A positive semi-definite function k(x, z); called on two sets of points, a Gram matrix."""

    __array_ufunc__ = None  # array * kernel calls __rmul__, which raises

    @abstractmethod
    def gram(self, X: Floats, Z: Floats) -> Floats:
        """K[i, j] = k(X[i], Z[j]), shape (n, m), a new array; exactly symmetric if `Z is X`."""

    @abstractmethod
    def diag(self, X: Floats) -> Floats:
        """k(X[i], X[i]), shape (n,), without the n x n matrix."""

    @abstractmethod
    def is_nonnegative(self) -> bool:
        """Is k(x, z) >= 0 everywhere?"""

    @abstractmethod
    def squared(self) -> Kernel:
        """The kernel k(x, z)², in its simplest form."""

    @abstractmethod
    def feature_count(self, dimension: int) -> int | None:
        """The number of `features` of points with `dimension` columns; None if infinite."""

    @abstractmethod
    def features(self, X: Floats) -> Floats:
        """φ(X[i]), shape (n, m), with φ(x)·φ(z) = k(x, z); an error if m is infinite."""

    def __call__(self, X: Any, Z: Any = None) -> Floats:
        """The Gram matrix k(X[i], Z[j]), shape (n, m); k(X) is k(X, X), exactly symmetric."""
        # contiguous, because BLAS makes x·z symmetric only then
        X = np.ascontiguousarray(check_finite("X", as_points("X", X)))
        Z = X if Z is None else check_finite("Z", as_points("Z", Z, X.shape[1]))
        check_memory(
            8.0 * len(X) * len(Z),
            f"A Gram matrix of {len(X)} x {len(Z)} points",
            "compute it in blocks with kernel.blocks(X, Z), or use fewer points",
        )
        return self._symmetric_gram(X) if Z is X else self.gram(X, Z)

    def _symmetric_gram(self, X: Floats) -> Floats:
        """k(X, X) from its lower half, mirrored, in blocks that stay in cache."""
        n = len(X)
        height = max(64, BLOCK_ENTRIES // max(1, n))
        if n <= 2 * height:
            return self.gram(X, X)
        K = np.empty((n, n))
        for start in range(0, n, height):
            rows, block = slice(start, start + height), X[start : start + height]
            K[rows, rows] = self.gram(block, block)
            K[rows, :start] = self.gram(block, X[:start])
            K[:start, rows] = K[rows, :start].T
        return K

    def blocks(
        self, X: Floats, Z: Floats, entries: int = BLOCK_ENTRIES
    ) -> Iterator[tuple[slice, Floats]]:
        """The Gram matrix in row blocks of about `entries` entries: pairs (rows, block)."""
        X = as_points("X", X)
        Z = as_points("Z", Z, X.shape[1])
        height = max(1, entries // max(1, len(Z)))
        for start in range(0, len(X), height):
            rows = slice(start, min(start + height, len(X)))
            yield rows, self.gram(X[rows], Z)

    def dot(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """k(X, Z) @ W, shape (n,) or (n, outputs), without the whole Gram matrix."""
        W = as_floats("W", W)
        out = np.empty((len(X), *W.shape[1:]))
        # more columns need taller blocks, so that Z is read less often
        entries = max(BLOCK_ENTRIES, min(4 * np.size(Z), MAX_BLOCK_ENTRIES))
        for rows, block in self.blocks(X, Z, entries):
            np.matmul(block, W, out=out[rows])
        return out

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: int) -> Kernel:
        # sum([k1, k2]) starts with 0
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product(self, other) if isinstance(other, Kernel) else Scaled(other, self)

    def __rmul__(self, other: float) -> Kernel:
        return Scaled(other, self)


def is_psd(kernel: Kernel, X: Any, tolerance: float = 1e-9) -> bool:
    """Is the Gram matrix of X positive semi-definite, up to `tolerance` times its largest entry?

    True is evidence for these points only; False proves that `kernel` is not a kernel.
    """
    check_kernel("kernel", kernel)
    X = as_points("X", X)
    K = kernel(X, X.copy())  # as if for two sets of points: nothing makes it symmetric then
    bound = tolerance * np.abs(K).max(initial=0.0)
    if np.abs(K - K.T).max(initial=0.0) > bound:
        return False
    return bool(np.linalg.eigvalsh((K + K.T) / 2.0).min(initial=0.0) >= -bound)


def _parts(kernel: Kernel) -> int:
    """How many kernels an expression is made of."""
    if isinstance(kernel, Pair):
        return _parts(kernel.left) + _parts(kernel.right)
    return _parts(kernel.kernel) if isinstance(kernel, Scaled) else 1


@value
class Pair(Kernel):
    """Two kernels combined entry by entry, which keeps them positive semi-definite."""

    left: Kernel
    right: Kernel

    operation: ClassVar[np.ufunc]
    """What combines entries, and numbers of features."""

    def __post_init__(self) -> None:
        check_kernel("left", self.left)
        check_kernel("right", self.right)

    @final
    def gram(self, X: Floats, Z: Floats) -> Floats:
        if len(X) * len(Z) >= MIN_COMPILED_ENTRIES and _parts(self) >= MIN_COMPILED_PARTS:
            from hplus.kernels.programs import compiled_gram  # which needs the kernels

            compiled = compiled_gram(self, X, Z)
            if compiled is not None:
                return compiled
        K = self.left.gram(X, Z)
        return self.operation(K, self.right.gram(X, Z), out=K)

    @final
    def diag(self, X: Floats) -> Floats:
        return self.operation(self.left.diag(X), self.right.diag(X))

    @final
    def feature_count(self, dimension: int) -> int | None:
        left, right = self.left.feature_count(dimension), self.right.feature_count(dimension)
        return None if left is None or right is None else int(self.operation(left, right))


@final
@value
class Sum(Pair):
    """k = left + right; features are concatenated."""

    operation = np.add

    def is_nonnegative(self) -> bool:
        return self.left.is_nonnegative() and self.right.is_nonnegative()

    def squared(self) -> Kernel:
        # (a + b)² = a² + 2ab + b²
        return self.left.squared() + 2.0 * (self.left * self.right) + self.right.squared()

    def features(self, X: Floats) -> Floats:
        return np.hstack([self.left.features(X), self.right.features(X)])

    def __repr__(self) -> str:
        right = f"({self.right})" if isinstance(self.right, Sum) else f"{self.right}"
        return f"{self.left} + {right}"


@final
@value
class Product(Pair):
    """k = left · right; features are the outer product."""

    operation = np.multiply

    def is_nonnegative(self) -> bool:
        both = self.left.is_nonnegative() and self.right.is_nonnegative()
        return both or self.left == self.right

    def squared(self) -> Kernel:
        return self.left.squared() * self.right.squared()

    def features(self, X: Floats) -> Floats:
        left, right = self.left.features(X), self.right.features(X)
        return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)

    def __repr__(self) -> str:
        left = f"({self.left})" if isinstance(self.left, Sum) else f"{self.left}"
        return f"{left} * {_in_parentheses(self.right)}"


@final
@value
class Scaled(Kernel):
    """k = factor · kernel, factor > 0; features are multiplied by √factor."""

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        self._set(factor=check_positive("the factor of a kernel", self.factor))
        check_kernel("kernel", self.kernel)

    def gram(self, X: Floats, Z: Floats) -> Floats:
        K = self.kernel.gram(X, Z)
        return np.multiply(K, self.factor, out=K)

    def diag(self, X: Floats) -> Floats:
        return self.factor * self.kernel.diag(X)

    def is_nonnegative(self) -> bool:
        return self.kernel.is_nonnegative()

    def squared(self) -> Kernel:
        return self.factor**2 * self.kernel.squared()

    def feature_count(self, dimension: int) -> int | None:
        return self.kernel.feature_count(dimension)

    def features(self, X: Floats) -> Floats:
        return np.sqrt(self.factor) * self.kernel.features(X)

    def __repr__(self) -> str:
        return f"{self.factor} * {_in_parentheses(self.kernel)}"


def _in_parentheses(kernel: Kernel) -> str:
    """The text of a factor: in parentheses if it is a sum, a product or scaled."""
    return f"({kernel})" if isinstance(kernel, Pair | Scaled) else f"{kernel}"


def check_kernel(name: str, kernel: object) -> None:
    """An error unless `kernel` is a Kernel."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"{name} must be a kernel such as Gaussian(1.0), got {shown(kernel)}.")
