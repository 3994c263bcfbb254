"""Learning a rate from a statistic: by a smooth field, by trees, or by both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hplus._checks import Floats
from hplus.rates.binned import AnyStatistic, BinnedStatistic
from hplus.rates.every_scale import PARTS, Observed, learn_every_scale
from hplus.rates.exposure import CovariatesGiven, Exposed, OverWindow, exposed
from hplus.rates.grid_rate import GridRate
from hplus.rates.log_gaussian import begin
from hplus.rates.positions import Positions, find_positions
from hplus.rates.selection import Wanted
from hplus.rates.stacked_rate import StackedRate
from hplus.rates.statistic import Statistic
from hplus.rates.trees.tree_rate import TreeRate


class Learned(NamedTuple):
    """A rate, the smooth rate that is part of it, and the weights of all parts by name.

    `errors` are the standard errors of the coefficients of covariates. `observed` is None for
    events on the grid of an earlier version.
    """

    rate: GridRate | TreeRate | StackedRate
    smooth: GridRate | None
    weights: dict[str, float]
    exposed: Exposed
    observed: Observed | None
    errors: dict[str, float]

    @property
    def resolution(self) -> float | Floats:
        """The side of the smallest cell that the rate tells apart, never below the step.

        On each axis, shape (d,), if they have different units.
        """
        sides = self.rate.finest_sides
        if self.observed is not None:
            sides = np.maximum(sides, self.observed.positions.step)
        window = self.exposed.level.window
        return float(sides.max()) if len(set(window.axis_groups())) == 1 else sides


def learn(
    statistic: AnyStatistic,
    model: str,
    exposure: OverWindow,
    covariates: CovariatesGiven | None,
    wanted: Wanted,
    seed: int,
) -> Learned:
    """The rate under a model: "exp", "tree", or "auto" for both."""
    seen = exposed(BinnedStatistic.of(statistic, seed), exposure, covariates)
    observed = None
    if isinstance(statistic, Statistic):
        observed = Observed(statistic, find_positions(statistic), *seen.plain(), seed)
    if model == "tree" and observed is not None:
        return Learned(observed.plain_trees(), None, {"tree": 1.0}, seen, observed, {})
    fit = begin(seen.level, wanted, seed)
    if model == "exp" or observed is None:
        smooth, rate, weights = fit.refined().rate(), None, [1.0]
    else:
        smooth, rate, weights = learn_every_scale(observed, fit)
    errors = {}
    if seen.effects is not None:
        errors = seen.effects.errors(smooth, seen.level)
        smooth = seen.effects.applied(smooth, seen.level)
    named = {name: w for name, w in zip(PARTS, weights, strict=False) if w > 0.0}
    return Learned(rate or smooth, smooth, named, seen, observed, errors)


def learn_constant(statistic: Statistic, exposure: OverWindow, seed: int) -> Learned:
    """The constant rate of events: trees of a single cell, whose band is that of the total."""
    seen = exposed(BinnedStatistic.of(statistic, seed), exposure, None)
    none = np.zeros(statistic.window.dimension)
    observed = Observed(statistic.coarsened(0), Positions(none, none, 0.0), *seen.plain(), seed)
    return Learned(observed.plain_trees(), None, {"constant": 1.0}, seen, None, {})
