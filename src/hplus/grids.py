"""Tensor grids: nodes on the corners of equal cells of a box, and the hat functions on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, NamedTuple, final

import numpy as np
from numba import njit

from hplus._checks import Floats, as_floats, as_points, check_count, check_finite, shown
from hplus._clipping import clamped_rings, inside_interval, inside_rings
from hplus._geometry import Rings
from hplus._values import Value, value
from hplus.windows import Box, Interval, Planar, Product, Window

Leaf = Interval | Planar

Part = tuple[float, float] | Rings
"""The ends of an interval, none if they are in the wrong order, or the rings around a region."""

# no fused multiply-adds: a node must be found at the very coordinate that `axes` gives it
compiled = njit(cache=True, nogil=True, error_model="numpy")


class Lattice(NamedTuple):
    """A grid as compiled code takes it, in tuples, so that their length is known to the compiler.

    `offsets` (2^d) says by how many entries the corners of a cell lie behind its first.
    """

    low: tuple[float, ...]
    step: tuple[float, ...]
    shape: tuple[int, ...]
    offsets: tuple[int, ...]


@final
@value
class TensorGrid(Value):
    """Nodes on the corners of equal cells of a box, and the multilinear hat function φ_g of each.

    φ_g is 1 at node g, 0 at all others, and linear along each axis of a cell, so that Σ_g φ_g = 1.
    A point beyond the box counts as the nearest point of the box, but the end of a closed axis is
    its beginning. There the last node is the first one again, and each has half of their hat.

    >>> grid = TensorGrid((0, 0), (2, 1), (3, 2))
    >>> grid.bin([[0.5, 0.25]], [8.0]).tolist()
    [[3.0, 1.0], [3.0, 1.0], [0.0, 0.0]]

    Parameters
    ----------
    low, high : tuple of float
        The corners of the box.
    shape : tuple of int
        Nodes on each axis, both ends included, at least 2.
    closed : tuple of int
        The axes whose end is their beginning.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]
    closed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        box = Box(self.low, self.high)
        counts = np.atleast_1d(np.asarray(self.shape, dtype=object)).tolist()
        shape = tuple(check_count("every entry of shape", count, least=2) for count in counts)
        if len(shape) != box.dimension:
            raise ValueError(
                f"shape must have one entry for each of the {box.dimension} axes of the box, got "
                f"{shown(self.shape)}."
            )
        axes = tuple(sorted(set(self.closed)))
        if not set(axes) <= set(range(box.dimension)):
            raise ValueError(
                f"closed must be axes from 0 to {box.dimension - 1}, got {shown(self.closed)}."
            )
        self._set(low=box.low, high=box.high, shape=shape, closed=axes)
        if np.any(self.spacing <= np.spacing(np.abs(box.bounds()).max(axis=0))):
            raise ValueError(
                f"shape must leave nodes that differ in double precision, got {shown(shape)} from "
                f"{shown(box.low)} to {shown(box.high)}."
            )

    @property
    def dimension(self) -> int:
        """The number d of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number G of nodes."""
        return int(np.prod(self.shape))

    @property
    def spacing(self) -> Floats:
        """The side of a cell on each axis, shape (d,)."""
        return np.subtract(self.high, self.low) / np.subtract(self.shape, 1)

    @property
    def axes(self) -> tuple[Floats, ...]:
        """The coordinates of the nodes on each axis."""
        return tuple(map(np.linspace, self.low, self.high, self.shape))

    def nodes(self) -> Floats:
        """All nodes, the last axis fastest, shape (G, d)."""
        return np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1).reshape(self.size, -1)

    def bin(self, X: Any, weights: Any) -> Floats:
        """Σ_i weights[i] φ_g(X[i]) at each node g, array of `shape`; the adjoint of interpolate."""
        X, w = self._points(X), check_finite("weights", as_floats("weights", weights))
        if w.shape != (len(X),):
            raise ValueError(
                f"weights must have one number for each of the {len(X)} rows of X, got shape "
                f"{w.shape}."
            )
        out = np.zeros(self.size)
        _bin(X, _read_only(w), self._lattice, out)
        return out.reshape(self.shape)

    def interpolate(self, values: Any, X: Any) -> Floats:
        """Σ_g values[g] φ_g(X[i]), shape (n,)."""
        return _interpolate(
            _read_only(self._values(values).ravel()), self._points(X), self._lattice
        )

    def slopes(self, values: Any, X: Any) -> Floats:
        """Σ_g values[g] ∇φ_g(X[i]), shape (n, d).

        On a line between two cells those of the cell on the right, at the high end on the left.
        """
        return _slopes(_read_only(self._values(values).ravel()), self._points(X), self._lattice)

    def integrals(self, region: Window) -> Floats:
        """∫ φ_g over the part of a region in the box, for every node g, array of `shape`."""
        return integrals_within(self, region, region)

    def coarser(self) -> TensorGrid:
        """Every second node of each axis with an odd number of them above 3; other axes stay."""
        return self.replace(shape=tuple(map(_coarser, self.shape)))

    def restrict(self, values: Any) -> Floats:
        """Weights binned on this grid, as they would be on `coarser()`: the adjoint of prolong.

        A coarse hat is a sum of fine ones: φ_{i-1}/2 + φ_i + φ_{i+1}/2 on each axis.
        """
        return self._along_halved(restricted, self._values(values))

    def prolong(self, values: Any) -> Floats:
        """Values at the nodes of `coarser()`, interpolated to the nodes of this grid."""
        return self._along_halved(_prolong, self.coarser()._values(values))

    def _along_halved(self, change: Callable[[Floats], Floats], values: Floats) -> Floats:
        """`change`, which works on the first axis, along every axis that `coarser()` halves."""
        for axis, count in enumerate(self.shape):
            if _coarser(count) < count:
                values = np.moveaxis(change(np.moveaxis(values, axis, 0)), 0, axis)
        return np.array(values)

    @property
    def _lattice(self) -> Lattice:
        offsets = np.zeros(1, dtype=np.int64)
        for count in self.shape:
            offsets = np.append(count * offsets, count * offsets + 1)
        return Lattice(self.low, tuple(self.spacing.tolist()), self.shape, tuple(offsets.tolist()))

    def _points(self, X: Any) -> Floats:
        X = check_finite("X", as_points("X", X, self.dimension))
        for axis in self.closed:
            X = X.copy()
            X[X[:, axis] >= self.high[axis], axis] = self.low[axis]
        return _read_only(X)

    def _values(self, values: Any) -> Floats:
        out = check_finite("values", as_floats("values", values))
        if out.shape != self.shape:
            raise ValueError(
                f"values must have one number for each node, shape {self.shape}, got shape "
                f"{out.shape}."
            )
        return out


def integrals_within(grid: TensorGrid, region: Window, window: Window) -> Floats:
    """∫ φ_g over region ∩ window ∩ box, for every node g, array of the grid's shape.

    The outer product of one factor for each axis on which both are intervals, and one for each
    pair of axes on which either is a polygon.
    """
    where, near = integrals_near(grid, region, window, (1,) * grid.dimension)
    out = np.zeros(grid.shape)
    out[where] = near
    return out


def integrals_near(
    grid: TensorGrid, region: Window, window: Window, blocks: tuple[int, ...]
) -> tuple[tuple[slice, ...], Floats]:
    """Those integrals at the nodes around the region only: where they are, and their numbers.

    The nodes are those of whole blocks of cells, so many cells on each axis.
    """
    _check_window("region", region, grid.dimension)
    _check_window("window", window, grid.dimension)
    parts = _overlap(_leaves(region), _leaves(window))
    places, factors = zip(*_factors(grid, parts, blocks), strict=True)
    return sum(places, ()), reduce(np.multiply.outer, factors)


def _factors(
    grid: TensorGrid, parts: list[Part], blocks: tuple[int, ...]
) -> Iterator[tuple[tuple[slice, ...], Floats]]:
    """The integrals of hat functions of the axes of each part, over that part, and where."""
    axes = iter(zip(grid.low, grid.spacing.tolist(), grid.shape, blocks, strict=True))
    for part in parts:
        low, step, count, block = next(axes)
        # in units of cells, node i is the point i
        if isinstance(part, tuple):
            a, b = (part[0] - low) / step, (part[1] - low) / step
            at = _span(a, b, count - 1, block)
            yield (at,), step * inside_interval(a - at.start, b - at.start, at.stop - at.start)
        else:
            low_y, step_y, count_y, block_y = next(axes)
            rings = [((ring - (low, low_y)) / (step, step_y), role) for ring, role in part]
            ends = np.concatenate([ring for ring, _ in rings] or [np.zeros((1, 2))])
            (a, a_y), (b, b_y) = ends.min(axis=0).tolist(), ends.max(axis=0).tolist()
            at, at_y = _span(a, b, count - 1, block), _span(a_y, b_y, count_y - 1, block_y)
            near = [(ring - (at.start, at_y.start), role) for ring, role in rings]
            shape = at.stop - at.start, at_y.stop - at_y.start
            yield (at, at_y), step * step_y * inside_rings(near, shape)


def _span(low: float, high: float, cells: int, block: int) -> slice:
    """The nodes of the blocks of cells, one at least, that hold the numbers from low to high."""
    first = min(max(int(low // block), 0), cells // block - 1)
    last = min(max(int(-(-high // block)), first + 1), cells // block)
    return slice(block * first, block * last + 1)


def _check_window(name: str, window: Any, dimension: int) -> None:
    if not isinstance(window, Window):
        raise TypeError(f"{name} must be a window such as Interval(0, 1), got {shown(window)}.")
    if window.dimension != dimension:
        raise ValueError(
            f"{name} must have one axis for each of the {dimension} axes of the grid, got "
            f"{window.dimension}."
        )


def _leaves(window: Window) -> list[Leaf]:
    """The intervals and polygons that a window is the product of."""
    if isinstance(window, Product):
        return [*_leaves(window.left), *_leaves(window.right)]
    if isinstance(window, Planar):
        return [window]
    return [Interval(low, high) for low, high in zip(*window.bounds(), strict=True)]


def _overlap(left: list[Leaf], right: list[Leaf]) -> list[Part]:
    """What the intersection of two products is the product of."""
    match left, right:
        case [], []:
            return []
        case [Interval() as a, *rest], [Interval() as b, *other]:
            part: Part = max(a.low, b.low), min(a.high, b.high)
        case [Planar() as a, *rest], [Planar() as b, *other]:
            part = a.common_rings(b)
        case ([Planar() as a, *rest], [Interval() as x, Interval() as y, *other]) | (
            [Interval() as x, Interval() as y, *rest],
            [Planar() as a, *other],
        ):
            part = clamped_rings(a.rings(), (x.low, y.low), (x.high, y.high))
        case _:
            raise ValueError(
                f"region and window must have their polygons on the same axes, got "
                f"{shown(left[0])} beside {shown(right[0])}: split the region as the window is."
            )
    return [part, *_overlap(rest, other)]


def _coarser(nodes: int) -> int:
    return (nodes + 1) // 2 if nodes % 2 == 1 and nodes > 3 else nodes


def restricted(fine: Floats, ratio: int = 2) -> Floats:
    """Weights at nodes as they would be binned on every `ratio`-th node of the first axis."""
    coarse = fine[::ratio].copy()
    for offset in range(1, ratio):
        between, share = fine[offset::ratio], offset / ratio
        coarse[:-1] += (1.0 - share) * between
        coarse[1:] += share * between
    return coarse


def _prolong(coarse: Floats) -> Floats:
    fine = np.repeat(coarse, 2, axis=0)[:-1]
    fine[1::2] = 0.5 * (coarse[:-1] + coarse[1:])
    return fine


def _read_only(array: Floats) -> Floats:
    """A read-only view with rows in order: one compiled loop serves whatever array was given."""
    view = np.ascontiguousarray(array)[...]
    view.flags.writeable = False
    return view


@compiled
def _bin(X: Floats, weights: Floats, lattice: Lattice, out: Floats) -> None:
    corners = np.empty(len(lattice.offsets))
    for i in range(len(X)):
        corners[0] = weights[i]
        start = _spread(X, i, lattice, corners, -1)
        for k in range(len(lattice.offsets)):
            out[start + lattice.offsets[k]] += corners[k]


@compiled
def _interpolate(values: Floats, X: Floats, lattice: Lattice) -> Floats:
    corners, out = np.empty(len(lattice.offsets)), np.zeros(len(X))
    for i in range(len(X)):
        out[i] = _inner(values, X, i, lattice, corners, -1)
    return out


@compiled
def _slopes(values: Floats, X: Floats, lattice: Lattice) -> Floats:
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
    """Multiply corners[0] by the hats of all corners of the cell of X[i]; the first node's entry.

    On the axis `along`, if there is one, the slopes of the hats take the place of the hats.
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
