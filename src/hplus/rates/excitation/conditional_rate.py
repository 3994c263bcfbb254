"""ConditionalRate: a self-exciting rate given events as they come, and its integrals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hplus._checks import Floats
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.drift import Levels, follow
from hplus.rates.excitation.excited_rate import ExcitedRate, rings_of
from hplus.rates.excitation.own_factors import (
    OwnFactors,
    follow_factors,
    surplus,
    varying_events,
    varying_pairs,
)
from hplus.rates.excitation.visible import visible_lags
from hplus.windows import Window

Part = tuple[Window | None, float, float]
"""A place, None for the whole region, and a start and an end."""

MOST_BLOCKS = 4_000
"""Blocks of time after which the level is updated, at most: long after the fit they are longer."""


@dataclass(frozen=True)
class ConditionalRate:
    """λ given the sources before each moment, with their own factors, and a background at a level.

    `masses` (m, L) are what each source adds by lag in the whole region, with its factor.
    """

    rate: ExcitedRate
    sources: Catalogue
    masses: Floats
    factors: OwnFactors
    levels: Levels

    def at(self, targets: Catalogue) -> Floats:
        """λ of the target's type at each target, (n,)."""
        return self.background_at(targets) + self.triggered_at(targets)

    def background_at(self, targets: Catalogue) -> Floats:
        """level · μ of the target's type at each target, (n,)."""
        return self.levels.at(targets.times) * self.rate.background_at(targets)

    def triggered_at(self, targets: Catalogue) -> Floats:
        """What the sources add to λ at each target, (n,)."""
        found = self.rate.triggered_at(targets, self.sources)
        if len(self.factors.which):
            found += surplus(targets.times, targets.plane, targets.types, self.factors.varying,
                             self.rate.trigger.arrays, self.factors.factors)  # fmt: skip
        return found

    def integral(self, start: float, end: float) -> float:
        """∫λ of all types over the region from start to end."""
        return float(self.integrals([(None, start, end)])[0])

    def integrals(self, parts: Sequence[Part]) -> Floats:
        """∫λ of all types over parts of the region, each from a start to an end, (r,)."""
        found = np.zeros(len(parts))
        for r, (place, start, end) in enumerate(parts):
            own, (near, lags) = self.background(start, end), self._lags(start, end)
            masses = self.masses[near]
            if place is not None and place != self.rate.region:
                kinds = range(self.rate.types)
                own *= [self.rate.background.shares([place], kind)[0] for kind in kinds]
                masses = masses_of(self.rate, self.sources.picked(near), place)
                masses = self.factors.weigh(masses, near.start)
            found[r] = own.sum() + np.vdot(lags, masses)
        return found

    def visible(self, start: float, end: float) -> Floats:
        """∫ φ_l over the lags from each source between start and end, (m, L)."""
        found = np.zeros(self.masses.shape)
        near, lags = self._lags(start, end)
        found[near] = lags
        return found

    def _lags(self, start: float, end: float) -> tuple[slice, Floats]:
        """Those integrals of the sources that reach into a span of time, and which these are."""
        knots, times = self.rate.trigger.lags, self.sources.times
        near = slice(*np.searchsorted(times, [start - knots[-1], end]))
        return near, visible_lags(knots, times[near], start, end)

    def background(self, start: float, end: float) -> Floats:
        """∫ level · μ over the region from start to end, of each type."""
        found = np.zeros(self.rate.types)
        for low, high, level in self.levels.spans(start, end):
            for kind in range(self.rate.types):
                found[kind] += level * self.rate.background.integral(low, high, kind)
        return found


def masses_of(rate: ExcitedRate, sources: Catalogue, place: Window | None) -> Floats:
    """What each source adds in a place by hat functions of lags, if its factor is 1, (m, L).

    Of a place that is partly outside the region, the part inside counts.
    """
    within = None if place == rate.region else rate.region
    rings = rings_of(sources, rate.trigger, rate.effects, place, within)
    return _masses_in(rate, sources, rings)


def _masses_in(rate: ExcitedRate, sources: Catalogue, rings: Floats) -> Floats:
    """The same in rings (m, D) around the sources."""
    rings = rings * rate.effects.productivity(sources.marks)[:, None]
    found = np.zeros((len(sources), len(rate.trigger.lags) - 1))
    for kind, weights in enumerate(rate.trigger.weights.sum(axis=1)):
        own = sources.types == kind
        found[own] = rings[own] @ weights.T
    return found


def rate_given(rate: ExcitedRate, sources: Catalogue, until: float) -> ConditionalRate:
    """The rate given sources that are all that happened until a time.

    After it nothing is known: factors and the level stay as they are then.
    """
    sources = rate.with_bearings(sources)
    masses = masses_of(rate, sources, rate.region)
    factors = followed(rate, sources, masses, until)
    steady = Levels(np.array([until]), np.ones(1))
    known = ConditionalRate(rate, sources, factors.weigh(masses), factors, steady)
    return replace(known, levels=_levels(known, until, rate.last_level_variance()))


def under_draws(known: ConditionalRate, until: float) -> Iterator[ConditionalRate]:
    """The rate given the same sources until a time under each draw of its weights.

    Factors stay, as what is known of them changes little; levels are followed anew.
    """
    steady, first = Levels(np.array([until]), np.ones(1)), known.rate.last_level_variance()
    learned = known.rate
    # draws have the same knots and reach
    rings = rings_of(known.sources, learned.trigger, learned.effects, learned.region)
    for k in range(len(learned.draws)):
        rate = learned.drawn(k)
        masses = known.factors.weigh(_masses_in(rate, known.sources, rings))
        drawn = replace(known, rate=rate, masses=masses, levels=steady)
        yield replace(drawn, levels=_levels(drawn, until, first))


def followed(
    rate: ExcitedRate,
    sources: Catalogue,
    masses: Floats,
    until: float,
    rates: Floats | None = None,
) -> OwnFactors:
    """The factors of events that vary, as sources came until a time.

    `rates` (m,) are those at the sources without factors, if they are known.
    """
    trigger, law = rate.trigger, rate.factor_law
    which = np.flatnonzero(law.vary(trigger, rate.effects, sources))
    varying = varying_events(trigger, rate.effects, law, sources.picked(which), masses[which])
    if not len(which):
        return OwnFactors(which, varying, varying.masses, np.zeros(0), np.zeros(0))
    if rates is None:
        rates = rate.without_factors(sources, sources)
    pairs = varying_pairs(
        sources.times, sources.plane, sources.types, rates, varying, trigger.arrays
    )
    factors, _, known = follow_factors(sources.times, rates, pairs, varying, trigger.lags, until)
    return OwnFactors(which, varying, factors, *known)


def _levels(steady: ConditionalRate, until: float, first: float) -> Levels:
    """The level of the background after each block of time since it was learned, up to a time.

    Of a rate at a level of 1; `first` is the variance of its logarithm when it was learned.
    """
    drift = steady.rate.drift
    if until <= drift.start or drift.variance == 0.0:
        return Levels(np.array([drift.start]), np.ones(1))
    many = int((until - drift.start) / drift.block)
    if many > MOST_BLOCKS:
        many, drift = MOST_BLOCKS, drift.replace(block=(until - drift.start) / MOST_BLOCKS)
    edges: Floats = drift.start + drift.block * np.arange(many + 1, dtype=float)
    own = np.array([steady.background(*edges[k : k + 2]).sum() for k in range(many)])
    all_means = np.array([steady.integral(*edges[k : k + 2]) for k in range(many)])
    return follow(drift, _ratios(steady, edges), own, all_means - own, first)


def _ratios(known: ConditionalRate, edges: Floats) -> list[Floats]:
    """What was triggered to the background at a level of 1, at the events from edge to edge."""
    near = slice(*np.searchsorted(known.sources.times, edges[[0, -1]]))
    events = known.sources.picked(near)
    own = np.maximum(known.rate.background_at(events), 1e-300)
    found = known.triggered_at(events) / own
    return np.split(found, np.searchsorted(events.times, edges[1:-1])) if len(edges) > 1 else []
