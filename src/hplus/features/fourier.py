"""Random Fourier features: frequencies drawn from the spectral measure of a stationary kernel."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import (
    Floats,
    Seed,
    as_points,
    check_count,
    check_positive,
    check_random_state,
    frozen_array,
)
from hplus._values import Value, value
from hplus.features.base import FeatureMap, weighted_rows
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
from hplus.kernels.stationary import Stationary


@final
@value
class FourierMap(FeatureMap):
    """φ(x) = √(amplitude/D)·(cos ω_1·x, …, cos ω_D·x, sin ω_1·x, …, sin ω_D·x)."""

    amplitude: float
    frequencies: Floats

    def __post_init__(self) -> None:
        W = frozen_array("frequencies", self.frequencies)
        if W.ndim != 2 or len(W) == 0:
            raise ValueError(
                f"frequencies must be a matrix with one frequency per row, got shape {W.shape}."
            )
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
class RandomFourier(Value):
    """Draw frequencies from the spectral measure of a stationary kernel: k = E[φ(x)·φ(z)].

    The error of an entry of ΦΦᵀ is about k(0)/√(2·frequencies), whatever the dimension.

    Parameters
    ----------
    frequencies : int
        Number of frequencies; each gives two features.
    random_state : int, RandomState or None, default=None
    """

    frequencies: int
    random_state: Seed = None

    def __post_init__(self) -> None:
        check_random_state(self.random_state)
        self._set(frequencies=check_count("frequencies", self.frequencies))

    def __call__(
        self, kernel: Kernel, X: Any, sample_weight: ArrayLike | None = None
    ) -> FourierMap:
        """The feature map for points with as many columns as X; the values of X do not matter."""
        X = weighted_rows(as_points("X", X), sample_weight)
        shape = (self.frequencies, X.shape[1])
        W = draw_frequencies(kernel, shape, check_random_state(self.random_state))
        return FourierMap(_amplitude(kernel, X.shape[1]), W)


def draw_frequencies(kernel: Kernel, shape: tuple[int, int], rng: np.random.RandomState) -> Floats:
    """Independent ω, shape (D, d), with k(x, z) = k(0, 0)·E[cos ω·(x - z)]."""
    match kernel:
        case Sum(left, right):
            # a mixture, chosen row by row, so that rows stay independent of each other and of
            # their position when a product adds the frequencies of two sums
            W, V = (draw_frequencies(part, shape, rng) for part in (left, right))
            a, b = (_amplitude(part, shape[1]) for part in (left, right))
            return np.where(rng.uniform(size=(shape[0], 1)) < a / (a + b), W, V)
        case Product(left, right):
            return draw_frequencies(left, shape, rng) + draw_frequencies(right, shape, rng)
        case Scaled(_, inner):
            return draw_frequencies(inner, shape, rng)
        case Constant():
            return kernel.scatter(0.0, shape)
        case Periodic():
            # exp(-a(1 - cos θ)) = Σ_n e^-a I_n(a) cos nθ, a = 1/scale², and e^-a I_n(a) is the law
            # of the difference of two Poisson variables with mean a/2
            mean = 0.5 * (1.0 / kernel.scale**2)
            harmonics = rng.poisson(mean, size=shape) - rng.poisson(mean, size=shape)
            return harmonics * kernel.scatter(2.0 * np.pi / kernel.period, (shape[1],))
        case Gaussian() | Laplace() | Matern32() | Matern52() | RationalQuadratic():
            return _unscaled(kernel, shape, rng) * _rates(kernel, shape[1])
    raise ValueError(
        f"kernel must be continuous and stationary to have random Fourier features, got {kernel}: "
        f"use Nystroem."
    )


def _unscaled(kernel: Stationary, shape: tuple[int, int], rng: np.random.RandomState) -> Floats:
    """The frequencies of a kernel with scale 1."""
    match kernel:
        case Laplace():
            return rng.standard_cauchy(size=shape)
        case Matern32() | Matern52():
            # Student's t with 2ν degrees of freedom: a normal vector over √(χ²/2ν)
            freedom = 3.0 if isinstance(kernel, Matern32) else 5.0
            chi2 = rng.chisquare(freedom, size=(shape[0], 1))
            return rng.normal(size=shape) / np.sqrt(chi2 / freedom)
        case RationalQuadratic(mixture=a):
            # (1 + r²/2a)^-a = E exp(-τr²/2), τ ~ Gamma(a) with mean 1
            tau = rng.gamma(a, 1.0 / a, size=(shape[0], 1))
            return np.sqrt(tau) * rng.normal(size=shape)
    return rng.normal(size=shape)


def _rates(kernel: Stationary, dimension: int) -> Floats:
    """1/scale on each axis."""
    return kernel.scatter(np.reciprocal(kernel.scales(len(kernel.axes(dimension)))), (dimension,))


def _amplitude(kernel: Kernel, dimension: int) -> float:
    """k(0, 0)."""
    return float(kernel.diag(np.zeros((1, dimension)))[0])
