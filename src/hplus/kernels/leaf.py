"""Kernels that are not made of other kernels: they see chosen columns of the points."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from typing import final

import numpy as np

from hplus._checks import Floats, as_points, check_columns, check_finite
from hplus._values import value
from hplus.kernels.base import Kernel, Product


@value
class Leaf(Kernel):
    """A kernel that is not made of others and sees only the chosen `columns` of a point."""

    columns: tuple[int, ...] | None = field(default=None, kw_only=True)

    @abstractmethod
    def evaluate(self, X: Floats, Z: Floats) -> Floats:
        """K[i, j] on the chosen columns, a new array; exactly symmetric if `Z is X`."""

    @abstractmethod
    def evaluate_diag(self, X: Floats) -> Floats:
        """k(X[i], X[i]) on the chosen columns."""

    def evaluate_features(self, X: Floats) -> Floats:
        """φ(X[i]) on the chosen columns."""
        raise ValueError(
            f"{self} has no finite feature map: approximate it with Nystroem or RandomFourier."
        )

    def __post_init__(self) -> None:
        self._set(columns=check_columns(self.columns))
        self.check()

    def check(self) -> None:
        """Check and normalise the parameters of a subclass, once, at construction."""

    @final
    def gram(self, X: Floats, Z: Floats) -> Floats:
        A = self.select(X)
        return self.evaluate(A, A if Z is X else self.select(Z))

    @final
    def diag(self, X: Floats) -> Floats:
        return self.evaluate_diag(self.select(check_finite("X", as_points("X", X))))

    @final
    def features(self, X: Floats) -> Floats:
        return self.evaluate_features(self.select(check_finite("X", as_points("X", X))))

    def squared(self) -> Kernel:
        return Product(self, self)

    def feature_count(self, dimension: int) -> int | None:
        return None

    def axes(self, dimension: int) -> tuple[int, ...]:
        """The columns that the kernel sees, of points with `dimension` columns."""
        axes = tuple(range(dimension)) if self.columns is None else self.columns
        if max(axes, default=0) >= max(1, dimension):
            raise ValueError(
                f"columns of {self} must be below {dimension}, the number of columns of the points."
            )
        return axes

    def select(self, X: Floats) -> Floats:
        """The chosen columns of X."""
        axes = self.axes(X.shape[1])
        whole = axes == tuple(range(X.shape[1]))
        return X if whole else np.ascontiguousarray(X[:, list(axes)])

    def scatter(self, numbers: Floats | float, shape: tuple[int, ...]) -> Floats:
        """The numbers in the columns that the kernel sees, 0 elsewhere, array of `shape`."""
        out = np.zeros(shape)
        out[..., list(self.axes(shape[-1]))] = numbers
        return out


@value
class Correlation(Leaf):
    """A kernel with k(x, x) = 1 and k(x, z) >= 0."""

    @final
    def evaluate_diag(self, X: Floats) -> Floats:
        return np.ones(len(X))

    @final
    def is_nonnegative(self) -> bool:
        return True
