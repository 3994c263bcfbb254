"""Which prior suits the events: a search among sums of a coarse and a fine field.

Priors are compared by how well they predict events that were held out by random thinning, or by
their evidence. What was tried is averaged, with weights, rather than picked from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from hplus._checks import Floats
from hplus._progress import step
from hplus.rates.prior import Field, Given, Texture
from hplus.rates.modes import log_determinant, newton, objective
from hplus.rates.levels import Level

SCAN = (0.16, 0.08, 0.04, 0.02, 0.01)
"""Fine scales that are tried first, as shares of the window's longest side."""

SMOOTHNESS = (0.5, 1.0, 2.0)

PRODUCT_ODDS = 2.0
"""Nats by which a product over axes must be better: it draws streaks along the axes."""

LIGHTEST = 0.04
"""The least weight of a prior that is kept, as a share of the largest."""

CLOSE, FINALISTS = 30.0, 5
"""Nats behind the best, and how many, of the priors that are compared again on a finer grid."""

Shape = Texture | Given


@dataclass(frozen=True)
class Guess:
    """A coarse and a fine field; scales are shares of the longest sides, times `ratios`."""

    fine: float
    fine_deviation: float = 1.0
    coarse: float = 0.4
    coarse_deviation: float = 2.0
    smoothness: float = 1.0
    product: bool = False
    ratios: tuple[float, ...] = ()

    def texture(self, sides: Floats) -> Texture:
        """The prior in the units of the window."""
        lengths = sides * np.array(self.ratios)
        fields = []
        for scale, deviation in (
            (max(self.coarse, 2.0 * self.fine), self.coarse_deviation),
            (self.fine, self.fine_deviation),
        ):
            scales = tuple((scale * lengths).tolist())
            fields.append(Field(self.smoothness, scales, deviation, self.product))
        return Texture(tuple(fields))


class Tried(NamedTuple):
    """A prior, its score in nats with the odds of its shape, the log rates that gave it."""

    score: float
    prior: Shape
    z: Any


Judge = Callable[[Shape, Any], Tried]
"""From a prior and log rates to start from, to a trial."""


def by_thinning(level: Level, parts: int) -> Judge:
    """The log-likelihood of held-out parts under the rates learned from the others."""
    dtype = np.float32
    out = level.folds[level.filled()][:parts]
    kept = (level.counts - out).astype(dtype)
    nu = level.nu.astype(dtype)
    logs = np.log(kept.reshape(len(out), -1).sum(axis=1, dtype=float))

    def judge(prior: Shape, z: Any) -> Tried:
        matrix = prior.prior(level.grid).single()
        mode = newton(
            matrix, kept, nu, np.broadcast_to(z, kept.shape), tolerance=4.0 * level.tolerance
        )
        held = np.sum(out * mode.z, dtype=float)
        score = held - float(logs @ out.reshape(len(out), -1).sum(axis=1))
        return Tried(score - _odds(prior), prior, mode.z)

    return judge


def by_evidence(level: Level) -> Judge:
    """The log evidence, its determinant by stochastic Lanczos quadrature with common probes."""
    s, nu = level.counts.astype(np.float32), level.nu.astype(np.float32)

    def judge(prior: Shape, z: Any) -> Tried:
        matrix = prior.prior(level.grid).single()
        mode = newton(matrix, s, nu, z, tolerance=4.0 * level.tolerance)
        score = log_evidence(level, prior, mode.z, mode.a)
        return Tried(score - _odds(prior), prior, mode.z)

    return judge


def _odds(prior: Shape) -> float:
    """Nats against a shape, before any event was seen."""
    return PRODUCT_ODDS * prior.kind[1]


def log_evidence(level: Level, prior: Shape, z: Any, a: Any) -> float:
    """-objective - ½ log det of the Hessian, up to a constant that is the same for all priors."""
    matrix = prior.prior(level.grid).single()
    W = (level.nu * np.exp(z)).astype(np.float32)
    log_det = log_determinant(matrix, W, np.random.RandomState(0))
    # the objective adds up large numbers: in double precision
    value = float(objective(level.counts, level.nu, z.astype(float), a.astype(float))[0])
    return -value - 0.5 * log_det


def search(judge: Judge, sides: Floats, start: Any, smallest: float, most: int) -> list[Tried]:
    """All priors that were tried: a scan of fine scales, then uphill along one knob at a time.

    `smallest` is the smallest fine scale that the grid can tell from a smaller one; at most `most`
    priors are tried.
    """
    trials: dict[Guess, Tried] = {}
    stage = "comparing priors"

    def score(guess: Guess) -> float:
        return trials[guess].score if guess in trials else -np.inf

    def attempt(guess: Guess) -> float:
        if guess not in trials and len(trials) < most:
            step(stage, len(trials), most)
            z = max(trials.values(), key=lambda t: t.score).z if trials else start
            trials[guess] = judge(guess.texture(sides), z)
        return score(guess)

    ones = (1.0,) * len(sides)
    best = max((Guess(fine, ratios=ones) for fine in SCAN if fine >= smallest), key=attempt)
    for knob in _knobs(len(sides), smallest):
        for way in (1, -1):
            while (moved := knob(best, way)) != best and attempt(moved) > score(best):
                best = moved
    step(stage, most, most)
    return list(trials.values())


Knob = Callable[[Guess, int], Guess]


def _knobs(d: int, smallest: float) -> Iterator[Knob]:
    """What can be turned, one way or the other, in the order of how much it matters."""
    yield _scaled("fine_deviation", 2.0**0.5, 0.1, 3.0)
    if d > 1:
        yield lambda guess, way: replace(guess, product=way > 0)
    yield _smoother
    yield _scaled("fine", 2.0, smallest, 0.32)
    yield _scaled("coarse_deviation", 2.0, 0.25, 4.0)
    for axis in range(1, d):
        yield _stretched(axis)
    yield _scaled("fine_deviation", 2.0**0.5, 0.1, 3.0)


def _scaled(name: str, factor: float, least: float, most: float) -> Knob:
    def turned(guess: Guess, way: int) -> Guess:
        new = getattr(guess, name) * factor**way
        return replace(guess, **{name: new}) if least <= new <= most else guess

    return turned


def _stretched(axis: int) -> Knob:
    def turned(guess: Guess, way: int) -> Guess:
        ratios = list(guess.ratios)
        ratios[axis] *= 2.0**way
        return replace(guess, ratios=tuple(ratios)) if 0.05 < ratios[axis] < 20.0 else guess

    return turned


def _smoother(guess: Guess, way: int) -> Guess:
    place = SMOOTHNESS.index(guess.smoothness) + way
    if not 0 <= place < len(SMOOTHNESS):
        return guess
    return replace(guess, smoothness=SMOOTHNESS[place])


def finalists(trials: list[Tried]) -> list[Tried]:
    """The best trial of each smoothness and shape, and the runners-up, to be judged again."""
    ranked = sorted(trials, key=lambda t: -t.score)
    close = [t for t in ranked if t.score > ranked[0].score - CLOSE]
    kinds: dict[Any, Tried] = {}
    for trial in close:
        kinds.setdefault(trial.prior.kind, trial)
    chosen = list(kinds.values())[:FINALISTS]
    chosen += [t for t in close if not any(t is c for c in chosen)][: FINALISTS - len(chosen)]
    return chosen


def weighted(trials: list[Tried], most: int) -> list[tuple[float, Tried]]:
    """At most `most` of the best trials with weights ∝ exp(score)."""
    ranked = sorted(trials, key=lambda t: -t.score)[:most]
    weights = shares(np.array([t.score for t in ranked]), LIGHTEST)
    return [(float(w), t) for w, t in zip(weights, ranked, strict=True) if w > 0.0]


def shares(scores: Floats, least: float) -> Floats:
    """Weights ∝ exp(scores), 0 for those below a share `least` of the largest."""
    weights = softmax(scores)
    weights[weights < least * weights.max()] = 0.0
    return weights / weights.sum()
