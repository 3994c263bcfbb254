"""Classification from a stream: regret, budgets, tuning; `*_data` functions have fixed seeds."""

from __future__ import annotations

import csv
import gzip
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.svm import SVC

from hplus import (
    KOMP,
    Forgetron,
    Gaussian,
    KernelClassifier,
    Nystroem,
    Oldest,
    RandomFourier,
    Smallest,
    StreamingClassifier,
)
from hplus.datasets import banana
from hplus.evaluation import prequential, regret
from hplus.losses import Hinge
from hplus.streaming.budgets import DoublyStochastic, Unlimited
from hplus.streaming.settings import loss_part
from hplus.streaming.steps import FixedStep, RootStep
from hplus.streaming.supervised import build, supervised_rule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def shuffled(seed: int) -> tuple[Floats, Ints]:
    """The banana points in random order."""
    data = banana()
    assert data.y is not None
    order = np.random.RandomState(seed).permutation(len(data.X))
    return data.X[order], data.y[order]


@dataclass(frozen=True)
class Regret:
    """Σ Φ_t(f_t) - Σ Φ_t(f*) after each of T examples, shape (T,), and its bound.

    f* minimises the mean hinge loss plus penalty‖f*‖²; the step size is ‖f*‖/√T.
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
    """An online kernel classifier on banana that keeps every example, against batch optima."""
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
    learner = build(
        supervised_rule(loss_part(Hinge()), FixedStep(step), 0.0, budget), kernel, 2, budget
    )
    z = learner.learn(np.array(X), y.astype(np.float64), np.ones(T))
    losses = np.maximum(1.0 - y * z, 0.0)
    # ‖f*‖²/2η + ηt/2 for slopes and kernels of size 1, which is ‖f*‖√T at t = T
    bound = 0.5 * norm**2 / step + 0.5 * step * np.arange(1, T + 1)
    return Regret(penalty, norm, float(hindsight.mean()), step, regret(losses, hindsight), bound)


@dataclass(frozen=True)
class Kept:
    """One budget on one data set: accuracies (shuffles,) on test rows and during the pass.

    `progressive` is empty for a batch fit, and both are empty for what was not run; with random
    features, `atoms` is the number of weights.
    """

    data: str
    name: str
    accuracy: Floats
    progressive: Floats
    atoms: float
    seconds: float


def budgets_of(size: int) -> dict[str, Any]:
    """All budgets, with this many weights except for the first."""
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
    """Banana and a9a, which is not bundled: without its folder, one row says so."""
    nothing = np.zeros(0)
    missing = Kept("a9a", "not run: give --data FOLDER", nothing, nothing, np.nan, np.nan)
    return [*_banana(shuffles, size), *([missing] if folder is None else _a9a(folder))]


def _banana(shuffles: int, size: int) -> list[Kept]:
    kernel, step = Gaussian(0.5), RootStep(2.0)
    sets = [(X[:4000], y[:4000], X[4000:], y[4000:]) for X, y in map(shuffled, range(shuffles))]
    kept = [_kept("banana", name, streaming(kernel, step, budget), sets)
            for name, budget in budgets_of(size).items()]  # fmt: skip
    return [*kept, _batch("banana", KernelClassifier(kernel, penalty=1e-4), sets)]


def streaming(kernel: Any, step: Any, budget: Any) -> StreamingClassifier:
    """The classifier for a budget; Forgetron, a perceptron, has step size 1.

    Functions are not averaged if atoms are dropped, because the average would lose them, too.
    """
    if isinstance(budget, Forgetron):
        return StreamingClassifier(kernel, "perceptron", step=FixedStep(1.0), budget=budget)
    average = not isinstance(budget, Oldest | Smallest)
    return StreamingClassifier(kernel, "hinge", step=step, budget=budget, average=average)


Rows = tuple[Floats, Ints, Floats, Ints]
"""Training X and y, test X and y."""


def _kept(data: str, name: str, model: StreamingClassifier, sets: Sequence[Rows]) -> Kept:
    model.fit(sets[0][0][:2], [-1, 1])  # compile before the timing starts
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


TRIED = [(scale, step) for scale in (3.0, 4.0, 6.0) for step in (4.0, 8.0, 16.0, 32.0, 64.0)]
"""Candidate scales and step sizes; the best on a held-out fifth of a9a's training rows is used."""


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
    machines = SVC(gamma=0.5 / scale**2), SVC(gamma=1.0 / 123.0)
    return [*kept, *(_batch(f"a9a, γ = {m.gamma:.3g}, C = 1", m, sets) for m in machines)]


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
    """The share of wrong labels during a pass, for one decay λ and each step size η, (steps,)."""

    decay: float
    steps: Floats
    wrong: Floats


def tuning_data(
    steps: Sequence[float] = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    decays: Sequence[float] = (0.0, 1e-4, 1e-3, 1e-2, 1e-1),
    events: int = 5300,
) -> list[Tuned]:
    """Fixed step sizes on banana, with at most 100 atoms."""
    X, y = shuffled(0)
    kernel, budget = Gaussian(0.5), KOMP(0.1, 100, relative=True)

    def wrong(step: float, decay: float) -> float:
        model = StreamingClassifier(kernel, step=step, decay=decay, budget=budget)
        return prequential(model, [(X[:events], y[:events])]).mean

    return [Tuned(d, np.array(steps), np.array([wrong(s, d) for s in steps])) for d in decays]
