"""Random points with density f/∫f on a box, by rejection, from the values of f >= 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.kernels.base import Kernel, Pair, Scaled
from hplus.kernels.stationary import Periodic, Stationary
from hplus.windows import Bounds
from hplus.windows.geometry import product_points

Values = Callable[[Floats], Floats]
"""A map from points (n, d) to numbers f >= 0, shape (n,)."""

LOBATTO_NODES = (1.0 + np.array([-1.0, -np.sqrt(3.0 / 7.0), 0.0, np.sqrt(3.0 / 7.0), 1.0])) / 2.0
LOBATTO_WEIGHTS = np.array([9.0, 49.0, 64.0, 49.0, 9.0]) / 180.0
"""Gauss-Lobatto on [0, 1], exact to degree 7; the nodes include the ends, where f may peak."""

SIMPSON_WEIGHTS = np.array([1.0, 0.0, 4.0, 0.0, 1.0]) / 6.0
"""Weights of a coarser rule on the same nodes, exact to degree 3."""

MAX_RULE_DIFFERENCE = 1e-3
"""The two rules agree if they differ by this fraction of ∫f; the finer one is far closer."""

MAX_ENVELOPE_VALUES = 2**22
"""Number of values of f that may be computed to build an envelope."""

ENVELOPE_MARGIN = 1.1
"""Ratio of the bound of f on a cell to its largest value at the nodes."""


class Envelope(NamedTuple):
    """Equal cells that tile a box, with ∫f and a bound of f on each: `masses`, `bounds`."""

    corners: Floats
    sides: Floats
    masses: Floats
    bounds: Floats


def draw(values: Values, envelope: Envelope, n: int, rng: np.random.RandomState) -> Floats:
    """n independent points with density proportional to f, shape (n, d).

    A cell is drawn by its mass, and a point in it is accepted with probability f/bound.
    """
    corners, sides, masses, bounds = envelope
    counts = rng.multinomial(n, masses / masses.sum())
    owners = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    points = np.empty((n, len(sides)))
    waiting = np.arange(n)
    while len(waiting):
        cell = owners[waiting]
        tries = corners[cell] + sides * rng.random_sample((len(cell), len(sides)))
        accepted = rng.random_sample(len(cell)) * bounds[cell] < values(tries)
        points[waiting[accepted]] = tries[accepted]
        waiting = waiting[~accepted]
    return points


def resolved_envelope(values: Values, kernel: Kernel, bounds: Bounds) -> Envelope:
    """Cells small enough for f: half a scale of the kernel, halved until two rules agree."""
    side = bounds[1] - bounds[0]
    counts = np.maximum(4.0, np.ceil(2.0 * side / finest_scales(kernel, len(side))))
    while True:
        _check_nodes(counts)
        envelope, error = _envelope(values, bounds, counts.astype(np.int64))
        if error <= MAX_RULE_DIFFERENCE:
            return envelope
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
    nodes = float(np.prod(len(LOBATTO_NODES) * counts))
    if nodes > MAX_ENVELOPE_VALUES:
        raise ValueError(
            f"sampling would need {nodes:.3g} values of the function, more than "
            f"{MAX_ENVELOPE_VALUES}: use a smaller window, a smoother kernel or fewer columns."
        )


def _envelope(values: Values, bounds: Bounds, counts: Ints) -> tuple[Envelope, float]:
    """The envelope, and the fraction of ∫f by which the two rules differ."""
    sides = (bounds[1] - bounds[0]) / counts
    starts = [low + h * np.arange(c) for low, h, c in zip(bounds[0], sides, counts, strict=True)]
    nodes = [(a[:, None] + h * LOBATTO_NODES).ravel() for a, h in zip(starts, sides, strict=True)]
    f = _by_cell(values(product_points(nodes)), counts)
    masses, coarse = (
        np.prod(sides) * f @ _tensor(w, len(counts)) for w in (LOBATTO_WEIGHTS, SIMPSON_WEIGHTS)
    )
    total = float(masses.sum())
    if not 0.0 < total < np.inf:
        raise ValueError(
            f"the integral of f over the window must be positive and finite to draw from f, got "
            f"{total:.6g}."
        )
    envelope = Envelope(product_points(starts), sides, masses, ENVELOPE_MARGIN * f.max(axis=1))
    return envelope, float(np.abs(masses - coarse).sum() / total)


def _by_cell(f: Floats, counts: Ints) -> Floats:
    """Values on the grid of nodes, one row per cell, shape (cells, 5^d)."""
    d, q = len(counts), len(LOBATTO_NODES)
    both = f.reshape([size for count in counts for size in (count, q)])
    order = [*range(0, 2 * d, 2), *range(1, 2 * d, 2)]
    return both.transpose(order).reshape(-1, q**d)


def _tensor(weights: Floats, dimension: int) -> Floats:
    """The product rule on all axes, shape (5^d,)."""
    return reduce(np.multiply.outer, [weights] * dimension).ravel()
