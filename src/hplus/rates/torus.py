"""Stationary covariances on a grid: circulant matrices, multiplied and sampled by FFT.

The grid is one corner of a torus that is large enough for opposite ends of the grid to be nearly
uncorrelated. On the torus every stationary kernel is diagonal in the Fourier basis,
K = Fᴴ diag(spectrum) F, and a sum of kernels has the sum of their spectra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType

import numpy as np
import scipy.fft

from hplus._checks import Floats, Reals
from hplus.grids import TensorGrid
from hplus.kernels import Kernel
from hplus.windows.geometry import product_points

Index = tuple[slice | EllipsisType | int, ...]

PADDING = {1: 2.1, 2: 1.5, 3: 1.4}
"""Cells of the torus per cell of the grid along an axis, by dimension."""

MAX_NEGATIVE_VARIANCE = 1e-3
"""Largest share of a kernel's variance that negative eigenvalues on the torus may have."""


@dataclass(frozen=True)
class Torus:
    """The torus around a grid: `shape` nodes on each axis, `sides` their extent, some axes closed.

    On a closed axis the last node is the first one again, like midnight on a clock.
    """

    shape: tuple[int, ...]
    sides: tuple[float, ...]
    closed: tuple[bool, ...]

    @classmethod
    def of(cls, grid: TensorGrid, closed: tuple[int, ...]) -> Torus:
        """The torus around a grid with some closed axes."""
        sides = tuple(np.subtract(grid.high, grid.low).tolist())
        return cls(grid.shape, sides, tuple(j in closed for j in range(grid.dimension)))

    @cached_property
    def padded(self) -> tuple[int, ...]:
        """Nodes of the torus on each axis."""
        padding = PADDING[len(self.shape)]
        return tuple(
            n - 1 if closed else scipy.fft.next_fast_len(int(np.ceil(padding * (n - 1))), real=True)
            for n, closed in zip(self.shape, self.closed, strict=True)
        )

    @property
    def spacing(self) -> Floats:
        """Distance of neighbouring nodes on each axis, shape (d,)."""
        return np.array(self.sides) / (np.array(self.shape) - 1)

    @cached_property
    def frequencies(self) -> tuple[Floats, ...]:
        """ω on each axis, shaped to broadcast; the last axis holds the non-negative ones only."""
        d = len(self.shape)
        axes = []
        for j, (n, h) in enumerate(zip(self.padded, self.spacing, strict=True)):
            omega = (scipy.fft.rfftfreq if j == d - 1 else scipy.fft.fftfreq)(n, h)
            axes.append(2.0 * np.pi * omega.reshape([-1 if i == j else 1 for i in range(d)]))
        return tuple(axes)

    @cached_property
    def multiplicity(self) -> Floats:
        """How many frequencies each entry of the halved last axis stands for."""
        n = self.padded[-1]
        counts = np.full(n // 2 + 1, 2.0)
        counts[0] = 1.0
        if n % 2 == 0:
            counts[-1] = 1.0
        return counts

    def apply(self, spectrum: Reals, x: Reals) -> Reals:
        """K x on the grid, shapes (..., *shape); in the precision of x."""
        f = self._coefficients(self._folded(x))
        f *= spectrum
        return self._unfolded(self._values(f))

    def draw(self, spectrum: Reals, k: int, rng: np.random.RandomState) -> Reals:
        """k independent draws of N(0, K) on the grid, shape (k, *shape)."""
        axes = tuple(range(1, len(self.shape) + 1))
        white = rng.standard_normal((k, *self.padded)).astype(spectrum.dtype)
        f = scipy.fft.rfftn(white, axes=axes)
        f *= np.sqrt(spectrum)
        return self._unfolded(self._values(f))

    def _coefficients(self, x: Reals) -> Reals:
        """The Fourier coefficients on the torus of values on the grid, 0 elsewhere.

        One axis at a time, the last one first, so that rows of zeros are skipped.
        """
        f = scipy.fft.rfft(x, self.padded[-1])
        for axis in range(2, len(self.shape) + 1):
            f = scipy.fft.fft(f, self.padded[-axis], axis=-axis, overwrite_x=True)
        return f

    def _values(self, f: Reals) -> Reals:
        """Values on the grid, the first axis first, so that rows outside it are dropped early."""
        for axis in range(len(self.shape), 1, -1):
            f = scipy.fft.ifft(f, axis=-axis, overwrite_x=True)
            inside: Index = (..., slice(self.shape[-axis]), *(slice(None),) * (axis - 1))
            f = f[inside]
        return scipy.fft.irfft(f, self.padded[-1])

    def _folded(self, x: Reals) -> Reals:
        """x with the last node of every closed axis added to the first."""
        for axis, closed in enumerate(self.closed, start=-len(self.shape)):
            if closed:
                x = np.moveaxis(x, axis, 0)
                x = np.concatenate([x[:1] + x[-1:], x[1:-1]])
                x = np.moveaxis(x, 0, axis)
        return x

    def _unfolded(self, y: Reals) -> Reals:
        """The grid's corner of the torus; on a closed axis the first node is repeated."""
        corner: Index = (..., *(slice(n) for n in self.shape))
        y = y[corner]
        for axis, closed in enumerate(self.closed, start=-len(self.shape)):
            if closed:
                y = np.concatenate([y, y.take([0], axis)], axis)
        return y


@dataclass(frozen=True)
class Circulant:
    """The covariance Fᴴ diag(spectrum) F on a grid; several spectra (k, ...) for k problems."""

    torus: Torus
    spectrum: Reals

    def apply(self, x: Reals) -> Reals:
        """K x, shape (k, *grid)."""
        return self.torus.apply(self.spectrum, x)

    def draw(self, k: int, rng: np.random.RandomState) -> Reals:
        """k draws of N(0, K), shape (k, *grid)."""
        return self.torus.draw(self.spectrum, k, rng)

    def single(self) -> Circulant:
        """The same covariance in single precision, twice as fast."""
        return Circulant(self.torus, self.spectrum.astype(np.float32))

    def centered(self) -> Circulant:
        """The covariance without its constant part, for use where the constant is profiled out."""
        spectrum = self.spectrum.copy()
        constant: Index = (..., *(0,) * len(self.torus.shape))
        spectrum[constant] = 0.0
        return Circulant(self.torus, spectrum)


@dataclass(frozen=True)
class Matrix:
    """A covariance K on few nodes, for kernels that are not stationary."""

    K: Reals

    def apply(self, x: Reals) -> Reals:
        """K x, shape (k, *grid)."""
        return (x.reshape(len(x), -1) @ self.K).reshape(x.shape)

    def draw(self, k: int, rng: np.random.RandomState) -> Reals:
        """k draws of N(0, K), shape (k, G)."""
        return rng.standard_normal((k, len(self.K))).astype(self.K.dtype) @ self.root.T

    def single(self) -> Matrix:
        """The same covariance in single precision."""
        return Matrix(self.K.astype(np.float32))

    def centered(self) -> Matrix:
        """The covariance without its constant part, for use where the constant is profiled out."""
        rows = self.K - self.K.mean(axis=0)
        return Matrix(rows - rows.mean(axis=1, keepdims=True))

    @cached_property
    def root(self) -> Reals:
        """L with LLᵀ = K, shape (G, G)."""
        values, vectors = np.linalg.eigh(self.K)
        return vectors * np.sqrt(np.maximum(values, 0.0))


Covariance = Circulant | Matrix


def stacked(covariances: Sequence[Covariance]) -> Circulant:
    """Circulant covariances, each for one problem, as one for a batch of problems."""
    parts = [part for part in covariances if isinstance(part, Circulant)]
    return Circulant(parts[0].torus, np.stack([part.spectrum for part in parts]))


def matern_spectrum(torus: Torus, smoothness: float, scales: Floats, *, product: bool) -> Floats:
    """A Matérn kernel of variance 1, of the distance or as a product over axes [math, Eq. 4.7].

    S(ω) ∝ (2ν + Σ_j h_j²ω_j²)^-(ν + d/2), or Π_j (2ν + h_j²ω_j²)^-(ν + 1/2).
    """
    parts = [(h * w) ** 2 for h, w in zip(scales, torus.frequencies, strict=True)]
    if product:
        spectrum = np.ones(())
        for part in parts:
            spectrum = spectrum * (2.0 * smoothness + part) ** -(smoothness + 0.5)
    else:
        spectrum = (2.0 * smoothness + sum(parts, np.zeros(()))) ** -(smoothness + len(parts) / 2)
    # variance 1: the sum over all frequencies is the number of nodes
    return spectrum * (np.prod(torus.padded) / np.sum(spectrum * torus.multiplicity))


def kernel_spectrum(torus: Torus, kernel: Kernel) -> Floats | None:
    """The eigenvalues of a stationary kernel on the torus; None if it does not fit on it.

    k is taken the shorter way round; small negative eigenvalues that this leaves are set to 0.
    """
    axes = [
        h * np.minimum(np.arange(n), n - np.arange(n))
        for n, h in zip(torus.padded, torus.spacing, strict=True)
    ]
    values = kernel(product_points(axes), np.zeros((1, len(axes)))).reshape(torus.padded)
    spectrum = scipy.fft.rfftn(values).real
    lost = -np.sum(np.minimum(spectrum, 0.0) * torus.multiplicity) / np.prod(torus.padded)
    if lost > MAX_NEGATIVE_VARIANCE * values.flat[0]:
        return None
    return np.maximum(spectrum, 0.0)
