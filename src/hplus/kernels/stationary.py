"""Kernels of a distance: Gaussian, Laplace, Matérn, rational quadratic, periodic."""

from __future__ import annotations

from abc import abstractmethod
from typing import final

import numpy as np
from scipy.spatial.distance import cdist

from hplus._checks import Floats, check_positive, check_scales
from hplus._values import value
from hplus.kernels.base import Kernel
from hplus.kernels.distances import shared_origin, squared_distances
from hplus.kernels.leaf import Correlation

MAX_EXPONENT = 750.0
"""exp(-750) is 0 in double precision, so capping an exponent here changes no value."""


@value
class Stationary(Correlation):
    """k = κ(distance between x/scale and z/scale), κ(0) = 1, κ >= 0; one scale, or one per axis."""

    scale: float | tuple[float, ...]

    @abstractmethod
    def profile(self, X: Floats, Z: Floats) -> Floats:
        """κ on points already divided by the scale."""

    def check(self) -> None:
        self._set(scale=check_scales("scale", self.scale))

    @final
    def evaluate(self, X: Floats, Z: Floats) -> Floats:
        origin = shared_origin(X, Z)
        A = self.shrink(X - origin)
        return self.profile(A, A if Z is X else self.shrink(Z - origin))

    def scales(self, count: int) -> tuple[float, ...]:
        """The scale of each of the `count` columns that the kernel sees."""
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,) * count
        if len(scales) != count:
            raise ValueError(
                f"scale must be one number or one for each column, got {len(scales)} scales for "
                f"{count} columns in {self}."
            )
        return scales

    def shrink(self, X: Floats) -> Floats:
        """X / scale on each axis."""
        scales = self.scales(X.shape[1])
        with np.errstate(over="ignore"):
            A = X / scales
        if not np.isfinite(A).all():
            raise OverflowError(
                f"points divided by the scale of {self} overflow: rescale the points."
            )
        return A

    def narrowed(self, factor: float) -> tuple[float, ...] | float:
        """The scale divided by `factor`."""
        if isinstance(self.scale, tuple):
            return tuple(scale / factor for scale in self.scale)
        return self.scale / factor


@final
@value
class Gaussian(Stationary):
    """k = exp(-r²/2), r = |x - z|/scale: infinitely smooth."""

    def profile(self, X: Floats, Z: Floats) -> Floats:
        D = squared_distances(X, Z)
        D *= -0.5
        return np.exp(D, out=D)

    def squared(self) -> Kernel:
        return self.replace(scale=self.narrowed(np.sqrt(2.0)))


@final
@value
class Laplace(Stationary):
    """k = exp(-Σ_j |x_j - z_j|/scale_j): not differentiable, a product over the columns."""

    def profile(self, X: Floats, Z: Floats) -> Floats:
        R = cdist(X, Z, "cityblock")
        np.negative(R, out=R)
        return np.exp(R, out=R)

    def squared(self) -> Kernel:
        return self.replace(scale=self.narrowed(2.0))


@final
@value
class Matern32(Stationary):
    """k = (1 + t) exp(-t), t = √3 |x - z|/scale: once differentiable."""

    def profile(self, X: Floats, Z: Floats) -> Floats:
        t = _decay(X, Z, 3.0)
        polynomial = 1.0 + t
        return _times_exp(polynomial, t)


@final
@value
class Matern52(Stationary):
    """k = (1 + t + t²/3) exp(-t), t = √5 |x - z|/scale: twice differentiable."""

    def profile(self, X: Floats, Z: Floats) -> Floats:
        t = _decay(X, Z, 5.0)
        polynomial = t / 3.0
        polynomial += 1.0
        polynomial *= t
        polynomial += 1.0
        return _times_exp(polynomial, t)


@final
@value
class RationalQuadratic(Stationary):
    """k = (1 + r²/(2·mixture))^-mixture, r = |x - z|/scale: a mixture of Gaussian scales."""

    mixture: float = 1.0

    def check(self) -> None:
        super().check()
        self._set(mixture=check_positive("mixture", self.mixture))

    def profile(self, X: Floats, Z: Floats) -> Floats:
        D = squared_distances(X, Z)
        D /= 2.0 * self.mixture
        np.log1p(D, out=D)
        D *= -self.mixture
        return np.exp(D, out=D)

    def squared(self) -> Kernel:
        return self.replace(scale=self.narrowed(np.sqrt(2.0)), mixture=2.0 * self.mixture)


@final
@value
class Periodic(Correlation):
    """k = exp(-2 Σ_j sin²(π (x_j - z_j)/period)/scale²): repeats after `period` in every column."""

    period: float
    scale: float = 1.0

    def check(self) -> None:
        self._set(
            period=check_positive("period", self.period),
            scale=check_positive("scale", self.scale),
        )

    def evaluate(self, X: Floats, Z: Floats) -> Floats:
        A = self.circle(X)
        D = squared_distances(A, A if Z is X else self.circle(Z))
        D *= -0.5
        return np.exp(D, out=D)

    def circle(self, X: Floats) -> Floats:
        """(cos, sin)(2πx/period)/scale: half the squared distance there is 2 sin²(·)/scale²."""
        angle = np.remainder(X, self.period) * (2.0 * np.pi / self.period)
        return np.hstack([np.cos(angle), np.sin(angle)]) / self.scale

    def squared(self) -> Kernel:
        return self.replace(scale=self.scale / np.sqrt(2.0))


def _decay(X: Floats, Z: Floats, factor: float) -> Floats:
    """t = √(factor · |x - z|²), capped where exp(-t) is 0, so that t·exp(-t) is never inf · 0."""
    t = squared_distances(X, Z)
    t *= factor
    np.sqrt(t, out=t)
    return np.minimum(t, MAX_EXPONENT, out=t)


def _times_exp(polynomial: Floats, t: Floats) -> Floats:
    """polynomial · exp(-t), written over both."""
    np.negative(t, out=t)
    polynomial *= np.exp(t, out=t)
    return polynomial
