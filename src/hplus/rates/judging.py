"""How well a prior suits binned events: by prediction of held-out events, or by its evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from hplus._checks import Reals
from hplus.rates.levels import Level
from hplus.rates.modes import newton, objective
from hplus.rates.posterior import log_determinant
from hplus.rates.prior import LogRates, Prior, SumOfFields

PRODUCT_ODDS = 2.0
"""Nats by which a product over axes must be better: it draws streaks along the axes."""

STRETCH_ODDS = 2.0
"""Nats by which scales that differ by a factor of two between axes must be better: few events often
look stretched by chance."""

FEW_EVENTS = 50
"""Events below which parts of them say too little to compare priors by prediction."""

HELD_OUT_PARTS = ((10, 1000), (5, 2000), (3, 3000), (2, 10_000), (1, np.inf))
"""How many parts are held out in turn, at most, and up to how many events."""

Criterion = Literal["auto", "evidence", "thinning"]

CRITERIA: tuple[Criterion, ...] = get_args(Criterion)

Scored = tuple[float, LogRates]
"""A score in nats, with the prior odds, and the log rates that gave it."""

Judge = Callable[[Prior, Reals], Scored]
"""From a prior and log rates to start from, to its score."""


def judge_of(level: Level, criterion: Criterion) -> Judge:
    """The evidence or thinning; "auto" takes the evidence where there are few events."""
    if predicts(level, criterion):
        return by_thinning(level, held_out_parts(level.total))
    return by_evidence(level)


def predicts(level: Level, criterion: Criterion) -> bool:
    """Are priors compared by prediction of held-out events?"""
    # one filled part, held out, would leave nothing to learn from
    alone = level.filled().sum() < 2
    few = criterion == "auto" and level.total < FEW_EVENTS
    return not (alone or few or criterion == "evidence")


def held_out_parts(events: float) -> int:
    """How many parts are held out in turn: fewer of many events."""
    return next(parts for parts, most in HELD_OUT_PARTS if events < most)


def by_thinning(level: Level, parts: int) -> Judge:
    """The log-likelihood of held-out parts under the rates learned from the others."""
    out = level.folds[level.filled()][:parts]
    kept = level.without_parts(parts).astype(np.float32)
    _, nu = level.arrays(np.float32)
    logs = np.log(kept.reshape(len(out), -1).sum(axis=1, dtype=float))

    def judge(prior: Prior, z: Reals) -> Scored:
        K = prior.covariance(level.grid).single()
        start = np.broadcast_to(z, kept.shape)
        mode = newton(K, kept, nu, start, tolerance=4.0 * level.tolerance)
        held = np.sum(out * mode.z, dtype=float)
        score = held - float(logs @ out.reshape(len(out), -1).sum(axis=1))
        return score - _odds(prior, level), LogRates(prior, mode.z)

    return judge


def by_evidence(level: Level) -> Judge:
    """The log evidence, its determinant by stochastic Lanczos quadrature with common probes."""
    s, nu = level.arrays(np.float32)

    def judge(prior: Prior, z: Reals) -> Scored:
        K = prior.covariance(level.grid).single()
        mode = newton(K, s, nu, z, tolerance=4.0 * level.tolerance)
        found = LogRates(prior, mode.z)
        return log_evidence(level, prior, mode.z, mode.a) - _odds(prior, level), found

    return judge


def _odds(prior: Prior, level: Level) -> float:
    """Nats against a prior before any event was seen."""
    if not isinstance(prior, SumOfFields):
        return 0.0
    finest = prior.fields[-1]
    doublings = np.log2(np.array(finest.scales) / level.window.longest_sides())
    stretch = float(np.abs(doublings - doublings[0]).sum())
    return PRODUCT_ODDS * finest.product + STRETCH_ODDS * stretch


def log_evidence(level: Level, prior: Prior, z: Reals, a: Reals) -> float:
    """-objective - ½ log det of the Hessian, up to a constant that all priors share."""
    K = prior.covariance(level.grid).single()
    s, nu = level.arrays()
    W = (nu * np.exp(z)).astype(np.float32)
    log_det = log_determinant(K, W, np.random.RandomState(0))
    # the objective adds up large numbers: in double precision
    value = float(objective(s, nu, z.astype(float), a.astype(float))[0])
    return -value - 0.5 * log_det
