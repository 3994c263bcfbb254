"""Positions: whether events are at rounded or repeated positions, and down to which step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hplus._checks import Floats, Ints
from hplus.grids.hats import compiled
from hplus.rates.rounding import MIN_LATTICE_STEP, common_step
from hplus.rates.statistic import Statistic

MAX_NEAREST = 2**13
"""Positions whose nearest other position is looked for."""

NOTABLE_REPEATS = 0.1
"""Share of repeats from which they tell more than rounding does."""

NOTABLE_AXIS_REPEATS = 0.25
"""Share of repeats from which the coordinates of one axis are repeated, whatever the others."""

MIN_ROUNDED_GAP = 3.0
"""How many steps of rounding lie between repeated positions that are not just rounded."""

MIN_PILE_EVENTS, MIN_PILE_SHARE = 10, 1e-3
"""A position with as many events, and this share of all, holds more than chance would put there."""

FLOAT_ERROR_BITS = 2
"""Coordinates are taken to be exact to 2² times the spacing of floating-point numbers."""


@final
@dataclass(frozen=True, eq=False)
class Positions:
    """How finely the positions of events are known, on each axis.

    Parameters
    ----------
    rounding : array, shape (d,)
        The step of the lattice that coordinates are rounded to, 0 if there is none.
    spacing : array, shape (d,)
        How far repeated positions, such as addresses, lie apart, 0 if few are repeated.
    repeated : float
        The share of events that share their exact position with another.
    """

    rounding: Floats
    spacing: Floats
    repeated: float

    @property
    def step(self) -> Floats:
        """The smallest side of a cell that means something, shape (d,); 0 where nothing limits it."""
        return np.maximum(self.rounding, self.spacing)

    def scaled(self, unit: Floats) -> Positions:
        """The same in other units, shape (d,)."""
        return Positions(self.rounding * unit, self.spacing * unit, self.repeated)


def find_positions(statistic: Statistic) -> Positions:
    """What the cells of a statistic tell of the events' positions, in the units of the window."""
    lattice = statistic.lattice
    indices, counts = lattice.indices(statistic.codes), statistic.counts
    unit = lattice.cell_sides(statistic.depth)
    error = np.max(np.spacing(np.abs(statistic.window.bounds())), axis=0) / unit
    coarser = np.maximum(np.ceil(np.log2(error)) + FLOAT_ERROR_BITS, 0).astype(np.int64)
    groups = np.array(statistic.window.axis_groups())
    parts = [np.flatnonzero(groups == group) for group in dict.fromkeys(groups)]
    rounding, spacing, repeated = np.zeros(len(unit)), np.zeros(len(unit)), 0.0
    for axes in parts:
        found = find_step(*distinct(indices[:, axes] >> coarser[axes], counts))
        rounding[axes], spacing[axes] = found.rounding, found.spacing
        repeated = max(repeated, found.repeated)
    return Positions(rounding, spacing, repeated).scaled(unit * 2.0**coarser)


def distinct(indices: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Positions (m, d) without repeats, sorted by their coordinates, with their sums of counts."""
    order = np.lexsort(indices.T[::-1])
    indices = indices[order]
    starts = np.flatnonzero(np.append(True, np.any(np.diff(indices, axis=0), axis=1)))[: len(order)]
    return indices[starts], np.add.reduceat(counts[order], starts) if len(order) else counts


def find_step(indices: Ints, counts: Ints) -> Positions:
    """The step of distinct positions (m, d), sorted, on a lattice of whole units.

    Rounding is found on each axis by itself. Repeats stop the map where they outnumber neighbours:
    at the quantile of the distances to the nearest other position that equals the share of
    repeats, at most the median. A position counts as two events at most: a pile of events, such
    as a default address, does not make a map of addresses.
    """
    axes = [distinct(indices[:, [j]], counts) for j in range(indices.shape[1])]
    rounding = np.array([common_step(values[:, 0], times) for values, times in axes])
    spacing = np.full(len(axes), repeat_distance(indices, counts, 0.0))
    if rounding.all() and (
        repeated_share(np.minimum(counts, 2)) < NOTABLE_REPEATS
        or np.any(spacing < MIN_ROUNDED_GAP * rounding)
    ):
        spacing[:] = 0.0
    for j, (values, times) in enumerate(axes):
        if not rounding[j] and len(axes) > 1:
            alone = repeat_distance(values, times, NOTABLE_AXIS_REPEATS)
            spacing[j] = max(spacing[j], alone)
    return Positions(rounding, spacing, repeated_share(counts))


def repeated_share(counts: Ints) -> float:
    """The share of events in counts of more than one."""
    return float(counts[counts > 1].sum() / max(counts.sum(), 1))


def repeat_distance(indices: Ints, counts: Ints, least: float) -> float:
    """How far distinct positions are apart where repeats outnumber neighbours.

    0 if there are fewer repeats than `least`, or if the distance is that of neighbouring units.
    """
    weights = np.minimum(counts, 2)
    share = repeated_share(weights)
    if share <= least or len(indices) < 2:
        return 0.0
    rows = np.linspace(0, len(indices) - 1, min(len(indices), MAX_NEAREST)).astype(np.int64)
    distances = nearest_distances(indices, rows)
    order = np.argsort(distances)
    reached = np.cumsum(weights[rows][order])
    at = np.searchsorted(reached, min(share, 0.5) * reached[-1])
    distance = float(distances[order[at]])
    return distance if distance >= MIN_LATTICE_STEP else 0.0


def spread_sides(indices: Ints, counts: Ints, step: Floats) -> Floats:
    """The box that the events of each position may come from, shape (m, d).

    The step; for piles of events the distance to the nearest other position, if that is longer.
    """
    sides = np.tile(step, (len(indices), 1))
    piles = np.flatnonzero(counts >= max(MIN_PILE_EVENTS, MIN_PILE_SHARE * counts.sum()))
    if len(piles) and len(indices) > 1:
        sides[piles] = np.maximum(step, nearest_distances(indices, piles)[:, None])
    return sides


def nearest_distances(indices: Ints, rows: Ints) -> Floats:
    """The distance from some distinct positions to the nearest other one, shape (len(rows),)."""
    axis = int(np.argmax([len(np.unique(column[:: 1 + len(column) // 4096])) for column in indices.T]))
    order = np.argsort(indices[:, axis], kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return _nearest(np.ascontiguousarray(indices[order]), place[rows], axis)


@compiled
def _nearest(sorted_indices: Ints, rows: Ints, axis: int) -> Floats:
    """Neighbours along the axis in both directions, until they are farther than the nearest."""
    m, d = sorted_indices.shape
    out = np.full(len(rows), np.inf)
    for r in range(len(rows)):
        x = sorted_indices[rows[r]]
        for direction in (-1, 1):
            i = rows[r] + direction
            while 0 <= i < m and abs(sorted_indices[i, axis] - x[axis]) < out[r]:
                square = 0.0
                for j in range(d):
                    square += float(sorted_indices[i, j] - x[j]) ** 2
                out[r] = min(out[r], math.sqrt(square))
                i += direction
    return out
