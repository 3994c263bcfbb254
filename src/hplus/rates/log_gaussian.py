"""The rate e^z of binned events, z a Gaussian field (a log-Gaussian Cox process).

Priors are given, or learned on a coarse grid. The rates under the best of them are averaged, and
the grid is refined until the answer does not change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import NamedTuple

import numpy as np

from hplus._checks import Floats, Reals
from hplus._progress import step
from hplus.positivity.exp import GridFunction
from hplus.rates.dense import MAX_DENSE_NODES, average_on_line, modes_on_line
from hplus.rates.grid_rate import GridRate, promised_gap
from hplus.rates.judging import held_out_parts, log_evidence
from hplus.rates.levels import Level, descend
from hplus.rates.modes import Optimum, certify, newton, normalised
from hplus.rates.posterior import Averaged, average, modes_under
from hplus.rates.prior import LogRates, Prior, Weighted, leading
from hplus.rates.selection import (
    LearnPrior,
    Redraw,
    Wanted,
    effort_for,
    once,
    select_priors,
    working_levels,
)
from hplus.solvers.result import SolverResult

SETTLED_CHANGE = 0.01
"""Share of the events by which the rate may still move when a grid is refined."""

FINAL_DECREMENT, FINAL_ACCURACIES = 5e-7, (1e-2, 1e-2, 1e-3, 1e-4)
"""The Newton decrement per event to which the leading mode is solved, and how exactly its systems
are solved, one attempt after the other."""

LINE_CARE = 0.02
"""How much more exactly modes are solved for on a line, where double precision costs little."""

HELD_OUT_SLACK = 4.0
"""How much less exactly modes without a fold are solved for: they only predict it."""


class WithoutFold(NamedTuple):
    """A fold of the events, and the rate learned without it."""

    fold: int
    rate: GridFunction


def learn_rate(finest: Level, wanted: Wanted, seed: int) -> GridRate:
    """The rate of binned events under priors that are given or learned, with its uncertainty."""
    return begin(finest, wanted, seed).refined().rate()


def begin(finest: Level, wanted: Wanted, seed: int, redraw: Redraw = once) -> SmoothFit:
    """A fit on the coarsest grid: the priors, and the modes under them."""
    levels, coarse = _averaged(finest, wanted, seed, redraw)
    return SmoothFit(levels, coarse, len(levels) - 1, coarse.known, np.nan)


@dataclass(frozen=True)
class CoarseFit:
    """The modes under all priors on the coarsest grid, which finer ones are reached from.

    `compared` are the log rates by which priors were compared: by prediction, those without each
    of the folds. `averaged` computes the uncertainty, from that many draws of the log rate, once it
    is needed.
    """

    level: Level
    compared: list[Weighted]
    known: list[Weighted]
    draws: int
    averaged: Callable[[int], Averaged]

    @cached_property
    def parts(self) -> int:
        """How many folds are held out in turn: as many as priors are compared by."""
        return min(held_out_parts(self.level.total), int(self.level.filled().sum()))

    @cached_property
    def without_folds(self) -> list[Weighted]:
        """The modes without each of the folds, (parts, *grid), under the priors of all events."""
        problems = {len(found.z) for _, found in self.compared}
        if problems == {self.parts} and self.parts > 1:
            return self.compared
        return _modes_without(self.level, self.parts, self.known)


@dataclass(frozen=True)
class SmoothFit:
    """A rate on one of ever finer grids, which can be asked there or refined.

    `levels` begins with the finest and ends with that of the `coarse` fit. `parts` are the modes
    on level number `place`, and `change` is the share of the events by which the rate moved when
    it was reached.
    """

    levels: list[Level]
    coarse: CoarseFit
    place: int
    parts: list[Weighted]
    change: float

    @property
    def level(self) -> Level:
        """The events on the grid that the fit has reached."""
        return self.levels[self.place]

    @property
    def settled(self) -> bool:
        """Is there no finer grid, or would it hardly change the rate?"""
        return self.place == 0 or self.change < SETTLED_CHANGE

    def refined(self) -> SmoothFit:
        """The fit on the first grid on which the rate moves by less than SETTLED_CHANGE."""
        fit, stage, most = self, "refining the grid", self.place
        while not fit.settled:
            step(stage, most - fit.place, most)
            fit = fit.finer()
        step(stage, most, most)
        return fit

    def finer(self) -> SmoothFit:
        """The fit on the next finer grid."""
        level = self.levels[: self.place][-1]
        parts = _prolonged(self.parts, level)
        old, new = level.grid.prolong(self.values()), mean_rates(parts, level, level.counts)[0]
        change = float(np.sum(level.exposure * np.abs(new - old))) / level.total
        return replace(self, place=self.place - 1, parts=parts, change=change)

    def values(self) -> Floats:
        """The rate at the nodes."""
        return mean_rates(self.parts, self.level, self.level.counts)[0]

    def function(self) -> GridFunction:
        """The rate as a function."""
        return GridFunction(self.level.window, self.level.grid, self.values())

    def rate(self, draws: int | None = None) -> GridRate:
        """The rate with its uncertainty, certified; from few draws that is only roughly known."""
        level, coarse = self.level, self.coarse.level
        found = self.coarse.averaged(self.coarse.draws if draws is None else draws)
        step("certifying the answer", 0, 1)
        result = _certified(level, leading(self.parts))
        step("certifying the answer", 1, 1)
        log_rate = np.log(mean_rates(self.coarse.known, coarse, coarse.counts)[0])
        return GridRate(
            self.function(),
            coarse.grid,
            found.center - log_rate,
            found.spread,
            (found.draws - log_rate).astype(np.float32),
            tuple((weight, mode.prior) for weight, mode in self.parts),
            result,
            _leading_evidence(coarse, self.coarse.known),
            self.change,
        )

    def held_out(self) -> list[WithoutFold]:
        """The rates learned without each of the first folds, under the priors of all events.

        Folds without events are passed over; each rate is scaled to the events that it was learned
        from. There are none if all events are in one fold.
        """
        level, parts = self.level, self.coarse.parts
        filled = np.flatnonzero(level.filled()).tolist()
        if len(filled) < 2:
            return []
        refined = level is not self.coarse.level
        modes = self._finer_without() if refined else self.coarse.without_folds
        rates = mean_rates(modes, level, level.without_parts(parts))
        return [
            WithoutFold(fold, GridFunction(level.window, level.grid, values))
            for fold, values in zip(filled, rates, strict=False)
        ]

    def _finer_without(self) -> list[Weighted]:
        """Modes without folds on the coarsest grid, on this one, where the leading one is solved.

        It starts from the mode of all events, less what the folds gave it on the coarsest grid.
        """
        level, modes = self.level, self.coarse.without_folds
        lead = leading(modes)
        start = leading(self.parts).z + self._prolong(lead.z - leading(self.coarse.known).z)
        kept = level.without_parts(self.coarse.parts)
        z = _solved(level, lead.prior, kept, start, HELD_OUT_SLACK * level.tolerance).z
        return [
            (weight, LogRates(found.prior, z + self._prolong(found.z - lead.z)))
            for weight, found in modes
        ]

    def _prolong(self, z: Reals) -> Reals:
        """Differences of log rates on the coarsest grid, on this one."""
        for level in reversed(self.levels[self.place : -1]):
            z = level.prolong(z)
        return z


def _averaged(
    finest: Level, wanted: Wanted, seed: int, redraw: Redraw
) -> tuple[list[Level], CoarseFit]:
    """The levels to refine on, and the fit on the last one."""
    levels = descend(finest)
    if finest.grid.dimension == 1 and wanted in (LearnPrior("auto"), LearnPrior("evidence")):
        on_line = average_on_line(levels[-1], seed)
        if on_line is not None:
            return levels, CoarseFit(levels[-1], [], on_line.parts, 0, lambda _: on_line)
    effort = effort_for(finest)
    levels = working_levels(levels, wanted, effort)
    priors = select_priors(levels, wanted, effort, redraw)
    parts = modes_under(levels[-1], priors)
    averaged = partial(average, levels[-1], parts, seed=seed)
    return levels, CoarseFit(levels[-1], priors, parts, effort.draws, averaged)


def _leading_evidence(level: Level, parts: list[Weighted]) -> float:
    """The log evidence of the leading prior on the coarse grid."""
    prior, z, a = leading(parts)
    K, (s, nu) = prior.covariance(level.grid), level.arrays()
    charges = None if a is None else a.astype(float)
    mode = newton(K, s, nu, z.astype(float), tolerance=level.tolerance, charges=charges)
    return log_evidence(level, prior, mode.z, mode.a)


def _prolonged(parts: list[Weighted], level: Level) -> list[Weighted]:
    """The modes under all priors on the next finer grid."""
    finer = [(weight, LogRates(found.prior, level.prolong(found.z))) for weight, found in parts]
    return solved_for_leader(finer, level)


def solved_for_leader(parts: list[Weighted], level: Level) -> list[Weighted]:
    """The modes under all priors from similar ones, of which the leading one is solved for.

    The others differ from it in what is smooth, which coarser grids or fewer events tell already:
    they are corrected by what the leading one gained.
    """
    leader = leading(parts)
    mode = _solved(level, leader.prior, level.counts, leader.z, level.tolerance)
    gained = mode.z - leader.z
    return [
        (weight, LogRates(found.prior, mode.z, mode.a))
        if found is leader
        else (weight, LogRates(found.prior, found.z + gained))
        for weight, found in parts
    ]


def _modes_without(level: Level, parts: int, known: list[Weighted]) -> list[Weighted]:
    """The modes under the known priors without each of the first folds, on the coarsest grid."""
    kept = level.without_parts(parts)
    if level.grid.dimension == 1 and level.grid.size <= MAX_DENSE_NODES:
        return modes_on_line(level, known, kept)
    slack = HELD_OUT_SLACK * level.tolerance
    return [
        (weight, LogRates(prior, _solved(level, prior, kept, z, slack).z))
        for weight, (prior, z, _) in known
    ]


def _solved(level: Level, prior: Prior, counts: Floats, start: Reals, tolerance: float) -> Optimum:
    """The modes of a batch of counts (k, *grid) on one level."""
    K, nu = prior.covariance(level.grid), level.exposure[None]
    z = np.broadcast_to(start, counts.shape)
    if level.grid.dimension == 1:
        return newton(K, counts, nu, z.astype(float), tolerance=LINE_CARE * tolerance)
    single = (x.astype(np.float32) for x in (counts, nu, z))
    return newton(K.single(), *single, tolerance=tolerance)


def mean_rates(parts: list[Weighted], level: Level, counts: Floats) -> Floats:
    """Σ weights · e^z, scaled to the number of events of each problem, shape (k, *grid)."""
    logs = (np.log(weight) + found.z.astype(float) for weight, found in parts)
    log_rates = reduce(np.logaddexp, logs)
    return np.exp(normalised(log_rates, counts, level.exposure[None]))


def _certified(level: Level, leader: LogRates) -> SolverResult:
    """The leading mode solved to the end, with a certificate."""
    K, (s, nu) = leader.prior.covariance(level.grid), level.arrays()
    tolerance, promised = FINAL_DECREMENT * float(s.sum()), promised_gap(level.grid.size)
    z, a = leader.z.astype(float), None if leader.a is None else leader.a.astype(float)
    for accuracy in FINAL_ACCURACIES:
        mode = newton(K, s, nu, z, tolerance=tolerance, accuracy=accuracy, charges=a)
        result = certify(K, s, nu, mode)
        if result.relative_gap <= 0.5 * promised:
            break
        # where a system is stiff, the decrement hides how far off the charges are
        z, a, tolerance = mode.z, mode.a, 0.01 * tolerance
    return result.judged(promised)
