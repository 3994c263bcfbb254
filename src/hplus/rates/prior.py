"""Priors of a log rate: Gaussian fields, given as sums of Matérn fields or by a kernel."""

from __future__ import annotations

from typing import final

import numpy as np

from hplus._checks import Floats, shown
from hplus._values import Value, value
from hplus.grids import TensorGrid
from hplus.kernels import Kernel
from hplus.rates.torus import (
    Circulant,
    Covariance,
    Matrix,
    Torus,
    kernel_spectrum,
    matern_spectrum,
)

MOST_NODES = {1: 1025, 2: 2500, 3: 2500}
"""Nodes of a grid on which a kernel that is not stationary may be used, by dimension."""


@final
@value
class Field(Value):
    """A Matérn field: how much a log rate varies (`deviation`), and over which `scales`.

    `product` says that its covariance is a product over the axes, which suits street grids and
    courts, and not a function of the distance.
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
class Texture(Value):
    """A sum of independent fields, from the coarsest to the finest."""

    fields: tuple[Field, ...]

    def prior(self, grid: TensorGrid) -> Circulant:
        """Its covariance on the nodes of a grid."""
        torus = Torus.of(grid, grid.closed)
        spectrum = np.sum([field.spectrum(torus) for field in self.fields], axis=0)
        return Circulant(torus, spectrum)

    @property
    def kind(self) -> tuple[float, bool]:
        """Smoothness of the finest field, and is it a product over axes?"""
        return self.fields[-1].smoothness, self.fields[-1].product

    @property
    def dimension(self) -> int:
        """How many axes it is for."""
        return len(self.fields[-1].scales)


@final
@value
class Given(Value):
    """A user's kernel divided by a penalty."""

    kernel: Kernel
    penalty: float

    def prior(self, grid: TensorGrid) -> Covariance:
        """Its covariance on the nodes of a grid, by FFT if that can be, else as a matrix."""
        circulant = self._circulant(grid)
        return circulant or Matrix(self.kernel(grid.nodes()) / self.penalty)

    @property
    def kind(self) -> tuple[float, bool]:
        """Of a user's kernel nothing is said."""
        return np.nan, False

    def is_matrix(self, grid: TensorGrid) -> bool:
        """Must the covariance be a matrix, so that the grid must have few nodes?"""
        return self._circulant(grid) is None

    def _circulant(self, grid: TensorGrid) -> Circulant | None:
        returning = self._returning(grid)
        torus = Torus.of(grid, returning + grid.closed)
        spectrum = kernel_spectrum(torus, self.kernel) if self._stationary(grid) else None
        if spectrum is None and not set(grid.closed) <= set(returning):
            raise ValueError(
                f"kernel must be periodic on the axis of a Cycle, or stationary with a scale well "
                f"below its length, got {shown(self.kernel)}: use Periodic there, or an Interval."
            )
        return None if spectrum is None else Circulant(torus, spectrum / self.penalty)

    def _returning(self, grid: TensorGrid) -> tuple[int, ...]:
        """The axes at whose far end the kernel is itself again."""
        start, d = np.array([grid.low]), grid.dimension
        ends = start + np.diag(_sides(grid))
        peak = self.kernel.diag(start)[0]
        back = self.kernel(ends, start)[:, 0] >= peak * (1.0 - 1e-9)
        middle = self.kernel(start + 0.37 * np.diag(_sides(grid)), start)[:, 0] < peak * (1 - 1e-6)
        return tuple(j for j in range(d) if back[j] and middle[j])

    def _stationary(self, grid: TensorGrid) -> bool:
        """Does k(x, z) depend on z - x alone, and not on its signs? Tried on some points."""
        rng = np.random.RandomState(0)
        low, sides = np.array(grid.low), np.array(_sides(grid))
        X, Z = (low + sides * rng.random_sample((40, grid.dimension)) for _ in range(2))
        signs = rng.choice([-1.0, 1.0], X.shape)
        direct = np.diagonal(self.kernel(X, Z))
        moved = np.diagonal(self.kernel(np.zeros_like(X), signs * (Z - X)))
        return bool(np.allclose(direct, moved, rtol=1e-9, atol=1e-12 * np.abs(direct).max()))


def _sides(grid: TensorGrid) -> tuple[float, ...]:
    return tuple(np.subtract(grid.high, grid.low).tolist())
