"""The theorems, measured: gradients, the decay of the risk, atoms, three updates.

The density is known and its log is in the kernel's space, so the smallest risk is its entropy and
the excess risk is the divergence from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hplus import (
    KOMP,
    SPPPOT,
    Box,
    Function,
    Gaussian,
    Interval,
    Matern32,
    StreamingClassifier,
    StreamingIntensity,
)
from hplus.kernels import Kernel
from hplus.streaming.steps import FixedStep, RootStep

Floats = NDArray[np.float64]

UNIT, SQUARE = Interval(0, 1), Box([0, 0], [1, 1])
KERNEL = Gaussian(0.1)
LOG_DENSITY = Function(KERNEL, np.array([[0.3], [0.55], [0.75]]), np.array([2.0, -1.5, 1.2]))
NODES = np.linspace(0.0, 1.0, 501)[:, None]
SHARES = np.full(501, 1.0 / 500.0)
SHARES[[0, -1]] *= 0.5
TRUTH = np.exp(LOG_DENSITY(NODES)) / (SHARES @ np.exp(LOG_DENSITY(NODES)))
"""The known density at the nodes; SHARES are the weights of the trapezoidal rule."""


def draw(n: int, seed: int) -> Floats:
    """Events of the known density, by its inverse distribution function, shape (n, 1)."""
    rungs = 0.5 * (TRUTH[1:] + TRUTH[:-1]) / 500.0
    steps = np.concatenate([[0.0], np.cumsum(rungs)])
    u = np.random.RandomState(seed).random_sample(n) * steps[-1]
    return np.interp(u, steps, NODES[:, 0])[:, None]


def density_of(model: Any) -> Floats:
    """f/∫f at the nodes."""
    f = model.predict(NODES)
    return f / (SHARES @ f)


def excess(f: Floats) -> float:
    """R(f) - R(p) = ∫ p log(p/f)."""
    return float(SHARES @ (TRUTH * np.log(TRUTH / f)))


@dataclass(frozen=True)
class PseudoGradient:
    """<∇R, E g> along one run and ‖∇R‖², shape (checks,) each."""

    name: str
    events: Floats
    inner: Floats
    squared_norm: Floats


def gradients_data(events: int = 30_000, checks: int = 30) -> list[PseudoGradient]:
    """All pseudo-gradients at the functions that a run of SPPPOT, log form, passes through."""
    model, X = (
        StreamingIntensity(UNIT, KERNEL, SPPPOT(RootStep(1.0), average=False)),
        draw(events, 0),
    )
    counts = np.unique(np.geomspace(4, events, checks).astype(int))
    rows, last = [], 0
    for count in counts:
        model.partial_fit(X[last:count])
        rows.append(inner_products(density_of(model), model.dictionary_, seed=int(count)))
        last = count
    inner = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    at = counts.astype(float)
    return [PseudoGradient(name, at, inner[name], inner["log"]) for name in inner]


BATCH, BATCHES = 100, 300
"""The number of events averaged for a sign, and the number of such batches."""


def inner_products(f: Floats, atoms: Floats, seed: int) -> dict[str, float]:
    """<∇R, E g> of every pseudo-gradient g at a density f (p,) on a dictionary (n, 1).

    ∇R = ∫(f - p)k is the expectation of the log form; that of the mirror form is ∫(1 - p/f)k.
    """
    K = KERNEL(NODES)
    gradient = K @ (SHARES * (f - TRUTH))
    log = (SHARES * (f - TRUTH)) @ gradient
    mirror = (SHARES * (1.0 - TRUTH / f)) @ gradient
    at_atoms = np.vstack([SHARES @ K, KERNEL(atoms, NODES)])  # the background is an atom too
    mean, slope = at_atoms @ (SHARES * f), at_atoms @ (SHARES * (f - TRUTH))
    single = np.sign(mean[:, None] - at_atoms) @ (SHARES * TRUTH)
    late = at_atoms[:, _drawn(seed)].reshape(len(at_atoms), BATCHES, BATCH).mean(axis=2)
    averaged = np.sign(mean[:, None] - late).mean(axis=1)
    own = (SHARES * TRUTH) @ gradient  # the event is an atom, with the sign of -k(x, x)
    signs = {"sign of 100 events": averaged, "sign of one event": single}
    products = {name: float(s @ slope - own) / len(slope) for name, s in signs.items()}
    return {"log": float(log), "mirror": float(mirror), **products}


def _drawn(seed: int) -> NDArray[np.int64]:
    """Node indices of BATCHES times BATCH events."""
    p = SHARES * TRUTH
    return np.random.RandomState(seed).choice(len(p), BATCHES * BATCH, p=p / p.sum())


@dataclass(frozen=True)
class Decay:
    """R(f_t) - R* for one step size η and ε = αη: the mean over runs, shape (checks,).

    `half_life` is the number of events until it first halves, times η; `radius` is its mean over
    the last quarter of the events.
    """

    step: float
    share: float
    events: Floats
    excess: Floats
    half_life: float
    radius: float
    atoms: float


def theorem_data(
    steps: Sequence[float] = (0.4, 0.2, 0.1, 0.05, 0.025),
    shares: Sequence[float] = (0.05, 0.4, 0.7, 0.9),
    events: int = 10_000,
    runs: int = 8,
) -> list[Decay]:
    """Every step size with the smallest α, and the middle step size with every α."""
    middle = steps[len(steps) // 2]
    chosen = [(eta, shares[0]) for eta in steps] + [(middle, alpha) for alpha in shares[1:]]
    return [_decay(eta, alpha, events, runs) for eta, alpha in chosen]


def _decay(step: float, share: float, events: int, runs: int, checks: int = 120) -> Decay:
    counts = np.unique(np.geomspace(1, events, checks).astype(int))
    paths, atoms = [], []
    for seed in range(runs):
        method = SPPPOT(FixedStep(step), average=False)
        model, X = StreamingIntensity(UNIT, KERNEL, method, KOMP(share * step)), draw(events, seed)
        path, last = [], 0
        for count in counts:
            path.append(excess(density_of(model.partial_fit(X[last:count]))))
            last = count
        paths.append(path)
        atoms.append(model.n_atoms_)
    mean = np.mean(paths, axis=0)
    start = excess(np.ones(len(NODES)))
    halved = np.flatnonzero(mean < 0.5 * start)
    half_life = step * float(counts[halved[0]]) if len(halved) else np.inf
    radius = float(mean[counts > 0.75 * events].mean())
    return Decay(step, share, counts.astype(float), mean, half_life, radius, float(np.mean(atoms)))


@dataclass(frozen=True)
class Atoms:
    """Atoms after a stream for each ε, shape (e,), and the slope of log atoms in log 1/ε."""

    kernel: Kernel
    dimension: int
    tolerances: Floats
    atoms: Floats
    slope: float


def atoms_data(
    tolerances: Sequence[float] = (0.04, 0.02, 0.01, 0.005, 0.0025),
    events: int = 10_000,
) -> list[Atoms]:
    """On a line and in the plane, for a smooth and a less smooth kernel."""
    kernels = (Gaussian(0.2), Matern32(0.2))
    return [_atoms(k, d, np.array(tolerances), events) for k in kernels for d in (1, 2)]


def _atoms(kernel: Kernel, dimension: int, tolerances: Floats, events: int) -> Atoms:
    window = UNIT if dimension == 1 else SQUARE
    X = np.column_stack([draw(events, seed) for seed in range(dimension)])
    method = SPPPOT(FixedStep(0.1), average=False)
    found = np.array([
        float(StreamingIntensity(window, kernel, method, KOMP(eps)).fit(X).n_atoms_)
        for eps in tolerances
    ])  # fmt: skip
    slope = float(np.polyfit(-np.log(tolerances), np.log(found), 1)[0])
    return Atoms(kernel, dimension, tolerances, found, slope)


@dataclass(frozen=True)
class Update:
    """One example, f there before it, and the function after it, at points x, shape (p,)."""

    point: float
    label: int
    before: float
    weights: Floats
    centers: Floats
    x: Floats
    f: Floats
    bumps: Floats
    """The contribution of each atom to f, shape (atoms, p)."""


def updates_data() -> list[Update]:
    """Three examples, +, - and +: each adds a bump while the old ones shrink."""
    kernel, x = Gaussian(0.8), np.linspace(-3.0, 4.0, 400)[:, None]
    model = StreamingClassifier(kernel, "hinge", step=FixedStep(1.0), decay=0.1, budget=None)
    updates = []
    for point, label in ((-1.0, 1), (0.4, -1), (2.0, 1)):
        place = np.array([[point]])
        before = float(model.decision_function(place)[0]) if updates else 0.0
        model.partial_fit(place, [label], classes=[-1, 1])
        f = model.function_
        bumps = f.weights[:, None] * kernel(f.centers, x)
        updates.append(
            Update(point, label, before, f.weights, f.centers[:, 0], x[:, 0], f(x), bumps)
        )
    return updates
