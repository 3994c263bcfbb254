"""What feature maps share: φ(X) with φ(x)·φ(z) ≈ k(x, z)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import Floats, as_floats, as_points, check_finite, check_memory
from hplus._values import Value, value


@value
class FeatureMap(Value, ABC):
    """φ with φ(x)·φ(z) ≈ k(x, z); called on points, the matrix Φ of their features."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The number of columns of a point, and of its features."""

    @abstractmethod
    def evaluate(self, X: Floats) -> Floats:
        """Φ for points that were checked."""

    @final
    def __call__(self, X: Any) -> Floats:
        """Φ[i] = φ(X[i]), shape (n, features), with ΦΦᵀ ≈ k(X, X)."""
        dimension, count = self.shape
        X = check_finite("X", as_points("X", X, dimension))
        check_memory(
            16.0 * len(X) * count,
            f"A matrix of {len(X)} x {count} features",
            "pass the points in batches, or use fewer features",
        )
        return self.evaluate(X)


def weighted_rows(X: Floats, sample_weight: ArrayLike | None) -> Floats:
    """The rows of X with a positive weight; an error if there are none."""
    if sample_weight is not None:
        w = check_finite("sample_weight", as_floats("sample_weight", sample_weight))
        if w.shape != (len(X),) or np.any(w < 0.0):
            raise ValueError(
                f"sample_weight must be one number of at least 0 for each of the {len(X)} rows, "
                f"got shape {w.shape} and smallest value {w.min(initial=np.inf):.6g}."
            )
        X = X[w > 0.0]
    if len(X) == 0:
        raise ValueError("X must have a row with a positive weight, got none.")
    return X
