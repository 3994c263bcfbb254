"""Elements of a reproducing kernel Hilbert space H, and gradients of functionals on it."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np

from hplus._checks import (
    Floats,
    as_floats,
    as_points,
    check_finite,
    check_number,
    frozen_array,
    shown,
)
from hplus._threads import one_thread_if_small
from hplus._values import Value, value
from hplus.kernels.base import Kernel, check_kernel
from hplus.kernels.integrals import mean_embedding
from hplus.windows import Window


@value
class Expansion(Value):
    """A function on k(centers[i], ·), centers of shape (n, d), given by numbers for each center."""

    kernel: Kernel
    centers: Floats

    __array_ufunc__ = None  # array * function calls __rmul__, which raises

    def check_numbers(self, name: str, numbers: Floats) -> None:
        """Make centers and numbers read-only; an error unless there is a row for each center."""
        check_kernel("kernel", self.kernel)
        centers = frozen_array("centers", as_points("centers", self.centers))
        numbers = frozen_array(name, numbers)
        if numbers.ndim not in (1, 2) or len(numbers) != len(centers):
            raise ValueError(
                f"{name} must have one row for each of the {len(centers)} centers, got shape "
                f"{numbers.shape}."
            )
        self._set(centers=centers, **{name: numbers})

    def check_points(self, X: Any) -> Floats:
        """X as finite points, shape (n, d)."""
        return check_finite("X", as_points("X", X, self.centers.shape[1]))

    def check_same_space(self, other: Self) -> None:
        """An error unless both are of one class, on one kernel, and have equally many columns."""
        name = type(self).__name__
        if not isinstance(other, type(self)):
            raise TypeError(f"{name} can only be combined with another {name}, got {shown(other)}.")
        if self.kernel != other.kernel:
            raise ValueError(
                f"functions must share one kernel to be combined, got {self.kernel} and "
                f"{other.kernel}."
            )
        self.check_same_columns(other)

    def check_same_columns(self, other: Self) -> None:
        """An error unless the centers of both have equally many columns."""
        here, there = self.centers.shape[1], other.centers.shape[1]
        if here != there:
            raise ValueError(
                f"functions must have equal numbers of columns to be combined, got {here} and "
                f"{there}."
            )


@final
@value
class Function(Expansion):
    """f = Σ_i weights[i] k(centers[i], ·), an element of the kernel's Hilbert space.

    Functions of one kernel form a vector space with the inner product f @ g. With weights of
    shape (n, outputs), f is a tuple of functions and inner products are sums over them.

    Parameters
    ----------
    kernel : Kernel
    centers : array (n, d)
    weights : array (n,) or (n, outputs)
    """

    weights: Floats

    def __post_init__(self) -> None:
        self.check_numbers("weights", self.weights)

    def __call__(self, X: Any) -> Floats:
        """f(X[i]), shape (n,) or (n, outputs), in blocks of bounded memory."""
        return self.kernel.dot(self.check_points(X), self.centers, self.weights)

    def __add__(self, other: Function) -> Function:
        self._require_same_space(other)
        centers = np.vstack([self.centers, other.centers])
        return Function(self.kernel, centers, np.concatenate([self.weights, other.weights]))

    def __mul__(self, factor: float) -> Function:
        factor = check_number("the factor of a function", factor)
        return Function(self.kernel, self.centers, self.weights * factor)

    __rmul__ = __mul__

    def __neg__(self) -> Function:
        return -1.0 * self

    def __sub__(self, other: Function) -> Function:
        self._require_same_space(other)
        return self + (-other)

    def __matmul__(self, other: Function) -> float:
        """<f, g> = Σ_ij w_i v_j k(c_i, d_j) [math, Eq. 1.2]."""
        self._require_same_space(other)
        values = self.kernel.dot(self.centers, other.centers, other.weights)
        return float(np.sum(self.weights * values))

    def norm(self) -> float:
        """‖f‖ = √<f, f>."""
        return float(np.sqrt(max(self @ self, 0.0)))  # rounding may leave -1e-17

    def distance(self, other: Function) -> float:
        """‖f - g‖."""
        return (self - other).merged().norm()

    def merged(self) -> Function:
        """The same function, with the weights of equal centers added."""
        centers, inverse = np.unique(self.centers + 0.0, axis=0, return_inverse=True)
        weights = np.zeros((len(centers), *self.weights.shape[1:]))
        np.add.at(weights, inverse.ravel(), self.weights)
        return Function(self.kernel, centers, weights)

    def project(self, centers: Any) -> Function:
        """The function on the given centers that is nearest to f in the norm of H.

        Its weights solve k(D, D) v = f(D) [math, Eq. 1.6]; D may contain repeated points.
        """
        D = check_finite("centers", as_points("centers", centers, self.centers.shape[1]))
        with one_thread_if_small(len(D)):
            solution = np.linalg.lstsq(self.kernel(D), self(D), rcond=1e-13)
        return Function(self.kernel, D, np.asarray(solution[0], dtype=np.float64))

    def integral(self, window: Window) -> float | Floats:
        """∫_W f, one number or one per output, in closed form where the kernel has one."""
        if len(self.centers) == 0:
            return self.weights.sum(axis=0)
        return mean_embedding(self.kernel, window, self.centers) @ self.weights

    def _require_same_space(self, other: Function) -> None:
        self.check_same_space(other)
        if self.weights.shape[1:] != other.weights.shape[1:]:
            raise ValueError(
                "functions must have equal numbers of outputs to be combined, got weights of shape "
                f"{self.weights.shape} and {other.weights.shape}."
            )


def norm_gradient(f: Function) -> Function:
    """∇‖f‖² = 2f."""
    return 2.0 * f


def evaluation_gradient(kernel: Kernel, x: Any) -> Function:
    """∇ of f ↦ f(x) is k(x, ·), for one point x of shape (d,)."""
    return Function(kernel, np.reshape(as_floats("x", x), (1, -1)), np.ones(1))


def loss_gradient(f: Function, slopes: Any, X: Any) -> Function:
    """∇ of f ↦ Σ_i Φ_i(f(x_i)) is Σ_i slopes[i] k(x_i, ·), slopes[i] = Φ_i'(f(x_i)) (chain rule).

    For a mean loss, pass `loss.slope(y, f(X)) / len(X)`.
    """
    return Function(f.kernel, X, slopes)
