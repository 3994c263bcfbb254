"""A state of the fit of a self-exciting rate, and its weights given everything else.

The weights of background and trigger are a convex problem before smoothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from hplus._checks import Floats
from hplus.grids.hats import read_only
from hplus.rates.excitation.background import Background
from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.excited_rate import integrals_of, rows_of
from hplus.rates.excitation.log_weights import (
    LogPrior,
    Parts,
    WeightMode,
    find_mode,
    learn_strengths,
    log_evidence,
    second_differences,
)
from hplus.rates.excitation.mark_effects import MarkEffects
from hplus.rates.excitation.own_factors import OwnFactors, add_surplus_rows
from hplus.rates.excitation.trigger import Trigger
from hplus.rates.excitation.weight_priors import priors_of_types
from hplus.windows import Window

FIRST_MARK_STRENGTH = 30.0
"""Of the prior of the productivity."""

LAG_SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
"""Shares of the lags that are tried on a line, on the log scale."""

LAG_SHARES_IN_PLACE = (0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0)
"""The same in place and time, where lags are fewer: cut short, a trigger looks smaller."""

MIN_LAGS, MIN_LAG_GAIN = 4, 3.0
"""The fewest lags of a trigger, and nats of evidence that longer ones must gain."""

MAX_EVIDENCE_EVENTS = 200_000
"""Events from which the longest lag is chosen, at most."""


class LastRows:
    """The rows of each type under the last trigger and marks, as a pass over pairs is slow."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[bytes, Floats]] = {}

    def of(self, kind: int, key: bytes, found: Callable[[], Floats]) -> Floats:
        """The rows that were found last, if for the same key, or new ones."""
        if kind not in self._found or self._found[kind][0] != key:
            self._found.pop(kind, None)
            self._found[kind] = key, read_only(found())
        return self._found[kind][1]


@dataclass(frozen=True)
class ObservedEvents:
    """All events until `end`, those since `start`, and where they could have occurred."""

    events: Catalogue
    inside: Catalogue
    start: float
    end: float
    region: Window | None
    types: int
    jobs: int = 1
    last_rows: LastRows = field(default_factory=LastRows)

    def of_type(self, kind: int) -> Catalogue:
        """The events of a type since the start."""
        return self.inside.picked(self.inside.types == kind)

    def of_one_type(self) -> ObservedEvents:
        """The same events, whose types are not told apart."""
        events, inside = (
            replace(some, types=np.zeros_like(some.types)) for some in (self.events, self.inside)
        )
        return replace(self, events=events, inside=inside, types=1, last_rows=LastRows())


@dataclass(frozen=True)
class ExcitationFit:
    """A state of the alternation: the rate's parts, and for each type the prior and the mode.

    `mark_slopes` is the precision that the prior of slopes gives the productivity at its knots.
    `densities` (n,) are those of the background at the events inside, each learned from other
    blocks of time, from how likely events were of the background, `shares` (n,). `lag_spread` is
    the least and the largest branching ratio under longest lags that the evidence hardly tells
    apart, relative to that of the trigger. `factors` are those of events that trigger more or
    fewer than expected, and `direction_strength` how strongly they trigger along lines: the
    events that are observed then have bearings. With several types, `alike` is the fit to events
    whose types are not told apart, with all lags.
    """

    trigger: Trigger
    effects: MarkEffects
    background: Background
    densities: Floats
    shares: Floats
    mark_slopes: Floats
    priors: tuple[LogPrior, ...] = ()
    modes: tuple[WeightMode, ...] = ()
    mark_strength: float = FIRST_MARK_STRENGTH
    lag_spread: tuple[float, float] = (1.0, 1.0)
    factors: OwnFactors | None = None
    direction_strength: float = 0.0
    alike: ExcitationFit | None = None

    @property
    def log_posterior(self) -> float:
        """Of all types together."""
        logs = self.effects.logs
        penalty = 0.5 * float(logs @ self.mark_precision @ logs)
        return sum(mode.log_posterior for mode in self.modes) - penalty

    @property
    def mark_precision(self) -> Floats:
        """That of the productivity at its knots under the prior, (M, M)."""
        M = len(self.effects.knots)
        return self.mark_strength * second_differences(M) + self.mark_slopes

    @property
    def log_evidence(self) -> float:
        """That of the strengths of the priors, of all types together, up to a constant."""
        return sum(map(log_evidence, self.priors, self.modes))

    @property
    def log_likelihood(self) -> float:
        """Of all types together."""
        return sum(mode.log_likelihood for mode in self.modes)


def parts_of(observed: ObservedEvents, fit: ExcitationFit, kind: int, every: int = 1) -> Parts:
    """The parts of the rate of a type: levels of the background, then the trigger.

    With `every` k, those of every k-th event and of one k-th of the rate.
    """
    targets, own = observed.of_type(kind), observed.inside.types == kind
    targets, densities = targets.picked(slice(None, None, every)), fit.densities[own][::every]
    hats = fit.background.hats(targets.times) * densities[:, None]
    rows = _rows(observed, fit, kind, targets, every)
    start, end = observed.start, observed.end
    integrals = integrals_of(
        observed.events, fit.trigger, fit.effects, observed.types, start, end, observed.region
    )
    if fit.factors is not None:
        rows = rows.copy()
        _add_factors(observed, fit, fit.factors, targets, Parts(rows, integrals))
    integrals = np.concatenate([fit.background.hat_integrals(start, end), integrals])
    return Parts(np.hstack([hats, rows]), integrals / every)


def _rows(
    observed: ObservedEvents, fit: ExcitationFit, kind: int, targets: Catalogue, every: int
) -> Floats:
    """Hat functions of lag and distance at targets of a type, remembered if they are in place."""
    trigger, effects = fit.trigger, fit.effects

    def found() -> Floats:
        return rows_of(targets, observed.events, trigger, effects, observed.types, observed.jobs)

    if observed.region is None or every > 1:
        return found()
    sizes = [effects.growth, effects.center, len(trigger.lags), len(trigger.distances)]
    arrays = (sizes, trigger.lags, trigger.distances, effects.knots, effects.logs)
    key = np.concatenate(arrays).tobytes()
    return observed.last_rows.of(kind, key, found)


def _add_factors(
    observed: ObservedEvents,
    fit: ExcitationFit,
    own: OwnFactors,
    targets: Catalogue,
    parts: Parts,
) -> None:
    """Add what events with a factor of their own trigger beyond what is expected."""
    lags, distances, weights = fit.trigger.arrays
    columns = own.varying.types * weights[0, 0].size
    add_surplus_rows(targets.times, targets.plane, own.varying, lags, distances, own.factors,
                     columns, parts.rows)  # fmt: skip
    parts.integrals[:] += integrals_of(
        observed.events.picked(own.which), fit.trigger, fit.effects, observed.types,
        observed.start, observed.end, observed.region, own.factors - 1.0,
    )  # fmt: skip


def with_weights(observed: ObservedEvents, fit: ExcitationFit, *, learn: bool) -> ExcitationFit:
    """The fit with the most probable levels and trigger, and perhaps new strengths."""
    parts = [parts_of(observed, fit, kind) for kind in range(observed.types)]
    priors = fit.priors or first_priors(observed, fit)
    starts = [mode.log_weights for mode in fit.modes] or [prior.mean for prior in priors]
    if learn:
        priors, modes = learn_strengths(parts, priors, starts)
    else:
        modes = tuple(map(find_mode, parts, priors, starts))
    return weighed(replace(fit, priors=priors, modes=modes))


def first_priors(observed: ObservedEvents, fit: ExcitationFit) -> tuple[LogPrior, ...]:
    """What is expected of the weights of each type before events tell."""
    counts = np.bincount(observed.inside.types, minlength=observed.types).astype(float)
    levels, alike = len(fit.background.knots), fit.alike.trigger if fit.alike else None
    return priors_of_types(fit.trigger, counts, observed.end - observed.start, levels, alike)


def weighed(fit: ExcitationFit) -> ExcitationFit:
    """The fit with the levels and the trigger of its modes."""
    T, shape = len(fit.background.knots), fit.trigger.weights.shape
    weights = np.exp([mode.log_weights for mode in fit.modes])
    trigger = np.moveaxis(weights[:, T:].reshape(shape[1], shape[0], *shape[2:]), 0, 1)
    return replace(
        fit,
        background=replace(fit.background, levels=weights[:, :T]),
        trigger=fit.trigger.replace(weights=trigger),
    )


def with_longest_lag(observed: ObservedEvents, fit: ExcitationFit, lags: Floats) -> ExcitationFit:
    """The fit with as many of these lags as the evidence asks for: long ones mimic a background."""
    L = len(lags) - 1
    longest = _extended(observed, fit, lags)
    all_parts = [_thinned(parts_of(observed, longest, kind)) for kind in range(observed.types)]
    shares = LAG_SHARES if observed.region is None else LAG_SHARES_IN_PLACE
    counts = sorted({int(L * share) for share in shares if int(L * share) >= MIN_LAGS})
    tried = [with_lags(observed, longest, all_parts, few) for few in counts]
    most = max(evidence for _, evidence in tried)
    alike = [found for found, evidence in tried if evidence > most - MIN_LAG_GAIN]
    ratios = [found.trigger.branching() / alike[0].trigger.branching() for found in alike]
    return replace(alike[0], lag_spread=(min(ratios), max(ratios)))


def with_all_lags(observed: ObservedEvents, fit: ExcitationFit, lags: Floats) -> ExcitationFit:
    """The fit with all of these lags."""
    longest = _extended(observed, fit, lags)
    priors = [
        prior._replace(strengths=known.strengths)
        for prior, known in zip(first_priors(observed, longest), fit.priors, strict=True)
    ]
    return with_weights(observed, replace(longest, priors=tuple(priors)), learn=True)


def _thinned(parts: Parts) -> Parts:
    """Parts of every k-th event, and of one k-th of the rate, if there are very many events."""
    every = -(-len(parts.rows) // MAX_EVIDENCE_EVENTS)
    return parts if every < 2 else Parts(parts.rows[::every], parts.integrals / every)


def _extended(observed: ObservedEvents, fit: ExcitationFit, lags: Floats) -> ExcitationFit:
    """The fit with more lags, whose weights are those of the first prior."""
    T, (S, C, L, D) = len(fit.background.knots), fit.trigger.weights.shape
    weights = np.zeros((S, C, len(lags) - 1, D))
    longest = replace(fit, trigger=fit.trigger.replace(lags=lags, weights=weights))
    modes = []
    for prior, mode in zip(first_priors(observed, longest), fit.modes, strict=True):
        z = prior.mean
        z[:T] = mode.log_weights[:T]
        z[T:].reshape(S, -1, D)[:, :L] = mode.log_weights[T:].reshape(S, L, D)
        modes.append(mode._replace(log_weights=z))
    return replace(longest, modes=tuple(modes))


def with_lags(
    observed: ObservedEvents, fit: ExcitationFit, all_parts: list[Parts], few: int
) -> tuple[ExcitationFit, float]:
    """The fit with the first few lags only, and its log evidence."""
    T, (S, _, L, D) = len(fit.background.knots), fit.trigger.weights.shape
    kept = np.concatenate([np.ones(T, bool), np.tile(np.repeat(np.arange(L) < few, D), S)])
    short = fit.trigger.replace(
        lags=fit.trigger.lags[: few + 1], weights=fit.trigger.weights[:, :, :few]
    )
    tried = replace(fit, trigger=short)
    priors, modes = [], []
    for kind, prior in enumerate(first_priors(observed, tried)):
        parts = all_parts[kind]
        cut = Parts(np.ascontiguousarray(parts.rows[:, kept]), parts.integrals[kept])
        priors.append(prior._replace(strengths=fit.priors[kind].strengths))
        modes.append(find_mode(cut, priors[kind], fit.modes[kind].log_weights[kept]))
    evidence = sum(map(log_evidence, priors, modes))
    return weighed(replace(tried, priors=tuple(priors), modes=tuple(modes))), evidence
