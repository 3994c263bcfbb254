"""Single events drawn from the cells of a statistic."""

from __future__ import annotations

import numpy as np

from hplus._checks import Bools, Floats
from hplus.rates.cell_counts import drawn_at_most, mixed_copies, uniforms
from hplus.rates.lattice import Codes
from hplus.rates.statistic import Statistic
from hplus.studies.event_samples import MAX_SAMPLE, DrawnEvents
from hplus.studies.spans import SECONDS, Clock

TRIES = 20
"""Positions that are tried in a cell on the border of a window."""


def drawn_from_cells(
    events: Statistic,
    clock: Clock | None,
    seed: int,
    largest: float = 0.0,
    most: int = MAX_SAMPLE,
) -> DrawnEvents:
    """At most so many of the events, each with the same chance.

    With weights, of which the largest is given, in proportion to the mean weight of a cell. An
    event is in the middle of a smallest cell, and anywhere in a larger one.
    """
    shares = np.ones(len(events.codes))
    if largest > 0.0:
        shares = np.minimum(events.masses / events.counts / largest, 1.0)
    counts = drawn_at_most(events.codes, events.counts, np.uint64(seed), shares, most)
    keys = mixed_copies(events.codes, counts)
    order = np.argsort(keys)
    cells, keys = np.repeat(events.codes, counts)[order], keys[order]
    X, inside = _positions(events, cells, keys)
    X, keys = X[inside], keys[inside]
    seconds = X[:, -1]
    if clock is not None:
        seconds = clock.start + seconds * SECONDS[clock.unit]
    return DrawnEvents(X, seconds, keys)


def _positions(events: Statistic, cells: Codes, keys: Codes) -> tuple[Floats, Bools]:
    """A point (n, d) of the window in each cell, and where there is one."""
    X = events.lattice.centers(cells, events.depth)
    inside = events.window.contains(X)
    if events.depth == events.lattice.bits:
        return X, inside
    sides, missing = events.lattice.cell_sides(events.depth), np.ones(len(X), dtype=bool)
    for _ in range(TRIES):
        where = np.flatnonzero(missing)
        keys = mixed_copies(keys, np.ones(len(keys), dtype=np.int64))
        salts = (np.uint64(j) << np.uint64(32) for j in range(X.shape[1]))
        u = np.column_stack([uniforms(keys[where] ^ salt) for salt in salts])
        moved = X[where] + (u - 0.5) * sides
        good = events.window.contains(moved)
        X[where[good]], missing[where[good]] = moved[good], False
        if not missing.any():
            break
    return X, inside | ~missing
