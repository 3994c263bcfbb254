"""Second-order and first-order steps, on the same streams in several orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from experiments import LINE, LINE_KERNEL, distances, loss_of
from numpy.typing import NDArray
from theorem import KERNEL, UNIT, density_of, draw, excess

from hplus import SPPPOT, Intensity, SecondOrder, StreamingIntensity
from hplus.evaluation import thin
from hplus.streaming.steps import RootStep

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Orders:
    """Losses of first-order and second-order steps on one stream, (orders, checks) each.

    `steps` says whether predictions use the current function or the average along the stream.

    `reached` (orders,) is the first check at which second order reaches the final loss of first
    order, as a share of the events, or inf; `offline` is the loss of a batch fit.
    """

    stream: str
    steps: str
    events: Floats
    first: Floats
    second: Floats
    offline: float
    reached: Floats


def second_data(
    orders: int = 10,
    checks: int = 40,
    events: int = 4000,
    seasons: Sequence[int | None] = (2015, None),
) -> list[Orders]:
    """Held-out losses for Curry's distances, one season and all, and for a known density."""
    names = ["Curry, all seasons" if s is None else f"Curry, {s}-{(s + 1) % 100}" for s in seasons]
    found = []
    for steps, methods in METHODS.items():
        paths = [_curry_paths(season, orders, checks, methods) for season in seasons]
        paths.append(_known_paths(orders, checks, events, methods))
        named = zip([*names, "two bumps"], paths, strict=True)
        found += [_orders(name, steps, *path) for name, path in named]
    return found


Pair = tuple[SPPPOT, SecondOrder]
METHODS: dict[str, Pair] = {
    "current": (SPPPOT(RootStep(2.0), average=False), SecondOrder(average=False)),
    "averaged": (SPPPOT(), SecondOrder()),
}
"""First order without averaging uses the best of three step sizes; the rest are defaults."""

Paths = tuple[Floats, Floats, float]
"""Events at each check, losses (2, orders, checks), and the loss of the batch fit."""


def _curry_paths(season: int | None, orders: int, checks: int, methods: Pair) -> Paths:
    X, test = thin(distances(season), 0.8, 0)
    counts, losses = _checked(len(X), checks), np.empty((2, orders, checks))
    for seed in range(orders):
        order = np.random.RandomState(seed).permutation(len(X))
        for i, method in enumerate(methods):
            model = StreamingIntensity(LINE, LINE_KERNEL, method)
            path = [loss_of(model.partial_fit(X[part]), test) for part in _parts(order, counts)]
            losses[i, seed] = path
    offline = loss_of(Intensity(LINE, kernel=LINE_KERNEL).fit(X), test)
    return counts.astype(float), losses, offline


def _known_paths(orders: int, checks: int, events: int, methods: Pair) -> Paths:
    counts, losses = _checked(events, checks), np.empty((2, orders, checks))
    for seed in range(orders):
        X = draw(events, seed)
        for i, method in enumerate(methods):
            model = StreamingIntensity(UNIT, KERNEL, method)
            parts = _parts(np.arange(events), counts)
            losses[i, seed] = [excess(density_of(model.partial_fit(X[part]))) for part in parts]
    draws = [draw(events, seed) for seed in range(orders)]
    batch = [excess(density_of(Intensity(UNIT, kernel=KERNEL).fit(X))) for X in draws]
    return counts.astype(float), losses, float(np.mean(batch))


def _checked(events: int, checks: int) -> Ints:
    return np.linspace(0, events, checks + 1).astype(np.int64)[1:]


def _parts(order: Ints, counts: Ints) -> list[Ints]:
    return np.split(order, counts[:-1])


def _orders(stream: str, steps: str, events: Floats, losses: Floats, offline: float) -> Orders:
    first, second = losses
    there = second <= first[:, -1:]
    share = events[there.argmax(axis=1)] / events[-1]
    reached = np.where(there.any(axis=1), share, np.inf)
    return Orders(stream, steps, events, first, second, offline, reached)
