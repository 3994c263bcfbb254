"""Does the map of events change with time? Trees of places with profiles of time, by evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.rates.map_by_time import CellMasses, MapByTime, bins_of, closed_axes
from hplus.rates.statistic import Statistic
from hplus.rates.trees.concentrations import MIN_GAIN, MIN_GAIN_PER_EVENT
from hplus.rates.trees.profile_trees import learned_concentrations
from hplus.windows import Product

JOINT_DEPTH = 12
"""How often a window of places and times is halved to give the cells that events are counted in."""

TIME_HALVINGS, MAX_PLACE_BITS, CELLS_PER_EVENT = 6, 12, 0.25
"""A cycle is divided into 2⁶ bins; places into at most 2¹² cells, a quarter for each event."""

MIN_ADDED_GAIN = 0.5
"""Nats that a halving of times must gain; those of one level of places must gain MIN_GAIN."""

DAY_HOURS, WEEK_HOURS = 24.0, 168.0
"""A week may be folded into days."""


class JointTable(NamedTuple):
    """Counts (*cells, bins) of events, and the concentrations and gains of profiles of time.

    These are by level of places and halving of times, (levels, halvings).
    """

    period: float
    counts: Floats
    concentrations: Floats
    gains: Floats

    @property
    def log_evidence(self) -> float:
        """Nats of the levels where place and time say something together."""
        return float(self.gains[np.isfinite(self.concentrations)].sum())


def joint_statistic(window: Product, X: Floats, weights: Floats | None = None) -> Statistic:
    """The statistic of events by place and time."""
    statistic = Statistic.of(window, X, weights)
    return statistic.coarsened(min(statistic.depth, JOINT_DEPTH))


MassesOf = Callable[[Floats, float], CellMasses]
"""The margins of a separable rate for a table of counts and a period."""


def learn_map_by_time(events: Statistic, margins: MassesOf | None, seed: int) -> MapByTime | None:
    """How the map changes with time; None if there is no evidence that it does.

    `margins` are those of the separable rate; None for those of the events.
    """
    tables = [_learned(events, period, seed) for period in _periods(_window(events))]
    best = max(tables, key=lambda table: table.log_evidence)
    if not best.log_evidence > 0.0:
        return None
    d = best.counts.ndim - 1
    found = CellMasses(best.counts.sum(axis=-1), best.counts.sum(axis=tuple(range(d))))
    if margins is not None:
        found = margins(best.counts, best.period)
    window, (period, counts, concentrations, gains) = _window(events), best
    return MapByTime(window, period, counts, concentrations, gains, *found, seed)


def _window(events: Statistic) -> Product:
    assert isinstance(events.window, Product)
    return events.window


def _periods(window: Product) -> tuple[float, ...]:
    """Into what times are folded: their whole axis, or the days of a week."""
    low, high = window.right.bounds()
    whole, hours = float(high[0] - low[0]), window.right.unit == "h"
    is_week = bool(window.right.closed_axes()) and hours and whole == WEEK_HOURS
    return (whole, DAY_HOURS) if is_week else (whole,)


def _learned(events: Statistic, period: float, seed: int) -> JointTable:
    """The table of a period, as fine as there is anything to tell, with its concentrations."""
    window, d = _window(events), events.window.dimension - 1
    bits = min(MAX_PLACE_BITS, int(np.log2(max(CELLS_PER_EVENT * events.events, 1.0))))
    counts = joint_counts(events, period, bits // d, TIME_HALVINGS)
    closed = closed_axes(window)
    concentrations, gains = learned_concentrations(counts, closed, MIN_ADDED_GAIN, seed)
    of_levels = np.sum(gains, axis=1, where=concentrations < np.inf)
    if of_levels.max() < max(MIN_GAIN, MIN_GAIN_PER_EVENT * events.effective_events):
        concentrations[:] = np.inf
    levels, halvings = (
        int(np.max(np.flatnonzero(finite.any(axis=axis)), initial=-1)) + 1
        for finite in [concentrations < np.inf]
        for axis in (1, 0)
    )
    # the first level of open axes and the first halving of an open line are of the tree alone
    depth, bins = max(levels - 1, 0), max(halvings - (not closed[-1]), 0)
    kept = slice(depth + 1), slice(bins + (not closed[-1]))
    counts = joint_counts(events, period, depth, bins)
    return JointTable(period, counts, concentrations[kept], gains[kept])


def joint_counts(events: Statistic, period: float, depth: int, halvings: int) -> Floats:
    """Counts in cells of place at a depth and bins of time, (*cells, bins)."""
    window = _window(events)
    places = events.lattice.indices(events.codes)[:, :-1] >> (events.depth - depth)
    times = events.lattice.centers(events.codes, events.depth)[:, -1]
    shape = (2**depth,) * (window.dimension - 1) + (2**halvings,)
    bins = bins_of(times, window, period, 2**halvings)
    flat = np.ravel_multi_index((*places.T, bins), shape)
    masses = events.masses * (events.effective_events / max(events.total, np.finfo(float).tiny))
    return np.bincount(flat, masses, minlength=int(np.prod(shape))).reshape(shape).astype(float)
