"""Simulated events with fixed seeds, fits of them, and the convex problem inside a fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from simulators import BURN_IN, LINE_TRIGGERS, Etas, Floats, Ints, LineTrigger, simulate_line

from hplus import Box, Interval, SelfExciting
from hplus.rates.excitation.certified import largest_likelihood
from hplus.rates.excitation.excited_rate import integrals_of, rows_of
from hplus.rates.excitation.learned_places import LearnedPlace
from hplus.rates.excitation.log_weights import Parts
from hplus.rates.excitation.trigger import Trigger
from hplus.windows import Window

ETAS = Etas()
"""The known parameters in place and time."""


@dataclass(frozen=True)
class UniformPlace:
    """A constant rate with an integral of 1 over a region."""

    region: Window

    @property
    def function(self) -> Callable[[Floats], Floats]:
        """1/|W| at points (n, 2)."""
        return lambda X: np.full(len(X), 1.0 / self.region.volume)

    @property
    def on_grid(self) -> UniformPlace:
        """The rate itself can be sampled."""
        return self

    def sample(self, n: int, random_state: np.random.RandomState) -> Floats:
        """n independent points, shape (n, 2)."""
        return self.region.sample(n, random_state)

    def integral(self) -> float:
        """∫ of the rate over the region."""
        return 1.0

    def integrals(self, regions: Sequence[Window]) -> Floats:
        """∫ of the rate over parts of the region, shape (r,)."""
        return np.array([part.volume for part in regions]) / self.region.volume


class UniformSelfExciting(SelfExciting):
    """`SelfExciting` that learns everything but where background events occur."""

    def _learn_place(self, model: str, places: Floats, weights: Floats) -> LearnedPlace:
        uniform = UniformPlace(self._rows.region)
        return LearnedPlace(uniform, lambda places, weights: uniform)


def line_events(name: str, branching: float, until: float, seed: int) -> tuple[Floats, Ints]:
    """Simulated events on a line, and their parents."""
    rng = np.random.default_rng([seed, list(LINE_TRIGGERS).index(name), round(100 * branching)])
    return simulate_line(LINE_TRIGGERS[name], branching, until, rng)


@cache
def line_fit(name: str, branching: float, until: float, seed: int) -> SelfExciting:
    """The default fit of these events."""
    events, _ = line_events(name, branching, until, seed)
    return SelfExciting(Interval(0.0, until)).fit(events)


def parts_of(model: SelfExciting) -> Parts:
    """The columns of the convex problem: levels of the background, then hats of the trigger."""
    period = model.window if isinstance(model.window, Interval) else model.window.right
    rate = model.rate_
    history = rate.with_bearings(model.history_)
    inside = history.since(period.low)
    hats = rate.background.hats(inside.times) * rate.background.density(inside.places, 0)[:, None]
    rows = rows_of(inside, history, rate.trigger, rate.effects, 1)
    span = (period.low, period.high)
    integrals = integrals_of(history, rate.trigger, rate.effects, 1, *span, rate.region)
    return Parts(
        np.hstack([hats, rows]),
        np.concatenate([rate.background.hat_integrals(*span), integrals]),
    )


def used_parts(parts: Parts) -> Parts:
    """The parts that have an integral."""
    used = parts.integrals > 0.0
    return Parts(np.ascontiguousarray(parts.rows[:, used]), parts.integrals[used])


def em_update(parts: Parts, a: Floats) -> Floats:
    """α_b ← α_b (Σ_i A_ib / λ_i) / c_b."""
    return a * (parts.rows.T @ (1.0 / (parts.rows @ a))) / parts.integrals


def unsmoothed(model: SelfExciting) -> Trigger:
    """The trigger of largest likelihood with the knots of a fit."""
    levels, weights = model.background_.levels[0], model.trigger_.weights
    best, _ = largest_likelihood(parts_of(model), np.concatenate([levels, weights.ravel()]))
    return model.trigger_.replace(weights=best[len(levels) :].reshape(weights.shape))


def trigger_error(trigger: Trigger, known: LineTrigger, branching: float) -> float:
    """∫|ĝ - g| / ∫g, g = branching × density."""
    edges = np.concatenate([[0.0], np.geomspace(1e-5, 1e3, 20_001)])
    middle, width = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    off = np.abs(trigger(middle) - branching * known.density(middle))
    return float(off @ width / branching)


def etas_events(days: float, seed: int) -> tuple[Floats, Ints]:
    """Simulated events in place and time, and their parents."""
    return ETAS.simulate(-BURN_IN, days, np.random.default_rng(seed))


@cache
def etas_fit(days: float, known: bool) -> tuple[SelfExciting, float]:
    """A fit of the first simulated events, and its CPU seconds."""
    events, _ = etas_events(days, 0)
    start = time.process_time()
    window = Box([0.0, 0.0], [ETAS.side] * 2) * Interval(0.0, days)
    model = (UniformSelfExciting if known else SelfExciting)(window)
    model.fit(events[:, 2:], marks=events[:, 1])
    return model, time.process_time() - start
