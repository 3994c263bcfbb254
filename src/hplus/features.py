"""Finite stand-ins for a kernel: feature maps φ with φ(x)·φ(z) ≈ k(x, z).

`Nystroem` and `RandomFourier` are choices; called on a kernel and on data they give the map.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch
from typing import Any, final

import numpy as np
from scipy.linalg import eigh
from sklearn.utils import check_random_state

from hplus._checks import (
    Floats,
    as_floats,
    as_points,
    check_count,
    check_finite,
    check_memory,
    check_positive,
    frozen_array,
)
from hplus._threads import one_thread_if_small
from hplus._values import Value, value
from hplus.kernels import (
    Constant,
    Gaussian,
    Kernel,
    Laplace,
    Matern32,
    Matern52,
    Periodic,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
)
from hplus.kernels.base import Leaf
from hplus.kernels.stationary import Stationary

SMALLEST_EIGENVALUE = 1e-12
"""Directions of k(Z, Z) below this share of its largest eigenvalue are rounding errors."""


@value
class FeatureMap(Value, ABC):
    """φ with φ(x)·φ(z) ≈ k(x, z); called on points, the matrix Φ of their features."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The numbers of columns of a point and of its features."""

    @abstractmethod
    def evaluate(self, X: Floats) -> Floats:
        """Φ for checked points."""

    @final
    def __call__(self, X: Any) -> Floats:
        """Φ[i] = φ(X[i]), shape (n, features), with ΦΦᵀ ≈ k(X, X)."""
        dimension, count = self.shape
        X = check_finite("X", as_points("X", X, dimension))
        check_memory(
            16.0 * len(X) * count,
            f"A matrix of {len(X)} x {count} features",
            "pass the points in parts, or use fewer features",
        )
        return self.evaluate(X)


@final
@value
class NystroemMap(FeatureMap):
    """φ(x) = rootᵀ k(centers, x), so that x -> φ(x)·v is the function Σ_j (root v)_j k(c_j, ·).

    ΦΦᵀ is the projection of k on the span of the k(c_j, ·): exact there, and never above k.
    """

    kernel: Kernel
    centers: Floats
    root: Floats

    def __post_init__(self) -> None:
        centers, root = frozen_array("centers", self.centers), frozen_array("root", self.root)
        if centers.ndim != 2 or root.ndim != 2 or len(centers) != len(root):
            raise ValueError(
                f"centers and root must be matrices with as many rows, got shapes {centers.shape} "
                f"and {root.shape}."
            )
        self._set(centers=centers, root=root)

    @property
    def shape(self) -> tuple[int, int]:
        return self.centers.shape[1], self.root.shape[1]

    def evaluate(self, X: Floats) -> Floats:
        return self.kernel.dot(X, self.centers, self.root)


@final
@value
class FourierMap(FeatureMap):
    """φ(x) = √(amplitude/D)·(cos ω_1·x, …, cos ω_D·x, sin ω_1·x, …, sin ω_D·x)."""

    amplitude: float
    frequencies: Floats

    def __post_init__(self) -> None:
        W = frozen_array("frequencies", self.frequencies)
        if W.ndim != 2 or len(W) == 0:
            raise ValueError(f"frequencies must be a matrix, one a row, got shape {W.shape}.")
        self._set(amplitude=check_positive("amplitude", self.amplitude), frequencies=W)

    @property
    def shape(self) -> tuple[int, int]:
        return self.frequencies.shape[1], 2 * len(self.frequencies)

    def evaluate(self, X: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            angles = X @ self.frequencies.T
        if not np.isfinite(angles).all():
            raise OverflowError("points times frequencies overflow: rescale the points.")
        D = len(self.frequencies)
        features = np.empty((len(X), 2 * D))
        np.cos(angles, out=features[:, :D])
        np.sin(angles, out=features[:, D:])
        features *= np.sqrt(self.amplitude / D)
        return features


@final
@value
class Nystroem(Value):
    """Project the kernel on k(z, ·) at `landmarks` points z drawn from the data.

    Each distinct row with a positive weight is as likely as any other, so that repeating or
    reordering rows changes nothing.

    >>> from hplus.kernels import Gaussian
    >>> X = np.linspace(0.0, 1.0, 50)[:, None]
    >>> features = Nystroem(10, random_state=0)(Gaussian(0.5), X)
    >>> bool(np.abs(features(X) @ features(X).T - Gaussian(0.5)(X)).max() < 1e-3)
    True

    Parameters
    ----------
    landmarks : int
        How many points; all distinct ones if there are no more than that.
    random_state : int, RandomState or None, default=None
    """

    landmarks: int
    random_state: Any = None

    def __post_init__(self) -> None:
        check_random_state(self.random_state)
        self._set(landmarks=check_count("landmarks", self.landmarks))

    def __call__(self, kernel: Kernel, X: Any, sample_weight: Any = None) -> NystroemMap:
        """The feature map on landmarks among the rows of X (n, d) with a positive weight."""
        X = _weighted_rows(check_finite("X", as_points("X", X)), sample_weight)
        rows = np.unique(X + 0.0, axis=0)  # -0.0 becomes 0.0
        if len(rows) > self.landmarks:
            rng = check_random_state(self.random_state)
            rows = rows[np.sort(rng.choice(len(rows), self.landmarks, replace=False))]
        return NystroemMap(kernel, rows, _inverse_root(kernel(rows)))


@final
@value
class RandomFourier(Value):
    """Draw frequencies from the spectral measure of a stationary kernel: k = E[φ(x)·φ(z)].

    The error of an entry of ΦΦᵀ is about k(0)/√(2·frequencies), whatever the dimension.

    Parameters
    ----------
    frequencies : int
        How many; there are two features for each.
    random_state : int, RandomState or None, default=None
    """

    frequencies: int
    random_state: Any = None

    def __post_init__(self) -> None:
        check_random_state(self.random_state)
        self._set(frequencies=check_count("frequencies", self.frequencies))

    def __call__(self, kernel: Kernel, X: Any, sample_weight: Any = None) -> FourierMap:
        """The feature map for points with as many columns as X; it depends on nothing else."""
        X = _weighted_rows(as_points("X", X), sample_weight)
        shape = (self.frequencies, X.shape[1])
        W = draw_frequencies(kernel, shape, check_random_state(self.random_state))
        return FourierMap(_amplitude(kernel, X.shape[1]), W)


def _weighted_rows(X: Floats, sample_weight: Any) -> Floats:
    """The rows of X with a positive weight; at least one."""
    if sample_weight is not None:
        w = check_finite("sample_weight", as_floats("sample_weight", sample_weight))
        if w.shape != (len(X),) or np.any(w < 0.0):
            raise ValueError(
                f"sample_weight must be one number of at least 0 for each of {len(X)} rows, got "
                f"shape {w.shape} and least value {w.min(initial=np.inf):.6g}."
            )
        X = X[w > 0.0]
    if len(X) == 0:
        raise ValueError("X must have a row with a positive weight, got none.")
    return X


def _inverse_root(K: Floats) -> Floats:
    """R (m, rank) with K R Rᵀ K = K: R Rᵀ is the pseudo-inverse of K."""
    if not np.isfinite(K).all():
        raise OverflowError("kernel values of the landmarks overflow: rescale the points.")
    with one_thread_if_small(len(K)):
        s, P = eigh(K)
    kept = s > SMALLEST_EIGENVALUE * s[-1]
    return P[:, kept] / np.sqrt(s[kept])


@singledispatch
def draw_frequencies(kernel: Kernel, shape: tuple[int, int], rng: Any) -> Floats:
    """Independent ω, shape (D, d), with k(x, z) = k(0, 0)·E[cos ω·(x - z)]."""
    raise ValueError(
        f"kernel must be continuous and stationary to have random Fourier features, got {kernel}: "
        f"use Nystroem."
    )


@draw_frequencies.register
def _(kernel: Sum, shape: tuple[int, int], rng: Any) -> Floats:
    # a mixture; every row has its own coin, so that rows stay independent of one another and of
    # their place when a product adds the frequencies of two sums
    left, right = (draw_frequencies(part, shape, rng) for part in (kernel.left, kernel.right))
    a, b = (_amplitude(part, shape[1]) for part in (kernel.left, kernel.right))
    return np.where(rng.uniform(size=(shape[0], 1)) < a / (a + b), left, right)


@draw_frequencies.register
def _(kernel: Product, shape: tuple[int, int], rng: Any) -> Floats:
    return draw_frequencies(kernel.left, shape, rng) + draw_frequencies(kernel.right, shape, rng)


@draw_frequencies.register
def _(kernel: Scaled, shape: tuple[int, int], rng: Any) -> Floats:
    return draw_frequencies(kernel.kernel, shape, rng)


@draw_frequencies.register
def _(kernel: Constant, shape: tuple[int, int], rng: Any) -> Floats:
    return np.zeros(shape) * _at_columns(kernel, shape[1], 1.0)


@draw_frequencies.register
def _(kernel: Gaussian, shape: tuple[int, int], rng: Any) -> Floats:
    return rng.normal(size=shape) * _rates(kernel, shape[1])


@draw_frequencies.register
def _(kernel: Laplace, shape: tuple[int, int], rng: Any) -> Floats:
    return rng.standard_cauchy(size=shape) * _rates(kernel, shape[1])


@draw_frequencies.register
def _(kernel: Matern32 | Matern52, shape: tuple[int, int], rng: Any) -> Floats:
    # Student's t with 2ν degrees of freedom: a normal vector over √(χ²/2ν)
    freedom = 3.0 if isinstance(kernel, Matern32) else 5.0
    chi2 = rng.chisquare(freedom, size=(shape[0], 1))
    return rng.normal(size=shape) / np.sqrt(chi2 / freedom) * _rates(kernel, shape[1])


@draw_frequencies.register
def _(kernel: RationalQuadratic, shape: tuple[int, int], rng: Any) -> Floats:
    # (1 + r²/2a)^-a = E exp(-τr²/2), τ ~ Gamma(a) with mean 1
    a = kernel.mixture
    tau = rng.gamma(a, 1.0 / a, size=(shape[0], 1))
    return np.sqrt(tau) * rng.normal(size=shape) * _rates(kernel, shape[1])


@draw_frequencies.register
def _(kernel: Periodic, shape: tuple[int, int], rng: Any) -> Floats:
    # exp(-a(1 - cos θ)) = Σ_n e^-a I_n(a) cos nθ, a = 1/scale², and e^-a I_n(a) is the law of
    # the difference of two Poisson numbers with mean a/2
    a = 1.0 / kernel.scale**2
    harmonics = rng.poisson(0.5 * a, size=shape) - rng.poisson(0.5 * a, size=shape)
    return harmonics * _at_columns(kernel, shape[1], 2.0 * np.pi / kernel.period)


def _rates(kernel: Stationary, dimension: int) -> Floats:
    """1/scale, axis by axis."""
    return _at_columns(kernel, dimension, np.reciprocal(kernel.scales(len(kernel.axes(dimension)))))


def _at_columns(kernel: Leaf, dimension: int, numbers: Floats | float) -> Floats:
    """The numbers in the columns that the kernel sees, 0 elsewhere, shape (dimension,)."""
    row = np.zeros(dimension)
    row[list(kernel.axes(dimension))] = numbers
    return row


def _amplitude(kernel: Kernel, dimension: int) -> float:
    """k(0, 0)."""
    return float(kernel.diag(np.zeros((1, dimension)))[0])


FEATURES: tuple[type[Value], ...] = (Nystroem, RandomFourier, NystroemMap, FourierMap)
"""Every feature map and every choice of one."""
