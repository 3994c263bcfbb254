"""The numbers of the report, computed by `*_data` functions with fixed seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from k2ie import K2IE
from numpy.typing import NDArray

from hplus import Intensity, Interval
from hplus.datasets import coal, curry
from hplus.evaluation import (
    AdaptiveKDE,
    Check,
    EdgeCorrectedKDE,
    check,
    coverage,
    gain,
    mean_squared_error,
    paired,
    thin,
)
from hplus.simulate import TRUTHS, Truth
from hplus.windows import Window

Floats = NDArray[np.float64]

MODELS: dict[str, Callable[[Any], Any]] = {
    "KDE": EdgeCorrectedKDE,
    "adaptive KDE": AdaptiveKDE,
    "exp": lambda window: Intensity(window, model="exp"),
    "square": lambda window: Intensity(window, model="square"),
    "sos": lambda window: Intensity(window, model="sos"),
    "K2IE": K2IE,
}
"""All models of a rate, with their defaults."""

OURS = ("exp", "square", "sos")
KDES = ("KDE", "adaptive KDE")
MANY = (*KDES, "exp")
"""Models fast enough for every data set; the others use the first few."""

LEVEL = 0.9
"""The confidence level of the bands."""

PLACES = 501
"""Points at which bands and signs are evaluated."""

SEASON = 2015


@dataclass(frozen=True)
class Simulated:
    """One model on simulated data sets of one known rate; arrays have shape (sets,).

    `error` is the mean squared error over the window, `to_kde` the mean and standard error of its
    difference from the KDE's on the same data sets; `covered` and `negative` are shares of the
    window, `covered` is empty for a model without bands. `first` is the fit of the first data set.
    """

    truth: Truth
    model: str
    error: Floats
    to_kde: tuple[float, float]
    covered: Floats
    negative: Floats
    first: Curve


@dataclass(frozen=True)
class Curve:
    """A rate at points x, with its bounds if it has any, shape (p,) each, and its events (n, 1)."""

    x: Floats
    rate: Floats
    bounds: tuple[Floats, Floats] | None
    events: Floats


def errors_data(
    sets: int = 100,
    few: int = 20,
    truths: Sequence[Truth] = TRUTHS,
    factors: Sequence[float] = (1.0, 10.0),
) -> list[Simulated]:
    """Every model on every known rate and its multiples; all models use the same data sets."""
    rates = [truth.scaled(factor) for factor in factors for truth in truths]
    return [fits for rate in rates for fits in simulated(rate, sets, few)]


@dataclass(frozen=True)
class Bands:
    """The models with bands on one known rate."""

    truth: Truth
    fits: dict[str, Simulated]


def bands_data(
    sets: int = 100,
    few: int = 20,
    truths: Sequence[Truth] = TRUTHS,
    factors: Sequence[float] = (1.0, 10.0),
) -> list[Bands]:
    """The same fits as those of `errors_data`, by rate."""
    rates = [truth.scaled(factor) for factor in factors for truth in truths]
    return [Bands(rate, {fit.model: fit for fit in simulated(rate, sets, few)}) for rate in rates]


@cache
def simulated(truth: Truth, sets: int, few: int) -> list[Simulated]:
    """Every model on the data sets of one rate, the KDE first."""
    draws = [truth.sample(seed) for seed in range(sets)]
    baseline: Floats | None = None
    out = []
    for name in MODELS:
        fits = _simulated(truth, name, draws if name in MANY else draws[:few], baseline)
        baseline = fits.error if baseline is None else baseline
        out.append(fits)
    return out


def _simulated(truth: Truth, name: str, draws: list[Floats], kde: Floats | None) -> Simulated:
    low, high = truth.window.bounds()
    X = np.linspace(low, high, PLACES)
    rates, errors, covered = [], [], []
    for events in draws:
        model = MODELS[name](truth.window).fit(events)
        rates.append(model.predict(X))
        errors.append(mean_squared_error(model.predict, truth.rate, truth.window))
        if name in OURS:
            bounds = model.predict_interval(X, LEVEL)
            covered.append((coverage(*bounds, truth.rate(X)), bounds))
    error, negative = np.array(errors), np.mean(np.array(rates) < 0.0, axis=1)
    to_kde = (0.0, 0.0) if kde is None else paired(error, kde[: len(error)])
    first = Curve(X[:, 0], rates[0], covered[0][1] if covered else None, draws[0])
    return Simulated(truth, name, error, to_kde, np.array([c for c, _ in covered]), negative, first)


@dataclass(frozen=True)
class Shots:
    """One model of where shots are taken: gains (splits,) on held-out fifths, CPU seconds of a fit.

    `to_kde` is the mean and standard error of the difference from the KDE's gains on the same
    splits, and `density` is λ/∫λ of all shots on a grid of `places`.
    """

    model: str
    gains: Floats
    to_kde: tuple[float, float]
    seconds: float
    places: tuple[Floats, ...]
    density: Floats
    X: Floats


def distance_data(splits: int = 10, models: Sequence[str] = (*OURS, *KDES)) -> list[Shots]:
    """How far from the hoop, in feet."""
    X = np.hypot(*curry(SEASON).X.T)[:, None]
    return _shots(X, Interval(0, 50, unit="ft"), splits, models, cells=1000)


def court_data(splits: int = 3, models: Sequence[str] = (*OURS, *KDES)) -> list[Shots]:
    """Where on the court."""
    shots = curry(SEASON)
    assert shots.window is not None
    return _shots(shots.X, shots.window, splits, models, cells=250)


def _shots(
    X: Floats, window: Window, splits: int, models: Sequence[str], cells: int
) -> list[Shots]:
    """Every model on the same splits, and on all shots."""
    parts = [thin(X, 0.8, seed) for seed in range(splits)]
    gains = {
        name: np.array([gain(MODELS[name](window).fit(kept), rest) for kept, rest in parts])
        for name in models
    }
    return [_fitted_shots(X, window, name, gains, cells) for name in models]


def _fitted_shots(
    X: Floats, window: Window, name: str, gains: dict[str, Floats], cells: int
) -> Shots:
    low, high = window.bounds()
    places = tuple(np.linspace(a, b, cells) for a, b in zip(low, high, strict=True))
    nodes = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1)
    start = time.process_time()
    model = MODELS[name](window).fit(X)
    seconds = time.process_time() - start
    rate = model.predict(nodes.reshape(-1, X.shape[1])).reshape(nodes.shape[:-1])
    density = rate / model.expected_count(window)
    to_kde = paired(gains[name], gains["KDE"])
    return Shots(name, gains[name], to_kde, seconds, places, density, X)


@dataclass(frozen=True)
class Goodness:
    """One test of a rate, on its training events and on held-out events."""

    name: str
    statistic: float
    p_value: float
    held_out: Floats
    coal: Coal


@dataclass(frozen=True)
class Coal:
    """The rate of disasters, learned from all events, and the results of the tests."""

    model: Intensity
    X: Floats
    found: Check
    eras: tuple[Era, ...]


@dataclass(frozen=True)
class Era:
    """Periods, observed and expected disasters in them, and bounds of the count."""

    start: int
    end: int
    observed: int
    expected: float
    low: float
    high: float


RATE_CHECKS = ("time rescaling", "quadrats", "thinning", "calibration")
"""Checks of the rate itself; others are of whether events are independent."""


def coal_data(halves: int = 20) -> list[Goodness]:
    """One row per test; random halves are held out and tested against a fit of the other half."""
    data = coal()
    model = Intensity(data.window, model="exp").fit(data.X)
    found = check(model, data.X)
    p_values = [_held_out(data.X, seed) for seed in range(halves)]
    fitted = Coal(model, data.X, found, tuple(_eras(model, data.X)))
    return [
        Goodness(
            name,
            found.statistics[name],
            found.p_values[name],
            np.array([held_out[name] for held_out in p_values]),
            fitted,
        )
        for name in RATE_CHECKS
    ]


def _held_out(X: Floats, seed: int) -> dict[str, float]:
    kept, rest = thin(X, 0.5, seed)
    return check(Intensity(coal().window, model="exp").fit(kept), rest).p_values


def _eras(model: Intensity, X: Floats) -> list[Era]:
    """Four periods of 28 years."""
    edges = np.linspace(1851, 1963, 5).astype(int).tolist()
    spells = [Interval(a, b, unit="year") for a, b in pairwise(edges)]
    counts = np.histogram(X[:, 0], edges)[0]
    bounds = model.count_interval(spells, LEVEL)
    columns = (counts.tolist(), model.expected_count(spells).tolist(), *bounds)
    rows = zip(edges[:-1], edges[1:], *columns, strict=True)
    return [Era(*row) for row in rows]
