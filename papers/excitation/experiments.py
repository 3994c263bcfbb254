"""The numbers of the report, computed by `*_data` functions with fixed seeds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from unittest.mock import patch

import fits
import numpy as np
from fits import ETAS
from numpy.typing import NDArray
from simulators import LINE_TRIGGERS, Floats, Ints

from hplus import SelfExciting
from hplus.rates.excitation import certified
from hplus.rates.excitation.log_weights import Parts, log_likelihood
from hplus.rates.excitation.trigger import Trigger

Bools = NDArray[np.bool_]

BRANCHING = (0.9, 0.5, 0.2)
DAYS = 3000.0
BINS = np.linspace(0.0, 1.0, 11)
TAILS = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Recovered:
    """One known trigger on several data sets; arrays have shape (sets,).

    `smoothed` and `unsmoothed` are relative errors ∫|ĝ - g|/∫g, `ratios` estimates of the branching
    ratio, `covered` whether its 90 % interval contains it. `curves` are those of the first set.
    """

    name: str
    branching: float
    smoothed: Floats
    unsmoothed: Floats
    ratios: Floats
    covered: Floats
    curves: tuple[Trigger, Trigger]

    def truth(self, lags: Floats) -> Floats:
        """The true trigger."""
        return self.branching * LINE_TRIGGERS[self.name].density(lags)


def triggers_data(
    sets: int = 10, until: float = 10_000.0, ratios: Sequence[float] = BRANCHING
) -> list[Recovered]:
    """Every known trigger at every branching ratio."""
    return [
        _recovered(name, ratio, [fits.line_fit(name, ratio, until, k) for k in range(sets)])
        for name in LINE_TRIGGERS
        for ratio in ratios
    ]


def _recovered(name: str, branching: float, models: list[SelfExciting]) -> Recovered:
    known = LINE_TRIGGERS[name]
    rough = [fits.unsmoothed(model) for model in models]
    low, high = np.array([model.branching_interval_ for model in models]).T
    return Recovered(
        name,
        branching,
        np.array([fits.trigger_error(model.trigger_, known, branching) for model in models]),
        np.array([fits.trigger_error(trigger, known, branching) for trigger in rough]),
        np.array([model.branching_ratio_ for model in models]),
        (low <= branching) & (branching <= high),
        (models[0].trigger_, rough[0]),
    )


@dataclass(frozen=True)
class InPlace:
    """A rate in place and time: ETAS itself if `model` is None, or a fit to events from it.

    `slope` is that of the log productivity, `growth` that of the log reach. Errors are relative,
    of the trigger by lag and by distance; `score` is the log-likelihood per fresh event.
    """

    name: str
    model: SelfExciting | None
    branching: float
    slope: float
    growth: float
    errors: tuple[float, float]
    score: float
    seconds: float


def etas_data(days: float = DAYS, learned: bool = True) -> list[InPlace]:
    """ETAS, a fit with the known background, and one that learns the background."""
    fresh, _ = fits.etas_events(days, 1)
    score = ETAS.log_likelihood(fresh, days)
    truth = InPlace("truth", None, ETAS.branching, ETAS.alpha, ETAS.gamma / 2.0, (0.0, 0.0),
                    score, 0.0)  # fmt: skip
    kinds = (True, False) if learned else (True,)
    return [truth, *(_in_place(known, days, fresh) for known in kinds)]


def _in_place(known: bool, days: float, fresh: Floats) -> InPlace:
    model, seconds = fits.etas_fit(days, known)
    effects, trigger = model.effects_, model.trigger_
    slope = np.polyfit(effects.knots, effects.logs, 1)[0]
    score = model.score(fresh[:, 2:], marks=fresh[:, 1])
    lags, far = np.geomspace(1e-4, 2.0 * trigger.lags[-1], 4001), np.geomspace(1e-2, 200.0, 4001)
    by_lag = np.abs(trigger.by_lag(lags) - ETAS.branching * ETAS.by_lag(lags))
    true_far = ETAS.branching * ETAS.by_distance(far, effects.center)
    by_far = 2.0 * np.pi * far * np.abs(trigger.by_distance(far) - true_far)
    errors = (np.trapezoid(by_lag, lags), np.trapezoid(by_far, far))
    return InPlace(
        "known background" if known else "learned background", model, model.branching_ratio_,
        float(slope), effects.growth, tuple(float(e) / ETAS.branching for e in errors), score,
        seconds,
    )  # fmt: skip


@dataclass(frozen=True)
class Progress:
    """A solver after some steps: nats per event from the optimum, at most and in truth."""

    problem: str
    solver: str
    steps: int
    gap: float
    missing: float
    seconds: float


EM_STEPS = (1, 3, 10, 30, 100, 300, 1000, 3000)
BARRIER_STEPS = (1, 2, 3, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100)


def certificate_data(
    until: float = 10_000.0,
    days: float = DAYS,
    em_steps: Sequence[int] = EM_STEPS,
    barrier_steps: Sequence[int] = BARRIER_STEPS,
) -> list[Progress]:
    """EM and the barrier method from the same start, on a line and in place and time."""
    problems = {
        "line": fits.parts_of(fits.line_fit("power law", 0.5, until, 0)),
        "place and time": fits.parts_of(fits.etas_fit(days, True)[0]),
    }
    return [
        item
        for name, parts in problems.items()
        for item in _progress(name, fits.used_parts(parts), em_steps, barrier_steps)
    ]


def _progress(
    name: str, parts: Parts, em_steps: Sequence[int], barrier_steps: Sequence[int]
) -> list[Progress]:
    n, B = parts.rows.shape
    start = n / (B * parts.integrals)
    with patch.object(certified, "AIMED_GAP", 1e-10):
        best = log_likelihood(parts, certified.largest_likelihood(parts, start)[0])

    def item(solver: str, steps: int, a: Floats, seconds: float) -> Progress:
        gap, missing = certified.certified_gap(parts, a), best - log_likelihood(parts, a)
        return Progress(name, solver, steps, gap / n, missing / n, seconds)

    found, a, clock = [], start, time.process_time()
    for k in range(1, max(em_steps) + 1):
        a = fits.em_update(parts, a)
        if k in em_steps:
            found.append(item("EM", k, a, time.process_time() - clock))
    for k in barrier_steps:
        clock = time.process_time()
        with patch.object(certified, "MAX_BARRIER_STEPS", k):
            a, result = certified.largest_likelihood(parts, start)
        found.append(item("barrier", result.iterations, a, time.process_time() - clock))
        if result.iterations < k:
            break
    return found


@dataclass(frozen=True)
class Declustered:
    """Events with known parents: what the fit says and what is true, (n,) each.

    `background` is the probability that an event was not triggered, `was` whether it was not;
    `most` is the probability of its likeliest origin, and `right` whether that is the true one.
    `parent` and `parent_right` are the same of its likeliest parent, whether or not the background
    is likelier.
    """

    problem: str
    background: Floats
    was: Bools
    most: Floats
    right: Bools
    parent: Floats
    parent_right: Bools


@dataclass(frozen=True)
class Bin:
    """Events with probabilities between two bounds, of each problem."""

    low: float
    high: float
    counts: Ints
    predicted: Floats
    observed: Floats


def declustering_data(until: float = 10_000.0, days: float = DAYS) -> list[Declustered]:
    """A line and place and time."""
    line = fits.line_fit("exponential", 0.5, until, 0)
    return [
        _declustered("line", line, fits.line_events("exponential", 0.5, until, 0)[1]),
        _declustered("place and time", fits.etas_fit(days, True)[0], fits.etas_events(days, 0)[1]),
    ]


def _declustered(problem: str, model: SelfExciting, parents: Ints) -> Declustered:
    found = model.parents()
    true, first = parents[found.events], found.events[0]
    order = np.argsort(found.probabilities, kind="stable")  # so that the likeliest is kept
    likely, parent = np.zeros(len(true)), np.full(len(true), -2)
    likely[found.children[order] - first] = found.probabilities[order]
    parent[found.children[order] - first] = found.parents[order]
    most, right = np.maximum(found.background, likely), found.likeliest == true
    return Declustered(problem, found.background, true < 0, most, right, likely, parent == true)


def calibration_data(until: float = 10_000.0, days: float = DAYS) -> list[Bin]:
    """The same by ten bins of the probability that an event belongs to the background."""
    cases = declustering_data(until, days)
    return [_bin(cases, low, high) for low, high in pairwise(BINS)]


def _bin(cases: list[Declustered], low: float, high: float) -> Bin:
    some = [(low <= c.background) & (c.background < high + (high == 1.0)) for c in cases]
    counts = np.array([own.sum() for own in some])
    predicted = [c.background[own].sum() for c, own in zip(cases, some, strict=True)]
    observed = [c.was[own].sum() for c, own in zip(cases, some, strict=True)]
    events = np.maximum(counts, 1)
    return Bin(low, high, counts, np.array(predicted) / events, np.array(observed) / events)


@dataclass(frozen=True)
class Future:
    """Counts of a time to come, (paths,) each: from the truth, the forecast, and a Poisson rate."""

    moment: str
    horizon: float
    truth: Floats
    forecast: Floats
    poisson: Floats

    def bounds(self, counts: Floats) -> Floats:
        """The 5 %, 50 % and 95 % quantiles of counts."""
        return np.quantile(counts, TAILS, method="inverted_cdf")

    @property
    def covered(self) -> float:
        """The share of the true counts between the 5 % and the 95 % quantile of the forecast."""
        low, _, high = self.bounds(self.forecast)
        return float(np.mean((low <= self.truth) & (self.truth <= high)))


MOMENTS = {"no large event": 0.0, "an hour after M 6.5": 6.5, "an hour after M 7.5": 7.5}
"""The magnitude of an event in the middle of the square, an hour before the forecast."""

HOUR = 1.0 / 24.0


def forecasts_data(days: float = DAYS, paths: int = 1000) -> list[Future]:
    """The next day and week, without a large event before it and after two."""
    model, _ = fits.etas_fit(days, True)
    return [
        _future(model, moment, horizon, days, paths) for moment in MOMENTS for horizon in (1.0, 7.0)
    ]


def _future(model: SelfExciting, moment: str, horizon: float, days: float, paths: int) -> Future:
    rng = np.random.default_rng(5)
    history, start = fits.etas_events(days, 0)[0], days
    if MOMENTS[moment]:
        shock = np.array([[0.0, MOMENTS[moment], ETAS.side / 2.0, ETAS.side / 2.0, days]])
        history, start = np.concatenate([history, shock]), days + HOUR
        history = np.concatenate([history, ETAS.simulate(days, start, rng, history)[0]])
    rows, _ = ETAS.simulate(start, start + horizon, rng, history, paths)
    truth = np.bincount(rows[:, 0].astype(int), minlength=paths)
    known = (history[:, 2:], history[:, 1])
    ahead = model.forecast(horizon, n_paths=paths, start=start, history=known, random_state=0)
    poisson = rng.poisson(model.total_ / days * horizon, paths)
    return Future(moment, horizon, truth, ahead.counts[0], poisson)
