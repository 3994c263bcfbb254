"""Stationary priors on a grid: circulant matrices, multiplied and sampled by FFT.

The grid is the corner of a torus large enough that its ends hardly know of each other. There a
stationary kernel is diagonal in the Fourier basis, K = Fᴴ diag(spectrum) F, for any kernel and in
any dimension, and sums of kernels are sums of spectra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.fft

from hplus._checks import Floats
from hplus.grids import TensorGrid
from hplus.kernels import Kernel

PADDING = {1: 2.0, 2: 1.5, 3: 1.4}
"""Nodes of the torus for one of the grid, by dimension."""

NEGATIVE = 1e-3
"""Share of a kernel's variance in negative eigenvalues on the torus beyond which it is refused."""


@dataclass(frozen=True)
class Torus:
    """The torus around a grid: `shape` nodes on each axis, `sides` their extent, some axes closed.

    On a closed axis the last node is the first one again, as midnight is.
    """

    shape: tuple[int, ...]
    sides: tuple[float, ...]
    closed: tuple[bool, ...]

    @classmethod
    def of(cls, grid: TensorGrid, closed: tuple[int, ...]) -> Torus:
        """The torus around a grid some of whose axes are closed."""
        sides = tuple(np.subtract(grid.high, grid.low).tolist())
        return cls(grid.shape, sides, tuple(j in closed for j in range(grid.dimension)))

    @cached_property
    def padded(self) -> tuple[int, ...]:
        """Nodes of the torus on each axis."""
        padding = PADDING[len(self.shape)]
        return tuple(
            n - 1 if closed else scipy.fft.next_fast_len(int(np.ceil(padding * n)), real=True)
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
        """How often each entry of the halved last axis stands in the whole one."""
        n = self.padded[-1]
        counts = np.full(n // 2 + 1, 2.0)
        counts[0] = 1.0
        if n % 2 == 0:
            counts[-1] = 1.0
        return counts

    def unit(self, spectrum: Floats) -> Floats:
        """A spectrum scaled to variance 1: Σ over all frequencies = number of nodes."""
        return spectrum * (np.prod(self.padded) / np.sum(spectrum * self.multiplicity))

    def apply(self, spectrum: Any, x: Any) -> Any:
        """K x on the grid, shapes (..., *shape); in the precision of x."""
        f = self._coefficients(self._folded(x))
        f *= spectrum
        return self._unfolded(self._values(f))

    def draw(self, spectrum: Floats, k: int, rng: np.random.RandomState) -> Floats:
        """k independent draws of N(0, K) on the grid, shape (k, *shape)."""
        axes = tuple(range(1, len(self.shape) + 1))
        white = rng.standard_normal((k, *self.padded)).astype(spectrum.dtype)
        f = scipy.fft.rfftn(white, axes=axes)
        f *= np.sqrt(spectrum)
        return self._unfolded(self._values(f))

    def _coefficients(self, x: Any) -> Any:
        """The Fourier coefficients on the torus of values on the grid, 0 elsewhere.

        One axis after the other, the last one first: rows that hold zeros alone are left out.
        """
        f = scipy.fft.rfft(x, self.padded[-1])
        for axis in range(2, len(self.shape) + 1):
            f = scipy.fft.fft(f, self.padded[-axis], axis=-axis, overwrite_x=True)
        return f

    def _values(self, f: Any) -> Any:
        """Values on the grid, the first axis first: rows beyond it are left out at once."""
        for axis in range(len(self.shape), 1, -1):
            f = scipy.fft.ifft(f, axis=-axis, overwrite_x=True)
            f = f[(..., slice(self.shape[-axis]), *(slice(None),) * (axis - 1))]
        return scipy.fft.irfft(f, self.padded[-1])

    def _folded(self, x: Any) -> Any:
        """x with the last node of every closed axis added to the first."""
        for axis, closed in enumerate(self.closed, start=-len(self.shape)):
            if closed:
                x = np.moveaxis(x, axis, 0)
                x = np.concatenate([x[:1] + x[-1:], x[1:-1]])
                x = np.moveaxis(x, 0, axis)
        return x

    def _unfolded(self, y: Any) -> Any:
        """The grid's corner of the torus; on a closed axis the first node comes again."""
        y = y[(..., *(slice(n) for n in self.shape))]
        for axis, closed in enumerate(self.closed, start=-len(self.shape)):
            if closed:
                y = np.concatenate([y, y.take([0], axis)], axis)
        return y


@dataclass(frozen=True)
class Circulant:
    """The covariance Fᴴ diag(spectrum) F on a grid; several spectra (k, ...) for k problems."""

    torus: Torus
    spectrum: Any

    def apply(self, x: Any) -> Any:
        """K x, shape (k, *grid)."""
        return self.torus.apply(self.spectrum, x)

    def draw(self, k: int, rng: np.random.RandomState) -> Any:
        """k draws of N(0, K), shape (k, *grid)."""
        return self.torus.draw(self.spectrum, k, rng)

    def single(self) -> Circulant:
        """The same in single precision, twice as fast."""
        return Circulant(self.torus, self.spectrum.astype(np.float32))

    def centered(self) -> Circulant:
        """The same without its constant part, for use where constants are free."""
        spectrum = self.spectrum.copy()
        spectrum[(..., *(0,) * len(self.torus.shape))] = 0.0
        return Circulant(self.torus, spectrum)


@dataclass(frozen=True)
class Matrix:
    """A covariance K on few nodes, for kernels that are not stationary."""

    K: Any

    def apply(self, x: Any) -> Any:
        """K x, shape (k, *grid)."""
        return (x.reshape(len(x), -1) @ self.K).reshape(x.shape)

    def draw(self, k: int, rng: np.random.RandomState) -> Any:
        """k draws of N(0, K), shape (k, G)."""
        return rng.standard_normal((k, len(self.K))).astype(self.K.dtype) @ self.root.T

    def single(self) -> Matrix:
        """The same in single precision."""
        return Matrix(self.K.astype(np.float32))

    def centered(self) -> Matrix:
        """The same without its constant part, for use where constants are free."""
        rows = self.K - self.K.mean(axis=0)
        return Matrix(rows - rows.mean(axis=1, keepdims=True))

    @cached_property
    def root(self) -> Any:
        """L with LLᵀ = K, shape (G, G)."""
        values, vectors = np.linalg.eigh(self.K)
        return vectors * np.sqrt(np.maximum(values, 0.0))


Covariance = Circulant | Matrix


def stacked(covariances: Sequence[Covariance]) -> Circulant:
    """Circulant covariances, each for one problem, as one for a batch of problems."""
    parts = [part for part in covariances if isinstance(part, Circulant)]
    return Circulant(parts[0].torus, np.stack([part.spectrum for part in parts]))


def matern_spectrum(torus: Torus, smoothness: float, scales: Floats, *, product: bool) -> Floats:
    """The Matérn kernel of variance 1, of the distance or as a product over axes [math, Eq. 4.7].

    S(ω) ∝ (2ν + Σ_j h_j²ω_j²)^-(ν + d/2), or Π_j (2ν + h_j²ω_j²)^-(ν + 1/2).
    """
    parts = [(h * w) ** 2 for h, w in zip(scales, torus.frequencies, strict=True)]
    if product:
        spectrum = np.ones(())
        for part in parts:
            spectrum = spectrum * (2.0 * smoothness + part) ** -(smoothness + 0.5)
    else:
        spectrum = (2.0 * smoothness + sum(parts, np.zeros(()))) ** -(smoothness + len(parts) / 2)
    return torus.unit(spectrum)


def kernel_spectrum(torus: Torus, kernel: Kernel) -> Floats | None:
    """The eigenvalues of a stationary kernel on the torus; None if it does not fit on it.

    k is taken at the shorter way round; what that leaves negative is set to 0 if it is little.
    """
    axes = [
        h * np.minimum(np.arange(n), n - np.arange(n))
        for n, h in zip(torus.padded, torus.spacing, strict=True)
    ]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    values = kernel(points, np.zeros((1, len(axes)))).reshape(torus.padded)
    spectrum = scipy.fft.rfftn(values).real
    lost = -np.sum(np.minimum(spectrum, 0.0) * torus.multiplicity) / np.prod(torus.padded)
    if lost > NEGATIVE * values.flat[0]:
        return None
    return np.maximum(spectrum, 0.0)
