"""Gradients of kernels in their first argument, summed over the points of the second."""

from __future__ import annotations

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

MAX_EXPANDED_REACH = 1e3
"""Farther than this many scales from the origin, x·Σe - Σez loses digits: use differences."""


def gradient_sum(kernel: Kernel, X: Floats, Z: Floats, C: Floats) -> Floats:
    """Σ_j C[i, j] ∇_x k(x, Z[j]) at x = X[i], shape (n, d), for C of shape (n, m).

    Where a kernel has a kink (`Laplace` at x_j = z_j) or a jump, the derivative is taken as 0.
    """
    match kernel:
        case Sum(left, right):
            return gradient_sum(left, X, Z, C) + gradient_sum(right, X, Z, C)
        case Product(left, right):
            # ∇(lr) = r∇l + l∇r
            L, R = C * right.gram(X, Z), C * left.gram(X, Z)
            return gradient_sum(left, X, Z, L) + gradient_sum(right, X, Z, R)
        case Scaled(factor, inner):
            return factor * gradient_sum(inner, X, Z, C)
        case Leaf():
            return kernel.scatter(_leaf(kernel, kernel.select(X), kernel.select(Z), C), X.shape)
    raise TypeError(f"kernel must be made of the kernels of hplus.kernels, got {kernel!r}.")


def _leaf(kernel: Leaf, A: Floats, B: Floats, C: Floats) -> Floats | float:
    """Σ_j C[i, j] ∇_a k(a, B[j]) at a = A[i], on the columns that the kernel sees."""
    match kernel:
        case Constant() | Nugget() | Finite():
            return 0.0
        case Linear():
            return C @ B
        case Polynomial():
            # ∇(x·z + c)^p = p (x·z + c)^(p-1) z
            slopes = kernel.degree * (A @ B.T + kernel.offset) ** (kernel.degree - 1)
            return (C * slopes) @ B
        case Periodic():
            A, B = kernel.circle(A), kernel.circle(B)
            E = C * np.exp(-0.5 * squared_distances(A, B))
            (cosx, sinx), (cosz, sinz) = np.hsplit(A, 2), np.hsplit(B, 2)
            # -½|a - b|² grows with x by (2π/period)(cos x sin z - sin x cos z)/scale²
            rate = 2.0 * np.pi / kernel.period
            return rate * (cosx * (E @ sinz) - sinx * (E @ cosz))
        case Gaussian() | Laplace() | Matern32() | Matern52() | RationalQuadratic():
            origin = shared_origin(A, B)
            scales = np.array(kernel.scales(A.shape[1]))
            return _scaled(kernel, kernel.shrink(A - origin), kernel.shrink(B - origin), C) / scales
    raise ValueError(
        f"kernel must have a gradient, so it must not contain Scalar or Custom, got {kernel}."
    )


def _scaled(kernel: Stationary, A: Floats, B: Floats, C: Floats) -> Floats:
    """The same for a stationary kernel and points divided by the scale."""
    if isinstance(kernel, Laplace):
        E = C * kernel.profile(A, B)
        columns = zip(A.T, B.T, strict=True)
        sides = [np.einsum("ij,ij->i", E, np.sign(b - a[:, None])) for a, b in columns]
        return np.stack(sides, axis=1)
    # ∇κ(|a - b|) is -κ'(r)/r · (b - a)
    return _weighted_differences(C * _steepness(kernel, squared_distances(A, B)), A, B)


def _steepness(kernel: Stationary, D: Floats) -> Floats:
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
