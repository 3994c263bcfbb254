"""Which priors to average: those that are given, or the best of a search on a coarse grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from hplus._checks import Floats, Reals
from hplus._progress import each
from hplus.kernels import Kernel
from hplus.rates.judging import Criterion, Scored, judge_of, predicts
from hplus.rates.levels import Level, descend
from hplus.rates.prior import KernelPrior, LogRates, Mixture, Weighted, circulant
from hplus.rates.search import finalists, search, weighted

PLENTY_OF_EVENTS = 100_000
"""Events from which on the prior hardly matters."""

MIN_SCALE = 0.005
"""The smallest scale that is tried, as a share of the longest side."""

KERNEL_PENALTIES = 10.0 ** np.arange(-1.0, 2.1, 0.5)
"""Penalties that are compared for a kernel: its log rates vary with 1/√penalty."""

MAX_MATRIX_NODES = {1: 1025, 2: 2500, 3: 2500}
"""Nodes of a grid on which a covariance may be a matrix, by dimension."""

LUCK_NATS = 10.0
"""Nats behind the best from which on no other draw of folds would let a prior win."""

DENSE_LEVELS = 3
"""The coarsest grids on a line, on which priors are compared with dense matrices instead."""


@dataclass(frozen=True)
class LearnPrior:
    """Learn a sum of Matérn fields or, for a given kernel, the penalty that it is divided by."""

    criterion: Criterion
    kernel: Kernel | None = None


Wanted = Mixture | LearnPrior
"""Priors that are given with their weights, or what is to be learned of them."""


Redraw = Callable[[Level], list[Level]]
"""From events with folds to the same events with other draws of the folds."""


def once(level: Level) -> list[Level]:
    """No other draws of folds: priors are compared under one."""
    return []


@dataclass(frozen=True)
class Effort:
    """What a fit spends: how many priors are tried and whether they are compared again on a finer
    grid; how many priors and draws are kept; how many of the finest grids are skipped in the plane.
    """

    trials: int
    again: bool
    kept: int
    draws: int
    skipped: int


USUAL_EFFORT = Effort(trials=26, again=True, kept=4, draws=64, skipped=0)
LIGHT_EFFORT = Effort(trials=6, again=False, kept=1, draws=16, skipped=1)


def effort_for(finest: Level) -> Effort:
    """What to spend: little on many events, for which the prior hardly matters."""
    return LIGHT_EFFORT if finest.total >= PLENTY_OF_EVENTS else USUAL_EFFORT


def learn_mixture(finest: Level, criterion: Criterion, redraw: Redraw = once) -> Mixture:
    """Priors that suit binned events, with their weights, and not the rate under them."""
    effort, wanted = effort_for(finest), LearnPrior(criterion)
    levels = working_levels(descend(finest), wanted, effort)
    return tuple((w, found.prior) for w, found in select_priors(levels, wanted, effort, redraw))


def working_levels(levels: list[Level], wanted: Wanted, effort: Effort) -> list[Level]:
    """The levels to work on, down to the one on which priors are compared."""
    d = levels[0].grid.dimension
    if any(circulant(k, level.grid) is None for k in _kernels(wanted) for level in levels):
        return [levels[0].on_about(MAX_MATRIX_NODES[d])]
    return levels[effort.skipped * (d == 2) : len(levels) - DENSE_LEVELS * (d == 1)]


def _kernels(wanted: Wanted) -> list[Kernel]:
    """The kernels of a user, which may need matrices."""
    if isinstance(wanted, LearnPrior):
        return [] if wanted.kernel is None else [wanted.kernel]
    return [prior.kernel for _, prior in wanted if isinstance(prior, KernelPrior)]


def select_priors(
    levels: list[Level], wanted: Wanted, effort: Effort, redraw: Redraw = once
) -> list[Weighted]:
    """Priors with weights and log rates to start from: those given, or the best that were tried."""
    level = levels[-1]
    start = level.start().astype(np.float32)
    if not isinstance(wanted, LearnPrior):
        return [(weight, LogRates(prior, start)) for weight, prior in wanted]
    judge, kernel = judge_of(level, wanted.criterion), wanted.kernel
    if kernel is not None:
        penalties = each("learning penalties", KERNEL_PENALTIES.tolist())
        tried = [judge(KernelPrior(kernel, penalty), start) for penalty in penalties]
        # there is little to choose: neither a finer grid nor other folds would change much
        levels, redraw = [level], once
    else:
        sides = level.window.longest_sides()
        smallest = max(float(np.min(level.grid.spacing / sides)), MIN_SCALE)
        tried = search(judge, sides, start, smallest, effort.trials)
    best = finalists(tried)
    finer = levels[-2] if effort.again and len(levels) > 1 else None
    others = redraw(level) if predicts(level, wanted.criterion) else []
    scores = _scores(best, finer, others, wanted.criterion)
    return weighted([found for _, found in best], scores, effort.kept)


def _scores(
    best: list[Scored], finer: Level | None, others: list[Level], criterion: Criterion
) -> Floats:
    """The scores of priors on a finer grid, if there is one, under each draw of folds, (draws, m).

    What another draw changes is much the same on both grids, and found on the coarser one.
    """
    first = np.array([score for score, _ in best])
    scores = first
    if finer is not None:
        starts = [found._replace(z=finer.prolong(found.z)) for _, found in best]
        scores = _judged_again(finer, each("comparing priors again", starts), criterion)
    close = np.flatnonzero(scores > scores.max() - LUCK_NATS)
    means = [best[i][1]._replace(z=best[i][1].z.mean(axis=0, keepdims=True)) for i in close]
    luck = np.zeros((len(others), len(best)))
    for row, other in zip(luck, each("comparing priors on other folds", others), strict=True):
        row[close] = _judged_again(other, means, criterion) - first[close]
    return np.vstack([scores, scores + luck])


def _judged_again(level: Level, starts: Iterable[LogRates], criterion: Criterion) -> Floats:
    """The scores of priors, on a finer grid that shows how rough a rate may be or on other folds.

    What one prior gains from its start is a good guess for the next.
    """
    judge, scores = judge_of(level, criterion), []
    gained: Reals = np.zeros((), dtype=np.float32)
    for prior, z, _ in starts:
        score, found = judge(prior, z + gained)
        gained = found.z - z
        scores.append(score)
    return np.array(scores)
