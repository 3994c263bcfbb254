"""Simulated futures: background events, what the history still triggers, and their descendants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Ints
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.known_factors import KnownFactors, between_knots, joined_factors
from hplus.rates.excitation.past_events import Past
from hplus.rates.excitation.trigger_tables import Tables, TriggerTable
from hplus.rates.excitation.visible import visible_lags

MAX_GENERATIONS = 10_000

MAX_EVENTS = 5_000_000
"""Events of paths that are simulated together, at most."""

NEARLY_ENDLESS = 0.9
"""Branching ratio from which an overflow is blamed on it."""


@dataclass(frozen=True)
class Simulated:
    """Events of several paths: the path (n,) of each, and the events."""

    paths: Ints
    events: Catalogue


class Stage(NamedTuple):
    """A part of the time to come: from when to when, the rate in it, and its random numbers."""

    start: float
    end: float
    rate: ExcitedRate
    rng: np.random.Generator


class ActiveEvents(NamedTuple):
    """Simulated events that may trigger others, and what is known of their factors."""

    simulated: Simulated
    known: KnownFactors

    def still_active(self, rate: ExcitedRate, time: float) -> ActiveEvents:
        """Those that may trigger others after a time."""
        paths, events = self.simulated.paths, self.simulated.events
        left = np.flatnonzero(events.times > time - rate.trigger.lags[-1])
        return ActiveEvents(Simulated(paths[left], events.picked(left)), self.known.picked(left))


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
    expected = sum(
        stage.rate.background.integral(stage.start, stage.end, kind)
        for stage in stages
        for kind in range(rate.types)
    )
    _check_size(rate, n_paths * expected, MAX_EVENTS)
    tables = {
        (s, t): TriggerTable.of(rate.trigger, s, t, past.compass)
        for s in range(rate.types)
        for t in range(rate.types)
    }
    varying = np.tile(np.arange(len(past.varying)), n_paths)
    paths = np.repeat(np.arange(n_paths), len(past.varying))
    parents = ActiveEvents(
        Simulated(paths, past.varying.picked(varying)), past.known.picked(varying)
    )
    found, left = [], MAX_EVENTS
    for stage in stages:
        children, known = _offspring(stage, tables, parents, left)
        generation = joined([
            _background(stage, n_paths, left),
            children,
            _from_history(stage, tables, past.others, n_paths),
        ])  # fmt: skip
        events, own = _descended(stage, tables, generation, left)
        found.append(events)
        left -= len(events.paths)
        all_known = joined_factors([known, own])
        parents = ActiveEvents(joined([parents.simulated, events]), all_known)
        parents = parents.still_active(rate, stage.end)
    return joined(found)


def _descended(
    stage: Stage, tables: Tables, generation: Simulated, most: int
) -> tuple[Simulated, KnownFactors]:
    """A generation and its descendants in a stage, and what is then known of their factors."""
    found, factors = [generation], []
    for _ in range(MAX_GENERATIONS):
        most -= len(generation.paths)
        new = KnownFactors.of_new(stage.rate, generation.events)
        generation, known = _offspring(stage, tables, ActiveEvents(generation, new), most)
        factors.append(known)
        if not len(generation.paths):
            break
        found.append(generation)
    return joined(found), joined_factors(factors)


def _check_size(rate: ExcitedRate, count: float, most: int) -> None:
    """An error if there are more events than may still be simulated."""
    if count > most:
        ratio = rate.branching()
        why = f", as the branching ratio is {ratio:.3g}" if ratio >= NEARLY_ENDLESS else ""
        raise OverflowError(
            f"a simulation must stay below {MAX_EVENTS:,} events on all paths together, got "
            f"more{why}: use fewer paths, or forecast a shorter time."
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


def _background(stage: Stage, n_paths: int, most: int) -> Simulated:
    """Events of a stage that no other one triggers, on each path."""
    start, end, rate, rng = stage
    parts = []
    for kind in range(rate.types):
        counts = rng.poisson(rate.background.integral(start, end, kind), n_paths)
        n = int(counts.sum())
        _check_size(rate, n, most)
        times, places = rate.background.sample(start, end, n, kind, rng)
        marks = rate.mark_laws[kind].sample(n, rng)
        events = Catalogue(times, places, marks, np.full(n, kind))
        parts.append(Simulated(np.repeat(np.arange(n_paths), counts), events))
    return joined(parts)


def _from_history(stage: Stage, tables: Tables, history: Catalogue, n_paths: int) -> Simulated:
    """Direct offspring in a stage of the history, all of whose factors are 1, on each path."""
    start, end, rate, rng = stage
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
        between = start - parents.events.times, end - parents.events.times
        parts.append(_children(rate, table, kind, parents, between, rng))
    return joined(parts)


class Births(NamedTuple):
    """How many events of each type `counts` (types, n) are triggered between two lags, (n,) each.

    `parents` (n,) are the indices of the events that trigger them.
    """

    parents: Ints
    low: Floats
    high: Floats
    counts: Ints


def _offspring(
    stage: Stage, tables: Tables, parents: ActiveEvents, most: int
) -> tuple[Simulated, KnownFactors]:
    """Direct offspring in a stage, and what is then known of the factors of the parents."""
    rate, rng, known, events = stage.rate, stage.rng, parents.known, parents.simulated.events
    low, high = np.maximum(stage.start - events.times, 0.0), stage.end - events.times
    steady, varying = np.flatnonzero(~known.vary), np.flatnonzero(known.vary)
    means = _expected(rate, tables, events.picked(steady), low[steady], high[steady])
    _check_size(rate, means.sum(), most)
    births = [Births(steady, low[steady], high[steady], rng.poisson(means))]
    knots, kept = rate.trigger.lags, rate.factor_law.fade(rate.trigger.lags)
    for some, a, b, reached in between_knots(knots, low[varying], high[varying]):
        which = varying[some]
        means = _expected(rate, tables, events.picked(which), a, b)
        drawn = known.picked(which).drawn(rng) * means
        _check_size(rate, drawn.sum(), most)
        counts = rng.poisson(drawn)
        fade = np.where(reached, kept, 1.0)
        known = known.followed(which, counts.sum(axis=0), means.sum(axis=0), fade)
        births.append(Births(which, a, b, counts))
    _check_size(rate, sum(int(b.counts.sum()) for b in births), most)
    return _born(rate, tables, parents.simulated, births, rng), known


def _expected(
    rate: ExcitedRate, tables: Tables, events: Catalogue, low: Floats, high: Floats
) -> Floats:
    """How many events of each type each one triggers between two lags, (types, n)."""
    found = np.zeros((rate.types, len(events)))
    for (source, kind), table in tables.items():
        a, b = (np.interp(lags, table.lags, table.cumulative) for lags in (low, high))
        found[kind] += (b - a) * (events.types == source)
    return found * rate.effects.productivity(events.marks)


def _born(
    rate: ExcitedRate,
    tables: Tables,
    parents: Simulated,
    births: list[Births],
    rng: np.random.Generator,
) -> Simulated:
    """The events that are triggered."""
    which, low, high = (np.concatenate([b[i] for b in births]) for i in range(3))
    counts = np.concatenate([b.counts for b in births], axis=1)
    sources, parts = parents.events.types[which], []
    for (source, kind), table in tables.items():
        each = np.repeat(np.arange(len(which)), counts[kind] * (sources == source))
        chosen = Simulated(parents.paths[which[each]], parents.events.picked(which[each]))
        parts.append(_children(rate, table, kind, chosen, (low[each], high[each]), rng))
    return joined(parts)


def _children(
    rate: ExcitedRate,
    table: TriggerTable,
    kind: int,
    parents: Simulated,
    between: tuple[Floats, Floats],
    rng: np.random.Generator,
) -> Simulated:
    """One child of each parent, with a lag between two; those outside the region are lost."""
    events, n = parents.events, len(parents.paths)
    lags = table.draw_lags(*between, rng)
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
