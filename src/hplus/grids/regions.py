"""Hat functions integrated over the intervals and polygons whose product a region is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hplus._checks import Floats, shown
from hplus.grids.clipping import inside_interval, inside_rings
from hplus.grids.hats import Lattice
from hplus.grids.rings import clipped
from hplus.windows import Planar, Product, Window

Span = tuple[float, float]
"""The ends of an interval, empty if they are in the wrong order."""

Part = Span | list[Floats]
"""An interval, or the rings around a part of the plane, which lies on their left."""


def common_parts(regions: Sequence[Window], window: Window) -> Iterator[list[Part]]:
    """For each region, the parts whose product is its intersection with a window."""
    factors = _factors_of(window)
    return (_overlap(_factors_of(region), factors) for region in regions)


def _factors_of(window: Window) -> list[Span | Planar]:
    """The intervals and polygons whose product a window is."""
    if isinstance(window, Product):
        return [*_factors_of(window.left), *_factors_of(window.right)]
    if isinstance(window, Planar):
        return [window]
    low, high = window.bounds()
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _overlap(left: list[Span | Planar], right: list[Span | Planar]) -> list[Part]:
    """The parts whose product is the intersection of two products."""
    match left, right:
        case [], []:
            return []
        case [tuple() as a, *rest], [tuple() as b, *other]:
            part: Part = max(a[0], b[0]), min(a[1], b[1])
        case [Planar() as p, *rest], [Planar() as q, *other]:
            part = p.rings_within(q)
        case ([Planar() as p, *rest], [tuple() as a, tuple() as b, *other]) | (
            [tuple() as a, tuple() as b, *rest],
            [Planar() as p, *other],
        ):
            low, high = (a[0], b[0]), (a[1], b[1])
            part = clipped(p.rings_near(low, high), low, high)
        case _:
            raise ValueError(
                f"region and window must have their polygons on the same axes, got "
                f"{shown(left[0])} and {shown(right[0])}: split the region like the window."
            )
    return [part, *_overlap(rest, other)]


def hat_integrals(
    lattice: Lattice, parts: list[Part], blocks: Sequence[int]
) -> Iterator[tuple[tuple[slice, ...], Floats]]:
    """For each part, the nodes around it on its axes, and ∫ of their hat functions over it."""
    axes = iter(zip(lattice.low, lattice.step, lattice.shape, blocks, strict=True))
    for part in parts:
        low, step, count, block = next(axes)
        # in units of cells, node i is the point i
        if isinstance(part, tuple):
            a, b = (part[0] - low) / step, (part[1] - low) / step
            at = _span(a, b, count - 1, block)
            yield (at,), step * inside_interval(a - at.start, b - at.start, at.stop - at.start)
        else:
            low_y, step_y, count_y, block_y = next(axes)
            rings = [(ring - (low, low_y)) / (step, step_y) for ring in part]
            ends = np.concatenate(rings or [np.zeros((1, 2))])
            (a, a_y), (b, b_y) = ends.min(axis=0).tolist(), ends.max(axis=0).tolist()
            at, at_y = _span(a, b, count - 1, block), _span(a_y, b_y, count_y - 1, block_y)
            near = [ring - (at.start, at_y.start) for ring in rings]
            shape = at.stop - at.start, at_y.stop - at_y.start
            yield (at, at_y), step * step_y * inside_rings(near, shape)


def _span(low: float, high: float, cells: int, block: int) -> slice:
    """The nodes of the blocks of cells, at least one, that cover the range from low to high."""
    first = min(max(int(low // block), 0), cells // block - 1)
    last = min(max(int(-(-high // block)), first + 1), cells // block)
    return slice(block * first, block * last + 1)
