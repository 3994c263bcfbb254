"""Draws of what is not known exactly of a self-exciting rate: its weights and productivity."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus.rates.excitation.conditional_rate import masses_of
from hplus.rates.excitation.excitation_fit import (
    ExcitationFit,
    ObservedEvents,
    parts_of,
    with_lags,
)
from hplus.rates.excitation.excited_rate import ExcitedRate
from hplus.rates.excitation.factor_law import offspring
from hplus.rates.excitation.log_weights import RIDGE, drawn, moved
from hplus.rates.excitation.visible import visible_lags

POSTERIOR_DRAWS = 50


def weight_draws(observed: ObservedEvents, fit: ExcitationFit, rng: np.random.Generator) -> Floats:
    """Equally likely log weights of levels and trigger, (draws, types, columns)."""
    found = [
        drawn(parts_of(observed, fit, kind), prior, mode, POSTERIOR_DRAWS, rng)
        for kind, (prior, mode) in enumerate(zip(fit.priors, fit.modes, strict=True))
    ]
    if fit.alike is not None:
        change = _change_of_all(observed, fit, fit.alike, rng)
        for kind, (prior, mode) in enumerate(zip(fit.priors, fit.modes, strict=True)):
            found[kind] += moved(prior, mode, change)
    return np.stack(found, axis=1)


def _change_of_all(
    observed: ObservedEvents, fit: ExcitationFit, alike: ExcitationFit, rng: np.random.Generator
) -> Floats:
    """By how much draws of what events of all types trigger differ from the mode, (draws, columns).

    The background of each type is known from its own events.
    """
    one, (sources, _, few, _) = observed.of_one_type(), fit.trigger.weights.shape
    short, _ = with_lags(one, alike, [parts_of(one, alike, 0)], few)
    (prior,), (mode,) = short.priors, short.modes
    levels, known = (len(each.background.knots) for each in (fit, short))
    change = drawn(parts_of(one, short, 0), prior, mode, POSTERIOR_DRAWS, rng) - mode.log_weights
    return np.hstack([np.zeros((len(change), levels)), np.tile(change[:, known:], sources)])


def mark_draws(
    observed: ObservedEvents, rate: ExcitedRate, precision: Floats, rng: np.random.Generator
) -> Floats:
    """Logs of productivity at its knots, drawn from a normal posterior, (draws, knots).

    An event of which E others are expected, with a factor of variance 1/k, says E / (1 + E/k) about
    the log of its productivity; what large marks trigger is known from few.
    """
    events, effects = observed.events, rate.effects
    if len(effects.knots) < 2:
        return np.tile(effects.logs, (POSTERIOR_DRAWS, 1))
    lags = visible_lags(rate.trigger.lags, events.times, observed.start, observed.end)
    means = np.einsum("ml,ml->m", lags, masses_of(rate, events, observed.region))
    each, law = offspring(rate.trigger, effects, events), rate.factor_law
    variances = np.where(each >= law.least, 1.0 / law.shapes(each), 0.0)
    slopes = effects.slopes(events.marks)
    Q = slopes.T @ (slopes * (means / (1.0 + means * variances))[:, None])
    Q += precision + RIDGE * np.eye(len(Q))
    noise = rng.standard_normal((POSTERIOR_DRAWS, len(Q)))
    found = effects.logs + np.linalg.solve(np.linalg.cholesky(Q).T, noise.T).T
    # the mean productivity is that of the weights of the trigger
    logs = [effects.replace(logs=z).scaled(observed.inside.marks)[0].logs for z in found]
    return np.array(logs)
