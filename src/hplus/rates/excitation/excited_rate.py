"""ExcitedRate: a background, and what earlier events add to it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from hplus._checks import Floats, Ints
from hplus.grids.hats import read_only
from hplus.rates.excitation.background import Background
from hplus.rates.excitation.bearings import bearings_of, directions_of
from hplus.rates.excitation.catalogue import NO_BEARINGS, Catalogue
from hplus.rates.excitation.drift import Drift
from hplus.rates.excitation.factor_law import NO_FACTORS, FactorLaw
from hplus.rates.excitation.lag_rows import add_line_rows
from hplus.rates.excitation.mark_effects import MarkEffects, MarkLaw
from hplus.rates.excitation.pair_rows import add_pair_rows, in_cells
from hplus.rates.excitation.region_masks import mask_of
from hplus.rates.excitation.trigger import Trigger
from hplus.rates.excitation.visible import visible_lags, visible_rings, visible_sides
from hplus.windows import Interval, Window

NO_WEIGHTS = read_only(np.zeros((0, 0)))

TARGETS_AT_ONCE = 2**18
"""Times at which what was triggered is summed at once: each needs a row of numbers."""


@dataclass(frozen=True)
class ExcitedRate:
    """λ(x, t) = μ(x, t) + Σ_{t_j < t} κ(m_j) g(t - t_j, |x - x_j| / s(m_j)) / s(m_j)^axes.

    `draws` (k, types, columns) are equally likely log weights: the levels of the background, then
    those of the trigger; `mark_draws` (k, knots) are those of the productivity. Single events
    have factors by `factor_law`; `direction_strength` is how strongly they trigger along the lines
    on which earlier events lie.
    """

    region: Window | None
    trigger: Trigger
    effects: MarkEffects
    background: Background
    mark_laws: tuple[MarkLaw, ...]
    draws: Floats
    drift: Drift
    factor_law: FactorLaw = NO_FACTORS
    mark_draws: Floats = field(default_factory=lambda: NO_WEIGHTS)
    direction_strength: float = 0.0

    @property
    def types(self) -> int:
        """The number of types of events."""
        return len(self.background.levels)

    @property
    def average_trigger(self) -> Trigger:
        """What an average event of each type adds: those of some types trigger more than others."""
        means = [self.effects.productivity(law.marks).mean() for law in self.mark_laws]
        weights = np.array(means)[:, None, None, None] * self.trigger.weights
        return self.trigger.replace(weights=weights)

    def with_bearings(self, events: Catalogue) -> Catalogue:
        """Events with the directions in which they trigger others."""
        if self.direction_strength == 0.0 or not len(events):
            return replace(events, bearings=NO_BEARINGS)
        directions = directions_of(events, self.effects, self.trigger.distances)
        return replace(events, bearings=bearings_of(directions, self.direction_strength))

    def without_factors(self, targets: Catalogue, sources: Catalogue) -> Floats:
        """λ of the target's type at each target if all factors and the level are 1, (n,)."""
        return self.background_at(targets) + self.triggered_at(targets, sources)

    def background_at(self, targets: Catalogue) -> Floats:
        """μ of the target's type at each target, (n,)."""
        found = np.zeros(len(targets))
        for kind in range(self.types):
            own = np.flatnonzero(targets.types == kind)
            found[own] = self.background.at(targets.times[own], targets.places[own], kind)
        return found

    def triggered_at(self, targets: Catalogue, sources: Catalogue) -> Floats:
        """What sources whose factors are 1 add to λ at each target, (n,)."""
        found = np.zeros(len(targets))
        for kind in range(self.types):
            own = np.flatnonzero(targets.types == kind)
            found[own] = self._triggered(targets.picked(own), sources, kind)
        return found

    def _triggered(self, targets: Catalogue, sources: Catalogue, kind: int) -> Floats:
        """What sources add to the rate of a type at each target, (n,)."""
        if targets.in_place:
            hats = self.effects.productivity(sources.marks)[:, None]
            return rows_by_mark(targets, sources, (self.trigger, self.effects), hats, kind)[:, 0]
        found, weights = np.zeros(len(targets)), self.trigger.weights[:, kind].ravel()
        for start in range(0, len(targets), TARGETS_AT_ONCE):
            some = slice(start, start + TARGETS_AT_ONCE)
            rows = rows_of(targets.picked(some), sources, self.trigger, self.effects, self.types)
            found[some] = rows @ weights
        return found

    def last_level_errors(self) -> Floats:
        """How far draws of the log level are off where it was last learned, (k, types)."""
        last = self.background.levels.shape[1] - 1
        return self.draws[:, :, last] - np.log(self.background.levels[:, last])

    def last_level_variance(self) -> float:
        """The variance of that log level, 0 without draws."""
        return float(np.mean(self.last_level_errors() ** 2)) if len(self.draws) else 0.0

    def branching(self) -> float:
        """How many events one to come triggers directly, on average over the marks to come.

        With several types, the spectral radius of who triggers whom; below 1, bursts die out.
        """
        each = [law.mean(self.effects.productivity) for law in self.mark_laws]
        matrix = np.array(each)[:, None] * self.trigger.integral()
        return float(np.abs(np.linalg.eigvals(matrix)).max())

    def at_level(self, level: Floats | float) -> ExcitedRate:
        """The rate with the background times a level, of each type (types,) or of all."""
        background = replace(self.background, levels=(self.background.levels.T * level).T)
        return replace(self, background=background)

    def drawn(self, k: int, level: Floats | float = 1.0) -> ExcitedRate:
        """The rate with the k-th draw of its weights, and the background at a level (types,)."""
        T, weights = self.background.levels.shape[1], np.exp(self.draws[k])
        shape = (self.types, self.types, *self.trigger.weights.shape[2:])
        trigger = np.moveaxis(weights[:, T:].reshape(shape), 0, 1)
        effects = self.effects
        if len(self.mark_draws):
            effects = effects.replace(logs=self.mark_draws[k])
        background = replace(self.background, levels=weights[:, :T])
        rate = replace(
            self,
            effects=effects,
            trigger=self.trigger.replace(weights=trigger),
            background=background,
        )
        return rate.at_level(level)


def rows_of(
    targets: Catalogue,
    sources: Catalogue,
    trigger: Trigger,
    effects: MarkEffects,
    types: int,
    jobs: int = 1,
) -> Floats:
    """Each hat function of lag and distance, summed over earlier sources by type, (n, s·L·D)."""
    L, D = len(trigger.lags) - 1, max(len(trigger.distances) - 1, 1)
    rows = np.zeros((len(targets), types * L * D))
    weights = effects.productivity(sources.marks)
    if not targets.in_place:
        for kind in range(types):
            own = sources.types == kind
            part = np.zeros((len(targets), L))
            add_line_rows(targets.times, sources.times[own], weights[own], trigger.lags, part)
            rows[:, kind * L : (kind + 1) * L] = part
        return rows
    reach = effects.reach(sources.marks)
    each = weights / reach**trigger.axes
    placed = in_cells(sources, np.column_stack([each, 0.0 * each]), reach,
                      sources.types * (L * D), float(trigger.distances[-1]))  # fmt: skip
    plane = targets.plane
    parts = np.array_split(np.arange(len(targets)), 8 * jobs if jobs > 1 else 1)

    def add(part: Ints) -> None:
        some = slice(part[0], part[-1] + 1) if len(part) else slice(0, 0)
        add_pair_rows(targets.times[some], plane[some], placed, trigger.lags,
                      trigger.distances, NO_WEIGHTS, rows[some])  # fmt: skip

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(add, parts))
    return rows


def rows_by_mark(
    targets: Catalogue,
    sources: Catalogue,
    rate: tuple[Trigger, MarkEffects],
    hats: Floats,
    kind: int,
) -> Floats:
    """What the trigger adds to the rate of a type, for each knot of the productivity, (n, M)."""
    (trigger, effects), M = rate, hats.shape[1]
    rows = np.zeros((len(targets), M))
    for source in range(trigger.weights.shape[0]):
        weights, own = trigger.weights[source, kind], sources.types == source
        if not targets.in_place:
            for m in range(M):
                part = np.zeros((len(targets), len(trigger.lags) - 1))
                add_line_rows(targets.times, sources.times[own], hats[own, m], trigger.lags, part)
                rows[:, m] += part @ weights[:, 0]
            continue
        some = np.flatnonzero(own & (hats > 0.0).any(axis=1))
        # a mark lies between two knots, or at one
        knot = np.argmax(hats[some] > 0.0, axis=1)
        both = np.pad(hats, ((0, 0), (0, 1)))[some[:, None], knot[:, None] + [0, 1]]
        reach = effects.reach(sources.marks[some])
        placed = in_cells(
            sources.picked(some), both / (reach**trigger.axes)[:, None], reach, knot,
            float(trigger.distances[-1]),
        )  # fmt: skip
        add_pair_rows(targets.times, targets.plane, placed, trigger.lags, trigger.distances,
                      read_only(weights), rows)  # fmt: skip
    return rows


def offspring_of(
    sources: Catalogue,
    trigger: Trigger,
    effects: MarkEffects,
    start: float,
    end: float,
    region: Window | None,
) -> tuple[Floats, Floats]:
    """∫ of each hat function that lies in the region, from start to end, for each source.

    By lag (m, L) and by distance (m, D); the integral of a pair of hats is their product.
    """
    lags = visible_lags(trigger.lags, sources.times, start, end)
    return lags, rings_of(sources, trigger, effects, region)


def rings_of(
    sources: Catalogue,
    trigger: Trigger,
    effects: MarkEffects,
    region: Window | None,
    within: Window | None = None,
) -> Floats:
    """∫ of each hat function of distances that lies in the region, for each source, (m, D).

    Only the part of the region that lies `within` another counts.
    """
    if region is None:
        return np.ones((len(sources), 1))
    reach = effects.reach(sources.marks)
    if isinstance(region, Interval):
        low, high = region.low, region.high
        if isinstance(within, Interval):
            low, high = max(low, within.low), max(min(high, within.high), low, within.low)
        return visible_sides(trigger.distances, sources.places[:, 0], reach, low, high)
    return visible_rings(
        trigger.distances, sources.places, reach, mask_of(region, within), sources.bearings
    )


def integrals_of(
    sources: Catalogue,
    trigger: Trigger,
    effects: MarkEffects,
    types: int,
    start: float,
    end: float,
    region: Window | None,
    by_lag: Floats | float = 1.0,
) -> Floats:
    """Integrals of `offspring_of`, summed by type of source with their productivity, (s·L·D,).

    `by_lag` (m, L) are factors of the hat functions of lags of each source.
    """
    some = (sources.times > start - trigger.lags[-1]) & (sources.times < end)
    near = sources.picked(some)
    lags, rings = offspring_of(near, trigger, effects, start, end, region)
    weighted = effects.productivity(near.marks)[:, None] * lags
    weighted *= by_lag if isinstance(by_lag, float) else by_lag[some]
    kinds: list[Ints] = [np.flatnonzero(near.types == kind) for kind in range(types)]
    return np.concatenate([(weighted[own].T @ rings[own]).ravel() for own in kinds])
