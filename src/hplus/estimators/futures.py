"""Futures: simulated counts of a time to come, by region, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats, Ints, check_fraction, check_memory, check_number
from hplus.rates.excitation.conditional_rate import ConditionalRate
from hplus.rates.excitation.descendants import (
    Simulated,
    Stage,
    joined,
    simulate_stages,
)
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.past_events import past_of
from hplus.windows import Interval, Window

FORGOTTEN = 1e-3
"""A share of descendants that may be left out."""

BYTES_PER_EVENT = 150.0
"""Memory of a simulated event: numbers for its time, place, mark, type and path, and copies."""

BYTES_PER_PATH = 16.0
"""Memory of a path for each region, and once more, whatever happens on it."""


@dataclass(frozen=True)
class Futures:
    """Simulated events of a period, path by path, and their counts (regions, paths).

    `largest` (regions, paths) is the largest mark of each, -inf where there are no events.
    """

    period: Interval
    counts: Floats
    largest: Floats
    simulated: Simulated
    marked: bool = True

    @property
    def expected_count(self) -> Floats:
        """The mean count of each region, (r,)."""
        return self.counts.mean(axis=1)

    def count_interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Bounds (low, high) that contain the count of each region with probability `level`."""
        tail = 0.5 * (1.0 - check_fraction("level", level))
        low, high = np.quantile(self.counts, [tail, 1.0 - tail], axis=1, method="inverted_cdf")
        return low, high

    @property
    def chance(self) -> Floats:
        """The probability of at least one event in each region, (r,)."""
        return (self.counts > 0).mean(axis=1)

    def chance_above(self, mark: float) -> Floats:
        """The probability of at least one event with a mark above this one, (r,)."""
        if not self.marked:
            raise ValueError("chance_above needs a model that was fitted with marks.")
        return (self.largest > check_number("mark", mark)).mean(axis=1)


def futures_of(
    known: ConditionalRate,
    edges: Floats,
    regions: Sequence[Window | None],
    n_paths: int,
    rng: np.random.Generator,
    until: float | None = None,
) -> Futures:
    """Futures of stages of time between edges, with weights drawn anew for each group of paths.

    Each stage has its own random numbers: what happens before an edge is the same whatever follows.
    What is known ends at the first edge, or earlier, at `until`: the time in between is simulated
    too.
    """
    check_memory(
        BYTES_PER_PATH * n_paths * (1 + len(regions)),
        f"a forecast of {n_paths:,} paths",
        "use fewer paths",
    )
    start = float(edges[0])
    begin = start if until is None else _remembered(known.rate, until, start)
    edges = edges if begin == start else np.append(begin, edges)
    past, streams = past_of(known, begin), rng.spawn(len(edges) - 1)
    k = len(known.rate.draws)
    which = np.arange(k) if n_paths >= k else rng.choice(k, n_paths, replace=False)
    draws = _possible_rates(known, edges, which, streams)
    learned = known.rate.at_level(known.levels.factors[-1])
    draws = _dying_out(draws) or _dying_out([[learned] * len(streams)]) or draws
    found, done, count = [], 0, 0
    for rates, group in zip(draws, np.array_split(np.arange(n_paths), len(draws)), strict=True):
        stages = map(Stage, edges[:-1].tolist(), edges[1:].tolist(), rates, streams)
        part = simulate_stages(list(stages), past.under(rates[0], known.rate), len(group))
        done += len(group)
        count += len(part.paths)
        each = BYTES_PER_EVENT * n_paths / done
        what = f"a forecast of {n_paths:,} paths with {count / done:,.0f} events each"
        check_memory(each * count, what, "use a shorter horizon or fewer paths")
        asked = part.events.times >= start
        found.append(Simulated(part.paths[asked] + group[0], part.events.picked(asked)))
    simulated = joined(found)
    counts, largest = _counted(simulated, regions, n_paths)
    return Futures(Interval(start, float(edges[-1])), counts, largest, simulated)


def _counted(
    simulated: Simulated, regions: Sequence[Window | None], n_paths: int
) -> tuple[Floats, Floats]:
    """How many events lie in each region on each path, and the largest mark, (r, paths) each."""
    paths, events = simulated.paths, simulated.events
    counts = np.zeros((len(regions), n_paths))
    largest = np.full((len(regions), n_paths), -np.inf)
    for r, region in enumerate(regions):
        inside = slice(None) if region is None else region.contains(events.places)
        counts[r] = np.bincount(paths[inside], minlength=n_paths)
        np.maximum.at(largest[r], paths[inside], events.marks[inside])
    return counts, largest


def _remembered(rate: ExcitedRate, until: float, start: float) -> float:
    """Since when events matter to what follows a start: what is known until a time, or less.

    An event reaches farther than n times the longest lag by more than n generations only.
    """
    ratio = rate.branching()
    if ratio >= 1.0:
        return until
    generations = np.ceil(np.log(FORGOTTEN) / np.log(max(ratio, FORGOTTEN)))
    return max(until, start - float(generations * rate.trigger.lags[-1]))


def _dying_out(draws: list[list[ExcitedRate]]) -> list[list[ExcitedRate]]:
    """Rates whose bursts die out: others would leave nothing to tell of other futures."""
    return [rates for rates in draws if rates[0].branching() < 1.0]


def _possible_rates(
    known: ConditionalRate,
    edges: Floats,
    which: Ints,
    streams: Sequence[np.random.Generator],
) -> list[list[ExcitedRate]]:
    """Equally likely rates, for each the one of every stage: some of the draws, and levels drift.

    What came since the window tells of the level: how uncertain it was at its end is forgotten.
    """
    rate, levels = known.rate, known.levels
    middles = 0.5 * (edges[1:] + edges[:-1])
    growth = np.array([rate.drift.growth(at) for at in middles - float(levels.edges[-1])])
    steps = np.diff(growth, prepend=0.0)
    steps[0] += levels.variance
    errors = (1.0 - levels.memory) * rate.last_level_errors()[which]
    noise = np.stack([stream.standard_normal((len(which), 1)) for stream in streams])
    logs = np.cumsum(np.sqrt(steps)[:, None, None] * noise, axis=0) - errors
    logs = logs - 0.5 * growth[:, None, None]  # the level stays the same on average
    factors = levels.factors[-1] * np.exp(logs)
    return [
        [rate.drawn(k, factor) for factor in factors[:, i]] for i, k in enumerate(which.tolist())
    ]
