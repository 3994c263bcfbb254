"""Futures: simulated counts of a time to come, by region, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats, check_fraction, check_number
from hplus.rates.excitation.conditional_rate import ConditionalRate
from hplus.rates.excitation.descendants import Simulated, joined, past_of, simulate
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.windows import Interval, Window

FORGOTTEN = 1e-3
"""A share of descendants that may be left out."""


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
    span: tuple[float, float],
    regions: Sequence[Window | None],
    n_paths: int,
    rng: np.random.Generator,
    until: float | None = None,
) -> Futures:
    """Futures of a period, with weights drawn anew for each group of paths.

    What is known ends at its start, or earlier, at `until`: the time in between is simulated too.
    """
    begin = span[0] if until is None else _remembered(known.rate, until, span[0])
    past = past_of(known, begin)
    draws = _possible_rates(known, span, min(len(known.rate.draws), n_paths), rng)
    draws = _dying_out(draws) or _dying_out([known.rate]) or draws
    found = []
    for draw, group in zip(draws, np.array_split(np.arange(n_paths), len(draws)), strict=True):
        part = simulate(draw, past, begin, span[1], len(group), rng)
        asked = part.events.times >= span[0]
        found.append(Simulated(part.paths[asked] + group[0], part.events.picked(asked)))
    simulated = joined(found)
    paths, events = simulated.paths, simulated.events
    counts = np.zeros((len(regions), n_paths))
    largest = np.full((len(regions), n_paths), -np.inf)
    for r, region in enumerate(regions):
        inside = slice(None) if region is None else region.contains(events.places)
        counts[r] = np.bincount(paths[inside], minlength=n_paths)
        np.maximum.at(largest[r], paths[inside], events.marks[inside])
    return Futures(Interval(*span), counts, largest, simulated)


def _remembered(rate: ExcitedRate, until: float, start: float) -> float:
    """Since when events matter to what follows a start: what is known until a time, or less.

    An event reaches farther than n times the longest lag by more than n generations only.
    """
    ratio = rate.trigger.branching()
    if ratio >= 1.0:
        return until
    generations = np.ceil(np.log(FORGOTTEN) / np.log(max(ratio, FORGOTTEN)))
    return max(until, start - float(generations * rate.trigger.lags[-1]))


def _dying_out(rates: list[ExcitedRate]) -> list[ExcitedRate]:
    """Rates whose bursts die out: others would leave nothing to tell of other futures."""
    return [rate for rate in rates if rate.trigger.branching() < 1.0]


def _possible_rates(
    known: ConditionalRate,
    span: tuple[float, float],
    many: int,
    rng: np.random.Generator,
) -> list[ExcitedRate]:
    """Rates with weights and a level that are equally likely, for a time to come.

    What came since the window tells of the level: how uncertain it was at its end is forgotten.
    """
    rate, levels = known.rate, known.levels
    growth = rate.drift.growth(0.5 * (span[0] + span[1]) - float(levels.edges[-1]))
    logs = np.sqrt(levels.variance + growth) * rng.standard_normal((many, 1))
    logs = logs - 0.5 * growth  # the level stays the same on average
    logs = logs - (1.0 - levels.memory) * rate.last_level_errors()[:many]
    factors = levels.factors[-1] * np.exp(logs)
    return [rate.drawn(k, factor) for k, factor in enumerate(factors)]
