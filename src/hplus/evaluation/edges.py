"""Gaussian kernels that stay inside a window, so that each of them keeps its mass of 1.

They are mirrored at the walls of a box, go around a cycle, and in a polygon they are divided by the
root masses s of both ends: k(x, z)/(s(x) s(z)) with ∫ k(x, z)/(s(x) s(z)) dz = 1. Events everywhere
alike then have a constant rate up to the edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np
from scipy.ndimage import gaussian_filter1d

from hplus._checks import Floats
from hplus.evaluation.pair_sums import REACH
from hplus.grids import TensorGrid
from hplus.windows import Planar, Product, Window

FLAT_WIDTH = 1.2
"""In sides of the window: mirrored kernels this wide are constant within 0.1 %."""

MASS_CELLS = 256
"""Cells along the longest side of a polygon for the masses inside; narrower kernels have mass 1."""

CELLS_PER_WIDTH = 4
"""Cells per bandwidth, where events are merged or masses computed."""

MASS_STEPS = 8
"""Fixed-point steps for the root masses, each of which at least halves the error."""


@final
class Edges:
    """The edges of a window, and masses inside its polygons for every bandwidth used so far."""

    def __init__(self, window: Window) -> None:
        self.low, self.high = window.bounds()
        self.closed = window.closed_axes()
        self.volume = window.volume
        self._polygons = list(_polygons(window))
        self._masses: dict[tuple[float, ...], tuple[TensorGrid, Floats] | None] = {}
        unbounded = [axis + j for axis, _ in self._polygons for j in (0, 1)]
        self.walls = self.low.copy(), self.high.copy()
        self.walls[0][unbounded], self.walls[1][unbounded] = -np.inf, np.inf
        # infinite for polygons
        self.sides = self.walls[1] - self.walls[0]

    def capped(self, h: Floats) -> Floats:
        """The bandwidth, (d,), or one that cannot be told from it on a short side."""
        return np.minimum(h, FLAT_WIDTH * self.sides)

    def most_images(self, h: Floats) -> float:
        """About how many images an event has, itself included."""
        return float(np.prod(1.0 + 2.0 * REACH * h / self.sides))

    def images(self, X: Floats, weights: Floats, h: Floats) -> tuple[Floats, Floats]:
        """Events and their images, mirrored or a round away, that reach into the window."""
        for j in np.flatnonzero(np.isfinite(self.sides)):
            low, high, reach = self.low[j], self.high[j], REACH * h[j]
            x, rows = X[:, j], [np.arange(len(X))]
            at = [x]
            for image in _images(x, low, high, reach, j in self.closed):
                near = np.flatnonzero((image > low - reach) & (image < high + reach))
                at.append(image[near])
                rows.append(near)
            which = np.concatenate(rows)
            X, weights = X[which], weights[which]
            X[:, j] = np.concatenate(at)
        return X, weights

    def roots(self, X: Floats, h: Floats) -> Floats:
        """The root masses s of the kernels at X, shape (n,): 1 far from the edges of polygons."""
        out = np.ones(len(X))
        for axis, polygon in self._polygons:
            columns = slice(axis, axis + 2)
            key = (axis, *h[columns].tolist())
            if key not in self._masses:
                self._masses[key] = root_masses(polygon, h[columns])
            found = self._masses[key]
            if found is not None:
                grid, roots = found
                out *= grid.interpolate(roots, X[:, columns])
        return out


def _images(x: Floats, low: float, high: float, reach: float, closed: bool) -> Iterator[Floats]:
    """The images of x on one axis: rounds of a cycle, or mirrored at walls that face each other."""
    if not closed and x.min() > low + reach and x.max() < high - reach:
        return
    period = (1.0 if closed else 2.0) * (high - low)
    rounds = int(np.ceil((reach + high - low) / period))
    for turn in range(-rounds, rounds + 1):
        if turn:
            yield x + turn * period
        if not closed:
            yield 2.0 * low - x + turn * period


def _polygons(window: Window, first: int = 0) -> Iterator[tuple[int, Planar]]:
    """The polygons whose product with boxes a window is, each with its first axis."""
    if isinstance(window, Planar):
        yield first, window
    elif isinstance(window, Product):
        yield from _polygons(window.left, first)
        yield from _polygons(window.right, first + window.left.dimension)


def root_masses(polygon: Planar, h: Floats) -> tuple[TensorGrid, Floats] | None:
    """s on a grid with s(x) = ∫ k(x, z)/s(z) dz over the polygon; None for very narrow kernels."""
    low, high = polygon.bounds()
    spacing = np.maximum((high - low).max() / MASS_CELLS, h / CELLS_PER_WIDTH)
    if np.any(h < spacing):
        return None
    shape = tuple((np.ceil((high - low) / spacing).astype(int) + 1).tolist())
    grid = TensorGrid(tuple(low), tuple(high), shape)
    inside = grid.integrals(polygon) / np.prod(grid.spacing)
    roots = np.ones(shape)
    for _ in range(MASS_STEPS):
        mass = spread(np.divide(inside, roots), h / grid.spacing, ("constant", "constant"))
        roots = np.sqrt(np.where(mass > 0.0, roots * mass, 1.0))
    return grid, roots


def spread(values: Floats, widths: Floats, modes: tuple[str, ...]) -> Floats:
    """Values at nodes smoothed by a Gaussian of mass 1, whose widths between points are in cells.

    Binning and interpolation each spread a point over its cell, with an average variance of 1/6.
    The modes say how each axis goes on beyond its ends, in the words of scipy.ndimage.
    """
    sigmas = np.sqrt(np.maximum(widths**2 - 1.0 / 3.0, 0.0))
    for axis, (sigma, mode) in enumerate(zip(sigmas, modes, strict=True)):
        if sigma > 0.0:
            values = gaussian_filter1d(values, sigma, axis, mode=mode, truncate=REACH)
    return values
