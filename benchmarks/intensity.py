"""Rates of events, compared with kernel density estimates and GAMs, on one thread.

    python benchmarks/intensity.py [--data FOLDER] [--quick]

FOLDER contains splits/, bei.csv, redwoodfull.csv, nyc_vehicle_thefts_2014_2017.csv.gz and
nba_shots_2018_2025.csv.gz, which are not bundled with hplus; without it, only simulated events are
used. --quick runs the small parts. Gains over a uniform rate are in nats per held-out event, with
the defaults of every model; times are CPU seconds that include all tuning. Memory is read from
/proc, so this needs Linux. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import os

# before any of the libraries is imported
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))
os.environ["NUMBA_NUM_THREADS"] = "1"

import csv
import gzip
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from _measure import best, finish, header, parser, row
from _rivals import RIVALS, r_gain, r_packages, smoothed
from KDEpy import FFTKDE

from hplus import Box, Intensity, Statistic
from hplus.datasets import curry
from hplus.evaluation import AdaptiveKDE, EdgeCorrectedKDE, gain, paired
from hplus.simulate import LAMBDA3

REDRAWN = 5
"""Random splits of each data set, in addition to the fixed ones."""

COURT = Box((-25.0, -5.25), (25.0, 41.75), unit="ft")

CITY = ((-74.26, -73.70), (40.49, 40.92))
"""Ranges of longitude and latitude of New York."""


class Pattern(NamedTuple):
    """Events in a box, scored on the splits of that name, and the required gain."""

    name: str
    window: Box
    least: float


PATTERNS = (
    Pattern("redwoodfull", Box((0, 0), (1, 1)), 0.30),
    Pattern("curry2015", Box((0, 0), (50, 47), unit="ft"), 1.35),
    Pattern("bei", Box((0, 0), (1000, 500), unit="m"), 0.75),
)

Split = tuple[np.ndarray, np.ndarray]
"""Training and held-out events, (n, 2) each."""


def read(path: Path, *columns: str) -> np.ndarray:
    """Columns of a CSV file by their names, shape (n, columns)."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        names = next(csv.reader(file))
        return np.loadtxt(file, delimiter=",", usecols=[names.index(c) for c in columns], ndmin=2)


def note(text: str) -> None:
    print(f"| {text} | | |", flush=True)


def line() -> None:
    """The default fit of 1,000 events on a line."""
    truth = LAMBDA3.scaled(1100.0 / LAMBDA3.integral)
    X = truth.sample(0)[:1000]
    Intensity(truth.window).fit(X)  # compiles
    seconds, _ = best(lambda: Intensity(truth.window).fit(X), 7)
    row("a line, 1,000 events: default fit, seconds", seconds, most=0.3)


def fixed(pattern: Pattern, folder: Path) -> Iterator[Split]:
    """The splits on file, in their original units."""
    for i in range(5):
        parts = (folder / "splits" / f"{pattern.name}_{i}_{part}.csv" for part in ("tr", "te"))
        train, test = (read(path, "x", "y") * pattern.window.bounds()[1] for path in parts)
        yield train, test


def redrawn(pattern: Pattern, folder: Path) -> Iterator[Split]:
    """Random splits that hold out a fifth of all events."""
    if pattern.name == "curry2015":
        shots = curry(2015)
        X = shots.X - shots.window.bounds()[0]
    else:
        X = read(folder / f"{pattern.name}.csv", "x", "y")
    for seed in range(100, 100 + REDRAWN):
        yield halves(X, seed)


def halves(X: np.ndarray, seed: int) -> Split:
    """80 % and 20 % of the events, at random."""
    order = np.random.default_rng(seed).permutation(len(X))
    cut = round(0.8 * len(X))
    return X[order[:cut]], X[order[cut:]]


def rival_gain(
    log_density: Callable[[np.ndarray], np.ndarray], Z: np.ndarray, window: Box
) -> float:
    """The mean of log(density · |W|) over held-out events."""
    return float(np.mean(log_density(Z)) + np.log(window.volume))


def accuracy(pattern: Pattern, folder: Path, rivals: bool) -> None:
    """Gains of all estimators on the fixed splits, and paired differences on random ones."""
    window, splits = pattern.window, list(fixed(pattern, folder))
    times, gains = [], []
    for X, Z in splits:
        seconds, model = best(lambda X=X: Intensity(window).fit(X), 1)
        times.append(seconds)
        gains.append(gain(model, Z))
    what = f"{pattern.name}, fixed splits: gain of Intensity ({np.mean(times):.1f} s per fit)"
    row(what, float(np.mean(gains)), least=pattern.least)
    if not rivals:
        return
    others(pattern, splits)
    pairs = [redrawn_gains(X, Z, window) for X, Z in redrawn(pattern, folder)]
    ours, theirs = np.array(pairs).T
    difference, error = paired(ours, theirs)
    what = f"{pattern.name}, {len(pairs)} random splits: Intensity {ours.mean():.3f}, sklearn"
    what = f"{what} KernelDensity {theirs.mean():.3f}, difference {difference:.3f} ± {error:.3f}"
    row(f"{what}, in standard errors", difference / error, least=2.0)


def redrawn_gains(X: np.ndarray, Z: np.ndarray, window: Box) -> tuple[float, float]:
    ours = gain(Intensity(window).fit(X), Z)
    return ours, rival_gain(smoothed(X, window), Z, window)


def others(pattern: Pattern, splits: list[Split]) -> None:
    """The gains of the other estimators on the fixed splits."""
    window = pattern.window
    for kde in (EdgeCorrectedKDE, AdaptiveKDE):
        gains = [gain(kde(window).fit(X), Z) for X, Z in splits]
        row(f"{pattern.name}, fixed splits: {kde.__name__}", float(np.mean(gains)))
    for name, rival in RIVALS.items():
        gains = [rival_gain(rival(X, window), Z, window) for X, Z in splits]
        row(f"{pattern.name}, fixed splits: {name}", float(np.mean(gains)))
    for name, package in r_packages().items():
        gains = [r_gain(package, X, Z, window) for X, Z in splits]
        row(f"{pattern.name}, fixed splits: {name}", float(np.mean(gains)))


def bei(folder: Path) -> None:
    """The default fit of all 3,604 trees."""
    pattern = PATTERNS[-1]
    X = read(folder / "bei.csv", "x", "y")
    seconds, _ = best(lambda: Intensity(pattern.window).fit(X), 2)
    row(f"bei, {len(X):,} events: default fit, seconds (aim 3)", seconds, most=10.0)


def thefts(folder: Path) -> None:
    """A city map: 35,746 events with structure at 1/300 of the window."""
    degrees = read(folder / "nyc_vehicle_thefts_2014_2017.csv.gz", "lon", "lat")
    (west, east), (south, north) = CITY
    scale = np.array([111.32 * np.cos(np.radians(0.5 * (south + north))), 110.57])
    window = Box((0, 0), tuple(scale * [east - west, north - south]), unit="km")
    X, Z = halves(scale * (degrees - [west, south]), seed=0)
    seconds, model = best(lambda: Intensity(window).fit(X), 1)
    row(f"New York, {len(X):,} thefts: fit, seconds", seconds, most=60.0)
    rival = rival_gain(smoothed(X, window, np.linspace(0.1, 0.5, 5)), Z, window)
    row("New York: gain of sklearn KernelDensity, best of 0.1 to 0.5 km", rival)
    row("New York: gain of Intensity", gain(model, Z), least=rival)


def shots(folder: Path) -> None:
    """All NBA shots: speed compared with FFTKDE, and growth of time and memory."""
    X = read(folder / "nba_shots_2018_2025.csv.gz", "x", "y") / 10.0
    inside = COURT.contains(X)
    note(f"NBA: {np.sum(~inside):,} of {len(X):,} shots are outside the half court and dropped")
    X = np.random.default_rng(0).permutation(X[inside])
    theirs, _ = best(lambda: FFTKDE(kernel="gaussian", bw=1.0).fit(X).evaluate((512, 512)))
    sizes = (10_000, 100_000, 800_000, 1_000_000, len(X))
    costs = growth("NBA", X, COURT, sizes)
    what = f"NBA: fit of {len(X):,} with tuning / FFTKDE 512 x 512 without ({theirs:.2f} s; aim 10)"
    row(what, costs[-1].seconds / theirs, most=40.0)
    row("NBA: extra memory, MB", costs[-1].megabytes, most=500.0)


class Cost(NamedTuple):
    """CPU seconds of a fit and of its pass over the events; extra memory of the fit."""

    seconds: float
    one_pass: float
    megabytes: float


def growth(name: str, X: np.ndarray, window: Box, sizes: tuple[int, ...]) -> list[Cost]:
    """The cost of a fit of the first n events, each in its own process."""
    costs = []
    with TemporaryDirectory() as folder:
        path = Path(folder, "X.npy")
        np.save(path, X)
        for n in sizes:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                cost = pool.submit(fit_cost, path, n, window).result()
            costs.append(cost)
            what = f"{name}, {n:,} events: {cost.megabytes:.0f} MB extra, the pass"
            row(f"{what} {cost.one_pass:.2f} s, the whole fit, seconds", cost.seconds)
    return costs


def fit_cost(path: Path, n: int, window: Box) -> Cost:
    """The cost of a fit of the first n events in a file, measured in its own process."""
    X = np.load(path)[:n].copy()
    Intensity(window).fit(X[:200])  # compiled code and its memory are not the fit's
    one_pass, _ = best(lambda: Statistic.of(window, X))
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the highest memory so far
    seconds, _ = best(lambda: Intensity(window).fit(X), 1)
    return Cost(seconds, one_pass, status("VmHWM") - before)


def status(field: str) -> float:
    """An entry of this process's memory statistics, in MB."""
    text = Path("/proc/self/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1024


def made(n: int) -> np.ndarray:
    """Simulated events on the court, denser towards the hoop, for use without data."""
    rng = np.random.default_rng(0)
    low, high = COURT.bounds()
    return low + (high - low) * rng.beta([2.0, 1.0], [2.0, 2.0], (n, 2))


def main() -> None:
    options = parser(__doc__).parse_args()
    folder, full = options.data, not options.quick
    header()
    line()
    if folder is None:
        note("give --data FOLDER for the rest: the sets do not ship")
        growth("made", made(10_000), COURT, (1_000, 10_000))
        return finish()
    if not r_packages():
        note("spatstat and mgcv are left out: no Rscript that has them")
    for pattern in PATTERNS if full else PATTERNS[:1]:
        accuracy(pattern, folder, full)
    if full:
        bei(folder)
        thefts(folder)
        shots(folder)
    return finish()


if __name__ == "__main__":
    main()
