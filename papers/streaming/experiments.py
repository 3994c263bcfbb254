"""Rates of events from a stream, computed by `*_data` functions with fixed seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hplus import KOMP, PMD, SPPPOT, Gaussian, Intensity, Interval, Refit, StreamingIntensity
from hplus.datasets import curry
from hplus.evaluation import gain, paired, thin
from hplus.grids import TensorGrid
from hplus.kernels import Kernel
from hplus.streaming.engine.learner import Learner as Stream
from hplus.streaming.engine.nodes import grid_for, nodes_within
from hplus.streaming.engine.rules import IDENTITY, IN_F, PROCESS
from hplus.streaming.engine.starts import start, start_grid
from hplus.streaming.settings import budget_part, method_part, rule, step_part
from hplus.streaming.steps import RootStep
from hplus.windows import Window

Floats = NDArray[np.float64]
Build = Callable[[Window, Kernel], Any]

SEASON = 2015
LINE = Interval(0, 50, unit="ft")
LINE_KERNEL, COURT_KERNEL = Gaussian(1.0), Gaussian(2.5)
OFFLINE = "offline exp"
SIDE = 14
"""Nodes of PMD's grid along each side of the court: 196 weights, and as many atoms at most."""

FEW = KOMP(0.1, 45, relative=True)
KEPT = KOMP(0.1, SIDE**2, relative=True)
FINE = KOMP(0.03, SIDE**2, relative=True)
"""The budget of Refit, with a small tolerance: an error in its atoms affects the solution."""

ON_A_LINE: dict[str, Build] = {
    "SPPPOT, log": lambda window, k: StreamingIntensity(window, k, SPPPOT(), FEW),
    "SPPPOT, mirror": lambda window, k: StreamingIntensity(
        window, k, SPPPOT(RootStep(1.0), gradient="mirror"), FEW
    ),
    "PMD": lambda window, k: StreamingIntensity(window, k, PMD(100)),
    "Refit": lambda window, k: StreamingIntensity(window, k, Refit(), FINE),
    OFFLINE: lambda window, k: Intensity(window, kernel=k),
    "square": lambda window, k: Intensity(window, model="square"),
    "sos": lambda window, k: Intensity(window, model="sos"),
}
"""All methods for the distance; the last two learn their own kernel from all events."""

IN_THE_PLANE: dict[str, Build] = {
    "SPPPOT": lambda window, k: StreamingIntensity(window, k, SPPPOT(), KEPT),
    "PMD": lambda window, k: StreamingIntensity(window, k, PMD(SIDE, RootStep(4.0))),
    "Refit": lambda window, k: StreamingIntensity(window, k, Refit(), FINE),
    OFFLINE: ON_A_LINE[OFFLINE],
}


def distances(season: int | None = SEASON) -> Floats:
    """The distances of Curry's shots from the hoop, in feet and in file order, shape (n, 1)."""
    X = np.hypot(*curry(season).X.T)[:, None]
    return X[LINE.contains(X)]


def loss_of(model: Any, X: Floats) -> float:
    """-mean log f + ∫f over held-out events, with f scaled to mean 1 on the window."""
    return 1.0 - gain(model, X)


@dataclass(frozen=True)
class Fit:
    """One method: losses (splits,) on held-out fifths, and its fit of all events.

    `to_offline` is the mean and standard error of the difference from the offline optimum's losses
    on the same splits, NaN if it is not among the methods; `weights` is the number of weights, None
    for a batch fit; `density` is f/∫f on the grid of `places`.
    """

    name: str
    losses: Floats
    to_offline: tuple[float, float]
    weights: int | None
    seconds: float
    places: tuple[Floats, ...]
    density: Floats
    X: Floats


def curry_data(splits: int = 10, methods: Sequence[str] = tuple(ON_A_LINE)) -> list[Fit]:
    """Shot distances: one pass over a random four fifths of a season."""
    chosen = {name: ON_A_LINE[name] for name in methods}
    return _fits(distances(), LINE, LINE_KERNEL, chosen, splits, cells=1001)


def court_data(splits: int = 3, methods: Sequence[str] = tuple(IN_THE_PLANE)) -> list[Fit]:
    """Shot locations on the court."""
    shots, chosen = curry(SEASON), {name: IN_THE_PLANE[name] for name in methods}
    assert shots.window is not None
    return _fits(shots.X, shots.window, COURT_KERNEL, chosen, splits, cells=200)


def _fits(
    X: Floats, window: Window, kernel: Kernel, methods: dict[str, Build], splits: int, cells: int
) -> list[Fit]:
    """Every method on the same splits, and on all events."""
    parts = [thin(X, 0.8, seed) for seed in range(splits)]
    losses = {
        name: np.array([loss_of(make(window, kernel).fit(kept), rest) for kept, rest in parts])
        for name, make in methods.items()
    }
    nothing = np.full(splits, np.nan)
    return [
        _fit(name, make(window, kernel), X, losses[name], losses.get(OFFLINE, nothing), cells)
        for name, make in methods.items()
    ]


def _fit(name: str, model: Any, X: Floats, losses: Floats, offline: Floats, cells: int) -> Fit:
    low, high = model.window.bounds()
    places = tuple(np.linspace(a, b, cells) for a, b in zip(low, high, strict=True))
    nodes = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1)
    begun = time.process_time()
    total = model.fit(X).expected_count(model.window)  # Refit solves when a prediction is requested
    seconds = time.process_time() - begun
    rate = model.predict(nodes.reshape(-1, X.shape[1])).reshape(nodes.shape[:-1])
    weights = getattr(model, "n_atoms_", None)
    to_offline = (np.nan, np.nan) if np.isnan(offline).any() else paired(losses, offline)
    return Fit(name, losses, to_offline, weights, seconds, places, rate / total, X)


@dataclass(frozen=True)
class Below:
    """f, with mean 1 at the optimum, at points x, shape (p,), after one pass over the events.

    `below` (checks,) is the share of the window where f < 0 after `events` (checks,) events, and
    `impossible` the number of training events at which f <= 0 at the end.
    """

    name: str
    x: Floats
    f: Floats
    events: Floats
    below: Floats
    impossible: int
    atoms: int


def negative_data(checks: int = 40) -> list[Below]:
    """POLK, steps on f itself, and SPPPOT, steps on log f, on the same stream."""
    X = distances()
    order = np.random.RandomState(0).permutation(len(X))
    budget, step = KOMP(0.1, 1000, relative=True), RootStep(1.0)
    identity = {"loss": PROCESS, "link": IDENTITY, "gradient": IN_F, "background": 1}
    mirror = method_part(SPPPOT(step, gradient="mirror", average=False))
    parts = {"POLK": {**identity, **step_part(step, 0.0)}, "SPPPOT": mirror}
    nodes = nodes_within(grid_for(LINE_KERNEL, LINE, 1.3, 2500), LINE)
    return [
        _below(name, start(rule(budget_part(budget), part), LINE_KERNEL, nodes),
               X[order], checks)
        for name, part in parts.items()
    ]  # fmt: skip


def _below(name: str, stream: Stream, X: Floats, checks: int) -> Below:
    x, events, below = np.linspace(0.0, 50.0, 1001)[:, None], 0, []
    counts = []
    for chunk in np.array_split(X, checks):
        stream.learn(chunk, np.zeros(len(chunk)), np.ones(len(chunk)))
        events += len(chunk)
        counts.append(float(events))
        below.append(float(np.mean(value_of(stream, x) < 0.0)))
    impossible = int(np.sum(value_of(stream, X) <= 0.0))
    f, atoms = value_of(stream, x), stream.status.atoms
    return Below(name, x[:, 0], f, np.array(counts), np.array(below), impossible, atoms)


def value_of(stream: Stream, X: Floats) -> Floats:
    """f(X[i]): z, or e^z."""
    z = stream.values(X)
    return z if stream.rule.link == IDENTITY else np.exp(z)


REGION, TWICE = Interval(0, 10), Interval(0, 20)
"""The region of the first half of a stream, and that of the whole stream."""


@dataclass(frozen=True)
class Outside:
    """The loss of a method on events of the first and second region, and its final density.

    `losses` (checks, 2) after `events` (checks,); x, density and truth, the density of events at
    the end, have shape (p,).
    """

    name: str
    weights: int
    events: Floats
    losses: Floats
    x: Floats
    density: Floats
    truth: Floats


def outside_data(events: int = 4000, checks: int = 40) -> list[Outside]:
    """A grid over the first region, one with as many nodes over both, and SPPPOT."""
    rng = np.random.RandomState(0)
    X = np.concatenate([_two_bumps(rng, events), 10.0 + _two_bumps(rng, events)])
    kernel = Gaussian(0.5)
    pmd = rule(method_part(PMD(step=RootStep(1.0))))
    part, whole = (
        start_grid(pmd, kernel, TWICE, TensorGrid((0.0,), (high,), (60,))) for high in (10.0, 20.0)
    )
    adaptive = StreamingIntensity(TWICE, kernel, SPPPOT())
    test = [_two_bumps(rng, 4000), 10.0 + _two_bumps(rng, 4000)]
    shapes = {"PMD, grid over [0, 10]": _on_grid(part, 10.0),
              "PMD, grid over [0, 20]": _on_grid(whole, 20.0),
              "SPPPOT": _estimated(adaptive)}  # fmt: skip
    return [_outside(name, *shape, X, test, checks) for name, shape in shapes.items()]


Density = Callable[[Floats], Floats]
Learner = tuple[Callable[[Floats], Any], Density, Callable[[], int]]
"""A function that learns from a chunk, one that gives the density, one that counts weights."""


def _on_grid(stream: Stream, high: float) -> Learner:
    """PMD on a grid up to `high`; the density is constant beyond the last node."""
    nodes = np.linspace(0.0, 20.0, 2001)

    def learn(X: Floats) -> None:
        stream.learn(X, np.zeros(len(X)), np.ones(len(X)))

    def density(X: Floats) -> Floats:
        z = stream.state.rows[0, : stream.size]
        at, grid = np.minimum(X[:, 0], high), np.linspace(0.0, high, stream.size)
        total = np.trapezoid(np.exp(np.interp(np.minimum(nodes, high), grid, z)), nodes)
        return np.exp(np.interp(at, grid, z)) / total

    return learn, density, lambda: stream.size


def _estimated(model: StreamingIntensity) -> Learner:
    def density(X: Floats) -> Floats:
        return model.predict(X) / model.expected_count(model.window)

    return model.partial_fit, density, lambda: model.n_atoms_


def _outside(
    name: str, learn: Any, density: Density, size: Any, X: Floats, test: list[Floats], checks: int
) -> Outside:
    x, losses, counts, events = np.linspace(0.0, 20.0, 801)[:, None], [], [], 0
    for chunk in np.array_split(X, checks):
        learn(chunk)
        events += len(chunk)
        counts.append(float(events))
        losses.append([1.0 - np.mean(np.log(density(T) * TWICE.volume)) for T in test])
    arrays = np.array(counts), np.array(losses), x[:, 0], density(x), _bumps(x[:, 0] - 10.0)
    return Outside(name, size(), *arrays)


CENTERS, WIDTHS = np.array([3.0, 7.0]), np.array([0.6, 1.0])


def _bumps(x: Floats) -> Floats:
    """Two normal densities of equal weight."""
    u = (x[:, None] - CENTERS) / WIDTHS
    return 0.5 * np.sum(np.exp(-0.5 * u**2) / (np.sqrt(2.0 * np.pi) * WIDTHS), axis=1)


def _two_bumps(rng: np.random.RandomState, n: int) -> Floats:
    """Draws of `_bumps` within the first region, shape (n, 1)."""
    which = rng.randint(2, size=2 * n)
    x = (CENTERS[which] + WIDTHS[which] * rng.normal(size=2 * n))[:, None]
    return x[REGION.contains(x)][:n]
