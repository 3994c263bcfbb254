"""Sums of squares of functions in the Hilbert space of a kernel: non-negative by construction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

import hplus.positivity.factors as factors
import hplus.positivity.gaussian as gaussian
from hplus._checks import (
    Floats,
    Seed,
    as_floats,
    check_columns,
    check_count,
    check_finite,
    check_fraction,
    check_nonnegative,
    check_positive,
    check_random_state,
    shown,
)
from hplus._values import value
from hplus.kernels.integrals import mean_embedding, product_integral
from hplus.positivity.sampling import draw, resolved_envelope
from hplus.positivity.slicing import cut
from hplus.space import Expansion
from hplus.windows import Window, check_window


@final
@value
class SumOfSquares(Expansion):
    """f(x) = |factorᵀ k(centers, x)|², a sum of r squares of functions in H, so f >= 0.

    A factor of shape (m,) stands for the diagonal matrix: f(x) = Σ_j factor[j]² k(centers[j], x)².
    Without centers or without columns f is 0.

    >>> from hplus.kernels import Gaussian
    >>> f = SumOfSquares(Gaussian(1.0), [[0.0], [1.0]], [[1.0], [-1.0]])
    >>> f([[0.5], [2.0]]).round(4).tolist()
    [0.0, 0.222]

    Parameters
    ----------
    kernel : Kernel
    centers : array (m, d)
    factor : array (m, r) or (m,)
    """

    factor: Floats

    def __post_init__(self) -> None:
        self.check_numbers("factor", self.factor)

    def __call__(self, X: Any) -> Floats:
        """f(X[i]) >= 0, shape (n,), in blocks of bounded memory."""
        return factors.values(self.kernel, self._terms, self.check_points(X))

    def gradient(self, X: Any) -> Floats:
        """∇f(X[i]), shape (n, d)."""
        return factors.gradients(self.kernel, self._terms, self.check_points(X))

    def integral(self, window: Window | None = None) -> float:
        """∫f over a window, tr(factorᵀ T factor) with T = ∫ k(s, centers) k(s, centers)ᵀ ds.

        Without a window, over the whole space, for Gaussian kernels.
        """
        if window is None:
            return gaussian.integral(self._gaussians())
        check_window("window", window, self.centers.shape[1])
        if self.factor.size == 0:
            return 0.0
        if self.factor.ndim == 1:
            # ∫k(s, c)² ds, without the pairs of different centers
            return float(
                mean_embedding(self.kernel.squared(), window, self.centers) @ self.factor**2
            )
        T = product_integral(self.kernel, window, self.centers)
        return float(max(0.0, np.sum(self.factor * (T @ self.factor))))  # rounding may leave -1e-17

    def __add__(self, other: SumOfSquares) -> SumOfSquares:
        self.check_same_space(other)
        return SumOfSquares(self.kernel, *factors.added(self._terms, other._terms))

    def __mul__(self, other: float | SumOfSquares) -> SumOfSquares:
        """f · g for Gaussian kernels, or α f for a number α >= 0."""
        if isinstance(other, SumOfSquares):
            self.check_same_columns(other)
            return _of(gaussian.multiplied(self._gaussians(), other._gaussians()))
        number = check_nonnegative("the factor of a sum of squares", other)
        return SumOfSquares(self.kernel, self.centers, np.sqrt(number) * self.factor)

    __rmul__ = __mul__

    def __radd__(self, other: int) -> SumOfSquares:
        # sum([f, g]) starts with 0
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __truediv__(self, number: float) -> SumOfSquares:
        """f/α for a number α > 0."""
        return (1.0 / check_positive("the divisor of a sum of squares", number)) * self

    def marginal(self, axes: int | Sequence[int]) -> SumOfSquares:
        """f integrated over all columns but `axes`, each over the whole line (Gaussian kernels)."""
        return _of(gaussian.marginal(self._gaussians(), self._axes(axes)))

    def slice(self, axes: int | Sequence[int], values: ArrayLike) -> SumOfSquares:
        """f with the columns `axes` fixed at `values`, as a function of the other columns.

        For kernels that are products over columns. Divided by its integral, it is the conditional
        density of the other columns given those values.
        """
        fixed = self._axes(axes)
        point = check_finite("values", np.atleast_1d(as_floats("values", values)))
        if point.shape != (len(fixed),) or len(fixed) == self.centers.shape[1]:
            raise ValueError(
                f"axes must leave at least one column free, and values must be one number for each "
                f"of the {len(fixed)} axes, got shape {point.shape} for {self.centers.shape[1]} "
                f"columns."
            )
        kernel, weights = cut(self.kernel, self.centers, fixed, point)
        free = [axis for axis in range(self.centers.shape[1]) if axis not in fixed]
        return SumOfSquares(kernel, self.centers[:, free], (weights * self.factor.T).T)

    def compressed(self, tolerance: float = 1e-12) -> SumOfSquares:
        """f with fewer squares and centers, never larger than f.

        What is dropped is at most tolerance · tr(factorᵀ K factor) · k(x, x), K = k(centers).
        """
        tolerance = check_fraction("tolerance", tolerance)
        return SumOfSquares(self.kernel, *factors.compressed(self.kernel, self._terms, tolerance))

    def sample(self, n: int, window: Window, random_state: Seed = None) -> Floats:
        """n independent points with density f/∫f in a box, shape (n, d)."""
        n, rng = check_count("n", n, least=0), check_random_state(random_state)
        check_window("window", window, self.centers.shape[1])
        bounds = window.box_bounds()
        if bounds is None:
            raise ValueError(
                f"window must be a box to draw points in, got {shown(window)}: draw in a box "
                f"around it and keep the points inside."
            )
        points = draw(self, resolved_envelope(self, self.kernel, bounds), n, rng)
        return np.clip(points, *bounds)  # rounding may push a point past an edge

    @property
    def _terms(self) -> factors.Terms:
        return self.centers, self.factor

    def _gaussians(self) -> gaussian.Gaussians:
        return gaussian.gaussians(self.kernel, self.centers, self.factor)

    def _axes(self, axes: int | Sequence[int]) -> tuple[int, ...]:
        """Distinct columns of the centers."""
        columns, count = check_columns(axes), self.centers.shape[1]
        if columns is None or max(columns) >= count:
            raise ValueError(f"axes must be column numbers below {count}, got {shown(axes)}.")
        return columns


def _of(f: gaussian.Gaussians) -> SumOfSquares:
    return SumOfSquares(gaussian.gaussian_kernel(f.precisions), f.centers, f.factor)
