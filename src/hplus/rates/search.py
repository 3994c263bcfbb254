"""A search for priors that suit events, among sums of a coarse and a fine field.

During the search scales are shares of the window's longest sides. What was tried is averaged, with
weights, rather than picked from.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

import numpy as np
from scipy.special import softmax

from hplus._checks import Floats, Reals
from hplus._progress import step
from hplus.rates.judging import Judge, Scored
from hplus.rates.prior import Field, LogRates, SumOfFields, Weighted, leading

FIRST_SCALES = (0.16, 0.08, 0.04, 0.02, 0.01)
"""Fine scales that are tried first."""

COARSE_SCALE, COARSE_DEVIATION = 0.4, 2.0

SMOOTHNESS = (0.5, 1.0, 2.0)

DEVIATION_STEP, FINE_DEVIATIONS, COARSE_DEVIATIONS = 2.0**0.5, (0.1, 3.0), (0.25, 4.0)
"""The factor between fine deviations that are tried, and the bounds of both deviations."""

MAX_FINE_SCALE, MAX_STRETCH = 0.32, 20.0
"""The largest fine scale, and the largest ratio of the scales of two axes."""

MIN_WEIGHT = 0.04
"""The least weight of a prior that is kept, as a share of the largest."""

CLOSE_NATS, MAX_FINALISTS = 30.0, 5
"""Nats behind the best, and how many, of the priors that are compared again on a finer grid."""

Move = Callable[[SumOfFields, int], SumOfFields]
"""One change of a prior, one way (1) or the other (-1); the same prior at the end of its range."""


def two_fields(fine: float, d: int) -> SumOfFields:
    """A coarse and a fine field on d axes."""
    coarse = Field(1.0, (COARSE_SCALE,) * d, COARSE_DEVIATION)
    return SumOfFields((coarse, Field(1.0, (fine,) * d, 1.0)))


def search(judge: Judge, sides: Floats, start: Reals, smallest: float, most: int) -> list[Scored]:
    """All priors that were tried: first the fine scales, then uphill by one kind of move at a time.

    `smallest` is the smallest fine scale that the grid can resolve; at most `most` priors are
    tried.
    """
    trials: dict[SumOfFields, Scored] = {}
    stage = "comparing priors"

    def score(prior: SumOfFields) -> float:
        return trials[prior][0] if prior in trials else -np.inf

    def attempt(prior: SumOfFields) -> float:
        if prior not in trials and len(trials) < most:
            step(stage, len(trials), most)
            z = leading(trials.values()).z if trials else start
            trials[prior] = judge(prior.stretched(sides), z)
        return score(prior)

    d = len(sides)
    best = max((two_fields(fine, d) for fine in FIRST_SCALES if fine >= smallest), key=attempt)
    for move in moves(d, smallest):
        for way in (1, -1):
            while (moved := move(best, way)) != best and attempt(moved) > score(best):
                best = moved
    step(stage, most, most)
    return list(trials.values())


def moves(d: int, smallest: float) -> Iterator[Move]:
    """The moves of the search, those that matter most first."""
    yield _deviation(-1, DEVIATION_STEP, FINE_DEVIATIONS)
    if d > 1:
        yield lambda prior, way: _each(prior, product=way > 0)
    yield _smoother
    yield _finer(smallest)
    yield _deviation(0, 2.0, COARSE_DEVIATIONS)
    for axis in range(1, d):
        yield _stretched(axis)
    yield _deviation(-1, DEVIATION_STEP, FINE_DEVIATIONS)


def _each(prior: SumOfFields, **changed: float) -> SumOfFields:
    return SumOfFields(tuple(field.replace(**changed) for field in prior.fields))


def _deviation(which: int, factor: float, bounds: tuple[float, float]) -> Move:
    def moved(prior: SumOfFields, way: int) -> SumOfFields:
        fields = list(prior.fields)
        new = fields[which].deviation * factor**way
        fields[which] = fields[which].replace(deviation=new)
        return SumOfFields(tuple(fields)) if bounds[0] <= new <= bounds[1] else prior

    return moved


def _finer(smallest: float) -> Move:
    def moved(prior: SumOfFields, way: int) -> SumOfFields:
        coarse, fine = prior.fields
        first = fine.scales[0]
        new = first * 2.0**way
        if not smallest <= new <= MAX_FINE_SCALE:
            return prior
        pairs = ((coarse, max(COARSE_SCALE, 2.0 * new)), (fine, new))
        return SumOfFields(
            tuple(
                field.replace(scales=tuple(scale * (s / first) for s in fine.scales))
                for field, scale in pairs
            )
        )

    return moved


def _stretched(axis: int) -> Move:
    def moved(prior: SumOfFields, way: int) -> SumOfFields:
        factors = np.ones(prior.dimension)
        factors[axis] = 2.0**way
        new = prior.stretched(factors)
        ratio = new.fields[-1].scales[axis] / new.fields[-1].scales[0]
        return new if 1.0 / MAX_STRETCH < ratio < MAX_STRETCH else prior

    return moved


def _smoother(prior: SumOfFields, way: int) -> SumOfFields:
    place = SMOOTHNESS.index(prior.fields[-1].smoothness) + way
    if not 0 <= place < len(SMOOTHNESS):
        return prior
    return _each(prior, smoothness=SMOOTHNESS[place])


def finalists(trials: list[Scored]) -> list[Scored]:
    """The best trial of each kind and the runners-up, to be judged again."""
    ranked = sorted(trials, key=lambda trial: -trial[0])
    close = [trial for trial in ranked if trial[0] > ranked[0][0] - CLOSE_NATS]
    kinds: dict[Hashable, Scored] = {}
    for trial in close:
        kinds.setdefault(trial[1].prior.kind, trial)
    chosen = list(kinds.values())[:MAX_FINALISTS]
    chosen += [t for t in close if not any(t is c for c in chosen)][: MAX_FINALISTS - len(chosen)]
    return chosen


def weighted(trials: list[LogRates], scores: Floats, most: int) -> list[Weighted]:
    """At most `most` of the best trials, with their weights.

    Those are ∝ exp(score), averaged over the rows of `scores` (draws, trials).
    """
    weights = softmax(scores, axis=1).mean(axis=0)
    ranked = np.argsort(-weights, kind="stable")[:most]
    return [
        (float(w), trials[i])
        for w, i in zip(without_lightest(weights[ranked], MIN_WEIGHT), ranked, strict=True)
        if w > 0.0
    ]


def shares(scores: Floats, least: float) -> Floats:
    """Weights ∝ exp(scores), 0 for those below a share `least` of the largest."""
    return without_lightest(softmax(scores), least)


def without_lightest(weights: Floats, least: float) -> Floats:
    """Weights that add up to 1, with 0 for those below a share `least` of the largest."""
    kept = np.where(weights < least * weights.max(), 0.0, weights)
    return kept / kept.sum()
