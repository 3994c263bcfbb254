"""The default rate: a smooth field, trees, and trees on the smooth field, weighted by prediction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus._progress import each
from hplus.positivity.exp import GridFunction
from hplus.rates.grid_rate import GridRate
from hplus.rates.levels import Level
from hplus.rates.log_gaussian import HeldOut, SmoothFit, begin
from hplus.rates.positions import Positions
from hplus.rates.selection import Wanted
from hplus.rates.stacked_rate import StackedRate
from hplus.rates.stacking import stacking_weights
from hplus.rates.statistic import Statistic
from hplus.rates.trees.growing import learn_tree_rate, working_cells
from hplus.rates.trees.tree_rate import TreeBase, TreeRate

PARTS = ("exp", "tree", "tree on exp")
"""The rates that are weighted."""

MAX_SCORED_CELLS = 10_000
"""Cells of a fold whose events are predicted to weigh rates."""

TREES_TAKE_OVER = 0.1
"""Nats per event by which trees must predict better for the smooth field not to be refined."""


class Observed(NamedTuple):
    """Events, the step of their positions, and what was observed of the window.

    `plain` is the rate that trees are relative to where no smooth one is given, None if it is a
    constant; `exposure` is at its nodes, or one number of shape ().
    """

    statistic: Statistic
    positions: Positions
    plain: GridFunction | None
    exposure: Floats
    seed: int

    def cells(self, statistic: Statistic) -> Statistic:
        """Some of the events in cells that are no smaller than the step."""
        return working_cells(statistic, self.positions, self.seed)

    def trees(self, cells: Statistic, smooth: TreeBase | None) -> TreeRate:
        """The rate by trees, relative to a smooth rate or to what was observed."""
        base, exposure = smooth, self.exposure
        if self.plain is not None:
            base = base or TreeBase(self.plain)
            grid = base.function.grid
            exposure = self.plain.grid.interpolate(exposure, grid.nodes()).reshape(grid.shape)
        distinct = not self.positions.step.any()
        return learn_tree_rate(cells, base, exposure, self.seed, distinct)


class Fold(NamedTuple):
    """Events that trees are learned from, places of those held out, and how many there are.

    `tree` is the density of a rate by trees at these places.
    """

    kept: Statistic
    places: Floats
    counts: Floats
    tree: Floats


def learn_every_scale(
    observed: Observed, level: Level, wanted: Wanted
) -> tuple[GridRate | StackedRate, Floats]:
    """The rate of events at every scale, and the weights of PARTS."""
    fit = begin(level, wanted, observed.seed)
    fit, weights = _weighed(observed, fit)
    smooth = fit.rate()
    if not np.any(weights[1:] > 0.0):
        return smooth, weights
    cells = observed.cells(observed.statistic)
    parts: list[tuple[float, GridRate | TreeRate]] = []
    for name, weight in zip(PARTS, weights.tolist(), strict=True):
        if weight > 0.0:
            base = TreeBase(smooth.function, smooth) if name == "tree on exp" else None
            parts.append((weight, smooth if name == "exp" else observed.trees(cells, base)))
    return StackedRate(smooth, tuple(parts)), weights


def _weighed(observed: Observed, fit: SmoothFit) -> tuple[SmoothFit, Floats]:
    """The smooth field, refined unless trees take over, and the weights of PARTS."""
    held_out = fit.held_out()
    if not held_out:
        return fit.refined(), np.eye(len(PARTS))[0]
    folds = [_fold(observed, held.fold) for held in each("growing trees", held_out)]
    smooth = np.concatenate([_density(held, fold) for held, fold in zip(held_out, folds)])
    trees = np.concatenate([fold.tree for fold in folds])
    counts = np.concatenate([fold.counts for fold in folds])
    if np.average(np.log(trees / smooth), weights=counts) < TREES_TAKE_OVER:
        fit = fit.refined()
        held_out = fit.held_out()
        smooth = np.concatenate([_density(held, fold) for held, fold in zip(held_out, folds)])
    both = np.concatenate(
        [_tree_density(observed, f, h.rate) for h, f in zip(held_out, folds, strict=True)]
    )
    return fit, stacking_weights(np.stack([smooth, trees, both]), counts)


def _fold(observed: Observed, number: int) -> Fold:
    """A fold of the events, and trees learned from the others."""
    statistic = observed.statistic
    out = statistic.folds(observed.seed)[number]
    held = observed.cells(statistic.part(out))
    chosen = np.arange(len(held.codes))
    if len(chosen) > MAX_SCORED_CELLS:
        rng = np.random.default_rng(observed.seed)
        chosen = np.sort(rng.choice(chosen, MAX_SCORED_CELLS, replace=False))
    places = held.lattice.centers(held.codes[chosen], held.depth)
    kept = observed.cells(statistic.part(statistic.counts - out))
    fold = Fold(kept, places, held.masses[chosen], np.zeros(0))
    return fold._replace(tree=_tree_density(observed, fold, None))


def _tree_density(observed: Observed, fold: Fold, smooth: GridFunction | None) -> Floats:
    """The density of a rate by trees at the places of a fold."""
    base = None if smooth is None else TreeBase(smooth)
    return observed.trees(fold.kept, base).function(fold.places) / fold.kept.total


def _density(held: HeldOut, fold: Fold) -> Floats:
    """The density of a smooth rate at the places of a fold that it was learned without."""
    return held.rate(fold.places) / fold.kept.total
