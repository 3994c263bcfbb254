"""Simulated futures: background events, what the history still triggers, and their descendants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from hplus._checks import Floats, Ints
from hplus.rates.excitation.bearings import Compass, compass_of
from hplus.rates.excitation.catalogue import NO_BEARINGS, Catalogue
from hplus.rates.excitation.conditional_rate import ConditionalRate
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import offspring
from hplus.rates.excitation.trigger_tables import Tables, TriggerTable
from hplus.rates.excitation.visible import visible_lags

MAX_GENERATIONS = 10_000

MAX_EVENTS = 5_000_000
"""Simulated events of all paths together, at most."""


@dataclass(frozen=True)
class Simulated:
    """Events of several paths: the path (n,) of each, and the events."""

    paths: Ints
    events: Catalogue


class Past(NamedTuple):
    """Events before a simulation: those without a factor of their own, and great ones with it.

    The factors of the great ones are Gamma(`shapes` + `counts`, `shapes` + `means`), (G,) each,
    where counts and means fade with time. The `compass` tells in which directions events trigger
    others: it is None if all are alike.
    """

    others: Catalogue
    great: Catalogue
    shapes: Floats
    counts: Floats
    means: Floats
    compass: Compass | None

    def factors(self, ranks: Floats, kept: float, start: float, then: float) -> Floats:
        """Factors of great events at a time after the start: quantiles at the ranks (n, G).

        The ranks stay: an event that triggers many soon is likely to do so later.
        """
        ahead = (then - self.great.times) / np.maximum(start - self.great.times, 1e-300)
        left = kept ** np.log10(np.maximum(ahead, 1.0))
        counts, means = self.counts * left, self.means * left
        return gammaincinv(self.shapes + counts, ranks) / (self.shapes + means)


def past_of(known: ConditionalRate, start: float) -> Past:
    """What is known at the start of a simulation, of events that can still trigger."""
    sources, own = known.sources, known.factors
    near = (sources.times > start - known.rate.trigger.lags[-1]) & (sources.times <= start)
    # those whose factors are 1 again are like others
    lags, great = known.rate.trigger.lags, own.great
    some = near[own.which] & (start - great.times < lags[great.ends])
    with_factor = np.zeros(len(sources), dtype=bool)
    with_factor[own.which[some]] = True
    compass = compass_of(sources.picked(near))
    # copies of parents need no bearings of their own
    sources = replace(sources, bearings=NO_BEARINGS)
    return Past(
        sources.picked(near & ~with_factor),
        sources.picked(with_factor),
        great.shapes[some],
        own.counts[some],
        own.means[some],
        compass,
    )


class Stage(NamedTuple):
    """A part of the time to come: from when to when, the rate in it, and its random numbers."""

    start: float
    end: float
    rate: ExcitedRate
    rng: np.random.Generator


def simulate(
    rate: ExcitedRate,
    past: Past,
    start: float,
    end: float,
    n_paths: int,
    rng: np.random.Generator,
) -> Simulated:
    """Events from start to end on each path, given the past up to the start."""
    return simulate_stages([Stage(start, end, rate, rng)], past, n_paths)


def simulate_stages(stages: Sequence[Stage], past: Past, n_paths: int) -> Simulated:
    """Events of successive stages on each path, given the past up to the start of the first.

    Their rates differ in the background alone. What happens in a stage is the same whether others
    follow or not.
    """
    rate = stages[0].rate
    tables = {
        (s, t): TriggerTable.of(rate.trigger, s, t, past.compass)
        for s in range(rate.types)
        for t in range(rate.types)
    }
    ranks, begin = stages[0].rng.random((n_paths, len(past.great))), stages[0].start
    parents, new_factors = _great_parents(past, n_paths), np.zeros(0)
    found = []
    for start, end, rate, rng in stages:
        known = past.factors(ranks, rate.factor_law.kept, begin, 0.5 * (start + end))
        generation = joined([
            _background(rate, start, end, n_paths, rng),
            _offspring(rate, tables, parents, np.append(known, new_factors), (start, end), rng),
            _from_history(rate, tables, past.others, start, end, n_paths, rng),
        ])  # fmt: skip
        events, own = _descended(rate, tables, generation, (start, end), rng)
        found.append(events)
        parents, new_factors = joined([parents, events]), np.append(new_factors, own)
        _check_size(len(parents.paths), rate)
    return joined(found)


def _descended(
    rate: ExcitedRate,
    tables: Tables,
    generation: Simulated,
    span: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[Simulated, Floats]:
    """A generation and all its descendants in a span of time, with their factors (n,)."""
    found, factors, count = [generation], [_new_factors(rate, generation.events, rng)], 0
    for _ in range(MAX_GENERATIONS):
        generation = _offspring(rate, tables, generation, factors[-1], span, rng)
        if not len(generation.paths):
            break
        found.append(generation)
        factors.append(_new_factors(rate, generation.events, rng))
        count += len(generation.paths)
        _check_size(count, rate)
    return joined(found), np.concatenate(factors)


def _check_size(count: int, rate: ExcitedRate) -> None:
    if count > MAX_EVENTS:
        raise OverflowError(
            f"a simulation must stay below {MAX_EVENTS:,} events, got more: the branching "
            f"ratio is {rate.trigger.branching():.3g}. Use a shorter horizon or fewer paths."
        )


def joined(parts: list[Simulated]) -> Simulated:
    """The events of several simulations together."""
    paths = np.concatenate([part.paths for part in parts])
    events = [part.events for part in parts]
    return Simulated(
        paths,
        Catalogue(
            np.concatenate([e.times for e in events]),
            np.concatenate([e.places for e in events]),
            np.concatenate([e.marks for e in events]),
            np.concatenate([e.types for e in events]),
        ),
    )


def _background(
    rate: ExcitedRate, start: float, end: float, n_paths: int, rng: np.random.Generator
) -> Simulated:
    parts = []
    for kind in range(rate.types):
        counts = rng.poisson(rate.background.integral(start, end, kind), n_paths)
        n = int(counts.sum())
        times, places = rate.background.sample(start, end, n, kind, rng)
        marks = rate.mark_laws[kind].sample(n, rng)
        events = Catalogue(times, places, marks, np.full(n, kind))
        parts.append(Simulated(np.repeat(np.arange(n_paths), counts), events))
    return joined(parts)


def _great_parents(past: Past, n_paths: int) -> Simulated:
    """Great events of the past on each path."""
    G = len(past.great)
    which = np.tile(np.arange(G), n_paths)
    return Simulated(np.repeat(np.arange(n_paths), G), past.great.picked(which))


def _from_history(
    rate: ExcitedRate,
    tables: Tables,
    history: Catalogue,
    start: float,
    end: float,
    n_paths: int,
    rng: np.random.Generator,
) -> Simulated:
    """Direct offspring of the history, all of whose factors are 1, on each path."""
    lags = visible_lags(rate.trigger.lags, history.times, start, end)
    parts, productivity = [], rate.effects.productivity(history.marks)
    for (source, kind), table in tables.items():
        by_lag = rate.trigger.weights[source, kind] @ rate.trigger.distance_integrals
        mean = productivity * (lags @ by_lag) * (history.types == source)
        total = float(mean.sum())
        counts = rng.poisson(total, n_paths)
        n = int(counts.sum())
        which = rng.choice(len(history), size=n, p=mean / total) if n else np.zeros(0, dtype=int)
        parents = Simulated(np.repeat(np.arange(n_paths), counts), history.picked(which))
        low = start - parents.events.times
        parts.append(_children(rate, table, kind, parents, low, end, rng))
    return joined(parts)


def _offspring(
    rate: ExcitedRate,
    tables: Tables,
    parents: Simulated,
    factors: Floats,
    span: tuple[float, float],
    rng: np.random.Generator,
) -> Simulated:
    """Direct offspring in a span of time of events with factors (n,), each on its path."""
    parts, events = [], parents.events
    low, high = np.maximum(span[0] - events.times, 0.0), span[1] - events.times
    weights = factors * rate.effects.productivity(events.marks)
    for (source, kind), table in tables.items():
        a, b = (np.interp(lags, table.lags, table.cumulative) for lags in (low, high))
        counts = rng.poisson(weights * (b - a) * (events.types == source))
        which = np.repeat(np.arange(len(events)), counts)
        chosen = Simulated(parents.paths[which], events.picked(which))
        parts.append(_children(rate, table, kind, chosen, low[which], span[1], rng))
    return joined(parts)


def _new_factors(rate: ExcitedRate, events: Catalogue, rng: np.random.Generator) -> Floats:
    """Factors of events of which nothing is known yet, (n,)."""
    each = offspring(rate.trigger, rate.effects, events)
    great = each >= rate.factor_law.least
    shapes, found = rate.factor_law.shapes(each[great]), np.ones(len(events))
    found[great] = rng.gamma(shapes) / shapes
    return found


def _children(
    rate: ExcitedRate,
    table: TriggerTable,
    kind: int,
    parents: Simulated,
    low: Floats,
    end: float,
    rng: np.random.Generator,
) -> Simulated:
    """One child of each parent, with a lag above `low`; those outside the region are lost."""
    events, n = parents.events, len(parents.paths)
    lags = table.draw_lags(low, end - events.times, rng)
    places = events.places
    if rate.region is not None:
        far, hats = table.draw_distances(lags, rng)
        far = far * rate.effects.reach(events.marks)
        places = places + far[:, None] * table.draw_directions(places, hats, rng)
    marks = rate.mark_laws[kind].sample(n, rng)
    children = Catalogue(events.times + lags, places, marks, np.full(n, kind))
    if rate.region is None:
        return Simulated(parents.paths, children)
    inside = rate.region.contains(places) if n else np.zeros(0, dtype=bool)
    return Simulated(parents.paths[inside], children.picked(inside))
