"""Bandwidths by cross-validation: fixed ones, and those of Abramson that follow the density."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from hplus._checks import Bools, Floats, Ints, check_random_state
from hplus.evaluation.edges import Edges
from hplus.evaluation.smoothing import KernelMixture, Layer, sum_of_kernels
from hplus.windows import Window

WIDEST = 0.5
"""The widest bandwidth, as a fraction of the longest side."""

MOST_STEPS = 40
"""Bandwidths in the first round of a search, at most; they double from one to the next."""

KDE_FOLDS, ENOUGH_SCORED = 10, 3_000
"""A tenth of the events is predicted at a time, until these are enough."""

LOW_QUANTILE, TYPICAL, NOTABLE_REPEATS = 0.01, 0.5, 0.1
"""The narrowest bandwidth is this quantile of the distances between neighbours at different places;
the median, where this share of the events or more repeat the position of another."""

FACTORS = 0.25, 4.0
"""The range of adaptive bandwidths to try, in units of the best fixed one."""

RUNG = 1.25
"""Ratio of successive local bandwidths, to which they are rounded."""

UNIFORM_EVENTS = 0.5
"""The uniform share is learned as if so many more events had come from it."""

LEAST_SHARE, MAX_SHARE, SHARE_STEPS = 1e-9, 0.01, 30
"""The range of the uniform share, and how often the search for it is halved."""


class Limits(NamedTuple):
    """The longest sides, and the narrowest and the widest bandwidth, on each axis, (d,)."""

    sides: Floats
    narrowest: Floats
    widest: Floats

    def clip(self, h: Floats) -> Floats:
        """The nearest bandwidth within the limits, (d,)."""
        return np.clip(h, self.narrowest, self.widest)


def limits(window: Window, X: Floats) -> Limits:
    """What bandwidths events can tell; axes with the same unit have the same limits."""
    sides, groups = window.longest_sides(), np.array(window.axis_groups())
    narrowest = np.empty(len(sides))
    for group in np.unique(groups):
        axes = groups == group
        narrowest[axes] = sides[axes] * _spacing(X[:, axes] / sides[axes])
    widest = WIDEST * sides
    return Limits(sides, np.clip(narrowest, least_bandwidths(window), widest), widest)


def least_bandwidths(window: Window) -> Floats:
    """The narrowest kernels whose cells can be numbered, (d,)."""
    return window.longest_sides() * 1e-8 ** min(1.0, 2.0 / window.dimension)


def _spacing(U: Floats) -> float:
    """How far apart neighbouring positions are."""
    places = np.unique(U, axis=0)
    if len(places) < 2:
        return WIDEST
    rows = sample_rows(len(places))
    distances = KDTree(places).query(places[rows], k=2)[0][:, 1]
    repeats = 1.0 - len(places) / len(U)
    return float(np.quantile(distances, TYPICAL if repeats > NOTABLE_REPEATS else LOW_QUANTILE))


def sample_rows(n: int) -> Ints:
    """All rows or, of many, a random sample that is always the same."""
    return np.sort(check_random_state(0).permutation(n)[: 2 * ENOUGH_SCORED])


class Fold(NamedTuple):
    """Events to learn from and events to predict, with their weights."""

    X: Floats
    weights: Floats
    Z: Floats
    scored: Floats


def split(X: Floats, weights: Floats) -> list[Fold]:
    """As many folds as are needed; always the same for as many events."""
    order = check_random_state(0).permutation(len(X))
    parts = np.array_split(order, min(KDE_FOLDS, len(X))) if len(X) > 1 else []
    enough = int(np.ceil(ENOUGH_SCORED * KDE_FOLDS / len(X)))
    return [
        Fold(np.delete(X, part, axis=0), np.delete(weights, part), X[scored], weights[scored])
        for part in parts[:enough]
        for scored in (part[: 2 * ENOUGH_SCORED],)
    ]


class Foretold(NamedTuple):
    """The mean log-density of the predicted events, and the uniform share that makes it best."""

    score: float
    share: float


class Trial:
    """Cross-validation on the same folds for all bandwidths."""

    def __init__(self, window: Window, X: Floats, weights: Floats) -> None:
        self.window, self.edges = window, Edges(window)
        self.folds, self.limits = split(X, weights), limits(window, X)

    def predicted(self, layers: Iterable[tuple[Layer, ...]]) -> Foretold:
        """Held-out events under kernels, those of each fold, and a uniform share."""
        volume, scored = self.edges.volume, [fold.scored for fold in self.folds]
        ratios = [
            sum_of_kernels(self.edges, kernels, fold.Z) * (volume / fold.weights.sum())
            for fold, kernels in zip(self.folds, layers, strict=True)
        ]
        if not ratios:
            return Foretold(np.nan, UNIFORM_EVENTS / (1.0 + UNIFORM_EVENTS))
        gain, share = best_share(np.concatenate(ratios), np.concatenate(scored))
        return Foretold(gain - float(np.log(volume)), share)

    def fixed(self, h: Floats) -> Foretold:
        """Held-out events under kernels of one bandwidth."""
        return self.predicted((Layer(fold.X, fold.weights, h),) for fold in self.folds)


def best_share(ratios: Floats, weights: Floats) -> tuple[float, float]:
    """The mean of log((1 - ε) ratios + ε), weighted, and the uniform share ε.

    ε maximises Σ_i w_i log((1 - ε) ratios[i] + ε) + UNIFORM_EVENTS log ε.
    """
    weights = weights * (len(weights) / weights.sum())
    low, high = np.log(LEAST_SHARE), np.log(MAX_SHARE)
    for _ in range(SHARE_STEPS):
        middle = 0.5 * (low + high)
        share = np.exp(middle)
        slope = weights @ ((1.0 - ratios) / (ratios + share * (1.0 - ratios)))
        low, high = (middle, high) if slope + UNIFORM_EVENTS / share > 0.0 else (low, middle)
    logs = np.log(ratios + share * (1.0 - ratios))
    return float(weights @ logs / len(logs)), float(share)


def best_factor(score: Callable[[float], float], low: float, high: float) -> float:
    """The factor with the largest score: by doubling, then by roots of 2, then by a parabola."""
    steps = min(MOST_STEPS, 2 + int(np.log2(high / low)))
    logs, step = np.linspace(np.log(high), np.log(low), steps, retstep=True)
    scores = np.array([score(np.exp(at)) for at in logs])
    more = logs[np.argmax(scores)] + 0.5 * step * np.array([-1.0, 1.0])
    more = more[(more > np.log(low)) & (more < np.log(high))]
    scores = np.append(scores, [score(np.exp(at)) for at in more])
    logs = np.append(logs, more)
    order = np.argsort(-logs)
    return float(np.exp(_vertex(logs[order], scores[order], 0.5 * step)))


def _vertex(x: Floats, y: Floats, step: float) -> float:
    """Where the parabola through the largest y and its neighbours, a step away, is largest."""
    i = int(np.argmax(y))
    if i in (0, len(x) - 1):
        return float(x[i])
    before, best, after = y[i - 1 : i + 2]
    bend = before - 2.0 * best + after
    return float(x[i] + (0.5 * (before - after) / bend * step if bend < 0.0 else 0.0))


def fixed_bandwidth(trial: Trial) -> Floats:
    """The bandwidth on each axis, shape (d,), that predicts best.

    First one factor for all sides, then one for each unit in turn if there are several.
    """
    bounds, groups = trial.limits, np.array(trial.window.axis_groups())
    low = float((bounds.narrowest / bounds.sides).min())
    h = _scaled(trial, bounds.sides, np.full(len(groups), True), low, WIDEST)
    for group in np.unique(groups) if len(set(groups)) > 1 else ():
        axes = groups == group
        low, high = ((end / h)[axes].min() for end in (bounds.narrowest, bounds.widest))
        h = _scaled(trial, h, axes, low, high)
    return h


def _scaled(trial: Trial, h: Floats, axes: Bools, low: float, high: float) -> Floats:
    """h times the factor on some axes that predicts best."""

    def scaled(factor: float) -> Floats:
        return trial.limits.clip(np.where(axes, factor * h, h))

    return scaled(best_factor(lambda factor: trial.fixed(scaled(factor)).score, low, high))


class LocalBandwidths:
    """Bandwidths that follow the density of a pilot, cross-validated with pilots of the folds."""

    def __init__(self, trial: Trial, pilot: KernelMixture) -> None:
        self._trial, self._pilot = trial, pilot
        self._factors = [self._abramson(fold.X, fold.weights) for fold in trial.folds]

    def best_factor(self, h: Floats) -> float:
        """The multiple of h that predicts best."""
        low, high = FACTORS[0], min(FACTORS[1], float((self._trial.limits.widest / h).min()))
        return best_factor(lambda factor: self.predicted(h, factor).score, low, high)

    def predicted(self, h: Floats, factor: float) -> Foretold:
        """Held-out events under local bandwidths with the geometric mean factor · h."""
        return self._trial.predicted(
            self._rounded(fold.X, fold.weights, h, factor * factors)
            for fold, factors in zip(self._trial.folds, self._factors, strict=True)
        )

    def layers(self, X: Floats, weights: Floats, h: Floats, factor: float) -> tuple[Layer, ...]:
        """All kernels, by their bandwidth."""
        return self._rounded(X, weights, h, factor * self._abramson(X, weights))

    def _abramson(self, X: Floats, weights: Floats) -> Floats:
        """(pilot/its geometric mean)^(-1/2) at each event, shape (n,)."""
        kernels = Layer(X, weights, self._pilot.layers[0].h)
        pilot = np.log(self._pilot._replace(layers=(kernels,)).rates(X))
        return np.exp(-0.5 * (pilot - weights @ pilot / weights.sum()))

    def _rounded(self, X: Floats, weights: Floats, h: Floats, factors: Floats) -> tuple[Layer, ...]:
        """Kernels with the bandwidths factors[i] h, rounded to rungs of a ladder."""
        bounds = self._trial.limits
        ends = np.log([(bounds.narrowest / h).min(), (bounds.widest / h).max()])
        rungs = np.round(np.clip(np.log(factors), *ends) / np.log(RUNG))
        return tuple(
            Layer(X[at], weights[at], bounds.clip(RUNG**rung * h))
            for rung in np.unique(rungs)
            for at in (rungs == rung,)
        )
