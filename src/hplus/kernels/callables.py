"""Kernels given by a Python function: a feature, or the whole Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import Floats, as_floats, check_finite, check_flag, shown
from hplus._values import value
from hplus.kernels.leaf import Leaf

RETURNED = "the return value of function"


@final
@value
class Scalar(Leaf):
    """k = f(x)·f(z) for a real function f; `function` maps points (n, d) to numbers (n,)."""

    function: Callable[[Floats], ArrayLike]

    def check(self) -> None:
        _check_callable(self.function)

    def values(self, X: Floats) -> Floats:
        """f(X[i]), shape (n,)."""
        f = as_floats(RETURNED, self.function(X))
        if f.shape != (len(X),):
            raise ValueError(f"function must return one number per point, got shape {f.shape}.")
        return check_finite(RETURNED, f, advice="")

    def evaluate(self, X: Floats, Z: Floats) -> Floats:
        f = self.values(X)
        return np.outer(f, f if Z is X else self.values(Z))

    def evaluate_diag(self, X: Floats) -> Floats:
        return self.values(X) ** 2

    def is_nonnegative(self) -> bool:
        return False

    def feature_count(self, dimension: int) -> int | None:
        return 1

    def evaluate_features(self, X: Floats) -> Floats:
        return self.values(X)[:, None]


@final
@value
class Custom(Leaf):
    """Any callable (X, Z) -> Gram matrix, including the kernels of sklearn.gaussian_process.

    The caller guarantees that it is symmetric and positive semi-definite (see `is_psd`) and, with
    `nonnegative`, that it is never negative.
    """

    function: Callable[[Floats, Floats], ArrayLike]
    nonnegative: bool = False

    def check(self) -> None:
        _check_callable(self.function)
        self._set(nonnegative=check_flag("nonnegative", self.nonnegative))

    def evaluate(self, X: Floats, Z: Floats) -> Floats:
        K = np.array(as_floats(RETURNED, self.function(X, Z)))
        if K.shape != (len(X), len(Z)):
            raise ValueError(
                f"function must return an array of shape {(len(X), len(Z))}, got shape {K.shape}."
            )
        check_finite(RETURNED, K, advice="")
        return (K + K.T) / 2.0 if Z is X else K

    def evaluate_diag(self, X: Floats) -> Floats:
        blocks = [X[i : i + 32] for i in range(0, len(X), 32)]
        return np.concatenate([np.zeros(0), *(np.diag(self.evaluate(B, B)) for B in blocks)])

    def is_nonnegative(self) -> bool:
        return self.nonnegative


def _check_callable(function: object) -> None:
    if not callable(function):
        raise TypeError(f"function must be callable, got {shown(function)}.")
