"""Streams, compared with a NumPy implementation, a bare matrix product and River.

    python benchmarks/streaming.py [--data FOLDER] [--quick]

FOLDER contains a9a_train.csv.gz, places_world_geonames.csv.gz and
earthquakes_japan_1990_2020.csv.gz, which are not bundled with hplus; without it, only simulated
events are used. Times are CPU seconds on one thread after compilation, the best of a few repeats;
relative speeds are ratios within this run. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from _measure import best, finish, header, parser, peak_megabytes, row
from _numpy_komp import TextbookStream
from _tree_streams import trees
from machines import read_a9a
from numba import njit
from river import linear_model, optim
from river.feature_extraction import RBFSampler
from threadpoolctl import threadpool_limits

from hplus import (
    Box,
    Gaussian,
    Interval,
    RandomFourier,
    StreamingClassifier,
    StreamingIntensity,
    StreamingRegressor,
)
from hplus.evaluation import paired
from hplus.streaming.engine.atoms import INVERSE, multiply
from hplus.streaming.engine.learner import Learner
from hplus.streaming.steps import RootStep
from hplus.windows import Window

WARM = 50_000
"""Events before the timing starts."""

CHUNK = 200_000
"""Events in the timed part."""

PROGRESS = 3000
"""Rows of a9a on which progressive accuracies are compared."""

RATES = (0.00016, 0.000625, 0.0025, 0.01)
STEPS = tuple(RootStep(size) for size in (0.5, 2.0, 8.0, 32.0))
"""Learning rates of River and step sizes of hplus for a9a; defaults: the last, the third."""


class Setting(NamedTuple):
    """A stream with a required number of atoms and a required speed."""

    name: str
    window: Window
    scales: tuple[float, ...]
    least: int
    most: int
    speed: float


LINE = Setting("1-D", Interval(0, 24), (0.5, 0.55, 0.45, 0.6, 0.4), 45, 55, 1e6)
PLANE = Setting("2-D", Box((0, 0), (1, 1)), (0.095, 0.09, 0.1, 0.085, 0.11), 130, 170, 150e3)


def events(n: int, dimension: int, seed: int = 0) -> np.ndarray:
    """Events of a smooth rate: on [0, 24], or on the unit square."""
    X = np.random.default_rng(seed).beta(
        [2.0, 2.0][:dimension], [5.0, 2.0][:dimension], (n, dimension)
    )
    return 24.0 * X if dimension == 1 else X


def warm(setting: Setting) -> StreamingIntensity:
    """A stream, already running, with the required number of atoms."""
    X = events(WARM, setting.window.dimension)
    for scale in setting.scales:
        model = StreamingIntensity(setting.window, Gaussian(scale)).partial_fit(X)
        if setting.least < model.n_atoms_ < setting.most:
            break
    return model


def learner_of(model: Any) -> Learner:
    return model._live()[0]


def speed(setting: Setting) -> None:
    """Events per second, compared with bare products and the NumPy implementation."""
    model, d = warm(setting), setting.window.dimension
    X = events(CHUNK, d, seed=1)
    seconds, _ = best(lambda: model.partial_fit(X), 7)
    n, rate = model.n_atoms_, CHUNK / seconds
    row(f"{setting.name}: atoms", n, least=setting.least, most=setting.most)
    row(f"{setting.name}, {n} atoms: events/s", rate, least=setting.speed)
    bare, own = products(learner_of(model))
    row(f"{setting.name}: share of {bare:,.0f} bare BLAS products P @ k per second", rate / bare)
    row(f"{setting.name}: share of {own:,.0f} of the engine's products per second", rate / own)
    textbook(setting.name, model, rate)


def products(learner: Learner) -> tuple[float, float]:
    """Products of P with a vector per second: by BLAS, and by the engine's own loop."""
    n, times = learner.size, 20_000
    P, k, out = learner.state.matrices[INVERSE], np.ones(learner.size), np.empty(learner.size)
    compact = P[:n, :n].copy()
    repeat(P, n, k, out, 1)  # compiles
    bare, _ = best(lambda: [np.dot(compact, k, out=out) for _ in range(times)], 5)
    own, _ = best(lambda: repeat(P, n, k, out, times), 5)
    return times / bare, times / own


@njit
def repeat(P, n, k, out, times):  # type: ignore[no-untyped-def]
    for _ in range(times):
        multiply(P, n, k, out)
        k[0] += 0.0 * out[0]  # or the loop might be optimised away


def textbook(name: str, model: StreamingIntensity, rate: float) -> None:
    """The next events, from the same state, with NumPy."""
    X = events(600, model.window.dimension, seed=2)
    theirs, parts = TextbookStream(learner_of(model)), np.split(X, 3)
    slow = 200 / min(best(lambda part=part: theirs.learn(part), 1)[0] for part in parts)
    difference = theirs.differs_from(learner_of(model.partial_fit(X)))
    row(f"{name}: speed, hplus / NumPy KOMP ({slow:,.0f} events/s)", rate / slow, least=300)
    row(f"{name}: largest difference of weights, for the same atoms", difference, most=1e-6)


def one_by_one() -> None:
    """learn_one in a Python loop."""
    X, y = events(WARM, 1), np.sin(events(WARM, 1)[:, 0])
    rate = StreamingIntensity(LINE.window).partial_fit(X)
    seconds, _ = best(lambda: [rate.learn_one(x) for x in X[:20_000]], 5)
    row("StreamingIntensity.learn_one, events/s", 20_000 / seconds, least=50e3)
    curve = StreamingRegressor(Gaussian(2.0)).partial_fit(X, y)
    pairs = list(zip(X[:20_000], y[:20_000].tolist(), strict=True))
    seconds, _ = best(lambda: [curve.learn_one(x, t) for x, t in pairs], 5)
    row("StreamingRegressor.learn_one, events/s", 20_000 / seconds, least=50e3)


def growth() -> None:
    """Events per second against the number of atoms."""
    X, Z = events(WARM, 1), events(20_000, 1, seed=1)
    for scale in (1.3, 0.66, 0.33, 0.16, 0.066):
        model = StreamingIntensity(LINE.window, Gaussian(scale)).partial_fit(X)
        seconds, _ = best(lambda m=model: m.partial_fit(Z), 3)
        row(f"1-D, {model.n_atoms_} atoms: events/s", len(Z) / seconds)


def alone(work: Any) -> Any:
    """Run `work()` in its own process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work).result()


def long_stream() -> tuple[float, float, int]:
    """Ten million events: CPU seconds, memory growth after the first million, atoms."""
    model, start = StreamingIntensity(LINE.window, Gaussian(0.5)), time.process_time()
    for million in range(10):
        model.partial_fit(events(10**6, 1, seed=million))
        if million == 0:
            before = peak_megabytes()
    return time.process_time() - start, peak_megabytes() - before, model.n_atoms_


def memory() -> None:
    seconds, extra, atoms = alone(long_stream)
    what = f"1-D, 10,000,000 events in {seconds:.0f} s, {atoms} atoms: extra memory, MB"
    row(what, extra, most=10.0)


STARTING = """
import json, time
start = time.process_time()
import numpy as np
from hplus import Interval, StreamingIntensity
imported = time.process_time() - start
model = StreamingIntensity(Interval(0, 1))
model.partial_fit(np.linspace(0.1, 0.9, 50)[:, None])
print(json.dumps([imported, time.process_time() - start - imported]))
"""


def starting() -> None:
    """The first call of a process, with and without machine code on disk."""
    with TemporaryDirectory() as folder:
        first = started(folder)
        later = [started(folder) for _ in range(3)]
    row("import of StreamingIntensity, seconds", min(seconds[0] for seconds in later))
    row("first partial_fit after installation, seconds", first[1], most=15.0)
    row("first partial_fit of a later process, seconds", min(s[1] for s in later), most=1.0)


def started(folder: str) -> list[float]:
    """CPU seconds of the import and of the first partial_fit of a process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", STARTING]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return list(json.loads(answer.stdout))


def a9a(folder: Path) -> None:
    """Logistic regression on random features, in River and in hplus, on the same rows.

    Both with their default step size, and both with the best of four, chosen on the `PROGRESS` rows
    that follow those on which they are compared.
    """
    X, y = read_a9a(folder / "a9a_train.csv.gz")
    compared, after = slice(PROGRESS), slice(PROGRESS, 2 * PROGRESS)
    rate = max(RATES, key=lambda rate: river_right(ones(X[after]), y[after], rate).mean())
    step = max(STEPS, key=lambda step: our_right(X[after], y[after], step).mean())
    row("a9a: accuracy of the more frequent label", float(np.mean(y[compared] == -1)))
    for name, their_rate, our_step in [("default", RATES[-1], "auto"), ("tuned", rate, step)]:
        theirs = river_right(ones(X[compared]), y[compared], their_rate)
        ours = our_right(X[compared], y[compared], our_step)
        error = paired(ours, theirs)[1]
        what = f"a9a, first {PROGRESS:,} rows, {name}: progressive accuracy,"
        row(f"{what} River, learning rate {their_rate:g}", theirs.mean())
        row(f"{what} hplus, step size {our_step} (± {error:.3f})", ours.mean(), least=theirs.mean())
    pace(X, y, rate, step)


def pace(X: np.ndarray, y: np.ndarray, rate: float, step: Any) -> None:
    """Seconds per row."""
    seconds, all_right = best(lambda: our_right(X, y, step).mean(), 3)
    row(f"a9a, all {len(X):,} rows: accuracy of hplus, {step}", all_right)
    ours, few = seconds / len(X), slice(200)
    for which, examples, least in [
        ("all 123 columns", [dict(enumerate(x)) for x in X[few].tolist()], 1000.0),
        ("its 1s alone", ones(X[few]), -np.inf),
    ]:
        seconds, _ = best(lambda e=examples: river_right(e, y[few], rate), 3)
        theirs = seconds / len(examples)
        what = f"a9a: time per row, River with {which} ({1e3 * theirs:.2g} ms)"
        row(f"{what} / hplus ({1e6 * ours:.1f} us)", theirs / ours, least=least)


def ones(X: np.ndarray) -> list[dict[int, float]]:
    """Rows of zeros and ones as dictionaries for River, without the zeros."""
    return [dict.fromkeys(np.flatnonzero(x).tolist(), 1.0) for x in X]


def river_right(examples: list[dict[int, float]], y: np.ndarray, rate: float) -> np.ndarray:
    """1 where River predicts a label correctly before learning from it, else 0."""
    sampler, right = RBFSampler(gamma=0.05, n_components=200, seed=0), []
    model = sampler | linear_model.LogisticRegression(optimizer=optim.SGD(rate))
    for x, label in zip(examples, (y == 1).tolist(), strict=True):
        right.append(model.predict_one(x) == label)
        model.learn_one(x, label)
    return np.array(right, dtype=np.float64)


def our_right(X: np.ndarray, y: np.ndarray, step: Any) -> np.ndarray:
    """The same for hplus: the same kernel, exp(-0.05|x - z|²), with 200 features."""
    features, kernel = RandomFourier(100, random_state=0), Gaussian(np.sqrt(10.0))
    model = StreamingClassifier(kernel, "logistic", step=step, budget=features)
    return (model.predict_then_learn(X, y) == y).astype(np.float64)


def main() -> None:
    options = parser(__doc__).parse_args()
    folder = options.data
    header()
    starting()
    with threadpool_limits(1):
        speed(LINE)
        speed(PLANE)
        one_by_one()
        growth()
        trees(folder, options.quick, alone)
        if not options.quick:
            memory()
        if folder is not None and not options.quick:
            a9a(folder)
    if folder is None:
        print("\nUse --data FOLDER for the rows on a9a.")
    finish()


if __name__ == "__main__":
    main()
