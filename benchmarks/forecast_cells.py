"""How often 90 % intervals contain counts to come of parts of a city, and how wide they are.

    python benchmarks/forecast_cells.py [--data FOLDER] [--quick] [--simulations N]
                                        [--seed N] [--kind NAME ...] [--every N]

Studies of places and times are fitted as `hplus fit --cycle week` does (with trees for places), and
the count of each part in the next week or day is forecast as `hplus expect` does. Simulated cities
with a known truth, by cells; car thefts in New York City by rolling origin, by borough and by cells
of 4 × 4, if FOLDER contains nyc_vehicle_thefts_2014_2017.csv.gz: everything is learned anew at each
origin from what came before. The rival is told which cells there are: a negative binomial count
around the mean of the cell's last weeks, as many as forecast best, with the variance of earlier
forecasts. Coverage is randomised: a count at the end of an interval is inside in part, so that a
perfect interval contains 90 %. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import os

# before any of the libraries is imported
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _forecast_rivals import Mixed, negative_binomial
from _measure import finish, header, parser, row
from forecasts import (
    LEAST_REAL,
    LEAST_SIMULATED,
    MOST_REAL,
    MOST_SIMULATED,
    MOST_WIDTH,
    Entry,
    entry,
    read,
)

from hplus import EventStudy, datasets
from hplus.studies.expect import Region, count_means, grid_regions, named_regions, whole
from hplus.studies.periods import time_asked
from hplus.studies.plans import plan
from hplus.studies.spans import Amount

START = np.datetime64("2014-01-01T00:00:00")

WEEKS, CELLS = 52, 4
"""Weeks of a simulated city that are observed, and cells on each side."""

SPOT_CELL = 12
"""The cell that holds the new spot: the last along the first axis, the first along the second."""

Rng = np.random.Generator
Events = tuple[np.ndarray, np.ndarray]
"""Places (n, 2), and days since the start (n,)."""


def steady(rng: Rng, n: int) -> np.ndarray:
    """Places around two centers and everywhere."""
    kind = rng.choice(3, n, p=(0.4, 0.3, 0.3))
    near = np.array([[3.0, 3.0], [7.0, 6.0], [0.0, 0.0]])[kind] + rng.normal(0.0, 0.9, (n, 2))
    return np.where((kind == 2)[:, None], rng.uniform(0.0, 10.0, (n, 2)), near) % 10.0


def independent(rng: Rng) -> Events:
    """A Poisson process of 120 events a week."""
    n = rng.poisson(120.0 * (WEEKS + 1))
    return steady(rng, n), rng.uniform(0.0, 7.0 * (WEEKS + 1), n)


def varied_cells(rng: Rng) -> Events:
    """Each week, the rate of each cell of 8 × 8 is multiplied by a number of deviation 0.6."""
    X, t = independent(rng)
    cell, week = (X // 1.25).astype(int), (t // 7.0).astype(int)
    factor = rng.gamma(1.0 / 0.36, 0.36, (8, 8, WEEKS + 1))[cell[:, 0], cell[:, 1], week]
    copies = rng.poisson(factor)
    again = np.repeat(np.arange(len(t)), copies)
    return X[again], t[again]


def clusters(rng: Rng) -> Events:
    """Groups of 3 events on average, within 300 m and a few days of each other."""
    sizes = rng.poisson(3.0, rng.poisson(40.0 * (WEEKS + 1)))
    n = int(sizes.sum())
    X = np.repeat(steady(rng, len(sizes)), sizes, axis=0) + rng.normal(0.0, 0.3, (n, 2))
    t = np.repeat(rng.uniform(0.0, 7.0 * (WEEKS + 1), len(sizes)), sizes) + rng.exponential(2.0, n)
    return X % 10.0, t


def varied_weeks(rng: Rng) -> Events:
    """Weeks whose rate varies alike everywhere."""
    rates = 120.0 * rng.gamma(8.0, 1.0 / 8.0, WEEKS + 1)
    counts = rng.poisson(rates)
    t = 7.0 * (np.repeat(np.arange(WEEKS + 1), counts) + rng.random(counts.sum()))
    return steady(rng, len(t)), t


def new_spot(rng: Rng) -> Events:
    """A place in the quiet corner with 20 events a week, in the last four weeks and after."""
    X, t = independent(rng)
    n = rng.poisson(20.0 * 5)
    spot = np.array([8.8, 1.2]) + rng.normal(0.0, 0.3, (n, 2))
    return np.vstack([X, spot % 10.0]), np.append(t, 7.0 * (WEEKS - 4 + 5 * rng.random(n)))


KINDS: dict[str, Callable[[Rng], Events]] = {
    "independent": independent,
    "cells that vary by week": varied_cells,
    "clusters": clusters,
    "weeks that vary alike": varied_weeks,
    "new spot": new_spot,
}


def fitted(X: np.ndarray, days: np.ndarray, until: float, **where: object) -> EventStudy:
    """A study of the events before a day."""
    known = days < until
    stamps = START + (86_400.0 * days[known]).astype("timedelta64[s]")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.csv"
        rows = (f"{x:.6f},{y:.6f},{t}" for (x, y), t in zip(X[known], stamps, strict=True))
        path.write_text("lon,lat,when\n" + "\n".join(rows) + "\n")
        end = str(START + np.timedelta64(round(86_400 * until), "s"))
        frame = plan(str(path), ("lon", "lat"), time="when", start=str(START), end=end,
                     cycle="week", **where)  # fmt: skip
        return EventStudy(frame, model="tree", holdout=0.0).fit(str(path))


def judged(
    study: EventStudy, regions: list[Region], counts: np.ndarray, days: float
) -> list[Entry]:
    """What the forecast of the next days says of the counts of regions."""
    means = count_means(study, regions, time_asked(study, Amount(days, "day")))
    return [entry(Mixed(m), float(n), 0) for m, n in zip(means, counts, strict=True)]


def inside(regions: list[Region], X: np.ndarray) -> np.ndarray:
    """Which regions hold which of the points, (r, n)."""
    return np.array([region.window.contains(X) for region in regions])


def simulate(kind: str, seeds: range) -> None:
    """Coverage of the next day and week in cells of simulated cities."""
    found: dict[str, list[Entry]] = {"day": [], "week": []}
    total: dict[str, list[Entry]] = {"day": [], "week": []}
    for seed in seeds:
        X, t = KINDS[kind](np.random.default_rng(seed))
        now = 7.0 * WEEKS
        study = fitted(X, t, now, window=(0, 0, 10, 10), lonlat=False, unit="km")
        cells = grid_regions(study.frame, (CELLS, CELLS))
        held = inside(cells, X)
        for name, days in (("day", 1.0), ("week", 7.0)):
            coming = (t >= now) & (t < now + days)
            found[name] += judged(study, cells, held[:, coming].sum(axis=1), days)
            total[name] += judged(study, [whole(study.frame)], [coming.sum()], days)
    for name, each in found.items() if kind == "new spot" else ():
        own = each[SPOT_CELL :: CELLS**2]
        row(f"{kind}, next {name}, its own cell: coverage of {len(own)} counts",
            float(np.mean([e.covered for e in own])))  # fmt: skip
    for what, entries in (("cells", found), ("all", total)):
        for name, each in entries.items():
            _show(f"{kind}, next {name}, {what}", each, LEAST_SIMULATED, MOST_SIMULATED)


def _show(words: str, entries: list[Entry], least: float, most: float) -> tuple[float, float]:
    covered, width, likelihood, _ = np.array(entries).mean(axis=0)
    text = f"{words}: coverage of {len(entries)} counts (width {width:.3g}, "
    bounds = {"least": least, "most": most} if len(entries) >= 200 else {}
    row(f"{text}log likelihood {likelihood:.3f})", float(covered), **bounds)
    return float(covered), float(width)


def thefts(folder: Path, every: int) -> None:
    """Thefts of the next week by borough and cell, from every so many weeks of two years."""
    rows = read(folder / "nyc_vehicle_thefts_2014_2017.csv.gz", "lon", "lat", "datetime")
    X = np.array([[float(a), float(b)] for a, b, _ in rows])
    days = np.array([(np.datetime64(t) - START) / np.timedelta64(1, "D") for *_, t in rows])
    with tempfile.TemporaryDirectory() as place:
        outlines = str(datasets.copy("nyc_boroughs", place))
        found: dict[str, list[Entry]] = {}
        for origin in range(104, 208, every):
            study = fitted(X, days, 7.0 * origin, within=outlines)
            km = study.frame.placed(np.column_stack([X, np.zeros(len(X))]))[:, :2]
            town = study.frame.region.contains(km)
            parts = {
                "borough": named_regions(study.frame, outlines),
                "cell of 4 × 4": grid_regions(study.frame, (4, 4)),
                "all": [whole(study.frame)],
            }
            for name, regions in parts.items():
                _judge_week(found, name, study, regions, inside(regions, km) & town, days, origin)
    for name in ("borough", "cell of 4 × 4", "all"):
        ours = _show(f"NYC thefts, next week by {name}", found[name], LEAST_REAL, MOST_REAL)
        theirs = _show("the same, negative binomial", found[name + "*"], 0.0, 1.0)
        if LEAST_REAL <= theirs[0] <= MOST_REAL and len(found[name]) >= 200:
            row(f"NYC thefts by {name}: width relative to the rival", ours[1] / theirs[1],
                most=MOST_WIDTH)  # fmt: skip


def _judge_week(found, name, study, regions, held, days, origin):
    weeks = np.floor(days / 7.0).astype(int)
    counts = np.array([np.bincount(weeks[h], minlength=origin + 1)[: origin + 1] for h in held])
    busy = counts[:, :origin].sum(axis=1) > 0
    regions = [region for region, some in zip(regions, busy, strict=True) if some]
    found.setdefault(name, []).extend(judged(study, regions, counts[busy, origin], 7.0))
    rivals = [negative_binomial(c[:origin].astype(float), 0, 1)[0] for c in counts[busy]]
    pairs = zip(rivals, counts[busy, origin], strict=True)
    found.setdefault(name + "*", []).extend(entry(f, float(n), 0) for f, n in pairs)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--simulations", type=int, default=40)
    options.add_argument("--seed", type=int, default=0, help="that of the first simulation")
    options.add_argument("--kind", nargs="*", default=list(KINDS))
    options.add_argument("--every", type=int, default=2)
    options = options.parse_args()
    header()
    many = min(2, options.simulations) if options.quick else options.simulations
    for kind in options.kind if many else ():
        simulate(kind, range(options.seed, options.seed + many))
    if options.data is None:
        print("| give --data FOLDER for real events: the set is not bundled | | |")
    else:
        thefts(options.data, 26 if options.quick else options.every)
    finish()


if __name__ == "__main__":
    main()
