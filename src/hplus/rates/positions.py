"""Positions: whether events are at rounded or repeated positions, and down to which step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hplus._checks import Floats, Ints
from hplus.grids.hats import compiled
from hplus.rates.rounding import common_step, sampled_rows
from hplus.rates.statistic import Statistic
from hplus.windows import Window
from hplus.wording import AXES, SECONDS_IN, duration_words, lengths_words, listed, share_words

MAX_AXIS_POSITIONS = 2**17
"""Positions whose coordinates on one axis are looked at."""

MAX_NEAREST = 2**12
"""Positions whose nearest other position is looked for."""

MIN_SPACING = 64
"""Repeated positions that lie closer together, in units, may be repeated by chance."""

NOTABLE_REPEATS = 0.1
"""Share of repeats from which they tell more than rounding does."""

NOTABLE_AXIS_REPEATS = 0.25
"""Share of repeats from which the coordinates of one axis are repeated, whatever the others."""

MIN_AXIS_EVENTS = 20
"""Events from which repeated coordinates of one axis tell how they are rounded."""

MIN_ROUNDED_GAP = 3.0
"""How many steps of rounding lie between repeated positions that are not just rounded."""

MIN_PILE_EVENTS, MIN_PILE_SHARE = 10, 1e-3
"""A position with as many events, and this share of all, holds more than chance would put there."""

LARGEST_SPACING = 1.0 / 64.0
"""The largest spacing of sites, as a share of the longest side: each of a few sensors or shops is
told from the others, and a single one from the rest of the window."""

LIKELY_STEPS = 10.0 ** np.arange(-9, 7)
"""Steps in the unit of an axis that are tried in any case."""


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
        """The smallest side of a cell that means something, shape (d,); 0 if all do."""
        return np.maximum(self.rounding, self.spacing)

    def words(self, units: Sequence[str]) -> str:
        """What limits the map, in one sentence, such as "positions are rounded to 0.1 ft: …".

        `units` are those of the axes; "" if positions are neither rounded nor repeated.
        """
        is_repeated = bool(np.any((self.spacing > 0.0) & (self.spacing >= self.rounding)))
        if is_repeated and self.repeated < NOTABLE_REPEATS:
            known = _in_words([float(f"{side:.2g}") for side in self.step], units)
            return f"positions are known to about {known}: nothing finer is claimed"
        if is_repeated:
            stop = _in_words([float(f"{side:.2g}") for side in self.step], units)
            return (
                f"{share_words(self.repeated)} of the events share their exact position with "
                f"another: the {'map' if len(units) > 1 else 'rate'} stops at {stop}"
            )
        if not self.rounding.any():
            return ""
        named = "" if self.rounding.all() or len(units) > len(AXES) else self._rounded_axes()
        steps = _in_words(self.rounding, units)
        return f"positions{named} are rounded to {steps}: nothing finer is claimed"

    def spread(self, window: Window, X: Floats, rng: np.random.RandomState) -> Floats:
        """Events X (n, d), each moved at random in the box of one step around it.

        Only so do densities at rounded and at repeated positions mean anything. Events whose new
        place would be outside the window stay.
        """
        moved = X + self.step * (rng.random_sample(X.shape) - 0.5)
        low, high = window.bounds()
        for axis in window.closed_axes():
            moved[:, axis] = low[axis] + (moved[:, axis] - low[axis]) % (high - low)[axis]
        return np.where(window.contains(moved)[:, None], moved, X)

    def _rounded_axes(self) -> str:
        return f" along {listed([AXES[j] for j in np.flatnonzero(self.rounding)])}"


def _in_words(lengths: Iterable[float], units: Sequence[str]) -> str:
    """Lengths of several axes, or of time along one."""
    one, *others = lengths
    if not others and units[0] in SECONDS_IN:
        return duration_words(one, units[0])
    return lengths_words([one, *others], units)


def find_positions(statistic: Statistic) -> Positions:
    """What the cells of a statistic tell of the events' positions, in the units of the window."""
    lattice, window = statistic.lattice, statistic.window
    indices, counts = lattice.indices(statistic.codes), statistic.counts
    unit = lattice.cell_sides(statistic.depth)
    # coordinates are exact to the spacing of floating-point numbers and no further
    error = np.max(np.spacing(np.abs(window.bounds())), axis=0) / unit
    shift = np.maximum(np.ceil(np.log2(error)), 0).astype(np.int64)
    unit = unit * 2.0**shift
    groups = np.array(window.axis_groups())
    rounding, spacing, repeated = np.zeros(len(unit)), np.zeros(len(unit)), 0.0
    at_sites = np.zeros(len(unit), dtype=bool)
    for axes in (np.flatnonzero(groups == group) for group in dict.fromkeys(groups)):
        cells = indices, counts
        if len(axes) < len(unit) or shift.any():
            cells = distinct(indices[:, axes] >> shift[axes], counts)
        with np.errstate(over="ignore", divide="ignore"):
            likely = LIKELY_STEPS / unit[axes, None]
        found = find_step(*cells, likely)
        rounding[axes], spacing[axes] = found.rounding, found.spacing
        at_sites[axes] = are_sites(cells[1])
        repeated = max(repeated, found.repeated)
    sides = np.subtract(*window.bounds()[::-1])
    rounding, spacing = rounding * unit, np.minimum(spacing * unit, sides)
    # a site that is far from others stands for the box around it
    most = np.where(at_sites, np.minimum(LARGEST_SPACING * window.longest_sides(), sides), np.inf)
    rounding = np.where(spacing > most, np.maximum(rounding, most), rounding)
    return Positions(rounding, np.minimum(spacing, most), repeated)


def distinct(indices: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Positions (m, d) without repeats, sorted by their coordinates, with their sums of counts."""
    if not len(indices):
        return indices, counts
    order = np.argsort(indices[:, 0]) if indices.shape[1] == 1 else np.lexsort(indices.T[::-1])
    indices = indices[order]
    new = np.append(True, np.any(indices[1:] != indices[:-1], axis=1))
    starts = np.flatnonzero(new)
    return indices[starts], np.add.reduceat(counts[order], starts)


def find_step(indices: Ints, counts: Ints, likely: Floats) -> Positions:
    """The step of distinct positions (m, d) on a lattice of whole units.

    `likely` (d, k) are steps of rounding that are tried in any case, on each axis.

    Rounding is found on each axis by itself. Repeats stop the map where they outnumber neighbours:
    at the quantile of the distances to the nearest other position that equals the share of
    repeats, at most the median; without another position, at infinity. A position counts as two
    events at most: a pile of events, such as a default address, does not make a map of addresses.
    """
    some = sampled_rows(len(indices), MAX_AXIS_POSITIONS)
    axes = [distinct(indices[some, j : j + 1], counts[some]) for j in range(indices.shape[1])]
    rounding = np.array(
        [common_step(u[:, 0], n, steps) for (u, n), steps in zip(axes, likely, strict=True)]
    )
    spacing = np.full(len(axes), repeat_distance(indices, counts, 0.0))
    if rounding.all() and (
        repeated_share(np.minimum(counts, 2)) < NOTABLE_REPEATS
        or np.any(spacing < MIN_ROUNDED_GAP * rounding)
    ):
        spacing[:] = 0.0
    if len(axes) > 1 and counts.sum() >= MIN_AXIS_EVENTS:
        for j in np.flatnonzero(rounding == 0.0):
            alone = repeat_distance(*axes[j], NOTABLE_AXIS_REPEATS)
            rounding[j] = alone if 2.0 * spacing[j] < alone < np.inf else 0.0
    return Positions(rounding, spacing, repeated_share(counts))


def repeated_share(counts: Ints) -> float:
    """The share of events in counts of more than one."""
    return float(counts[counts > 1].sum() / max(counts.sum(), 1))


def are_sites(counts: Ints) -> bool:
    """Do most events share their position with many others, as those of sensors or shops do?"""
    ordered = np.sort(counts)
    half = np.searchsorted(np.cumsum(ordered), 0.5 * ordered.sum())
    return bool(len(ordered)) and bool(ordered[half] >= MIN_PILE_EVENTS)


def repeat_distance(indices: Ints, counts: Ints, least: float) -> float:
    """How far distinct positions are apart where repeats outnumber neighbours.

    0 if there are fewer repeats than `least`, or if the distance is that of neighbouring units.
    """
    weights = np.minimum(counts, 2)
    share = repeated_share(weights)
    if share <= least:
        return 0.0
    rows = sampled_rows(len(indices), MAX_NEAREST)
    distances = nearest_distances(indices, rows)
    order = np.argsort(distances)
    reached = np.cumsum(weights[rows][order])
    at = np.searchsorted(reached, min(share, 0.5) * reached[-1])
    distance = float(distances[order[at]])
    return distance if distance >= MIN_SPACING else 0.0


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
    axis = int(
        np.argmax([len(np.unique(column[:: 1 + len(column) // 4096])) for column in indices.T])
    )
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
