"""Hat functions at points: binning, interpolation and slopes in compiled loops."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hplus._checks import Floats

Number = TypeVar("Number", bound=np.generic)

# no fused multiply-adds: a node must be found at exactly the coordinate that `axes` gives it
compiled = njit(cache=True, nogil=True, error_model="numpy")


class Lattice(NamedTuple):
    """A grid for compiled code, in tuples, so that their length is known to the compiler.

    `offsets` (2^d) says how many entries after its first corner each corner of a cell lies.
    """

    low: tuple[float, ...]
    step: tuple[float, ...]
    shape: tuple[int, ...]
    offsets: tuple[int, ...]


def read_only(array: NDArray[Number]) -> NDArray[Number]:
    """A read-only contiguous view, so that one compiled loop serves every array."""
    view = np.ascontiguousarray(array)[...]
    view.flags.writeable = False
    return view


def knot_weights(knots: Floats, x: Floats) -> Floats:
    """Hat functions of knots at x (n,), constant beyond the first and the last, (n, knots)."""
    place = np.interp(x, knots, np.arange(len(knots)))
    return np.maximum(1.0 - np.abs(place[:, None] - np.arange(len(knots))), 0.0)


@compiled
def bin_weights(X: Floats, weights: Floats, lattice: Lattice, out: Floats) -> None:
    """Add Σ_i weights[i] φ_g(X[i]) to out[g]."""
    corners = np.empty(len(lattice.offsets))
    for i in range(len(X)):
        corners[0] = weights[i]
        start = _spread(X, i, lattice, corners, -1)
        for k in range(len(lattice.offsets)):
            out[start + lattice.offsets[k]] += corners[k]


@compiled
def interpolate(values: Floats, X: Floats, lattice: Lattice) -> Floats:
    """Σ_g values[g] φ_g(X[i]), shape (n,)."""
    corners, out = np.empty(len(lattice.offsets)), np.zeros(len(X))
    for i in range(len(X)):
        out[i] = _inner(values, X, i, lattice, corners, -1)
    return out


@compiled
def slopes(values: Floats, X: Floats, lattice: Lattice) -> Floats:
    """Σ_g values[g] ∇φ_g(X[i]), shape (n, d)."""
    corners, out = np.empty(len(lattice.offsets)), np.zeros(X.shape)
    for i in range(len(X)):
        for axis in range(len(lattice.shape)):
            out[i, axis] = _inner(values, X, i, lattice, corners, axis)
    return out


@compiled
def _inner(
    values: Floats, X: Floats, i: int, lattice: Lattice, corners: Floats, along: int
) -> float:
    """Σ_k values[k] corners[k] over the corners of the cell of X[i]."""
    corners[0] = 1.0
    start, total = _spread(X, i, lattice, corners, along), 0.0
    for k in range(len(lattice.offsets)):
        total += values[start + lattice.offsets[k]] * corners[k]
    return total


@compiled
def _spread(X: Floats, i: int, lattice: Lattice, corners: Floats, along: int) -> int:
    """Multiply corners[0] by the hats of all corners of the cell of X[i]; returns its first node.

    On the axis `along`, unless it is -1, the slopes of the hats replace the hats.
    """
    start, half = 0, 1
    for j in range(len(lattice.shape)):
        x, low, step, last = X[i, j], lattice.low[j], lattice.step[j], lattice.shape[j] - 1
        u = min(max((x - low) / step, 0.0), float(last))
        cell = min(int(u), last - 1)
        if cell + 1 < last and x >= low + (cell + 1) * step:
            cell += 1  # the division was rounded down on a line between two cells
        right = max(u - cell, 0.0)
        left = 1.0 - right
        if j == along:
            left, right = -1.0 / step, 1.0 / step
        for k in range(half):
            corners[half + k] = right * corners[k]
            corners[k] *= left
        start, half = start * lattice.shape[j] + cell, 2 * half
    return start
