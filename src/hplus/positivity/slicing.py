"""Kernels that are products over columns, with some of the columns fixed."""

from __future__ import annotations

from functools import reduce
from operator import mul

import numpy as np

from hplus._checks import Floats
from hplus.kernels.base import Kernel, Product, Scaled
from hplus.kernels.domains import gram
from hplus.kernels.leaf import Leaf
from hplus.kernels.stationary import Gaussian, Laplace, Periodic
from hplus.kernels.structured import Constant

Axes = tuple[int, ...]


def cut(kernel: Kernel, centers: Floats, axes: Axes, point: Floats) -> tuple[Kernel, Floats]:
    """(k', w) with k(centers[i], x) = w[i] k'(centers[i], x) for all x that are `point` on `axes`.

    k' sees the other columns, renumbered from 0; w has shape (m,).
    """
    dimension = centers.shape[1]
    free = tuple(axis for axis in range(dimension) if axis not in axes)
    leaves = _leaves(kernel)
    x = np.zeros((1, dimension))
    x[0, list(axes)] = point
    gone = [part for leaf in leaves if (part := _part(leaf, axes, dimension))]
    left = [_renumbered(part, free) for leaf in leaves if (part := _part(leaf, free, dimension))]
    constant = np.prod([leaf.value for leaf in leaves if isinstance(leaf, Constant)])
    return reduce(mul, left) if left else Constant(1.0), constant * gram(gone, centers, x)[:, 0]


def _leaves(kernel: Kernel) -> list[Leaf]:
    """The leaves whose product a kernel is."""
    match kernel:
        case Product(left, right):
            return _leaves(left) + _leaves(right)
        case Scaled(factor, inner):
            return [Constant(factor), *_leaves(inner)]
        case Leaf():
            return [kernel]
    raise ValueError(f"kernel must be a product over columns to be sliced, got {kernel}.")


def _part(leaf: Leaf, axes: Axes, dimension: int) -> Leaf | None:
    """The factor of a leaf that sees only `axes`, None for 1; constants are counted elsewhere."""
    seen = leaf.axes(dimension)
    chosen = tuple(axis for axis in seen if axis in axes)
    match leaf:
        case Constant():
            return None
        case _ if chosen in ((), seen):
            return leaf.replace(columns=seen) if chosen else None
        case Gaussian() | Laplace():
            scales = dict(zip(seen, leaf.scales(len(seen)), strict=True))
            return leaf.replace(scale=tuple(scales[axis] for axis in chosen), columns=chosen)
        case Periodic():
            return leaf.replace(columns=chosen)
    raise ValueError(f"kernel must be a product over columns to be sliced, got {leaf}.")


def _renumbered(leaf: Leaf, free: Axes) -> Leaf:
    """The leaf on points that have only the columns `free`; all of them if it sees all."""
    columns = tuple(free.index(axis) for axis in leaf.axes(max(free) + 1))
    return leaf.replace(columns=None if columns == tuple(range(len(free))) else columns)
