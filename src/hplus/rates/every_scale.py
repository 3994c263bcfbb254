"""The default rate: a smooth field, trees, and trees on the smooth field, by prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus._progress import each
from hplus.positivity.exp import GridFunction
from hplus.rates.binned import fold_count
from hplus.rates.exposure import on_grid
from hplus.rates.folded_fit import FoldedFit
from hplus.rates.grid_rate import GridRate
from hplus.rates.log_gaussian import SmoothFit, WithoutFold
from hplus.rates.positions import Positions
from hplus.rates.stacked_rate import StackedRate
from hplus.rates.stacking import MIN_GAIN_ERRORS, stacking_weights
from hplus.rates.statistic import Statistic
from hplus.rates.trees.concentrations import Clustering, learn_clustering
from hplus.rates.trees.growing import learn_tree_rate, tree_rate, working_cells
from hplus.rates.trees.planting import effective_counts
from hplus.rates.trees.spectrum import ScaleSpectrum, learn_spectrum
from hplus.rates.trees.strays import moved_onto
from hplus.rates.trees.tree_base import TreeBase, density_of
from hplus.rates.trees.tree_rate import TreeRate

PARTS = ("exp", "tree", "tree on exp")
"""The rates that are weighted."""

MAX_SCORED = 10_000
"""Events of a fold that are predicted to weigh rates, if they are in more cells than that."""

MAX_MOVES = 4
"""Places within the step at which the events of one position are predicted, at most."""

MIN_GAIN_ERRORS_ON_LINE = 2.0
"""Standard errors that trees must gain on a line: smooth rates, for which the smooth field is
better, are common there, and a gain of one error is often chance."""

VERY_MANY_EVENTS = 500_000
"""Events from which on priors, weights and concentrations are learned once, and not again from
slightly more or fewer events: they are a few numbers, which would hardly change."""

DRAWS_WITHOUT_WEIGHT = 1
"""Draws of a smooth field that has no weight: nobody asks how uncertain it is."""

TREES_TAKE_OVER = 0.1
"""Nats per event by which trees must predict better for the smooth field not to be refined."""


@dataclass(frozen=True)
class Observed:
    """Events, the step of their positions, and what was observed of the window.

    `plain` is the rate that trees are relative to where no smooth one is given, None if it is a
    constant; `exposure` is at its nodes, or one number of shape ().
    """

    statistic: Statistic
    positions: Positions
    plain: GridFunction | None
    exposure: Floats
    seed: int
    known_spectrum: ScaleSpectrum | None = None

    @cached_property
    def all_cells(self) -> Statistic:
        """All events in cells as small as their positions allow, which were observed."""
        cells = self.cells(self.statistic)
        return moved_onto(cells, density_of(cells, self.plain_base, self.exposure))

    @property
    def spectrum(self) -> ScaleSpectrum:
        """At which sizes the events cluster, relative to what was observed."""
        return self.known_spectrum or self._clustering[1]

    @cached_property
    def _clustering(self) -> tuple[Clustering, ScaleSpectrum]:
        density = density_of(self.all_cells, self.plain_base, self.exposure)
        clustering, spectrum = learn_spectrum(self.all_cells, density, self.distinct, self.seed)
        return clustering, spectrum.down_to(self.positions.step)

    @property
    def plain_base(self) -> TreeBase | None:
        """What trees are relative to where no smooth rate is given."""
        return None if self.plain is None else TreeBase(self.plain)

    @property
    def distinct(self) -> bool:
        """Is too little known of the positions to tell repeats from structure?

        In cells that were made larger to hold very many events, several events are no repeat.
        """
        exact = self.statistic.depth == self.statistic.lattice.bits
        return exact and not self.positions.step.any()

    def cells(self, statistic: Statistic) -> Statistic:
        """Some of the events in cells as small as their positions allow."""
        return working_cells(statistic, self.positions, self.seed)

    @property
    def clustering(self) -> Clustering:
        """The concentrations of trees relative to what was observed."""
        return self._clustering[0]

    def plain_trees(self) -> TreeRate:
        """The rate of all events by trees, relative to what was observed."""
        return tree_rate(self.all_cells, self.clustering, self.plain_base, self.exposure, self.seed)

    def trees(
        self, cells: Statistic, smooth: TreeBase | None, known: Clustering | None = None
    ) -> TreeRate:
        """The rate by trees, relative to a smooth rate or to what was observed.

        Their concentrations are learned, unless they are known.
        """
        base = self.plain_base if smooth is None else self._over_plain(smooth)
        if known is None:
            return learn_tree_rate(cells, base, self.exposure, self.seed, self.distinct)
        cells = moved_onto(cells, density_of(cells, base, self.exposure))
        return tree_rate(cells, known, base, self.exposure, self.seed)

    def clustering_on(self, smooth: TreeBase) -> Clustering:
        """The concentrations of trees relative to a smooth rate of all events."""
        density = density_of(self.all_cells, self._over_plain(smooth), self.exposure)
        cells = moved_onto(self.all_cells, density)
        return learn_clustering(cells, density, self.distinct, self.seed)

    def _over_plain(self, smooth: TreeBase) -> TreeBase:
        """A smooth rate at the nodes of the plain one, where there is one."""
        return smooth if self.plain is None else smooth.on_grid(self.plain.grid)

    def times_plain(self, function: GridFunction) -> GridFunction:
        """A rate relative to the plain one, as a rate."""
        if self.plain is None:
            return function
        plain = on_grid(self.plain.grid, self.plain.values, function.grid)
        return function.replace(values=function.values * plain)


def are_very_many(events: float) -> bool:
    """Are there so many events that what they have in common is learned once?"""
    return events >= VERY_MANY_EVENTS


class TreeFold(NamedTuple):
    """Events that trees are learned from, places of those held out, and how many there are.

    `tree` is the density of a rate by trees at these places.
    """

    kept: Statistic
    places: Floats
    counts: Floats
    tree: Floats


AnyFit = SmoothFit | FoldedFit
"""A smooth field: of all events, or of very many, at first without a fold."""


def learn_every_scale(
    observed: Observed, fit: AnyFit
) -> tuple[GridRate, StackedRate | None, list[float]]:
    """The smooth rate relative to the plain one, the rate at every scale, and the weights of PARTS.

    The fit is refined if need be. Without weight for trees the second rate is None.
    """
    fit, weights, known = _weighed(observed, fit)
    relative = fit.rate(DRAWS_WITHOUT_WEIGHT if _only_trees(weights) else None)
    if not np.any(weights[1:] > 0.0):
        return relative, None, weights.tolist()
    smooth = replace(relative, function=observed.times_plain(relative.function))
    learned: list[Callable[[], GridRate | TreeRate]] = [
        lambda: smooth,
        observed.plain_trees,
        lambda: observed.trees(observed.all_cells, TreeBase(smooth.function, smooth), known),
    ]
    weighted = zip(weights.tolist(), learned, strict=True)
    parts = tuple((weight, rate()) for weight, rate in weighted if weight > 0.0)
    return relative, StackedRate(smooth, parts), weights.tolist()


def _only_trees(weights: Floats) -> bool:
    """Have plain trees all the weight?"""
    return bool(weights[PARTS.index("tree")] == 1.0)


def _weighed(observed: Observed, fit: AnyFit) -> tuple[AnyFit, Floats, Clustering | None]:
    """The smooth field, refined unless it has no weight, and the weights of PARTS.

    Also the concentrations of trees on the smooth field, where they were learned.
    """
    held_out = fit.held_out()
    if not held_out:
        return fit.refined(), np.eye(len(PARTS))[0], None
    folds = [_fold(observed, held.fold) for held in each("growing trees", held_out)]
    trees = np.concatenate([fold.tree for fold in folds])
    smooth = _smooth_density(observed, held_out, folds)
    counts = np.concatenate([fold.counts for fold in folds])
    if np.average(np.log(trees / smooth), weights=counts) >= TREES_TAKE_OVER:
        weights, known = _weights(observed, fit, held_out, folds)
        if _only_trees(weights):
            return fit, weights, known
    refined = fit.refined()
    weights, known = _weights(observed, refined, refined.held_out(), folds)
    return fit if _only_trees(weights) else refined, weights, known


def _weights(
    observed: Observed, fit: AnyFit, held_out: list[WithoutFold], folds: list[TreeFold]
) -> tuple[Floats, Clustering]:
    """The weights of PARTS, and the concentrations of trees on the smooth field."""
    smooth = both = _smooth_density(observed, held_out, folds)
    trees = np.concatenate([fold.tree for fold in folds])
    counts = np.concatenate([fold.counts for fold in folds])
    known = observed.clustering_on(TreeBase(observed.times_plain(fit.function())))
    if known.stops.size:
        both = _density_on_smooth(observed, held_out, folds, known)
    on_line = observed.statistic.window.dimension == 1
    errors = MIN_GAIN_ERRORS_ON_LINE if on_line else MIN_GAIN_ERRORS
    return stacking_weights(np.stack([smooth, trees, both]), counts, errors), known


def _density_on_smooth(
    observed: Observed, held_out: list[WithoutFold], folds: list[TreeFold], known: Clustering
) -> Floats:
    """The densities of trees on smooth rates, at the places of folds that are unknown to both.

    Concentrations are learned anew for each fold, unless events are very many.
    """
    taken = known if are_very_many(observed.statistic.events) else None
    bases = (TreeBase(observed.times_plain(held.rate)) for held in held_out)
    rates = (observed.trees(f.kept, base, taken) for f, base in zip(folds, bases, strict=True))
    return np.concatenate([_density(rate, f) for rate, f in zip(rates, folds, strict=True)])


def _fold(observed: Observed, number: int) -> TreeFold:
    """A fold of the events, and trees learned from the others."""
    statistic = observed.statistic
    out = statistic.folds(observed.seed, fold_count(statistic))[number]
    places, counts = _scored(observed, statistic.part(out))
    kept = observed.cells(statistic.part(statistic.counts - out))
    fold = TreeFold(kept, places, counts, np.zeros(0))
    known = observed.clustering if are_very_many(observed.statistic.events) else None
    return fold._replace(tree=_density(observed.trees(kept, None, known), fold))


def _scored(observed: Observed, held: Statistic) -> tuple[Floats, Floats]:
    """Places of held-out events at which rates are compared, and how many events are there.

    Events at repeated positions are moved within the step, as when they are scored later. At the
    centre of its cell, a position that comes back would favour trees: it never leaves their cell.
    """
    cells = observed.cells(held)
    # a step as wide as the window, of positions that are all the same, leaves no room to move
    repeated = cells.depth > 0 and observed.positions.spacing.any()
    cells = held if repeated else cells
    chosen, counts = np.arange(len(cells.codes)), effective_counts(cells)
    if len(chosen) > MAX_SCORED:
        # events and not cells: of few cells with most of the events all or none might be drawn
        rng = np.random.default_rng(observed.seed)
        drawn = rng.choice(len(counts), MAX_SCORED, p=counts / counts.sum())
        share = min(float(counts.sum()) / MAX_SCORED, 1.0)
        chosen, times = np.unique(drawn, return_counts=True)
        counts = share * times.astype(np.float64)
    places = cells.lattice.centers(cells.codes[chosen], cells.depth)
    if not repeated:
        return places, counts
    moves = np.minimum(cells.counts[chosen], MAX_MOVES)
    places = np.repeat(places, moves, axis=0)
    moved = observed.positions.spread(cells.window, places, np.random.RandomState(observed.seed))
    return moved, np.repeat(counts / moves, moves)


def _density(rate: TreeRate, fold: TreeFold) -> Floats:
    """The density of a rate by trees at the places of a fold."""
    return rate.function(fold.places) / fold.kept.total


def _smooth_density(
    observed: Observed, held_out: list[WithoutFold], folds: list[TreeFold]
) -> Floats:
    """The densities of smooth rates at the places of the folds that they were learned without."""
    return np.concatenate(
        [
            observed.times_plain(held.rate)(fold.places) / fold.kept.total
            for held, fold in zip(held_out, folds, strict=True)
        ]
    )
