"""Gradients of kernels in their first argument, summed over the points of the second."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from hplus._checks import Floats
from hplus.kernels.base import Kernel, Product, Scaled, Sum
from hplus.kernels.distances import shared_origin, squared_distances
from hplus.kernels.leaf import Leaf
from hplus.kernels.stationary import (
    MAX_EXPONENT,
    Gaussian,
    Laplace,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    Stationary,
)
from hplus.kernels.structured import Constant, Finite, Linear, Nugget, Polynomial

Radial = Gaussian | Matern32 | Matern52 | RationalQuadratic
"""Kernels of |x - z|² that are differentiable everywhere."""

MAX_EXPANDED_REACH = 1e3
"""Farther than this many scales from the origin, x·Σe - Σez loses digits: use differences."""


@singledispatch
def gradient_sum(kernel: Kernel, X: Floats, Z: Floats, C: Floats) -> Floats:
    """Σ_j C[i, j] ∇_x k(x, Z[j]) at x = X[i], shape (n, d), for C of shape (n, m).

    Where a kernel has a kink (`Laplace` at x_j = z_j) or a jump, the derivative is taken as 0.
    """
    raise ValueError(
        f"kernel must have a gradient, so it must not contain Scalar or Custom, got {kernel}."
    )


@gradient_sum.register
def _(kernel: Sum, X: Floats, Z: Floats, C: Floats) -> Floats:
    return gradient_sum(kernel.left, X, Z, C) + gradient_sum(kernel.right, X, Z, C)


@gradient_sum.register
def _(kernel: Product, X: Floats, Z: Floats, C: Floats) -> Floats:
    # ∇(lr) = r∇l + l∇r
    left, right = C * kernel.right.gram(X, Z), C * kernel.left.gram(X, Z)
    return gradient_sum(kernel.left, X, Z, left) + gradient_sum(kernel.right, X, Z, right)


@gradient_sum.register
def _(kernel: Scaled, X: Floats, Z: Floats, C: Floats) -> Floats:
    return kernel.factor * gradient_sum(kernel.kernel, X, Z, C)


@gradient_sum.register
def _(kernel: Constant | Nugget | Finite, X: Floats, Z: Floats, C: Floats) -> Floats:
    return _at_columns(kernel, X, 0.0)


@gradient_sum.register
def _(kernel: Linear, X: Floats, Z: Floats, C: Floats) -> Floats:
    return _at_columns(kernel, X, C @ kernel.select(Z))


@gradient_sum.register
def _(kernel: Polynomial, X: Floats, Z: Floats, C: Floats) -> Floats:
    # ∇(x·z + c)^p = p (x·z + c)^(p-1) z
    A, B = kernel.select(X), kernel.select(Z)
    slopes = kernel.degree * (A @ B.T + kernel.offset) ** (kernel.degree - 1)
    return _at_columns(kernel, X, (C * slopes) @ B)


@gradient_sum.register
def _(kernel: Radial, X: Floats, Z: Floats, C: Floats) -> Floats:
    # ∇κ(|a - b|), a = x/h and b = z/h, is -κ'(r)/r · (b - a)/h
    A, B, scales = _scaled(kernel, X, Z)
    pulls = C * _steepness(kernel, squared_distances(A, B))
    return _at_columns(kernel, X, _weighted_differences(pulls, A, B) / scales)


@gradient_sum.register
def _(kernel: Laplace, X: Floats, Z: Floats, C: Floats) -> Floats:
    A, B, scales = _scaled(kernel, X, Z)
    E = C * kernel.profile(A, B)
    columns = zip(A.T, B.T, strict=True)
    sides = [np.einsum("ij,ij->i", E, np.sign(b - a[:, None])) for a, b in columns]
    return _at_columns(kernel, X, np.stack(sides, axis=1) / scales)


@gradient_sum.register
def _(kernel: Periodic, X: Floats, Z: Floats, C: Floats) -> Floats:
    A, B = (kernel.circle(kernel.select(points)) for points in (X, Z))
    E = C * np.exp(-0.5 * squared_distances(A, B))
    (cosx, sinx), (cosz, sinz) = np.hsplit(A, 2), np.hsplit(B, 2)
    # -½|a - b|² grows with x by (2π/period)(cos x sin z - sin x cos z)/scale²
    rate = 2.0 * np.pi / kernel.period
    return _at_columns(kernel, X, rate * (cosx * (E @ sinz) - sinx * (E @ cosz)))


def _scaled(kernel: Stationary, X: Floats, Z: Floats) -> tuple[Floats, Floats, Floats]:
    """The columns that the kernel sees, about a common origin, divided by their scales."""
    A, B = kernel.select(X), kernel.select(Z)
    origin = shared_origin(A, B)
    return kernel.shrink(A - origin), kernel.shrink(B - origin), np.array(kernel.scales(A.shape[1]))


def _steepness(kernel: Radial, D: Floats) -> Floats:
    """-κ'(r)/r at r² = D, finite at 0."""
    match kernel:
        case Matern32():
            return 3.0 * np.exp(-np.sqrt(3.0 * D))
        case Matern52():
            t = np.minimum(np.sqrt(5.0 * D), MAX_EXPONENT)  # never inf · 0
            return 5.0 / 3.0 * (1.0 + t) * np.exp(-t)
        case RationalQuadratic():
            return np.exp(-(kernel.mixture + 1.0) * np.log1p(D / (2.0 * kernel.mixture)))
    return np.exp(-0.5 * D)


def _weighted_differences(E: Floats, A: Floats, B: Floats) -> Floats:
    """Σ_j E[i, j](B[j] - A[i]), shape (n, d)."""
    out = E @ B - E.sum(axis=1)[:, None] * A
    reach = np.maximum(np.abs(A).max(axis=0, initial=0.0), np.abs(B).max(axis=0, initial=0.0))
    for axis in np.flatnonzero(reach > MAX_EXPANDED_REACH):
        out[:, axis] = np.einsum("ij,ij->i", E, B[:, axis] - A[:, axis, None])
    return out


def _at_columns(kernel: Leaf, X: Floats, gradients: Floats | float) -> Floats:
    """The gradients in the columns that the kernel sees, 0 elsewhere, shape (n, d)."""
    out = np.zeros(X.shape)
    out[:, list(kernel.axes(X.shape[1]))] = gradients
    return out
