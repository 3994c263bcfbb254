"""From events to a self-exciting rate: weights, productivity, reach and background, in turn.

Given the other parts, the weights of background and trigger are a convex problem before smoothing,
and so is the productivity. The alternation between them, the reach of marks and the smoothing on
the log scale are not: a step is kept only if it raises the log posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from hplus._checks import Floats
from hplus._progress import step
from hplus.rates.excitation.background import Background
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.excited_rate import (
    ExcitedRate,
    integrals_of,
    offspring_of,
    rows_by_mark,
    rows_of,
)
from hplus.rates.excitation.log_weights import (
    LogPrior,
    Mode,
    Parts,
    find_mode,
    first_differences,
    learn_strengths,
    log_evidence,
    second_differences,
)
from hplus.rates.excitation.mark_effects import MarkEffects
from hplus.rates.excitation.trigger import Trigger
from hplus.rates.fitted import FittedRate
from hplus.windows import Window

LearnPlace = Callable[[Floats, Floats], FittedRate]
"""A rate in the plane from places (n, 2) and their weights (n,)."""

ROUNDS = 8
LEARNED_ROUNDS = 2
"""Rounds of the alternation, and how many of them learn the strengths of the priors."""

SETTLED = 1e-4
"""Gain in nats per event at which the alternation ends."""

TIME_BLOCKS = 5
"""Blocks of time: the background of each is learned from the others."""

MIN_PLACED = 30
"""With fewer events of a type, its background is the same everywhere."""

LEAST_WEIGHT = 1e-6
"""Events less likely to be of the background are left out of it."""

FIRST_STRENGTHS = (1000.0, 10.0, 10.0)
"""Of the trend, and of the trigger along lags and distances."""

FIRST_MARK_STRENGTH = 30.0
"""Of the prior of the productivity."""

MIN_LAG_GAIN = 1.0
"""Nats of evidence that longer lags must gain."""

REACH_STEPS, REACH_TOLERANCE = 7, 0.03
"""Steps of the search for how the reach grows with marks, and how exact it is."""


@dataclass(frozen=True)
class Observed:
    """All events until `end`, those since `start`, and where they could have occurred."""

    events: Catalogue
    inside: Catalogue
    start: float
    end: float
    region: Window | None
    types: int
    jobs: int = 1

    def of_type(self, kind: int) -> Catalogue:
        """The events of a type since the start."""
        return self.inside.picked(self.inside.types == kind)


@dataclass(frozen=True)
class Fit:
    """A state of the alternation: the rate's parts, and for each type the prior and the mode.

    `densities` (n,) are those of the background at the events inside, each learned from other
    blocks of time. `background` are the probabilities (n,) that events were not triggered.
    """

    trigger: Trigger
    effects: MarkEffects
    background: Background
    densities: Floats
    priors: tuple[LogPrior, ...] = ()
    modes: tuple[Mode, ...] = ()
    mark_strength: float = FIRST_MARK_STRENGTH

    @property
    def log_posterior(self) -> float:
        """Of all types together."""
        S = second_differences(len(self.effects.logs))
        penalty = 0.5 * self.mark_strength * float(self.effects.logs @ S @ self.effects.logs)
        return sum(mode.log_posterior for mode in self.modes) - penalty

    @property
    def log_likelihood(self) -> float:
        """Of all types together."""
        return sum(mode.log_likelihood for mode in self.modes)


def learn_excitation(
    observed: Observed, fit: Fit, learn_place: LearnPlace | None
) -> tuple[Fit, list[float]]:
    """The fit after the alternation, and the log posterior after each round with fixed priors."""
    fit = with_places(observed, fit, learn_place, np.ones(len(observed.inside)))
    fit = with_longest_lag(observed, with_weights(observed, fit, learn=True))
    trace: list[float] = []
    for done in range(ROUNDS):
        step("alternating background and trigger", done, ROUNDS)
        learn = done < LEARNED_ROUNDS
        new = with_productivity(observed, fit, learn=learn)
        new = with_reach(observed, new) if learn else new
        new = with_weights(observed, new, learn=learn)
        if learn_place is not None:
            placed = with_places(observed, new, learn_place, background_shares(observed, new))
            placed = with_weights(observed, placed, learn=False)
            better = placed.log_posterior > new.log_posterior
            new, learn_place = (placed, learn_place) if better else (new, None)
        if not learn:
            gain = new.log_posterior - fit.log_posterior
            if gain < SETTLED * len(observed.inside):
                break
            trace.append(new.log_posterior)
        fit = new
    step("alternating background and trigger", ROUNDS, ROUNDS)
    return fit, trace


def parts_of(observed: Observed, fit: Fit, kind: int) -> Parts:
    """The parts of the rate of a type: levels of the background, then the trigger."""
    targets, own = observed.of_type(kind), observed.inside.types == kind
    hats = fit.background.hats(targets.times) * fit.densities[own, None]
    rows = rows_of(
        targets, observed.events, fit.trigger, fit.effects, observed.types, observed.jobs
    )
    start, end = observed.start, observed.end
    integrals = integrals_of(
        observed.events, fit.trigger, fit.effects, observed.types, start, end, observed.region
    )
    return Parts(
        np.hstack([hats, rows]),
        np.concatenate([fit.background.hat_integrals(start, end), integrals]),
    )


def first_prior(observed: Observed, fit: Fit, kind: int) -> LogPrior:
    """Half of the events are triggered, by a trigger that falls as power laws; or nearly so."""
    T, (S, _, L, D) = len(fit.background.knots), fit.trigger.weights.shape
    events = len(observed.of_type(kind))
    level = np.log(max(0.5 * events, 0.5) / (observed.end - observed.start))
    shape = -np.log(fit.trigger.lags[:-1])[:, None] * np.ones(D)
    if len(fit.trigger.distances):
        shape = shape - 2.0 * np.log(fit.trigger.distances[:-1])
    mass = fit.trigger.lag_integrals @ np.exp(shape) @ fit.trigger.distance_integrals
    shape += np.log(0.5 / (S * mass))
    mean = np.concatenate([np.full(T, level), np.tile(shape.ravel(), S)])
    penalties = [_block(first_differences(T), S * L * D, after=True)]
    along_lags = np.kron(np.eye(S), np.kron(second_differences(L), np.eye(D)))
    penalties.append(_block(along_lags, T, after=False))
    if len(fit.trigger.distances):
        along_distances = np.kron(np.eye(S * L), second_differences(D))
        penalties.append(_block(along_distances, T, after=False))
    strengths = np.array(FIRST_STRENGTHS[: len(penalties)])
    return LogPrior(mean, tuple(penalties), strengths)


def _block(matrix: Floats, others: int, *, after: bool) -> Floats:
    """The matrix with zeros for other columns before or after it."""
    pad = (0, others) if after else (others, 0)
    return np.pad(matrix, (pad, pad))


def with_weights(observed: Observed, fit: Fit, *, learn: bool) -> Fit:
    """The fit with the most probable levels and trigger, and perhaps new strengths."""
    priors, modes = list(fit.priors), list(fit.modes)
    for kind in range(observed.types):
        parts = parts_of(observed, fit, kind)
        if not fit.priors:
            priors.append(first_prior(observed, fit, kind))
            modes.append(Mode(priors[kind].mean, -np.inf, -np.inf, np.zeros((0, 0))))
        start = modes[kind].log_weights
        if learn:
            priors[kind], modes[kind] = learn_strengths(parts, priors[kind], start)
        else:
            modes[kind] = find_mode(parts, priors[kind], start)
    return _weighed(replace(fit, priors=tuple(priors), modes=tuple(modes)))


def _weighed(fit: Fit) -> Fit:
    """The fit with the levels and the trigger of its modes."""
    T, shape = len(fit.background.knots), fit.trigger.weights.shape
    weights = np.exp([mode.log_weights for mode in fit.modes])
    trigger = np.moveaxis(weights[:, T:].reshape(shape[1], shape[0], *shape[2:]), 0, 1)
    return replace(
        fit,
        background=replace(fit.background, levels=weights[:, :T]),
        trigger=fit.trigger.replace(weights=trigger),
    )


def with_longest_lag(observed: Observed, fit: Fit) -> Fit:
    """The fit with the shortest lags that lose little evidence: longer ones mimic the background."""
    T, (S, _, L, D) = len(fit.background.knots), fit.trigger.weights.shape
    best, most = fit, -np.inf
    all_parts = [parts_of(observed, fit, kind) for kind in range(observed.types)]
    for few in sorted({L, *(int(L * share) for share in (0.3, 0.4, 0.5, 0.6, 0.7, 0.85))}):
        if few < 4:
            continue
        kept = np.concatenate([np.ones(T, bool), np.tile(np.repeat(np.arange(L) < few, D), S)])
        short = fit.trigger.replace(
            lags=fit.trigger.lags[: few + 1], weights=fit.trigger.weights[:, :, :few]
        )
        tried, evidence, priors, modes = replace(fit, trigger=short), 0.0, [], []
        for kind, parts in enumerate(all_parts):
            prior = first_prior(observed, tried, kind)._replace(
                strengths=fit.priors[kind].strengths
            )
            cut = Parts(np.ascontiguousarray(parts.rows[:, kept]), parts.integrals[kept])
            prior, mode = learn_strengths(cut, prior, fit.modes[kind].log_weights[kept])
            priors.append(prior)
            modes.append(mode)
            evidence += log_evidence(prior, mode)
        if evidence > most + MIN_LAG_GAIN:
            most = evidence
            best = _weighed(replace(tried, priors=tuple(priors), modes=tuple(modes)))
    return best


def with_productivity(observed: Observed, fit: Fit, *, learn: bool) -> Fit:
    """The fit with the most probable productivity, whose mean over the events stays 1."""
    if len(fit.effects.knots) < 2:
        return fit
    hats = fit.effects.hats(observed.events.marks)
    parts = [_by_mark(observed, fit, kind, hats) for kind in range(observed.types)]
    M = hats.shape[1]
    both = Parts(
        np.vstack([part.rows for part in parts]), np.sum([part.integrals for part in parts], axis=0)
    )
    prior = LogPrior(np.zeros(M + 1), (_block(second_differences(M), 1, after=False),),
                     np.array([fit.mark_strength]))  # fmt: skip
    start = np.append(0.0, fit.effects.logs)
    if learn:
        prior, mode = learn_strengths(both, prior, start)
    else:
        mode = find_mode(both, prior, start)
    new = fit.effects.replace(logs=mode.log_weights[1:])
    effects, shift = new.scaled(observed.inside.marks)
    moved = tuple(
        found._replace(log_weights=found.log_weights + np.where(_is_trigger(fit), shift, 0.0))
        for found in fit.modes
    )
    strength = float(prior.strengths[0])
    return _weighed(replace(fit, effects=effects, modes=moved, mark_strength=strength))


def _is_trigger(fit: Fit) -> Floats:
    T = len(fit.background.knots)
    return np.arange(len(fit.modes[0].log_weights)) >= T


def _by_mark(observed: Observed, fit: Fit, kind: int, hats: Floats) -> Parts:
    """The background of a type, and what the trigger adds for each knot of the productivity."""
    targets, own = observed.of_type(kind), observed.inside.types == kind
    hats_in_time = fit.background.hats(targets.times) @ fit.background.levels[kind]
    rows = rows_by_mark(targets, observed.events, (fit.trigger, fit.effects), hats, kind)
    lags, rings = offspring_of(
        observed.events, fit.trigger, fit.effects, observed.start, observed.end, observed.region
    )
    weights = fit.trigger.weights[observed.events.types, kind]
    each = np.einsum("ml,mld,md->m", lags, weights, rings)
    total = fit.background.integral(observed.start, observed.end, kind)
    return Parts(
        np.column_stack([hats_in_time * fit.densities[own], rows]), np.append(total, hats.T @ each)
    )


def with_reach(observed: Observed, fit: Fit) -> Fit:
    """The fit with the growth of the reach with marks of largest posterior; not convex."""
    if observed.region is None or len(fit.effects.knots) < 2:
        return fit
    marks = observed.events.marks
    most = np.log(fit.trigger.distances[-1] / fit.trigger.distances[0]) / np.ptp(marks)

    def at(growth: float) -> Fit:
        tried = replace(fit, effects=fit.effects.replace(growth=float(growth)))
        return with_weights(observed, tried, learn=False)

    found = minimize_scalar(
        lambda growth: -at(growth).log_posterior,
        bounds=(0.0, 0.5 * most),
        method="bounded",
        options={"xatol": REACH_TOLERANCE, "maxiter": REACH_STEPS},
    )
    return at(found.x)


def background_shares(observed: Observed, fit: Fit) -> Floats:
    """The probability that each event inside was not triggered, (n,)."""
    found = np.zeros(len(observed.inside))
    for kind in range(observed.types):
        own, parts = observed.inside.types == kind, parts_of(observed, fit, kind)
        T, weights = len(fit.background.knots), np.exp(fit.modes[kind].log_weights)
        found[own] = parts.rows[:, :T] @ weights[:T] / (parts.rows @ weights)
    return found


def with_places(
    observed: Observed, fit: Fit, learn_place: LearnPlace | None, shares: Floats
) -> Fit:
    """The fit with the background learned from events by how likely they belong to it.

    What it says of an event is learned from other blocks of time: a burst must not be its own
    background.
    """
    if learn_place is None or observed.region is None:
        return replace(fit, densities=np.ones(len(observed.inside)))
    inside, span = observed.inside, observed.end - observed.start
    block = (
        ((inside.times - observed.start) / span * TIME_BLOCKS).astype(int).clip(0, TIME_BLOCKS - 1)
    )
    places, densities = [], np.zeros(len(inside))
    for kind in range(observed.types):
        some = (inside.types == kind) & (shares > LEAST_WEIGHT)
        rate = learn_place(inside.places[some], shares[some])
        places.append(rate)
        for k in range(TIME_BLOCKS):
            own = (inside.types == kind) & (block == k)
            others = some & (block != k)
            if not own.any():
                continue
            known = (
                rate
                if shares[others].sum() < MIN_PLACED
                else learn_place(inside.places[others], shares[others])
            )
            densities[own] = known.function(inside.places[own]) / known.integral()
    return replace(
        fit, densities=densities, background=replace(fit.background, places=tuple(places))
    )
