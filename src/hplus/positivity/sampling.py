"""Random points from a density f/∫f over a box, known by its values f >= 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.kernels.base import Kernel, Pair, Scaled
from hplus.kernels.stationary import Periodic, Stationary
from hplus.windows import Bounds

Values = Callable[[Floats], Floats]
"""A map from points (n, d) to numbers f >= 0, shape (n,)."""

NODES = (1.0 + np.array([-1.0, -np.sqrt(3.0 / 7.0), 0.0, np.sqrt(3.0 / 7.0), 1.0])) / 2.0
WEIGHTS = np.array([9.0, 49.0, 64.0, 49.0, 9.0]) / 180.0
"""Gauss-Lobatto on [0, 1], exact to degree 7: its nodes include the ends, where f may peak."""

SIMPSON = np.array([1.0, 0.0, 4.0, 0.0, 1.0]) / 6.0
"""Weights of a coarser rule on the same nodes, exact to degree 3."""

AGREEMENT = 1e-3
"""The two rules agree on the cells if they differ by this share of ∫f; the finer errs far less."""

MOST_NODES = 2**22
"""Values of f that are computed to find the cells."""

MARGIN = 1.1
"""What the largest value at the nodes of a cell is multiplied by to bound f between them."""


class Cells(NamedTuple):
    """Boxes of one size that tile a box, with ∫f and a bound of f on each: `masses`, `bounds`."""

    corners: Floats
    sides: Floats
    masses: Floats
    bounds: Floats


def draw(values: Values, cells: Cells, n: int, rng: Any) -> Floats:
    """n independent points with density proportional to f, shape (n, d).

    A cell is drawn by its mass, and a point in it by rejection: accepted with probability f/bound.
    """
    counts = rng.multinomial(n, cells.masses / cells.masses.sum())
    owners = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    points = np.empty((n, len(cells.sides)))
    waiting = np.arange(n)
    while len(waiting):
        cell = owners[waiting]
        tries = cells.corners[cell] + cells.sides * rng.random_sample((len(cell), len(cells.sides)))
        accepted = rng.random_sample(len(cell)) * cells.bounds[cell] < values(tries)
        points[waiting[accepted]] = tries[accepted]
        waiting = waiting[~accepted]
    return points


def resolved_cells(values: Values, kernel: Kernel, bounds: Bounds) -> Cells:
    """Cells small enough for f: half a scale of the kernel, halved until two rules agree."""
    side = bounds[1] - bounds[0]
    counts = np.maximum(4.0, np.ceil(2.0 * side / finest_scales(kernel, len(side))))
    while True:
        _check_nodes(counts)
        cells, error = _cells(values, bounds, counts.astype(np.int64))
        if error <= AGREEMENT:
            return cells
        counts *= 2.0


def finest_scales(kernel: Kernel, dimension: int) -> Floats:
    """The length on each axis over which the kernel changes, inf where it is a polynomial."""
    scales = np.full(dimension, np.inf)
    match kernel:
        case Pair(left, right):
            return np.minimum(finest_scales(left, dimension), finest_scales(right, dimension))
        case Scaled(_, inner):
            return finest_scales(inner, dimension)
        case Stationary():
            axes = list(kernel.axes(dimension))
            scales[axes] = kernel.scales(len(axes))
        case Periodic():
            scales[list(kernel.axes(dimension))] = 0.25 * kernel.period * min(1.0, kernel.scale)
    return scales


def _check_nodes(counts: Floats) -> None:
    nodes = float(np.prod(len(NODES) * counts))
    if nodes > MOST_NODES:
        raise ValueError(
            f"window must need at most {MOST_NODES} values of the function to be resolved, got "
            f"{nodes:.3g}: use a smaller window, a smoother kernel or fewer columns."
        )


def _cells(values: Values, bounds: Bounds, counts: Ints) -> tuple[Cells, float]:
    """The cells, and by what share of ∫f the two rules differ in all."""
    sides = (bounds[1] - bounds[0]) / counts
    starts = [low + h * np.arange(c) for low, h, c in zip(bounds[0], sides, counts, strict=True)]
    nodes = [(a[:, None] + h * NODES).ravel() for a, h in zip(starts, sides, strict=True)]
    f = _by_cell(values(_grid(nodes)), counts)
    masses, coarse = (np.prod(sides) * f @ _tensor(w, len(counts)) for w in (WEIGHTS, SIMPSON))
    total = float(masses.sum())
    if not 0.0 < total < np.inf:
        raise ValueError(
            f"the integral of f over the window must be positive and finite to draw from f, got "
            f"{total:.6g}."
        )
    cells = Cells(_grid(starts), sides, masses, MARGIN * f.max(axis=1))
    return cells, float(np.abs(masses - coarse).sum() / total)


def _grid(axes: list[Floats]) -> Floats:
    """All points with these coordinates, the last axis fastest, shape (q, d)."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _by_cell(f: Floats, counts: Ints) -> Floats:
    """Values on the grid of nodes, one row a cell, shape (cells, 5^d)."""
    d, q = len(counts), len(NODES)
    both = f.reshape([size for count in counts for size in (count, q)])
    order = [*range(0, 2 * d, 2), *range(1, 2 * d, 2)]
    return both.transpose(order).reshape(-1, q**d)


def _tensor(weights: Floats, dimension: int) -> Floats:
    """The product rule on all axes, shape (5^d,)."""
    return reduce(np.multiply.outer, [weights] * dimension).ravel()
