"""Masks: regions in the plane as cells, or as their bounding boxes if they are boxes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Bools, Floats
from hplus.windows import Window

MASK_CELLS, MASK_CELLS_WITHIN = 512, 128
"""Cells along the longer side in which windows that are not boxes are known, and parts of them."""

NOWHERE = np.zeros((2, 1), dtype=np.bool_)
"""Cells of which none belongs to a region."""


class Mask(NamedTuple):
    """A region in the plane: which cells of a grid over its bounding box belong to it."""

    low: Floats
    high: Floats
    inside: Bools


def mask_of(region: Window, within: Window | None = None) -> Mask:
    """The region, or the part of it within another one, as cells; one is enough for a box."""
    low, high = region.bounds()
    if within is not None:
        low, high = np.maximum(low, within.bounds()[0]), np.minimum(high, within.bounds()[1])
    if np.any(high <= low):
        return Mask(*region.bounds(), NOWHERE)
    both = [region] if within is None else [region, within]
    if all(part.box_bounds() is not None for part in both):
        return Mask(low, high, np.ones((1, 1), dtype=np.bool_))
    sides = high - low
    most = MASK_CELLS if within is None else MASK_CELLS_WITHIN
    shape = np.maximum(np.ceil(most * sides / sides.max()).astype(int), 1)
    axes = [
        a + side * (np.arange(n) + 0.5) / n for a, side, n in zip(low, sides, shape, strict=True)
    ]
    centers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    inside = np.all([part.contains(centers) for part in both], axis=0)
    return Mask(low, high, inside.reshape(shape))
