"""Which priors suit binned events: a search on a coarse grid, and again on a finer one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hplus._progress import each
from hplus.rates.prior import MOST_NODES, Given, Texture
from hplus.rates.levels import Level, descend
from hplus.rates.statistic import DOUBLINGS
from hplus.rates.search import (
    Judge,
    Shape,
    Tried,
    by_evidence,
    by_thinning,
    finalists,
    search,
    weighted,
)
from hplus.windows import Window

FEW = 50
"""Events below which parts of them say too little to compare priors by prediction."""

PLENTY = 100_000
"""Events from which on the prior hardly matters."""

PARTS = ((5, 1000), (3, 3000), (2, 10_000), (1, np.inf))
"""How many parts are held out in turn, and up to how many events."""

FINEST = 0.005
"""The smallest scale that is tried, as a share of the longest side."""

PENALTIES = 10.0 ** np.arange(-1.0, 2.1, 0.5)
"""What a kernel without a penalty is divided by: its log rates vary with 1/√penalty."""

Mixture = tuple[tuple[float, Shape], ...]
"""Priors with their weights."""


@dataclass(frozen=True)
class Effort:
    """What is spent on a fit: priors that are tried, and again on a finer grid; priors and draws
    of the log rate that are kept; and how many of the finest grids are left out in the plane."""

    trials: int
    again: bool
    kept: int
    draws: int
    spared: int


USUAL = Effort(trials=26, again=True, kept=4, draws=64, spared=0)
LIGHT = Effort(trials=6, again=False, kept=1, draws=16, spared=1)


def is_mixture(prior: Any) -> bool:
    """Is it what a fit has learned: priors, each with a weight above 0?"""
    return isinstance(prior, tuple) and len(prior) > 0 and all(map(_is_weighted, prior))


def _is_weighted(part: Any) -> bool:
    return (
        isinstance(part, tuple)
        and len(part) == 2
        and isinstance(part[0], float)
        and part[0] > 0.0
        and isinstance(part[1], Texture | Given)
    )


def learn_priors(window: Window, finest: Level, criterion: str) -> Mixture:
    """Priors that suit binned events, with their weights, and not the rate under them."""
    effort = effort_for(finest)
    levels = tuning_levels(window, descend(finest, DOUBLINGS[window.dimension]), None, effort)
    found = judged(window, levels, None, criterion, effort)
    return tuple((weight, trial.prior) for weight, trial in found)


def effort_for(finest: Level) -> Effort:
    """What to spend: little on many events, of which the prior hardly matters."""
    return LIGHT if float(finest.counts.sum()) >= PLENTY else USUAL


def judged(
    window: Window,
    levels: list[Level],
    prior: Shape | Mixture | None,
    criterion: str,
    effort: Effort,
) -> list[tuple[float, Tried]]:
    """Priors with their weights: those that are given, or the best that were tried.

    Those that were searched for are compared on a finer grid again.
    """
    level, start = levels[-1], levels[-1].start().astype(np.float32)
    if prior is None:
        tried = _searched(window, level, start, criterion, effort)
        if effort.again and len(levels) > 1:
            tried = _judged_again(levels[-2], tried, criterion)
    elif isinstance(prior, Given) and np.isnan(prior.penalty):
        judge, candidates = _judge(level, criterion), each("learning penalties", PENALTIES)
        tried = [judge(prior.replace(penalty=float(p)), start) for p in candidates]
    else:
        parts = prior if isinstance(prior, tuple) else ((1.0, prior),)
        return [(weight, Tried(0.0, part, start)) for weight, part in parts]
    return weighted(tried, effort.kept)


def tuning_levels(
    window: Window, levels: list[Level], prior: Shape | Mixture | None, effort: Effort
) -> list[Level]:
    """The levels to work on, down to the one on which priors are compared."""
    d = levels[0].grid.dimension
    if _needs_matrix(prior, levels):
        return [levels[0].on_about(MOST_NODES[d], window)]
    # on a line the coarsest grids were tried with dense matrices
    return levels[effort.spared * (d == 2) : len(levels) - 3 * (d == 1)]


def _needs_matrix(prior: Shape | Mixture | None, levels: list[Level]) -> bool:
    """Does a user's kernel need a matrix on some level, and so on all?"""
    parts = [part for _, part in prior] if isinstance(prior, tuple) else [prior]
    return any(
        part.replace(penalty=1.0).is_matrix(level.grid)
        for part in parts
        if isinstance(part, Given)
        for level in levels
    )


def _searched(
    window: Window, level: Level, start: Any, criterion: str, effort: Effort
) -> list[Tried]:
    """Priors that a search among sums of a coarse and a fine field came by, and their scores."""
    sides = window.longest_sides()
    smallest = max(float(np.min(level.grid.spacing / sides)), FINEST)
    return search(_judge(level, criterion), sides, start, smallest, effort.trials)


def _judged_again(level: Level, tried: list[Tried], criterion: str) -> list[Tried]:
    """The best priors with their scores on a finer grid, which shows how rough a rate may be."""
    judge = _judge(level, criterion)
    again = []
    for trial in each("comparing priors again", finalists(tried)):
        z = np.stack([level.grid.prolong(part.astype(float)) for part in trial.z])
        again.append(trial._replace(score=judge(trial.prior, z.astype(np.float32)).score))
    return again


def _judge(level: Level, criterion: str) -> Judge:
    events = float(level.counts.sum())
    lone = level.filled().sum() < 2  # held out, it would leave nothing to learn from
    if criterion == "evidence" or (criterion == "auto" and events < FEW) or lone:
        return by_evidence(level)
    return by_thinning(level, next(parts for parts, most in PARTS if events < most))
