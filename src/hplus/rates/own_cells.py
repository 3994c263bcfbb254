"""OwnCells: many sorted cells that others are added to in place; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Ints
from hplus.grids.hats import compiled
from hplus.rates import statistic as statistics
from hplus.rates.lattice import Codes
from hplus.rates.statistic import Statistic, depth_of_sum, of_rows
from hplus.rates.weight_units import WEIGHT_BITS, check_units

LARGE_SHARE = 0.25
"""Share of the largest number of cells from which on a statistic is added to in place."""


class OwnCells(NamedTuple):
    """The arrays behind the codes and counts of a statistic that nobody else has.

    They have room for the largest number of cells; what was never written takes no memory.
    """

    codes: Codes
    counts: Ints

    @classmethod
    def of(cls, part: Statistic) -> OwnCells:
        """A copy of the cells of a statistic without weights."""
        most = max(statistics.MAX_CELLS, len(part.codes))
        found = cls(np.empty(most, dtype=np.uint64), np.empty(most, dtype=np.int64))
        found.codes[: len(part.codes)] = part.codes
        found.counts[: len(part.codes)] = part.counts
        return found

    def same(self, part: Statistic) -> Statistic:
        """The statistic that these are a copy of, with these arrays."""
        return self._first(len(part.codes), part, part.depth, part.squares)

    def plus(self, last: Statistic, new: Statistic) -> Statistic:
        """The sum of the statistic that has these arrays, which is changed, and another one."""
        check_units((last.events + new.events) << WEIGHT_BITS)
        last = self._coarsened(last, min(last.depth, new.depth))
        new = new.coarsened(last.depth)
        most = statistics.MAX_CELLS
        m = _merge_in_place(*self, len(last.codes), new.codes, new.counts, most)
        if m < 0:
            last = self._coarsened(last, depth_of_sum(last, new))
            new = new.coarsened(last.depth)
            m = _merge_in_place(*self, len(last.codes), new.codes, new.counts, most)
        return self._first(m, last, last.depth, last.squares + new.squares)

    def _coarsened(self, last: Statistic, depth: int) -> Statistic:
        """The same events in larger cells, in place."""
        if depth == last.depth:
            return last
        shift = np.uint64(last.window.dimension * (last.depth - depth))
        m = _group_in_place(*self, len(last.codes), shift)
        return self._first(m, last, depth, last.squares)

    def _first(self, m: int, like: Statistic, depth: int, squares: int) -> Statistic:
        return of_rows(like.window, depth, self.codes[:m], self.counts[None, :m], squares)


def are_large(part: Statistic) -> bool:
    """Does a statistic have so many cells that another copy of them is too much?"""
    return not part.weights.size and len(part.codes) >= LARGE_SHARE * statistics.MAX_CELLS


@compiled
def _merge_in_place(
    codes: Codes, counts: Ints, m: int, others: Codes, more: Ints, most: int
) -> int:
    """Add sorted cells to the first m; how many there are then, or -1 if they are too many."""
    shared = i = 0
    for code in others:
        while i < m and codes[i] < code:
            i += 1
        shared += i < m and codes[i] == code
    total = m + len(others) - shared
    if total > most:
        return -1
    i, j = m - 1, len(others) - 1
    for k in range(total - 1, -1, -1):  # from the end, where there is room
        if j < 0:
            break
        mine = i >= 0 and codes[i] >= others[j]
        theirs = i < 0 or others[j] >= codes[i]
        code = codes[i] if mine else others[j]
        count = (counts[i] if mine else 0) + (more[j] if theirs else 0)
        codes[k], counts[k] = code, count
        i -= mine
        j -= theirs
    return total


@compiled
def _group_in_place(codes: Codes, counts: Ints, m: int, shift: np.uint64) -> int:
    """Replace the first m codes by the distinct codes >> shift; how many these are."""
    k = -1
    for i in range(m):
        code, count = codes[i] >> shift, counts[i]
        if k < 0 or code != codes[k]:
            k += 1
            codes[k], counts[k] = code, count
        else:
            counts[k] += count
    return k + 1
