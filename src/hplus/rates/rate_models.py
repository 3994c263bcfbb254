"""Learning a rate from a statistic: by a smooth field, by trees, or by both."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from hplus._checks import Floats
from hplus.positivity.exp import GridFunction
from hplus.rates.binned import AnyStatistic, BinnedStatistic
from hplus.rates.every_scale import PARTS, AnyFit, Observed, are_very_many, learn_every_scale
from hplus.rates.exposure import CovariatesGiven, Exposed, OverWindow, exposed
from hplus.rates.folded_fit import begin_without_fold
from hplus.rates.grid_rate import GridRate
from hplus.rates.judging import Criterion
from hplus.rates.levels import descend, redrawn
from hplus.rates.log_gaussian import begin
from hplus.rates.positions import Positions, find_positions
from hplus.rates.prior import Mixture
from hplus.rates.relearning import only_trees, relearned
from hplus.rates.selection import LearnPrior, Wanted, learn_mixture
from hplus.rates.stacked_rate import StackedRate
from hplus.rates.statistic import Statistic
from hplus.rates.thinning import thinned_to
from hplus.rates.trees.spectrum import ScaleSpectrum
from hplus.rates.trees.tree_rate import TreeRate
from hplus.solvers.result import SolverResult, Status

MAX_PRIOR_EVENTS = 200_000
"""About how many events priors are learned from, if there are more: fields are the same for all."""

CONSTANT_DRAWS = 128
"""Equally likely values of a constant rate."""


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
        if "constant" in self.weights:
            sides = self.exposed.level.window.longest_sides()
        if self.observed is not None:
            sides = np.maximum(sides, self.observed.positions.step)
        window = self.exposed.level.window
        return float(sides.max()) if len(set(window.axis_groups())) == 1 else sides


class Similar(NamedTuple):
    """What was learned of similar events: `mixture` are the priors of the smooth field, if any."""

    rate: GridRate | TreeRate | StackedRate
    weights: dict[str, float]
    positions: Positions
    spectrum: ScaleSpectrum
    mixture: Mixture


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
    # on a line, where learning priors takes no time, rates under many of them are averaged
    in_space = isinstance(statistic, Statistic) and statistic.window.dimension > 1
    if in_space and wanted == LearnPrior("auto") and statistic.events > 2 * MAX_PRIOR_EVENTS:
        wanted = learn_priors(statistic, exposure, covariates, "auto", seed)
    fit: AnyFit | None = None
    compared = model != "exp" and observed is not None
    if compared and are_very_many(statistic.events) and not isinstance(wanted, LearnPrior):
        fit = begin_without_fold(seen.level, wanted, seed)
    if fit is None:
        fit = begin(seen.level, wanted, seed, partial(redrawn, statistic, seed))
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


def learn_like(statistic: Statistic, exposure: OverWindow, like: Similar, seed: int) -> Learned:
    """The rate of events, most of which a similar rate was learned from.

    Only what depends on every event is learned again: the smooth field and the counts of trees.
    """
    without = only_trees(like.rate)
    binned = BinnedStatistic.nowhere(statistic) if without else BinnedStatistic.of(statistic, seed)
    seen = exposed(binned, exposure, None)
    observed = Observed(statistic, like.positions, *seen.plain(), seed, like.spectrum)
    if isinstance(like.rate, TreeRate):
        rate = observed.trees(observed.all_cells, None, like.rate.clustering)
        return Learned(rate, None, like.weights, seen, observed, {})
    on_line = statistic.window.dimension == 1
    wanted = LearnPrior("auto") if on_line else like.mixture
    smooth, stacked = relearned(observed, partial(begin, seen.level, wanted, seed), like.rate)
    return Learned(stacked or smooth, smooth, like.weights, seen, observed, {})


def learn_priors(
    statistic: AnyStatistic,
    exposure: OverWindow,
    covariates: CovariatesGiven | None,
    criterion: Criterion,
    seed: int,
) -> Mixture:
    """The priors that a fit would learn, with their weights."""
    if isinstance(statistic, Statistic):
        statistic = thinned_to(statistic, MAX_PRIOR_EVENTS, seed)
    level = exposed(BinnedStatistic.of(statistic, seed), exposure, covariates).level
    return learn_mixture(level, criterion, partial(redrawn, statistic, seed))


def learn_constant(statistic: Statistic, exposure: OverWindow, seed: int) -> Learned:
    """The constant rate n/∫E of events; its log has the standard deviation 1/√n."""
    seen = exposed(BinnedStatistic.of(statistic, seed), exposure, None)
    level, events = descend(seen.level)[-1], statistic.effective_events
    shape, rate = level.grid.shape, statistic.total / float(level.exposure.sum())
    z = ndtri((np.arange(CONSTANT_DRAWS) + 0.5) / CONSTANT_DRAWS) / math.sqrt(events)
    objective = statistic.total * (1.0 - math.log(rate))
    constant = GridRate(
        GridFunction(level.window, level.grid, np.full(shape, rate)),
        level.grid,
        np.zeros(shape),
        np.full(shape, 1.0 / math.sqrt(events)),
        np.broadcast_to(z.reshape(-1, *np.ones_like(shape)), (len(z), *shape)).astype(np.float32),
        (),
        SolverResult(Status.CONVERGED, 0, objective, 0.0, abs(objective)),
        -objective,
        0.0,
    )
    return Learned(constant, None, {"constant": 1.0}, seen, None, {})
