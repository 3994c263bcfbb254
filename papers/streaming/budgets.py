"""Labels from a stream: regret, budgets, tuning; and steps of second order for rates."""

from __future__ import annotations

import csv
import gzip
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from experiments import LINE, LINE_KERNEL, distances, loss_of
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.svm import SVC
from theorem import KERNEL, UNIT, density_of, draw, excess

from hplus import (
    KOMP,
    SPPPOT,
    Forgetron,
    Gaussian,
    Intensity,
    KernelClassifier,
    Nystroem,
    Oldest,
    RandomFourier,
    SecondOrder,
    Smallest,
    StreamingClassifier,
    StreamingIntensity,
)
from hplus.datasets import banana
from hplus.evaluation import prequential, regret, thin
from hplus.losses import Hinge
from hplus.streaming.base import build, supervised_rule
from hplus.streaming.budgets import DoublyStochastic, Unlimited
from hplus.streaming.settings import loss_part
from hplus.streaming.steps import FixedStep, RootStep

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def shuffled(seed: int) -> tuple[Floats, Ints]:
    """The points of banana in a random order."""
    data = banana()
    assert data.y is not None
    order = np.random.RandomState(seed).permutation(len(data.X))
    return data.X[order], data.y[order]


@dataclass(frozen=True)
class Regret:
    """Σ Φ_t(f_t) - Σ Φ_t(f*) after each of T examples, shape (T,), with what bounds it.

    f* minimises the mean hinge loss plus penalty‖f*‖²; the step is ‖f*‖/√T, the best for it.
    """

    penalty: float
    norm: float
    hindsight: float
    step: float
    regret: Floats
    bound: Floats


def regret_data(
    penalties: Sequence[float] = (1e-2, 1e-3, 1e-4), events: int = 5300
) -> list[Regret]:
    """The online kernel machine on banana, every example kept, against batch optima."""
    X, y = shuffled(0)
    return [_regret(penalty, X[:events], y[:events]) for penalty in penalties]


def _regret(penalty: float, X: Floats, y: Ints) -> Regret:
    kernel, T = Gaussian(0.5), len(y)
    best = KernelClassifier(kernel, penalty=penalty).fit(X, y)
    norm, hindsight = (
        float(best.function_.norm()),
        np.maximum(1.0 - y * best.decision_function(X), 0),
    )
    step, budget = norm / np.sqrt(T), Unlimited()
    machine = build(
        supervised_rule(loss_part(Hinge()), FixedStep(step), 0.0, budget), kernel, 2, budget
    )
    z = machine.learn(np.array(X), y.astype(np.float64), np.ones(T))
    losses = np.maximum(1.0 - y * z, 0.0)
    # ‖f*‖²/2η + ηt/2 for slopes and kernels of size 1, which is ‖f*‖√T at t = T
    bound = 0.5 * norm**2 / step + 0.5 * step * np.arange(1, T + 1)
    return Regret(penalty, norm, float(hindsight.mean()), step, regret(losses, hindsight), bound)


@dataclass(frozen=True)
class Kept:
    """One budget on one set: accuracies (shuffles,) on test rows and along the pass.

    `progressive` is empty for a batch fit; `atoms` counts weights for features.
    """

    data: str
    name: str
    accuracy: Floats
    progressive: Floats
    atoms: float
    seconds: float


def budgets_of(size: int) -> dict[str, Any]:
    """Every budget with so many weights, but for the first."""
    return {
        "none": None,
        f"Oldest({size})": Oldest(size),
        f"Smallest({size})": Smallest(size),
        f"Forgetron({size})": Forgetron(size),
        f"KOMP, at most {size}": KOMP(0.1, size, relative=True),
        f"Nystroem({size})": Nystroem(size),
        f"RandomFourier({size // 2})": RandomFourier(size // 2, random_state=0),
        f"DoublyStochastic({size // 2})": DoublyStochastic(size // 2, size // 20),
    }


def budgets_data(shuffles: int = 5, size: int = 100, folder: Path | None = None) -> list[Kept]:
    """Banana and, if a folder has it, a9a."""
    rows = _banana(shuffles, size)
    return [*rows, *(_a9a(folder) if folder else [])]


def _banana(shuffles: int, size: int) -> list[Kept]:
    kernel, step = Gaussian(0.5), RootStep(2.0)
    sets = [(X[:4000], y[:4000], X[4000:], y[4000:]) for X, y in map(shuffled, range(shuffles))]
    kept = [_kept("banana", name, streaming(kernel, step, budget), sets)
            for name, budget in budgets_of(size).items()]  # fmt: skip
    return [*kept, _batch("banana", KernelClassifier(kernel, penalty=1e-4), sets)]


def streaming(kernel: Any, step: Any, budget: Any) -> StreamingClassifier:
    """The classifier for a budget; Forgetron, a perceptron, has steps of size 1 and no average."""
    if isinstance(budget, Forgetron):
        return StreamingClassifier(kernel, "perceptron", step=FixedStep(1.0), budget=budget)
    return StreamingClassifier(kernel, "hinge", step=step, budget=budget, average=True)


Rows = tuple[Floats, Ints, Floats, Ints]
"""X and y to learn from, X and y to be tested on."""


def _kept(data: str, name: str, model: StreamingClassifier, sets: Sequence[Rows]) -> Kept:
    model.fit(sets[0][0][:2], [-1, 1])  # compiled before the clock starts
    accuracy, progressive, seconds = [], [], []
    for X, y, X_test, y_test in sets:
        model, begun = clone(model), time.process_time()
        progressive.append(1.0 - prequential(model, [(X, y)]).mean)
        seconds.append(time.process_time() - begun)
        accuracy.append(model.score(X_test, y_test))
    arrays = np.array(accuracy), np.array(progressive)
    return Kept(data, name, *arrays, float(model.n_atoms_), float(np.mean(seconds)))


def _batch(data: str, model: Any, sets: Sequence[Rows]) -> Kept:
    accuracy, seconds = [], []
    for X, y, X_test, y_test in sets:
        begun = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - begun)
        accuracy.append(model.score(X_test, y_test))
    weights = model.dual_coef_ if isinstance(model, SVC) else model.function_.weights
    nothing, atoms = np.zeros(0), float(np.count_nonzero(weights))
    return Kept(data, "batch SVC", np.array(accuracy), nothing, atoms, float(np.mean(seconds)))


TRIED = [(scale, step) for scale in (3.0, 4.0, 6.0) for step in (2.0, 4.0, 8.0, 16.0)]
"""Scales and steps of which the best on a held-out fifth of a9a's training rows is taken."""


def _a9a(folder: Path, size: int = 500) -> list[Kept]:
    X, y = _read(folder / "a9a_train.csv.gz")
    sets = [(X, y, *_read(folder / "a9a_test.csv"))]
    cut, few = len(X) * 4 // 5, KOMP(0.1, 200, relative=True)
    scores = [
        streaming(Gaussian(scale), RootStep(step), few)
        .fit(X[:cut], y[:cut])
        .score(X[cut:], y[cut:])
        for scale, step in TRIED
    ]
    scale, step = TRIED[int(np.argmax(scores))]
    name = f"a9a, scale {scale:g}, step {step:g}/√n"
    kept = [_kept(name, label, streaming(Gaussian(scale), RootStep(step), budget), sets)
            for label, budget in budgets_of(size).items() if budget is not None]  # fmt: skip
    return [*kept, _batch("a9a, γ = 1/123, C = 1", SVC(gamma=1.0 / 123.0), sets)]


def _read(path: Path) -> tuple[Floats, Ints]:
    """Rows of 0 and 1, (n, 123), and their labels."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        rows = list(csv.DictReader(file))
    X = np.zeros((len(rows), 123))
    for i, row in enumerate(rows):
        X[i, np.array(row["active_features"].split(), dtype=int) - 1] = 1.0
    return X, np.array([int(row["label"]) for row in rows])


@dataclass(frozen=True)
class Tuned:
    """The share of wrong labels along a pass, for one decay λ and every step η, shape (steps,)."""

    decay: float
    steps: Floats
    wrong: Floats


def tuning_data(
    steps: Sequence[float] = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    decays: Sequence[float] = (0.0, 1e-4, 1e-3, 1e-2, 1e-1),
    events: int = 5300,
) -> list[Tuned]:
    """Fixed steps on banana, at most 100 atoms."""
    X, y = shuffled(0)
    kernel, budget = Gaussian(0.5), KOMP(0.1, 100, relative=True)

    def wrong(step: float, decay: float) -> float:
        model = StreamingClassifier(kernel, step=step, decay=decay, budget=budget)
        return prequential(model, [(X[:events], y[:events])]).mean

    return [Tuned(d, np.array(steps), np.array([wrong(s, d) for s in steps])) for d in decays]


@dataclass(frozen=True)
class Orders:
    """The loss of first and second order along orders of one stream, (orders, checks) each.

    `reached` (orders,) is the first check at which second order is at the loss that first order
    has at the end, as a share of the events, inf if it never is; `offline` the loss of a batch
    fit of the same events.
    """

    stream: str
    events: Floats
    first: Floats
    second: Floats
    offline: float
    reached: Floats


def second_data(orders: int = 10, checks: int = 40, events: int = 4000) -> list[Orders]:
    """Held-out losses of Curry's distances, one season and all, and a density that is known."""
    streams = {f"Curry, {name}": _curry_paths(season, orders, checks)
               for name, season in (("2015-16", 2015), ("all seasons", None))}  # fmt: skip
    streams["two bumps"] = _known_paths(orders, checks, events)
    return [_orders(name, *paths) for name, paths in streams.items()]


METHODS = SPPPOT(), SecondOrder()
Paths = tuple[Floats, Floats, float]
"""Events at each check, losses (2, orders, checks), and the batch fit's."""


def _curry_paths(season: int | None, orders: int, checks: int) -> Paths:
    X, test = thin(distances(season), 0.8, 0)
    counts, losses = _checked(len(X), checks), np.empty((2, orders, checks))
    for seed in range(orders):
        order = np.random.RandomState(seed).permutation(len(X))
        for i, method in enumerate(METHODS):
            model = StreamingIntensity(LINE, LINE_KERNEL, method)
            path = [loss_of(model.partial_fit(X[part]), test) for part in _parts(order, counts)]
            losses[i, seed] = path
    offline = loss_of(Intensity(LINE, kernel=LINE_KERNEL).fit(X), test)
    return counts.astype(float), losses, offline


def _known_paths(orders: int, checks: int, events: int) -> Paths:
    counts, losses = _checked(events, checks), np.empty((2, orders, checks))
    for seed in range(orders):
        X = draw(events, seed)
        for i, method in enumerate(METHODS):
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


def _orders(stream: str, events: Floats, losses: Floats, offline: float) -> Orders:
    first, second = losses
    there = second <= first[:, -1:]
    share = events[there.argmax(axis=1)] / events[-1]
    reached = np.where(there.any(axis=1), share, np.inf)
    return Orders(stream, events, first, second, offline, reached)
