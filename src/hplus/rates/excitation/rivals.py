"""How likely the events are without triggering: under other reasons for events to come together.

The level of the background may change quickly, and some places may be busier than the background
says, at all times. Both are as smooth as the data ask for, as the trigger is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hplus.rates.excitation.catalogue import Catalogue
from hplus.rates.excitation.excitation_fit import (
    ExcitationFit,
    ObservedEvents,
    first_priors,
    with_weights,
)
from hplus.rates.excitation.excited_rate import integrals_of, rows_of
from hplus.rates.excitation.log_weights import (
    LogPrior,
    Parts,
    first_differences,
    learn_strengths,
    log_evidence,
    second_differences,
)
from hplus.rates.excitation.mark_effects import NO_MARKS
from hplus.rates.excitation.trigger import Trigger
from hplus.rates.excitation.weight_priors import FIRST_STRENGTHS, padded
from hplus.windows import Window

CONSTANT, CHANGING, BUSY = "", "a background that changes in time", "places that are always busy"
"""What may explain events that come together, in words."""

EVENTS_PER_LEVEL, MOST_LEVELS, MOST_ROWS = 5, 200, 2e6
"""Events for each level of a background that changes quickly, and how many levels at most, in all
and times events."""

MIN_RIVAL_GAIN, LITTLE = 3.0, -3.0
"""Nats of evidence that quick levels or busy places must gain for each type, and the log of what
events trigger beside quick levels to begin with, relative to what is expected."""

MOST_PAIRS = 2e7
"""Pairs of events that are looked at for busy places, at most, if places were uniform."""

FIRST_BUSY = 0.01
"""The share of the events that busy places are taken to explain before events tell."""


class Rival(NamedTuple):
    """The log evidence of the best rate without triggering, and what it has instead, in words."""

    evidence: float
    words: str


def best_rival(observed: ObservedEvents, fit: ExcitationFit) -> Rival:
    """The best rate without triggering, of all types together."""
    found = {CONSTANT: 0.0, CHANGING: 0.0, BUSY: 0.0}
    for kind in range(observed.types):
        level = _level(observed, fit, kind, len(fit.background.knots))
        many, quick = quick_levels(len(level.parts.rows)), level
        if many > len(fit.background.knots):
            quick = _level(observed, fit, kind, many)
        found[CONSTANT] += level.evidence()
        found[CHANGING] += quick.evidence()
        if observed.region is None:
            found[BUSY] = -np.inf
            continue
        nearby = _always_busy(observed, observed.region, fit.trigger, kind)
        found[BUSY] += max(each.with_places(nearby).evidence() for each in (level, quick))
    words, needed = CONSTANT, MIN_RIVAL_GAIN * observed.types
    for name in (CHANGING, BUSY):
        words = name if found[name] > found[words] + needed else words
    return Rival(found[words], words)


def quick_levels(events: int) -> int:
    """How many levels a background has that changes quickly."""
    return int(min(events // EVENTS_PER_LEVEL, MOST_ROWS // max(events, 1), MOST_LEVELS))


def with_quick_levels(observed: ObservedEvents, fit: ExcitationFit) -> ExcitationFit:
    """The fit with more levels of the background, if these alone are likelier than it and fewer.

    Otherwise the trigger makes up for a background that changes more quickly than few levels can.
    """
    many = quick_levels(len(observed.inside) // observed.types)
    if many <= len(fit.background.knots):
        return fit
    knots = np.linspace(observed.start, observed.end, many)
    background = replace(fit.background, knots=knots, levels=np.zeros((observed.types, many)))
    quick, alone, few = replace(fit, background=background), 0.0, 0.0
    priors, modes = [], []
    for kind, prior in enumerate(first_priors(observed, quick)):
        level = _level(observed, fit, kind, many)
        (known,), (mode,) = learn_strengths([level.parts], [level.prior], [level.prior.mean])
        alone += log_evidence(known, mode)
        few += _level(observed, fit, kind, len(fit.background.knots)).evidence()
        strengths = np.append(known.strengths, fit.priors[kind].strengths[1:])
        priors.append(prior._replace(strengths=strengths))
        start = np.append(mode.log_weights, prior.mean[many:] + LITTLE)
        modes.append(mode._replace(log_weights=start))
    if alone < max(fit.log_evidence, few) + MIN_RIVAL_GAIN * observed.types:
        return fit
    quick = replace(quick, priors=tuple(priors), modes=tuple(modes))
    quick = with_weights(observed, quick, learn=True)
    return quick if quick.log_evidence > fit.log_evidence else fit


class Explanation(NamedTuple):
    """Parts of a rate without triggering, and the prior of their log weights."""

    parts: Parts
    prior: LogPrior

    def evidence(self) -> float:
        """The log evidence with the best strengths of the prior."""
        (prior,), (mode,) = learn_strengths([self.parts], [self.prior], [self.prior.mean])
        return log_evidence(prior, mode)

    def with_places(self, nearby: Parts) -> Explanation:
        """The same with a rate that all other events add near them, before and after."""
        (n, D), K = nearby.rows.shape, len(self.prior.mean)
        each = np.log(FIRST_BUSY * n / D / np.maximum(nearby.integrals, 1e-300))
        penalties = (
            padded(self.prior.penalties[0], D, after=True),
            padded(second_differences(D), K, after=False),
        )
        return Explanation(
            Parts(
                np.hstack([self.parts.rows, nearby.rows]),
                np.append(self.parts.integrals, nearby.integrals),
            ),
            LogPrior(np.append(self.prior.mean, each), penalties, np.array(FIRST_STRENGTHS[::2])),
        )


def _level(observed: ObservedEvents, fit: ExcitationFit, kind: int, many: int) -> Explanation:
    """A background with so many levels in time, whose places are those of the fit."""
    targets, own = observed.of_type(kind), observed.inside.types == kind
    knots = np.linspace(observed.start, observed.end, many)
    background = replace(fit.background, knots=knots)
    span = observed.end - observed.start
    rows = background.hats(targets.times) * fit.densities[own][:, None]
    mean = np.full(many, np.log(max(len(targets), 0.5) / span))
    prior = LogPrior(mean, (first_differences(many),), np.array(FIRST_STRENGTHS[:1]))
    return Explanation(Parts(rows, background.hat_integrals(observed.start, observed.end)), prior)


def _always_busy(observed: ObservedEvents, region: Window, trigger: Trigger, kind: int) -> Parts:
    """Hat functions of distances summed over all other events at any time, and their integrals."""
    inside, axes = observed.inside, trigger.axes
    share = MOST_PAIRS / len(inside) ** 2 * float(region.volume)
    near = np.sqrt(share / np.pi) if axes == 2 else 0.5 * share
    distances = trigger.distances[: max(int(np.searchsorted(trigger.distances, near)), 3)]
    # as if all events had come before the others, after lags that do not matter
    lags = np.array([2.0, 4.0])
    steady = Trigger(lags, distances, np.zeros((1, 1, 1, len(distances) - 1)), axes)
    earlier, later = _at_time(inside, 0.0), _at_time(observed.of_type(kind), 1.0)
    rows = rows_of(later, earlier, steady, NO_MARKS, 1, observed.jobs)
    rows[:, 0] -= 1.0  # an event itself
    integrals = integrals_of(earlier, steady, NO_MARKS, 1, 0.0, 1.0, region)
    return Parts(np.maximum(rows, 0.0), integrals * (observed.end - observed.start))


def _at_time(events: Catalogue, time: float) -> Catalogue:
    """Events as if of one type, all at a time, that trigger alike in all directions."""
    n = len(events)
    return Catalogue(np.full(n, time), events.places, np.zeros(n), np.zeros(n, dtype=np.int64))
