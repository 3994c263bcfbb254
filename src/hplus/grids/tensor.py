"""TensorGrid: nodes at the corners of equal cells of a box, and their hat functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import Floats, as_floats, as_points, check_count, check_finite, shown
from hplus._values import Value, value
from hplus.grids import hats
from hplus.grids.hats import Lattice
from hplus.grids.regions import common_parts, hat_integrals
from hplus.windows import Box, Window, check_window
from hplus.windows.geometry import product_points


@final
@value
class TensorGrid(Value):
    """Nodes at the corners of equal cells of a box, and the multilinear hat function φ_g of each.

    φ_g is 1 at node g, 0 at all others, and linear along each axis of a cell, so that Σ_g φ_g = 1.
    A point outside the box counts as the nearest point of the box. The end of a closed axis is its
    beginning: there the last node is the first one again, and each has half of their hat.

    >>> grid = TensorGrid((0, 0), (2, 1), (3, 2))
    >>> grid.bin([[0.5, 0.25]], [8.0]).tolist()
    [[3.0, 1.0], [3.0, 1.0], [0.0, 0.0]]

    Parameters
    ----------
    low, high : tuple of float
        The corners of the box.
    shape : tuple of int
        Number of nodes on each axis, both ends included, at least 2.
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
                f"shape must give nodes that differ in double precision, got {shown(shape)} from "
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
        return product_points(self.axes)

    def bin(self, X: Any, weights: ArrayLike) -> Floats:
        """Σ_i weights[i] φ_g(X[i]) at each node g, array of `shape`; the adjoint of interpolate."""
        X, w = self._points(X), check_finite("weights", as_floats("weights", weights))
        if w.shape != (len(X),):
            raise ValueError(
                f"weights must have one number for each of the {len(X)} rows of X, got shape "
                f"{w.shape}."
            )
        out = np.zeros(self.size)
        hats.bin_weights(X, hats.read_only(w), self._lattice, out)
        return out.reshape(self.shape)

    def interpolate(self, values: ArrayLike, X: Any) -> Floats:
        """Σ_g values[g] φ_g(X[i]), shape (n,)."""
        return hats.interpolate(self._flat(values), self._points(X), self._lattice)

    def slopes(self, values: ArrayLike, X: Any) -> Floats:
        """Σ_g values[g] ∇φ_g(X[i]), shape (n, d).

        On a line between two cells, those of the cell on the right; at the high end, on the left.
        """
        return hats.slopes(self._flat(values), self._points(X), self._lattice)

    def integrals(self, region: Window) -> Floats:
        """∫ φ_g over the part of a region inside the box, for every node g, array of `shape`."""
        return integrals_within(self, region, region)

    def coarser(self) -> TensorGrid:
        """Every second node of each axis with an odd number of nodes above 3; other axes stay."""
        return self.replace(shape=tuple(map(_coarser, self.shape)))

    def restrict(self, values: ArrayLike) -> Floats:
        """Weights binned on this grid, as if binned on `coarser()`: the adjoint of prolong.

        A coarse hat is a sum of fine ones: φ_{i-1}/2 + φ_i + φ_{i+1}/2 on each axis.
        """
        return self._along_halved(restricted, self._values(values))

    def prolong(self, values: ArrayLike) -> Floats:
        """Values at the nodes of `coarser()`, interpolated to the nodes of this grid."""
        return self._along_halved(_prolong, self.coarser()._values(values))

    def _along_halved(self, change: Callable[[Floats], Floats], values: Floats) -> Floats:
        """Apply `change`, which works on the first axis, to every axis that `coarser()` halves."""
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
        return hats.read_only(X)

    def _flat(self, values: ArrayLike) -> Floats:
        return hats.read_only(self._values(values).ravel())

    def _values(self, values: ArrayLike) -> Floats:
        out = check_finite("values", as_floats("values", values))
        if out.shape != self.shape:
            raise ValueError(
                f"values must have one number for each node, shape {self.shape}, got shape "
                f"{out.shape}."
            )
        return out


def integrals_within(grid: TensorGrid, region: Window, window: Window) -> Floats:
    """∫ φ_g over region ∩ window ∩ box, for every node g, array of the grid's shape.

    An outer product with a factor for each axis on which both are intervals, and for each pair of
    axes on which either is a polygon.
    """
    ((where, near),) = integrals_near(grid, [region], window)
    out = np.zeros(grid.shape)
    out[where] = near
    return out


def integrals_near(
    grid: TensorGrid, regions: Sequence[Window], window: Window, ratio: Sequence[int] | int = 1
) -> Iterator[tuple[tuple[slice, ...], Floats]]:
    """`integrals_within` of each region, only at the nodes around it: which nodes, and integrals.

    They are the nodes of whole blocks of cells, `ratio` cells long on each axis.
    """
    for region in regions:
        check_window("region", region, grid.dimension)
    check_window("window", window, grid.dimension)
    lattice, blocks = grid._lattice, np.broadcast_to(ratio, grid.dimension).tolist()
    for parts in common_parts(regions, window):
        places, factors = zip(*hat_integrals(lattice, parts, blocks), strict=True)
        yield sum(places, ()), reduce(np.multiply.outer, factors)


def _coarser(nodes: int) -> int:
    return (nodes + 1) // 2 if nodes % 2 == 1 and nodes > 3 else nodes


def restricted(fine: Floats, ratio: int = 2) -> Floats:
    """Weights at nodes as if binned on every `ratio`-th node of the first axis."""
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
