"""MapByTime: how the map of events changes with time, a ratio to independent places and times.

λ(x, t) = place(x) time(t) r(x, t) / events. The ratio r is that of random trees of places with
profiles of time, on the separable rate, averaged over trees. Its means by place and by time are 1,
so that the rates by place and by time stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from hplus._checks import Floats, Ints
from hplus.rates.cell_pieces import CellGrid, pieces_of, place_grid
from hplus.rates.fitted import FittedRate
from hplus.rates.trees.profile_trees import (
    Drawn,
    balanced,
    drawn_shares,
    mean_shares,
    profile_ratios,
    shifts,
)
from hplus.windows import Interval, Product, Window

MAP_TREES = 64
"""Trees that the ratio is averaged over, and draws of it."""


class CellMasses(NamedTuple):
    """∫ of the rate by place over each cell, (*cells), and of that by time over each bin, (bins,).

    Any multiple of them will do.
    """

    places: Floats
    times: Floats


@dataclass(frozen=True)
class MapByTime:
    """The ratio r(x, t) in cells of place and bins of time, with its uncertainty.

    Bins divide the `period` into which times are folded: the whole axis, or the day of a week.
    `counts` (*cells, bins) are of the events that it was learned from, `concentrations` (levels,
    halvings) those of profiles of time, and `gains` their nats over the separable rate.
    `place_masses` (*cells) and `time_masses` (bins,) are the margins of the separable rate.
    """

    window: Product
    period: float
    counts: Floats
    concentrations: Floats
    gains: Floats
    place_masses: Floats
    time_masses: Floats
    seed: int

    @property
    def log_evidence(self) -> float:
        """Nats by which the events are more likely than under the separable rate."""
        return float(self.gains[np.isfinite(self.concentrations)].sum())

    @cached_property
    def ratios(self) -> Floats:
        """The mean ratio in each cell and bin, (cells, bins)."""
        return self._balanced(np.mean(self._tables(mean_shares), axis=0))

    @cached_property
    def draws(self) -> Floats:
        """Equally likely ratios, (k, cells, bins)."""
        drawn = drawn_shares(np.random.default_rng(self.seed))
        return self._balanced(np.stack(self._tables(drawn)))

    def at(self, X: Floats) -> Floats:
        """The ratio at points (n, d), shape (n,)."""
        return self.ratios[self.cells(X), self.bins(X[:, -1])]

    def draws_at(self, X: Floats) -> Floats:
        """Equally likely ratios at points (n, d), shape (n, k)."""
        return self.draws[:, self.cells(X), self.bins(X[:, -1])].T

    def cells(self, X: Floats) -> Ints:
        """The cell of the place of each point (n, d) or place, shape (n,)."""
        return self.grid.indices(X[:, : self.window.left.dimension])

    def bins(self, times: Floats) -> Ints:
        """The bin of each time, shape (n,)."""
        return bins_of(times, self.window, self.period, len(self.time_masses))

    def in_cells(self, where: Sequence[Window], place: FittedRate) -> csr_array:
        """∫ of the rate by place over the part of each region in each cell, (r, cells)."""
        known = self.place_masses.ravel() * (place.integral() / self.place_masses.sum())
        whole = [i for i, region in enumerate(where) if region == self.window.left]
        parts = [i for i, region in enumerate(where) if region != self.window.left]
        owners, cells, pieces = pieces_of(self.grid, [where[i] for i in parts])
        masses = place.integrals(pieces) if pieces else np.zeros(0)
        rows = np.append(np.array(parts, int)[owners], np.repeat(whole, len(known)).astype(int))
        columns = np.append(np.array(cells, int), np.tile(np.arange(len(known)), len(whole)))
        values = np.append(masses, np.tile(known, len(whole)))
        return csr_array((values, (rows, columns)), shape=(len(where), len(known)))

    def in_bins(self, when: Window, time: FittedRate) -> Floats:
        """∫ of the rate by time over the part of a time in each bin, (bins,)."""
        return masses_by_bin(time, self.window, when, self.period, len(self.time_masses))

    def ratios_over(self, cells: csr_array, bins: Floats, at: list[int], tables: Floats) -> Floats:
        """Ratios over regions and times by tables of them (k, cells, bins), shape (r, k).

        From the masses of regions in cells (r, c) and of times in bins (m, bins); region i is asked
        for time at[i].
        """
        whole = np.maximum(cells.sum(axis=1), np.finfo(float).tiny)
        shares = bins / np.maximum(bins.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        found = np.zeros((len(at), len(tables)))
        for when, share in enumerate(shares):
            some = np.flatnonzero(np.array(at) == when)
            found[some] = cells[some] @ (tables @ share).T / whole[some, None]
        return found

    @property
    def highest(self) -> Floats:
        """The largest ratio in each bin where there are any events, (bins,)."""
        return np.max(
            self.ratios, axis=0, where=(self.place_masses.ravel() > 0.0)[:, None], initial=0.0
        )

    @property
    def grid(self) -> CellGrid:
        """The cells of places."""
        return place_grid(self.window, self.place_masses.shape)

    def _tables(self, drawn: Drawn) -> list[Floats]:
        """The ratios of each tree, (*cells, bins)."""
        trees = shifts(self.counts.shape, closed_axes(self.window), MAP_TREES, self.seed)
        return [profile_ratios(self.counts, s, self.concentrations, drawn) for s in trees]

    def _balanced(self, tables: Floats) -> Floats:
        flat = tables.reshape(*tables.shape[: -self.counts.ndim], -1, len(self.time_masses))
        return balanced(flat, self.place_masses.ravel(), self.time_masses)


def closed_axes(window: Window) -> tuple[bool, ...]:
    """Does each axis wrap around?"""
    return tuple(axis in window.closed_axes() for axis in range(window.dimension))


def bins_of(times: Floats, window: Product, period: float, bins: int) -> Ints:
    """The bin of each time, folded into a period that is divided into as many, (n,)."""
    phase = (times - float(window.right.bounds()[0][0])) / period
    turns = round(_length(window.right) / period)
    whole = np.clip(np.floor(phase), 0.0, turns - 1.0)
    return np.clip(((phase - whole) * bins).astype(np.int64), 0, bins - 1)


def masses_by_bin(
    time: FittedRate, window: Product, when: Window, period: float, bins: int
) -> Floats:
    """∫ of a rate by time over the part of `when` in each bin of a period, (bins,)."""
    low, high = float(window.right.bounds()[0][0]), float(window.right.bounds()[1][0])
    turns = round(_length(window.right) / period)
    edges = low + period / bins * np.arange(turns * bins + 1)
    edges[-1] = high
    a, b = (float(end[0]) for end in when.bounds())
    starts, ends = np.maximum(edges[:-1], a), np.minimum(edges[1:], b)
    some = np.flatnonzero(starts < ends)
    parts = [
        Interval(x, y) for x, y in zip(starts[some].tolist(), ends[some].tolist(), strict=True)
    ]
    masses = time.integrals(parts) if parts else np.zeros(0)
    return np.bincount(some % bins, masses, minlength=bins).astype(float)


def masses_of(
    place: FittedRate, time: FittedRate, window: Product, counts: Floats, period: float
) -> CellMasses:
    """The margins of a separable rate over the cells and bins of a table of counts."""
    _, cells, pieces = pieces_of(place_grid(window, counts.shape[:-1]), [window.left])
    masses = np.zeros(int(np.prod(counts.shape[:-1])))
    masses[cells] = place.integrals(pieces)
    by_bin = masses_by_bin(time, window, window.right, period, counts.shape[-1])
    return CellMasses(masses.reshape(counts.shape[:-1]), by_bin)


def _length(window: Window) -> float:
    low, high = window.bounds()
    return float(high[0] - low[0])
