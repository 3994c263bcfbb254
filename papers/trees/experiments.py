"""The numbers of the report, computed by `*_data` functions with fixed seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
from cascades import Cascade, Floats, drawn_ratios, kernel, same_cell

from hplus import Box, Intensity, Interval, datasets, simulate
from hplus.rates.statistic import Statistic

UNIT, SQUARE = Interval(0.0, 1.0), Box((0.0, 0.0), (1.0, 1.0))
DEPTH = 10
CONCENTRATIONS = np.array([4.0, np.inf, 8.0, 2.0, np.inf, 6.0])
TREES = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Distance:
    """Two places at a distance: their kernel, measured with its error, and as a random feature."""

    distance: float
    exact: float
    measured: float
    error: float
    features: float


def kernel_data(draws: int = 4000) -> list[Distance]:
    """E[r(x) r(x + d)] under averaged random trees, from draws and in closed form."""
    rng, cells = np.random.default_rng(0), 2**DEPTH
    r = drawn_ratios(CONCENTRATIONS, cells, draws, rng)
    found = []
    for steps in (0, 4, 16, 32, 64, 128, 256, 512, 768):
        products = np.mean(r[:, : cells - steps] * r[:, steps:], axis=1)
        same = same_cell(steps, len(CONCENTRATIONS), cells, draws, rng)
        d = steps / cells
        exact = float(kernel(np.array([d]), CONCENTRATIONS)[0])
        error = float(products.std() / np.sqrt(draws))
        # the share of trees of each level in which both places have the same feature
        features = float(np.abs(same - np.clip(1.0 - d / 0.5 ** np.arange(len(same)), 0, 1)).max())
        found.append(Distance(d, exact, float(products.mean()), error, features))
    return found


@dataclass(frozen=True)
class Averaged:
    """Held-out log density over uniform of the average of `trees` trees, by seed."""

    name: str
    trees: int
    scores: Floats


def _halves(X: Floats) -> tuple[Floats, Floats]:
    X = np.random.default_rng(0).permutation(X)
    return X[::2], X[1::2]


def offsets_data(events: int = 6000, seeds: int = 3, most: int = 64) -> list[Averaged]:
    """What averaging over offsets gains: bundled earthquakes, and a cascade in the plane."""
    lon, lat = datasets.earthquakes().X[:events, :2].T
    # an equal-area map in km
    quakes = np.column_stack([111.32 * lon, 6371.0 * np.sin(np.radians(lat))])
    globe = Box((-20_038.0, -6371.0), (20_038.0, 6371.0), unit="km")
    plane = Cascade.drawn(2, 7, np.array([6.0, 6.0, 4.0, 4.0, 3.0, 3.0, 3.0]), 1)
    sets = {
        "earthquakes of the world": (globe, quakes),
        "a cascade": (SQUARE, plane.sample(events, np.random.default_rng(2))),
    }
    found = []
    for name, (where, X) in sets.items():
        learned, fresh = _halves(X)
        rate = Intensity(where, model="tree", random_state=0).fit(learned).rate_
        for trees in (k for k in TREES if k <= most):
            scores = [
                _score(replace(rate, trees=trees, seed=s), where, fresh) for s in range(seeds)
            ]
            found.append(Averaged(name, trees, np.array(scores)))
    return found


def _score(rate: object, window: Box, X: Floats) -> float:
    density = rate.function(X) / rate.integral()
    return float(np.mean(np.log(density))) + float(np.log(window.volume))


@dataclass(frozen=True)
class Size:
    """Cells of a size: the true variation between neighbours, and that of the spectrum."""

    name: str
    size: float
    truth: float
    found: float
    low: float
    high: float
    gain: float


CASCADES = {
    "coarse": (2.0, 2.0, np.inf, np.inf, np.inf, np.inf, np.inf, np.inf),
    "fine": (np.inf, np.inf, np.inf, np.inf, np.inf, np.inf, 2.0, 2.0),
    "two sizes": (np.inf, 2.0, np.inf, np.inf, np.inf, np.inf, 2.0, np.inf),
    "none": (np.inf,) * 8,
}


def spectrum_data(events: int = 20_000, names: Sequence[str] = tuple(CASCADES)) -> list[Size]:
    """The spectrum of events on a line whose rate is a known cascade."""
    found = []
    for name in names:
        A = np.array(CASCADES[name])
        X = Cascade.drawn(1, len(A), A, 3).sample(events, np.random.default_rng(4))
        spectrum = Intensity(UNIT, model="tree", random_state=0).fit(X).scale_spectrum()
        low, high = spectrum.variation_interval
        columns = (spectrum.variation, low, high, spectrum.gains)
        for k in range(1, len(A) + 1):
            truth = float(np.sqrt(1.0 / (A[k - 1] + 1.0)))
            numbers = [float(v[k]) if k < len(v) else 0.0 for v in columns]
            found.append(Size(name, 0.5**k, truth, *numbers))
    return found


@dataclass(frozen=True)
class Covered:
    """Boxes of a size with at least 3 expected events: how many, and intervals that hold counts."""

    size: float
    boxes: int
    covered: float


def coverage_data(events: int = 5000, sets: int = 5, depths: int = 6) -> list[Covered]:
    """Randomised coverage of 90 % intervals of new counts, by the size of boxes."""
    inside: dict[int, list[Floats]] = {}
    rng = np.random.default_rng(0)
    for k in range(sets):
        cascade = Cascade.drawn(2, 6, np.array([8.0, 6.0, 4.0, 4.0, 4.0, 4.0]), 10 + k)
        model = Intensity(SQUARE, model="tree", random_state=k)
        model.fit(cascade.sample(rng.poisson(events), rng))
        fresh = cascade.sample(rng.poisson(events), rng)
        for depth in range(1, depths + 1):
            inside.setdefault(depth, []).append(_inside(model, fresh, depth, rng))
    return [
        Covered(0.5**depth, len(found), float(np.mean(found)))
        for depth, parts in inside.items()
        if len(found := np.concatenate(parts))
    ]


def _inside(model: Intensity, X: Floats, depth: int, rng: np.random.Generator) -> Floats:
    """The share of each count inside its interval, ends counted in part."""
    n = 2**depth
    boxes = [Box((i / n, j / n), ((i + 1) / n, (j + 1) / n)) for i in range(n) for j in range(n)]
    at = np.minimum((X * n).astype(int), n - 1)
    counts = np.bincount(at[:, 0] * n + at[:, 1], minlength=n * n)
    kept = np.flatnonzero(model.expected_count(boxes) >= 3.0)[:400]
    draws = model.rate_.count_draws([boxes[i] for i in kept])
    below = np.array(
        [np.mean(rng.poisson(d) < c) for d, c in zip(draws, counts[kept], strict=True)]
    )
    upto = np.array(
        [np.mean(rng.poisson(d) <= c) for d, c in zip(draws, counts[kept], strict=True)]
    )
    # where in its distribution the count lies, spread over its own probability
    p = below + (upto - below).clip(0.0) * rng.random(len(kept))
    return ((p > 0.05) & (p < 0.95)).astype(float)


@dataclass(frozen=True)
class Compared:
    """The relative squared error of rates of one truth by three models, by data set."""

    name: str
    errors: dict[str, Floats]


MODELS = ("exp", "tree", "auto")


def smooth_data(
    sets: int = 2, factor: float = 1.0, rates: int = 3, events: int = 1000
) -> list[Compared]:
    """Smooth rates on a line, where trees lose, and a cascade, where they win."""
    known = enumerate(simulate.TRUTHS[-rates:], start=4 - rates)
    truths = {f"Λ{k}": truth.scaled(factor) for k, truth in known}
    found = [_compared(name, t.window, t.rate, t.sample, sets) for name, t in truths.items()]
    cascade = Cascade.drawn(1, 8, np.array([3.0] * 8), 5)

    def rate(X: Floats) -> Floats:
        return events * cascade.density(np.asarray(X))

    def sample(random_state: int) -> Floats:
        rng = np.random.default_rng(random_state)
        return cascade.sample(rng.poisson(events), rng)

    return [*found, _compared("cascade", UNIT, rate, sample, sets)]


def _compared(name: str, window: Interval, rate: object, sample: object, sets: int) -> Compared:
    low, high = window.bounds()
    grid = np.linspace(low[0], high[0], 2049)[:-1, None] + (high[0] - low[0]) / 4096
    truth, errors = rate(grid), {model: [] for model in MODELS}
    for k in range(sets):
        X = sample(random_state=k)
        for model in MODELS:
            found = Intensity(window, model=model, random_state=0).fit(X).predict(grid)
            errors[model].append(np.mean((found - truth) ** 2) / np.var(truth))
    return Compared(name, {model: np.array(each) for model, each in errors.items()})


@dataclass(frozen=True)
class Streamed:
    """Events in some order and number of parts: does their tree have the bits of the batch?"""

    order: str
    parts: int
    same: bool


def stream_data(events: int = 5000, parts: Sequence[int] = (1, 7, 100)) -> list[Streamed]:
    """Statistics of parts, in any order, add up to that of all events."""
    cascade = Cascade.drawn(2, 6, np.array([4.0] * 6), 6)
    rng = np.random.default_rng(7)
    X = cascade.sample(events, rng)
    asked = rng.random((200, 2))
    batch = Intensity(SQUARE, model="tree", random_state=0).fit(X)
    orders = {
        "as they came": X,
        "from west to east": X[np.argsort(X[:, 0])],
        "shuffled": rng.permutation(X),
    }
    found = []
    for name, Z in orders.items():
        for k in parts:
            total = reduce(add, (Statistic.of(SQUARE, part) for part in np.array_split(Z, k)))
            model = Intensity(SQUARE, model="tree", random_state=0).fit(total)
            pairs = zip(
                (model.predict(asked), *model.predict_interval(asked)),
                (batch.predict(asked), *batch.predict_interval(asked)),
                strict=True,
            )
            found.append(Streamed(name, k, all(np.array_equal(a, b) for a, b in pairs)))
    return found
