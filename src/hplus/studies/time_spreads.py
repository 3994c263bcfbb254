"""Rounded times spread out over what they stand for, in counts and in single events."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus.rates.accumulator import CellAccumulator
from hplus.rates.cell_counts import copy_numbers, mixed_copies, uniforms
from hplus.rates.statistic import Statistic
from hplus.rates.weight_units import WEIGHT_BITS
from hplus.studies.event_samples import DrawnEvents
from hplus.studies.spans import Clock

SPREAD_AT_ONCE = 2**20
"""Events that are spread out at a time."""


def spread_counts(clock: Clock, times: Statistic) -> Statistic:
    """Events by time, with those at each rounded time spread evenly over its step.

    Each of m events is anywhere in its m-th part of the step, by a hash of the cell's code and the
    event's number: so it does not matter in which order the events came, and places of different
    cells are not aligned. The weight of a cell is shared equally.
    """
    found, at = CellAccumulator(times.window), times.lattice.centers(times.codes, times.depth)
    ends = np.cumsum(times.counts)
    start = 0
    while start < len(at):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + SPREAD_AT_ONCE)), start + 1)
        some, counts = slice(start, stop), times.counts[start:stop]
        j = copy_numbers(counts)
        u = (j + uniforms(mixed_copies(times.codes[some], counts))) / np.repeat(counts, counts)
        moved = clock.moved(np.repeat(at[some, 0], counts), u)[:, None]
        units = None
        if times.weights.size:
            weights = times.weights[some]
            units = np.repeat(weights // counts, counts) + (j < np.repeat(weights % counts, counts))
        found.add(_inside(times, moved), units)
        start = stop
    spread = found.statistic()
    if not times.weights.size:
        return spread
    least = -(-(int(spread.weights.sum()) ** 2) // max(spread.events, 1))
    squares = max(times.squares, spread.squares, least)
    weights = spread.weights if spread.weights.size else spread.counts << WEIGHT_BITS
    return Statistic(spread.window, spread.depth, spread.codes, spread.counts, weights, squares)


def spread_drawn(clock: Clock | None, drawn: DrawnEvents) -> DrawnEvents:
    """Single events, each moved by its own key."""
    if clock is None or not clock.spread or not len(drawn.X):
        return drawn
    X = np.array(drawn.X)
    X[:, -1] = clock.moved(X[:, -1], uniforms(drawn.keys))
    return DrawnEvents(X, drawn.seconds, drawn.keys)


def _inside(times: Statistic, at: Floats) -> Floats:
    low, high = times.window.bounds()
    return np.clip(at, low, high)
