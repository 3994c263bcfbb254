"""How often 90 % intervals contain the counts of a random half that was not learned from.

    python benchmarks/intervals.py --data FOLDER [--quick] [--model MODEL] [--halves N] [--set NAME]

FOLDER contains places_world_geonames.csv.gz, earthquakes_japan_1990_2020.csv.gz,
nyc_vehicle_thefts_2014_2017.csv.gz and curry_shots_2009_2025.csv.gz, which are not bundled with
hplus; without it, nothing is measured. Each of ten times a coin decides which events are learned
from; the counts of the others are predicted, for cells of 2⁻³ to 2⁻¹³ of the window and for 200
random polygons. The coverage is randomised: a count at the end of an interval is inside in part, so
that a perfect interval contains 90 %, however few events there are. Entries of fewer than 200
counts are shown, not judged. --quick uses two halves. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import os

# before any of the libraries is imported
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _measure import finish, header, parser, row
from scipy.special import pdtr

from hplus import Box, Intensity, Polygon
from hplus.windows import Window

LEVEL, LEAST, MOST = 0.9, 0.86, 0.94
"""The level of the intervals, and the coverage that is asked for."""

HALVINGS = range(3, 14)
"""Cells are 2⁻³ to 2⁻¹³ of the window."""

MAX_REGIONS = 2048
"""Cells of one size whose counts are predicted; of more, some are taken at random."""

POLYGONS = 200

MIN_COUNTS = 200
"""Counts from which an entry is judged."""

MANY, FEW = 200.0, 3.0
"""Expected counts from which cells are judged by themselves as well."""


class Events(NamedTuple):
    """Events (n, 2) in a box, the step of their positions, and what they are rounded to.

    No cell is smaller than the step.
    """

    X: np.ndarray
    window: Box
    step: float = 0.0
    rounding: float = 0.0

    def spread(self, rng: np.random.Generator) -> np.ndarray:
        """Events anywhere in the boxes that were rounded to their positions.

        Edges of cells would otherwise run through positions with many events.
        """
        X = self.X + self.rounding * rng.uniform(-0.5, 0.5, self.X.shape)
        return np.clip(X, *self.window.bounds())


def read(path: Path, *columns: str) -> np.ndarray:
    """Columns of a CSV file by their names, shape (n, columns)."""
    with gzip.open(path, "rt", newline="") as file:
        rows = csv.DictReader(file)
        return np.array([[float(row[c]) for c in columns] for row in rows])


def places(folder: Path) -> Events:
    lon, lat = read(folder / "places_world_geonames.csv.gz", "lon", "lat").T
    X = np.column_stack([111.195 * lon, 6371.0 * np.sin(np.radians(lat))])
    return Events(X, Box([-20015.1, -6371.0], [20015.1, 6371.0], unit="km"))


def japan(folder: Path) -> Events:
    X = read(folder / "earthquakes_japan_1990_2020.csv.gz", "x_km", "y_km")
    return Events(X, Box(X.min(axis=0) - 0.1, X.max(axis=0) + 0.1, unit="km"))


def thefts(folder: Path) -> Events:
    degrees = read(folder / "nyc_vehicle_thefts_2014_2017.csv.gz", "lon", "lat")
    X = (degrees - degrees.mean(axis=0)) * [111.32 * np.cos(np.radians(40.7)), 110.57]
    return Events(X, Box(X.min(axis=0) - 0.01, X.max(axis=0) + 0.01, unit="km"), 0.08)


def shots(folder: Path) -> Events:
    X = read(folder / "curry_shots_2009_2025.csv.gz", "x", "y") / 10.0
    court = Box((-25.0, -5.25), (25.0, 41.75), unit="ft")
    return Events(X[court.contains(X)], court, 0.1, 0.1)


SETS: dict[str, Callable[[Path], Events]] = {
    "places": places,
    "Japan": japan,
    "NYC thefts": thefts,
    "Curry": shots,
}


def cells(events: Events, halvings: int, rng: np.random.Generator) -> list[Box]:
    """Cells of 2⁻ᵏ of a box, whose longest side is halved k times; some of them if many."""
    low, high = events.window.bounds()
    shape = np.ones(2, int)
    for _ in range(halvings):
        shape[np.argmax((high - low) / shape)] *= 2
    side = (high - low) / shape
    if side.min() < events.step:
        return []
    size = int(shape.prod())
    chosen = rng.choice(size, min(MAX_REGIONS, size), replace=False)
    corners = np.column_stack(np.unravel_index(chosen, shape))
    return [Box(low + side * at, low + side * (at + 1)) for at in corners]


def polygons(events: Events, rng: np.random.Generator) -> list[Polygon]:
    """Stars of 5 to 20 vertices and all sizes around random events and random places."""
    low, high = events.window.bounds()
    found = []
    for i in range(POLYGONS):
        v = rng.integers(5, 21)
        angle = 2.0 * np.pi * (np.arange(v) + rng.uniform(0.0, 0.9, v)) / v
        radius = max((high - low).min() * 0.4 * 2.0 ** -rng.uniform(0.0, 6.0), 5.0 * events.step)
        reach = radius * rng.uniform(0.4, 1.0, v)
        around = rng.choice(events.X) if i % 2 else rng.uniform(low, high)
        ring = around + np.column_stack([reach * np.cos(angle), reach * np.sin(angle)])
        found.append(Polygon(ring))
    return found


def counts_in(X: np.ndarray, regions: Sequence[Window]) -> np.ndarray:
    """How many of the events lie in each region; cells are open above, so each event is in one."""
    order = np.argsort(X[:, 0])
    X = X[order]
    found = np.empty(len(regions))
    for i, region in enumerate(regions):
        low, high = region.bounds()
        near = X[slice(*np.searchsorted(X[:, 0], [low[0], high[0]]))]
        box = region.box_bounds() is not None
        inside = (near[:, 1] >= low[1]) & (near[:, 1] < high[1])
        found[i] = inside.sum() if box else region.contains(near[inside]).sum()
    return found


def covered(means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """How much of each count (r,) lies in the interval, for equally likely means (r, k).

    The share of the steps of the distribution function at the count between 5 % and 95 %.
    """
    below = np.where(counts > 0, pdtr(counts[:, None] - 1.0, means).T, 0.0).mean(axis=0)
    upto = pdtr(counts[:, None], means).mean(axis=1)
    tail = 0.5 * (1.0 - LEVEL)
    inside = np.clip(upto, tail, 1.0 - tail) - np.clip(below, tail, 1.0 - tail)
    return np.where(upto > below, inside / np.maximum(upto - below, 1e-300), 0.0)


class Entry(NamedTuple):
    """For counts of one kind of region, how much is covered and how many were expected."""

    covered: np.ndarray
    expected: np.ndarray
    too_low: np.ndarray


def one_half(events: Events, model: str, seed: int) -> dict[str, Entry]:
    """Coverage by kind of region for the events that were not learned from."""
    rng = np.random.default_rng(seed)
    learned = rng.random(len(events.X)) < 0.5
    fit = Intensity(events.window, model=model, random_state=seed).fit(events.X[learned])
    others = events.spread(rng)[~learned]
    kinds: dict[str, Sequence[Window]] = {f"1/{2**k}": cells(events, k, rng) for k in HALVINGS}
    kinds["polygons"] = polygons(events, rng)
    found = {}
    for kind, regions in kinds.items():
        if len(regions):
            means, N = fit.rate_.count_draws(regions), counts_in(others, regions)
            low, high = fit.count_interval(regions, LEVEL)
            inside = covered(means, N)
            assert np.all(inside[(N < low) | (N > high)] < 1e-6)
            found[kind] = Entry(inside, means.mean(axis=1), N < low)
    return found


def judge(name: str, events: Events, model: str, halves: int) -> None:
    entries = defaultdict(list)
    for seed in range(halves):
        for kind, entry in one_half(events, model, seed).items():
            entries[kind].append(entry)
    for kind, parts in entries.items():
        inside, expected, below = (np.concatenate(x) for x in zip(*parts, strict=True))
        for words, least in (
            ("", -1.0),
            (f", expected {FEW:g}+", FEW),
            (f", expected {MANY:g}+", MANY),
        ):
            some = expected >= least
            share, n = float(inside[some].mean()) if some.any() else np.nan, int(some.sum())
            what = f"{name}, {model}, {kind}{words}: coverage of {n:,} counts"
            bounds = {"least": LEAST, "most": MOST} if n >= MIN_COUNTS else {}
            if n:
                row(what + f" (low {below[some].mean():.3f})", share, **bounds)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--model", nargs="*", default=["auto", "tree"])
    options.add_argument("--set", nargs="*", default=list(SETS))
    options.add_argument("--halves", type=int, default=10)
    options = options.parse_args()
    header()
    if options.data is None:
        print("| give --data FOLDER: the sets are not bundled | | |")
        return
    for name in options.set:
        events = SETS[name](options.data)
        for model in options.model:
            judge(name, events, model, 2 if options.quick else options.halves)
    finish()


if __name__ == "__main__":
    main()
