"""Sums of squares of Gaussians: products and marginals are sums of squares of Gaussians again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.kernels.base import Kernel, Product, Scaled
from hplus.kernels.stationary import Gaussian
from hplus.kernels.structured import Constant, psd_root
from hplus.positivity.factors import check_factor, compressed, full

Axes = tuple[int, ...]

MARGINAL_TOLERANCE = 1e-15
"""The fraction of a marginal that is dropped for fewer squares."""


class Gaussians(NamedTuple):
    """f(x) = |factorᵀ k(x)|², k_i(x) = exp(-Σ_j precisions[j] (x_j - centers[i, j])²/2)."""

    precisions: Floats
    centers: Floats
    factor: Floats


def gaussians(kernel: Kernel, centers: Floats, factor: Floats) -> Gaussians:
    """A sum of squares of a kernel that is a product of Gaussians; an error for any other."""
    amplitude, precisions = _form(kernel, centers.shape[1])
    if not np.isfinite(precisions).all():
        raise OverflowError(f"1/scale² of {kernel} overflows: rescale the columns.")
    return Gaussians(precisions, centers, amplitude * factor)


def gaussian_kernel(precisions: Floats) -> Kernel:
    """exp(-Σ_j precisions[j] (x_j - z_j)²/2); a precision of 0 leaves a column out."""
    seen = np.flatnonzero(precisions)
    if len(seen) == 0:
        return Constant(1.0)
    scales = (1.0 / np.sqrt(precisions[seen])).tolist()
    scale = scales[0] if len(set(scales)) == 1 else tuple(scales)
    return Gaussian(scale, columns=None if len(seen) == len(precisions) else tuple(seen.tolist()))


def multiplied(left: Gaussians, right: Gaussians) -> Gaussians:
    """f · g, with a center and a square for each pair of theirs.

    k_p(x, c) k_q(x, d) = k_pq/(p+q)(c, d) · k_p+q(x, (pc + qd)/(p + q)), axis by axis.
    """
    (p, C, F), (q, D, G) = left, right
    squares = 1 if F.ndim == G.ndim == 1 else len(F.T) * len(G.T)
    check_factor(len(C) * len(D), len(p) + squares)
    total = p + q
    share = np.divide(q, total, out=np.zeros_like(q), where=total > 0.0)
    centers = C[:, None] + share * (D - C[:, None])
    overlaps = gaussian_kernel(p * share).gram(C, D)
    return Gaussians(total, centers.reshape(-1, len(p)), _paired(overlaps, F, G))


def _paired(overlaps: Floats, F: Floats, G: Floats) -> Floats:
    """The rows overlaps[i, k] · F[i] ⊗ G[k], shape (m m', r r'); diagonal if both are."""
    if F.ndim == G.ndim == 1:
        return (overlaps * np.outer(F, G)).ravel()
    F, G = full(F), full(G)
    rows = np.einsum("ik,ir,ks->ikrs", overlaps, F, G)
    return rows.reshape(overlaps.size, F.shape[1] * G.shape[1])


def integral(f: Gaussians) -> float:
    """∫f over all of space: tr(RᵀHR), H as in `_moments`."""
    H, size = _moments(f, tuple(range(len(f.precisions))))
    if f.factor.ndim == 1:
        return float(size * np.sum(f.factor**2))
    return float(max(0.0, size * np.sum(f.factor * (H @ f.factor))))  # rounding may leave -1e-17


def marginal(f: Gaussians, kept: Axes) -> Gaussians:
    """f integrated over all axes except those in `axes`, each over the whole line.

    Q becomes Q ∘ H: with Q = RRᵀ and H = LLᵀ its factor has the columns R_r ∘ L_s.
    """
    gone = tuple(axis for axis in range(len(f.precisions)) if axis not in kept)
    p, centers = f.precisions[list(kept)], f.centers[:, list(kept)]
    H, size = _moments(f, gone)
    if f.factor.ndim == 1:
        return Gaussians(p, centers, np.sqrt(size) * f.factor)
    L = np.sqrt(size) * psd_root(H)
    check_factor(len(L), L.shape[1] * f.factor.shape[1])
    factor = np.einsum("ir,is->irs", f.factor, L).reshape(len(L), L.shape[1] * f.factor.shape[1])
    return Gaussians(p, *compressed(gaussian_kernel(p), (centers, factor), MARGINAL_TOLERANCE))


def _moments(f: Gaussians, axes: Axes) -> tuple[Floats, float]:
    """∫ k_i k_j over some axes = H[i, j] · size, H[i, j] = exp(-Σ p (c_i - c_j)²/4)."""
    p, Y = f.precisions[list(axes)], f.centers[:, list(axes)]
    if np.any(p == 0.0):
        raise ValueError(
            f"kernel must depend on every column that is integrated over the whole line, got one "
            f"that ignores column {axes[int(np.argmin(p))]}: integrate over a window instead."
        )
    return gaussian_kernel(p / 2.0).gram(Y, Y), float(np.prod(np.sqrt(np.pi / p)))


def _form(kernel: Kernel, dimension: int) -> tuple[float, Floats]:
    """(a, p) with k(x, z) = a exp(-Σ_j p_j (x_j - z_j)²/2)."""
    match kernel:
        case Gaussian():
            axes = list(kernel.axes(dimension))
            precisions = np.zeros(dimension)
            with np.errstate(over="ignore"):
                precisions[axes] = np.array(kernel.scales(len(axes))) ** -2.0
            return 1.0, precisions
        case Constant():
            return kernel.value, np.zeros(dimension)
        case Scaled(factor, inner):
            amplitude, precisions = _form(inner, dimension)
            return factor * amplitude, precisions
        case Product(left, right):
            (a, p), (b, q) = _form(left, dimension), _form(right, dimension)
            return a * b, p + q
    raise ValueError(
        f"kernel must be a Gaussian, or a multiple or product of Gaussians, got {kernel}."
    )
