"""The rate e^z of binned events, z a Gaussian field (a log-Gaussian Cox process).

Priors are given, or learned on a coarse grid. The rates under the best of them are averaged, and
the grid is refined until the answer does not change.
"""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus._progress import step
from hplus.positivity.exp import GridFunction
from hplus.rates.dense import average_on_line
from hplus.rates.grid_rate import GridRate, promised_gap
from hplus.rates.judging import log_evidence
from hplus.rates.levels import Level, descend
from hplus.rates.modes import certify, newton
from hplus.rates.posterior import Averaged, average
from hplus.rates.prior import LogRates, Weighted, leading
from hplus.rates.selection import LearnPrior, Wanted, effort_for, select_priors, working_levels
from hplus.solvers.result import SolverResult

SETTLED_CHANGE = 0.01
"""Share of the events by which the rate may still move when a grid is refined."""

FINAL_DECREMENT, FINAL_ACCURACIES = 5e-7, (1e-2, 1e-2, 1e-3, 1e-4)
"""The Newton decrement per event to which the leading mode is solved, and how exactly its systems
are solved, one attempt after the other."""

EVIDENCE_TOLERANCE = 1e-3
"""Nats to which the leading mode is solved for its evidence."""


def learn_rate(finest: Level, wanted: Wanted, seed: int) -> GridRate:
    """The rate of binned events under priors that are given or learned, with its uncertainty."""
    levels, known = _averaged(finest, wanted, seed)
    coarse = levels[-1]
    rate, evidence = _mean_rate(known.parts, coarse), _leading_evidence(coarse, known.parts)
    level, parts, values, change = _refined(levels, known.parts, rate)
    step("certifying the answer", 0, 1)
    result = _certified(level, leading(parts))
    step("certifying the answer", 1, 1)
    log_rate = np.log(rate)
    return GridRate(
        GridFunction(finest.window, level.grid, values),
        coarse.grid,
        known.center - log_rate,
        known.spread,
        (known.draws - log_rate).astype(np.float32),
        tuple((weight, found.prior) for weight, found in parts),
        result,
        evidence,
        change,
    )


def _averaged(finest: Level, wanted: Wanted, seed: int) -> tuple[list[Level], Averaged]:
    """The levels to refine on, and log rates averaged over priors on the last one."""
    levels = descend(finest)
    if finest.grid.dimension == 1 and wanted in (LearnPrior("auto"), LearnPrior("evidence")):
        averaged = average_on_line(levels[-1], seed)
        if averaged is not None:
            return levels, averaged
    effort = effort_for(finest)
    levels = working_levels(levels, wanted, effort)
    priors = select_priors(levels, wanted, effort)
    return levels, average(levels[-1], priors, effort.draws, seed)


def _leading_evidence(level: Level, parts: list[Weighted]) -> float:
    """The log evidence of the leading prior on the coarse grid."""
    prior, z, _ = leading(parts)
    s, nu = level.arrays()
    K = prior.covariance(level.grid)
    mode = newton(K, s, nu, z.astype(float), tolerance=EVIDENCE_TOLERANCE)
    return log_evidence(level, prior, mode.z, mode.a)


def _refined(
    levels: list[Level], parts: list[Weighted], values: Floats
) -> tuple[Level, list[Weighted], Floats, float]:
    """The last of finer and finer grids, the modes and the rate on it, and how much it moved last.

    It is the first on which the rate moved by less than SETTLED_CHANGE of the events.
    """
    change, total = np.nan, levels[-1].total
    level, stage, most = levels[-1], "refining the grid", len(levels) - 1
    for done, level in enumerate(levels[-2::-1]):
        step(stage, done, most)
        parts = _prolonged(parts, level)
        new = _mean_rate(parts, level)
        change = float(np.sum(level.exposure * np.abs(new - level.grid.prolong(values)))) / total
        values = new
        if change < SETTLED_CHANGE:
            break
    step(stage, most, most)
    return level, parts, values, change


def _prolonged(parts: list[Weighted], level: Level) -> list[Weighted]:
    """The modes under all priors on the next finer grid.

    The leading one is solved for. The others differ from it in what is smooth, which the coarser
    grid resolves already: they are corrected by what the leading one gained.
    """
    dtype = np.float64 if level.grid.dimension == 1 else np.float32
    finer = [
        (weight, LogRates(prior, level.grid.prolong(z[0].astype(float))[None].astype(dtype)))
        for weight, (prior, z, _) in parts
    ]
    leader = leading(finer)
    K = leader.prior.covariance(level.grid)
    s, nu = level.arrays(dtype)
    K = K if dtype is np.float64 else K.single()
    mode = newton(K, s, nu, leader.z, tolerance=level.tolerance)
    gained = mode.z - leader.z
    return [
        (weight, LogRates(found.prior, mode.z, mode.a))
        if found is leader
        else (weight, LogRates(found.prior, found.z + gained))
        for weight, found in finer
    ]


def _mean_rate(parts: list[Weighted], level: Level) -> Floats:
    """Σ weights · e^z, scaled to the number of events."""
    logs = [np.log(weight) + found.z[0].astype(float) for weight, found in parts]
    log_rate = np.logaddexp.reduce(logs)
    rate = np.exp(log_rate - log_rate.max())
    return rate * (level.total / np.sum(level.exposure * rate))


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
