"""Priors of a log rate: a sum of Matérn fields, or a kernel divided by a penalty."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, TypeGuard, TypeVar, final

import numpy as np

from hplus._checks import Floats, Reals, shown
from hplus._values import Value, value
from hplus.grids import TensorGrid
from hplus.kernels import Kernel
from hplus.rates.torus import Circulant, Covariance, Matrix, Torus, kernel_spectrum, matern_spectrum

T = TypeVar("T")


@final
@value
class Field(Value):
    """A Matérn field: how much a log rate varies (`deviation`), and over which `scales`.

    With `product` its covariance is a product over the axes, which suits street grids and sports
    courts, instead of a function of the distance.
    """

    smoothness: float
    scales: tuple[float, ...]
    deviation: float
    product: bool = False

    def spectrum(self, torus: Torus) -> Floats:
        """The eigenvalues of its covariance on a torus."""
        unit = matern_spectrum(torus, self.smoothness, np.array(self.scales), product=self.product)
        return self.deviation**2 * unit


@final
@value
class SumOfFields(Value):
    """A sum of independent fields, from the coarsest to the finest."""

    fields: tuple[Field, ...]

    def covariance(self, grid: TensorGrid) -> Circulant:
        """Its covariance on the nodes of a grid."""
        torus = Torus.of(grid, grid.closed)
        spectrum = np.sum([field.spectrum(torus) for field in self.fields], axis=0)
        return Circulant(torus, spectrum)

    def stretched(self, factors: Floats) -> SumOfFields:
        """The same prior with the scales of each axis multiplied by a factor, shape (d,)."""
        return SumOfFields(
            tuple(
                field.replace(scales=tuple((np.array(field.scales) * factors).tolist()))
                for field in self.fields
            )
        )

    @property
    def kind(self) -> Hashable:
        """The smoothness of the finest field, and whether it is a product over axes."""
        return self.fields[-1].smoothness, self.fields[-1].product

    @property
    def dimension(self) -> int:
        """The number of axes of its fields."""
        return len(self.fields[-1].scales)


@final
@value
class KernelPrior(Value):
    """A user's kernel divided by a penalty."""

    kernel: Kernel
    penalty: float

    def covariance(self, grid: TensorGrid) -> Covariance:
        """Its covariance on the nodes of a grid, by FFT if possible, otherwise as a matrix."""
        found = circulant(self.kernel, grid)
        if found is None:
            return Matrix(self.kernel(grid.nodes()) / self.penalty)
        return Circulant(found.torus, found.spectrum / self.penalty)

    @property
    def kind(self) -> Hashable:
        """The kernel: with another penalty it is a prior of the same kind."""
        return self.kernel


Prior = SumOfFields | KernelPrior

Mixture = tuple[tuple[float, Prior], ...]
"""Priors with their weights."""


class LogRates(NamedTuple):
    """Log rates z (k, *grid) found under a prior, and charges a with z = Ka + b where known."""

    prior: Prior
    z: Reals
    a: Reals | None = None


Weighted = tuple[float, LogRates]
"""A prior's weight in an average, and the log rates under it."""


def leading(weighted: Iterable[tuple[float, T]]) -> T:
    """The part of the largest weight or score."""
    return max(weighted, key=lambda part: part[0])[1]


def is_mixture(kernel: Any) -> TypeGuard[Mixture]:
    """Is it the `mixture_` of a fit: priors, each with a weight above 0?"""
    return isinstance(kernel, tuple) and len(kernel) > 0 and all(map(_is_weighted, kernel))


def _is_weighted(part: Any) -> bool:
    return (
        isinstance(part, tuple)
        and len(part) == 2
        and isinstance(part[0], float)
        and part[0] > 0.0
        and isinstance(part[1], SumOfFields | KernelPrior)
    )


def circulant(kernel: Kernel, grid: TensorGrid) -> Circulant | None:
    """A kernel's covariance on a grid by FFT; None if it needs a matrix."""
    periodic = _periodic_axes(kernel, grid)
    torus = Torus.of(grid, periodic + grid.closed)
    spectrum = kernel_spectrum(torus, kernel) if _is_stationary(kernel, grid) else None
    if spectrum is None and not set(grid.closed) <= set(periodic):
        raise ValueError(
            f"kernel must be periodic on the axis of a Cycle, or stationary with a scale well "
            f"below its length, got {shown(kernel)}: use Periodic there, or an Interval."
        )
    return None if spectrum is None else Circulant(torus, spectrum)


def _periodic_axes(kernel: Kernel, grid: TensorGrid) -> tuple[int, ...]:
    """The axes on which the kernel repeats at the far end of the grid."""
    start, sides = np.array([grid.low]), np.diag(_sides(grid))
    peak = kernel.diag(start)[0]
    back = kernel(start + sides, start)[:, 0] >= peak * (1.0 - 1e-9)
    middle = kernel(start + 0.37 * sides, start)[:, 0] < peak * (1 - 1e-6)
    return tuple(j for j in range(grid.dimension) if back[j] and middle[j])


def _is_stationary(kernel: Kernel, grid: TensorGrid) -> bool:
    """Does k(x, z) depend on |z - x| alone, axis by axis? Tested at random points."""
    rng = np.random.RandomState(0)
    low, sides = np.array(grid.low), _sides(grid)
    X, Z = (low + sides * rng.random_sample((40, grid.dimension)) for _ in range(2))
    signs = rng.choice([-1.0, 1.0], X.shape)
    direct = np.diagonal(kernel(X, Z))
    moved = np.diagonal(kernel(np.zeros_like(X), signs * (Z - X)))
    return bool(np.allclose(direct, moved, rtol=1e-9, atol=1e-12 * np.abs(direct).max()))


def _sides(grid: TensorGrid) -> Floats:
    return np.subtract(grid.high, grid.low)
