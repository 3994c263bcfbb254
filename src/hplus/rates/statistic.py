"""Statistic: what rate models need of events, how many there are in which cell of a lattice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, final

import numpy as np

from hplus._checks import Floats, Ints, check_count, shown
from hplus._values import Value, value
from hplus.grids.hats import read_only
from hplus.rates.cell_counts import (
    cells_by_drop,
    counted,
    group_cells,
    merge_cells,
    merge_counts,
    thinned,
)
from hplus.rates.lattice import CellLattice, Codes
from hplus.rates.lazy_parts import is_lazy, lazy_statistic
from hplus.rates.weight_units import (
    MAX_UNITS,
    WEIGHT_BITS,
    check_units,
    exact_sum,
    frozen_whole,
    in_units,
    sum_of_squares,
)
from hplus.windows import Window

MAX_CELLS = 2**23
"""Distinct cells of a statistic; with more, its cells are doubled in size."""

EVENT_FOLDS = 5
"""Random parts of the events, each of which can be held out."""

EVENTS_AT_ONCE = 2**22
"""Events that are sorted at once."""


@final
@value
class Statistic(Value):
    """All that a fit of `Intensity` needs of the events; statistics of parts are added with `+`.

    The number and the weight of the events in each cell of a fine lattice on the window. All sums
    are exact: whatever the parts and their order, the result is the same. If there are more than
    2²³ distinct cells, they are made larger. A statistic holds the positions of the events to this
    resolution, so treat it like the events where these are confidential.

    >>> from hplus import Interval
    >>> monday = Statistic.of(Interval(0, 24), [[9.5], [17.2]])
    >>> tuesday = Statistic.of(Interval(0, 24), [[8.1]])
    >>> (monday + tuesday).total
    3.0

    Parameters
    ----------
    window : Window
    depth : int
        How often the longest side is halved to give the cells.
    codes : array of uint64, shape (m,)
        Numbers of the cells that hold events, sorted; see `CellLattice`. `of` computes them.
    counts : array of int64, shape (m,)
        How many events each cell holds.
    weights : array of int64, shape (m,) or (0,)
        The sum of their weights in units of 2⁻²⁰; empty if it equals the counts.
    squares : int
        The sum of the squared weights of all events in units of 2⁻⁴⁰.
    """

    window: Window
    depth: int
    codes: Codes
    counts: Ints
    weights: Ints
    squares: int

    def __post_init__(self) -> None:
        lattice = CellLattice(self.window)
        codes, counts = frozen_whole(self.codes, np.uint64), frozen_whole(self.counts, np.int64)
        weights = frozen_whole(self.weights, np.int64)
        if weights.size and np.array_equal(weights, counts << WEIGHT_BITS):
            weights = weights[:0]
        depth = check_count("depth", self.depth, least=0)
        squares = check_count("squares", self.squares, least=0)
        self._set(depth=depth, codes=codes, counts=counts, weights=weights, squares=squares)
        if (
            depth > lattice.bits
            or not codes.shape == counts.shape == (codes.size,)
            or weights.shape not in {(0,), codes.shape}
            or np.any(codes[1:] <= codes[:-1])
            or np.any(codes[-1:] >> np.uint64(lattice.dimension * depth))
            or np.any(counts < 1)
            or np.any(weights < 0)
            or exact_sum(counts) >= MAX_UNITS >> WEIGHT_BITS
            or self._units >= MAX_UNITS
            or self._units**2 > self.events * squares
        ):
            raise ValueError(
                "codes, counts, weights and squares must be those of events in sorted cells, got "
                f"{codes.size} codes and {counts.size} counts at depth {depth}: use "
                "Statistic.of(window, X)."
            )

    @classmethod
    def of(cls, window: Window, X: Any, sample_weight: Any = None) -> Statistic:
        """The statistic of events X (n, d) with weights (n,), 1 by default; both may be of Dask."""
        if is_lazy(X):
            return lazy_statistic(window, X, sample_weight)
        lattice = CellLattice(window)
        X = window.require("X", X)
        q = None if sample_weight is None else in_units(sample_weight, len(X))
        chunks = (slice(i, i + EVENTS_AT_ONCE) for i in range(0, max(len(X), 1), EVENTS_AT_ONCE))
        return merged(count_events(lattice, X[i], None if q is None else q[i]) for i in chunks)

    @classmethod
    def scan(
        cls, source: object, window: Window, columns: Sequence[str], **how: object
    ) -> Statistic:
        """The statistic of rows of files or a table in a window; see `rates.scan_files`."""
        from hplus.rates.scan_files import scan_files

        return scan_files(source, window, columns, **how)  # type: ignore[arg-type]  # checked there

    def __reduce__(self) -> tuple[object, ...]:
        return Statistic, tuple(self.get_params(deep=False).values())

    @property
    def lattice(self) -> CellLattice:
        """The cells that the window is divided into."""
        return CellLattice(self.window)

    @property
    def events(self) -> int:
        """The number of events."""
        return int(self.counts.sum())

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return self._units / 2**WEIGHT_BITS

    @property
    def effective_events(self) -> float:
        """(Σw)²/Σw²: how many events of equal weight tell as much."""
        return self._units**2 / self.squares if self.squares else 0.0

    @property
    def masses(self) -> Floats:
        """The sum of the weights in each cell, shape (m,)."""
        return self._weights.astype(np.float64) * 0.5**WEIGHT_BITS

    def folds(self, seed: int, parts: int = EVENT_FOLDS, cells: slice = slice(None)) -> Ints:
        """The events of each cell, split at random into parts of about the same size, (parts, m).

        The split of a cell follows from its code and the seed. Events at the same position are
        spread over all parts.
        """
        return thinned(self.codes[cells], self.counts[cells], np.uint64(seed), parts)

    def coarsened(self, depth: int) -> Statistic:
        """The same events in the larger cells of a smaller depth."""
        if not 0 <= depth <= self.depth:
            raise ValueError(
                f"depth must be from 0 to {self.depth}, that of the statistic, got {depth}."
            )
        if depth == self.depth:
            return self
        shift = np.uint64(self.window.dimension * (self.depth - depth))
        codes, rows = group_cells(self.codes, self._rows(self.weights.size > 0), shift)
        return of_rows(self.window, depth, codes, rows, self.squares)

    def part(self, counts: Ints) -> Statistic:
        """Some of the events of each cell, (m,), with their share of its weight."""
        held = counts > 0
        events, weights = int(counts.sum()), self.weights
        if weights.size:
            weights = np.rint(weights * (counts / self.counts)).astype(np.int64)[held]
        units = exact_sum(weights) if weights.size else events << WEIGHT_BITS
        shared = -(-self.squares * events // max(self.events, 1))
        squares = max(shared, -(-(units**2) // max(events, 1)))
        rows = np.stack([counts[held], weights]) if weights.size else counts[held][None]
        return of_rows(self.window, self.depth, self.codes[held], rows, squares)

    def __add__(self, other: Statistic) -> Statistic:
        if not isinstance(other, Statistic):
            return NotImplemented
        return sum_at(depth_of_sum(self, other), self, other)

    def __repr__(self) -> str:
        return f"<Statistic of {self.events} events in {len(self.codes)} cells of {self.window}>"

    @property
    def _units(self) -> int:
        """Σw in units of 2⁻²⁰."""
        return exact_sum(self.weights) if self.weights.size else self.events << WEIGHT_BITS

    @property
    def _weights(self) -> Ints:
        """`weights`, computed if they equal the counts."""
        return self.weights if self.weights.size else self.counts << WEIGHT_BITS

    def _rows(self, weighted: bool) -> Ints:
        """What is added up in each cell: counts, and weights where either statistic has any."""
        rows = np.stack([self.counts, self._weights]) if weighted else self.counts[None]
        return read_only(rows)

    def bounded(self) -> Statistic:
        """The same events at the greatest depth with at most MAX_CELLS distinct cells."""
        if len(self.codes) <= MAX_CELLS:
            return self
        cells = cells_by_drop(self.codes, self.codes[:0], self.window.dimension, self.depth)
        return self.coarsened(self.depth - int(np.argmax(cells <= MAX_CELLS)))


def depth_of_sum(a: Statistic, b: Statistic) -> int:
    """The greatest depth at which the sum of two statistics has at most MAX_CELLS cells."""
    if b.window != a.window:
        raise ValueError(
            f"statistics must share one window to be added, got {shown(a.window)} and "
            f"{shown(b.window)}."
        )
    depth, d = min(a.depth, b.depth), a.window.dimension
    if len(a.codes) + len(b.codes) <= MAX_CELLS:
        return depth
    a, b = a.coarsened(depth), b.coarsened(depth)
    return depth - int(np.argmax(cells_by_drop(a.codes, b.codes, d, depth) <= MAX_CELLS))


def sum_at(depth: int, a: Statistic, b: Statistic) -> Statistic:
    """The sum of two statistics at a depth that both have."""
    check_units(a._units + b._units)
    squares, a, b = a.squares + b.squares, a.coarsened(depth), b.coarsened(depth)
    if a.weights.size + b.weights.size:
        codes, rows = merge_cells(a.codes, a._rows(True), b.codes, b._rows(True))
    else:
        codes, counts = merge_counts(a.codes, a.counts, b.codes, b.counts)
        rows = counts[None]
    return of_rows(a.window, depth, codes, rows, squares)


def merged(parts: Iterable[Statistic]) -> Statistic:
    """The sum of at least one statistic, the smaller ones first.

    They are added up until each has twice as many cells as the next: many small ones take a time
    of n log n instead of n².
    """
    few = list[Statistic]()
    for part in parts:
        new = part
        while few and len(few[-1].codes) <= 2 * len(new.codes):
            new = few.pop() + new
        few.append(new)
    return reduce(lambda total, part: part + total, few[::-1])


def count_events(lattice: CellLattice, X: Floats, q: Ints | None = None) -> Statistic:
    """The statistic of events X (n, d) of the window, with weights q (n,) in units of 2⁻²⁰."""
    return count_codes(lattice, lattice.codes(X), q)


def count_codes(
    lattice: CellLattice, codes: Codes, q: Ints | None = None, depth: int | None = None
) -> Statistic:
    """The statistic of events with these codes (n,) and weights q (n,), at most at a depth.

    The codes may be sorted in place.
    """
    depth = lattice.bits if depth is None else depth
    shift = np.uint64(lattice.dimension * (lattice.bits - depth))
    if q is None:
        found, counts = counted(codes, shift, 2 ** (lattice.dimension * depth))
        rows, squares = counts[None], len(codes) << (2 * WEIGHT_BITS)
    else:
        order, ones = np.argsort(codes), np.ones((1, len(codes)), dtype=np.int64)
        given = read_only(codes[order]), read_only(np.vstack([ones, q[order]]))
        (found, rows), squares = group_cells(*given, shift), sum_of_squares(q)
    return of_rows(lattice.window, depth, found, rows, squares).bounded()


def of_rows(window: Window, depth: int, codes: Codes, rows: Ints, squares: int) -> Statistic:
    """The statistic of rows of counts and, where there are any, weights: sums of valid ones."""
    codes, rows = read_only(codes), read_only(rows)
    if len(rows) == 2:
        return Statistic(window, depth, codes, rows[0], rows[1], squares)
    found = object.__new__(Statistic)  # cells that need no check, which would take as long again
    found._set(window=window, depth=depth, codes=codes, counts=rows[0], weights=rows[0, :0])
    found._set(squares=squares)
    return found
