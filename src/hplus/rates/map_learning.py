"""Does the map of events change with time? Trees on independent places and times, by evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.rates.map_by_time import MapByTime, Margins, bins_of, closed_axes
from hplus.rates.statistic import Statistic
from hplus.rates.trees.concentrations import MIN_GAIN, MIN_GAIN_PER_EVENT
from hplus.rates.trees.joint_trees import learned_levels
from hplus.windows import Product

JOINT_DEPTH = 12
"""How often a window of places and times is halved to give the cells that events are counted in."""

MAX_TABLE_BITS, CELLS_PER_EVENT, MAX_LEAD = 18, 8, 3
"""A table has at most 2¹⁸ cells, and 8 for each event; places are halved up to 3 times more often
than times."""

DAY_HOURS, WEEK_HOURS = 24.0, 168.0
"""A week may be folded into days."""


class JointTable(NamedTuple):
    """Counts (*cells, bins) of events, and the concentrations and gains of the levels of trees."""

    period: float
    counts: Floats
    concentrations: Floats
    gains: Floats

    @property
    def log_evidence(self) -> float:
        """Nats of the levels where place and time say something together."""
        return float(self.gains[np.isfinite(self.concentrations)].sum())


def joint_statistic(window: Product, X: Floats) -> Statistic:
    """The statistic of events by place and time."""
    statistic = Statistic.of(window, X)
    return statistic.coarsened(min(statistic.depth, JOINT_DEPTH))


MarginsOf = Callable[[Floats, float], Margins]
"""The margins of a separable rate for a table of counts and a period."""


def learn_map_by_time(events: Statistic, margins: MarginsOf | None, seed: int) -> MapByTime | None:
    """How the map changes with time; None if there is no evidence that it does.

    `margins` are those of the separable rate; None for those of the events.
    """
    tables = [
        _learned(events, period, lead, seed)
        for period in _periods(_window(events))
        for lead in range(MAX_LEAD + 1)
    ]
    best = max(tables, key=lambda table: table.log_evidence)
    if not best.log_evidence > 0.0:
        return None
    d = best.counts.ndim - 1
    found = Margins(best.counts.sum(axis=-1), best.counts.sum(axis=tuple(range(d))))
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


def _learned(events: Statistic, period: float, lead: int, seed: int) -> JointTable:
    """The table of one layout with its concentrations, down to the last level that has one."""
    window, d = _window(events), events.window.dimension
    bits = min(MAX_TABLE_BITS, int(np.log2(CELLS_PER_EVENT * max(events.events, 1))))
    levels = max((bits - lead * (d - 1)) // d, 0)
    counts = joint_counts(events, period, lead, levels)
    found = learned_levels(counts, closed_axes(window), levels, seed)
    least = max(MIN_GAIN, MIN_GAIN_PER_EVENT * events.effective_events)
    gains = np.array([each.gain for each in found])
    used = np.array([each.concentration for each in found])
    used[gains < least] = np.inf
    finite = np.flatnonzero(used < np.inf)
    depth = int(finite[-1]) + 1 if len(finite) else 0
    counts = joint_counts(events, period, lead, depth)
    return JointTable(period, counts, used[:depth], gains[:depth])


def joint_counts(events: Statistic, period: float, lead: int, levels: int) -> Floats:
    """Counts in cells of place and bins of time, (*cells, bins), halved `levels` times."""
    window, depth = _window(events), levels + lead
    at = events.lattice.indices(events.codes)
    places = at[:, :-1] >> (events.depth - depth)
    times = events.lattice.centers(events.codes, events.depth)[:, -1]
    shape = (2**depth,) * (window.dimension - 1) + (2**levels,)
    bins = bins_of(times, window, period, 2**levels)
    flat = np.ravel_multi_index((*places.T, bins), shape)
    masses = events.masses * (events.effective_events / max(events.total, 1e-300))
    return np.bincount(flat, masses, minlength=int(np.prod(shape))).reshape(shape).astype(float)
