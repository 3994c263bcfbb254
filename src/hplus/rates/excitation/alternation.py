"""From events to a self-exciting rate: weights, productivity, reach and background, in turn.

Given the other parts, the weights of background and trigger are a convex problem before smoothing,
and so is the productivity. The alternation between them, the reach of marks and the smoothing on
the log scale are not: a step of the background is kept only if it raises the log posterior, and the
last rounds end when it no longer rises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from hplus._checks import Floats
from hplus._progress import step
from hplus.rates.excitation.excitation_fit import (
    MIN_LAGS,
    ExcitationFit,
    ObservedEvents,
    parts_of,
    weighed,
    with_all_lags,
    with_longest_lag,
    with_weights,
)
from hplus.rates.excitation.excited_rate import offspring_of, rows_by_mark
from hplus.rates.excitation.learned_places import (
    LearnPlace,
    background_shares,
    with_places,
)
from hplus.rates.excitation.log_weights import (
    LogPrior,
    Parts,
    find_mode,
    learn_strengths,
    second_differences,
)
from hplus.rates.excitation.rivals import with_quick_levels
from hplus.rates.excitation.weight_priors import padded
from hplus.rates.forecasts.cycle_factor import Cycles

LearnCycles = Callable[[Floats, Floats], Cycles]
"""Cycles that predict later ones, from times (n,) and their weights (n,)."""

ROUNDS, LEARNED_ROUNDS = 8, 2
"""Rounds of the alternation, and how many of them learn the strengths of the priors."""

FIRST_ROUNDS, FIRST_LAG_SHARE = 2, 0.6
"""Rounds of background and trigger before the lags are chosen, and the share of lags in them."""

CYCLE_ROUNDS = 6
"""Rounds of cycles and trigger, at most."""

SETTLED = 1e-4
"""Gain in nats per event at which the alternation ends."""

REACH_STEPS, REACH_TOLERANCE, REACH_EVENTS = 7, 0.1, 5000
"""Steps of the search for how the reach grows with marks, how exact it is for the log of the ratio
of the largest mark's reach to the smallest's, and of how many events it is asked, at most."""


def learn_excitation(
    observed: ObservedEvents,
    fit: ExcitationFit,
    learn_place: LearnPlace | None,
    learn_cycles: LearnCycles,
) -> tuple[ExcitationFit, list[float]]:
    """The fit after the alternation, and the log posterior before and after rounds with known
    priors.
    """
    lags = fit.trigger.lags
    cycles = learn_cycles(observed.inside.times, np.ones(len(observed.inside)))
    fit = replace(fit, background=replace(fit.background, cycles=cycles))
    if observed.types > 1:
        fit = replace(fit, alike=types_alike(observed, fit, learn_place))
    fit = with_cycles(observed, begun(observed, fit, learn_place), learn_cycles)
    fit = with_longest_lag(observed, fit, lags)
    quick = with_quick_levels(observed, fit)
    fit = fit if quick is fit else with_longest_lag(observed, quick, lags)
    trace: list[float] = []
    # on a line without marks there is nothing to alternate with
    rounds = 1 if learn_place is None and len(fit.effects.knots) < 2 else ROUNDS
    for done in range(rounds):
        step("alternating background and trigger", done, rounds)
        learn = done < LEARNED_ROUNDS
        new = with_productivity(observed, fit, learn=learn)
        new = with_reach(observed, new) if learn else new
        new = with_weights(observed, new, learn=learn)
        if learn_place is not None:
            placed = with_places(observed, new, learn_place, background_shares(observed, new))
            placed = with_weights(observed, placed, learn=False)
            better = placed.log_posterior > new.log_posterior
            new, learn_place = (placed, learn_place) if better else (new, None)
        gain = new.log_posterior - fit.log_posterior
        if not learn:
            trace = trace or [fit.log_posterior]
            if gain < 0.0:
                break
            trace.append(new.log_posterior)
        fit = new
        if not learn and gain < SETTLED * len(observed.inside):
            break
    step("alternating background and trigger", rounds, rounds)
    return fit, trace


def begun(
    observed: ObservedEvents, fit: ExcitationFit, learn_place: LearnPlace | None
) -> ExcitationFit:
    """The fit with short lags, and a background of events that those do not explain.

    Long lags would first make up for a background in which bursts are left.
    """
    few = max(int(FIRST_LAG_SHARE * (len(fit.trigger.lags) - 1)), MIN_LAGS)
    trigger = fit.trigger
    short = trigger.replace(lags=trigger.lags[: few + 1], weights=trigger.weights[:, :, :few])
    shares = np.ones(len(observed.inside))
    fit = with_places(observed, replace(fit, trigger=short), learn_place, shares)
    fit = with_weights(observed, fit, learn=True)
    if learn_place is None:
        return fit
    for _ in range(FIRST_ROUNDS):
        fit = with_places(observed, fit, learn_place, background_shares(observed, fit))
        fit = with_weights(observed, fit, learn=False)
    return fit


def types_alike(
    observed: ObservedEvents, fit: ExcitationFit, learn_place: LearnPlace | None
) -> ExcitationFit:
    """The fit to events whose types are not told apart, with all lags."""
    alike, trigger, background = observed.of_one_type(), fit.trigger, fit.background
    one = replace(
        fit,
        trigger=trigger.replace(weights=trigger.weights[:1, :1]),
        background=replace(background, levels=background.levels[:1]),
    )
    return with_all_lags(alike, begun(alike, one, learn_place), trigger.lags)


def with_cycles(
    observed: ObservedEvents, fit: ExcitationFit, learn_cycles: LearnCycles
) -> ExcitationFit:
    """The fit with cycles of the background, learned in turn with the trigger.

    A trigger that was learned without them has absorbed most of them.
    """
    gain = np.inf
    for _ in range(CYCLE_ROUNDS):
        cycles = learn_cycles(observed.inside.times, background_shares(observed, fit))
        former, none = fit.log_posterior, not (cycles.periods or fit.background.cycles.periods)
        fit = replace(fit, background=replace(fit.background, cycles=cycles))
        if none or gain < SETTLED * len(observed.inside):
            break
        fit = with_weights(observed, fit, learn=False)
        gain = fit.log_posterior - former
    return fit


def with_productivity(
    observed: ObservedEvents, fit: ExcitationFit, *, learn: bool
) -> ExcitationFit:
    """The fit with the most probable productivity, whose mean over the events stays 1."""
    if len(fit.effects.knots) < 2:
        return fit
    hats = fit.effects.hats(observed.events.marks)
    parts = [_by_mark(observed, fit, kind, hats) for kind in range(observed.types)]
    M = hats.shape[1]
    both = Parts(
        np.vstack([part.rows for part in parts]), np.sum([part.integrals for part in parts], axis=0)
    )
    bends, slopes = (padded(S, 1, after=False) for S in (second_differences(M), fit.mark_slopes))
    prior = LogPrior(np.zeros(M + 1), (bends,), np.array([fit.mark_strength]), slopes)
    start = np.append(0.0, fit.effects.logs)
    if learn:
        (prior,), (mode,) = learn_strengths([both], [prior], [start])
    else:
        mode = find_mode(both, prior, start)
    new = fit.effects.replace(logs=mode.log_weights[1:])
    effects, shift = new.scaled(observed.inside.marks)
    triggers = np.arange(len(fit.modes[0].log_weights)) >= len(fit.background.knots)
    moved = tuple(
        found._replace(log_weights=found.log_weights + np.where(triggers, shift, 0.0))
        for found in fit.modes
    )
    strength = float(prior.strengths[0])
    return weighed(replace(fit, effects=effects, modes=moved, mark_strength=strength))


def _by_mark(observed: ObservedEvents, fit: ExcitationFit, kind: int, hats: Floats) -> Parts:
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


def with_reach(observed: ObservedEvents, fit: ExcitationFit) -> ExcitationFit:
    """The fit with the growth of the reach with marks of largest posterior; not convex.

    Its weights are those of the former reach, which stays if no other is better.
    """
    if observed.region is None or len(fit.effects.knots) < 2:
        return fit
    spread = float(np.ptp(observed.events.marks))
    most = np.log(fit.trigger.distances[-1] / fit.trigger.distances[0]) / spread

    every = -(-len(observed.inside) // REACH_EVENTS)

    def at(growth: float) -> ExcitationFit:
        return replace(fit, effects=fit.effects.replace(growth=float(growth)))

    def log_posterior(growth: float) -> float:
        found = 0.0
        for kind, (prior, mode) in enumerate(zip(fit.priors, fit.modes, strict=True)):
            parts = parts_of(observed, at(growth), kind, every)
            found += find_mode(parts, prior, mode.log_weights).log_posterior
        return found

    found = minimize_scalar(
        lambda growth: -log_posterior(growth),
        bounds=(0.0, 0.5 * most),
        method="bounded",
        options={"xatol": REACH_TOLERANCE / spread, "maxiter": REACH_STEPS},
    )
    return at(found.x) if -found.fun > log_posterior(fit.effects.growth) else fit
