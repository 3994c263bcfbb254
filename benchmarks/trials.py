"""How often 90 % intervals contain the counts of trials to come, in total and in bins.

    python benchmarks/trials.py [--data FOLDER] [--quick] [--simulations N] [--seed N]
                                [--kind NAME ...]

Simulated spikes in trials of half a second, of a known truth: independent, with a gain that varies
from trial to trial, a response whose latency varies, trials of which some stay silent. A study
learns from 8, 20 or 60 trials, and the counts of fresh trials are predicted for one trial and for
five together, in total and in ten bins. Stephen Curry's shots by game, if FOLDER contains
curry_shots_2009_2025.csv.gz: 50 games of a season are learned from, and each later game of it is
predicted, in total and in six parts of the court. Intervals of independent events, as without
trials, are beside it. Coverage is randomised: a count at the end of an interval is inside in part.
Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import os

# before any of the libraries is imported
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _forecast_rivals import Mixed
from _measure import finish, header, parser, row
from forecasts import (
    LEAST_REAL,
    LEAST_SIMULATED,
    MOST_REAL,
    MOST_SIMULATED,
    entry,
    read,
)

from hplus import EventStudy
from hplus.studies.expect import count_means, grid_regions, whole
from hplus.studies.periods import Period
from hplus.studies.plans import plan

LENGTH, BINS, FRESH, TOGETHER = 500.0, 10, 60, 5
"""Of a trial in ms; bins of it; fresh trials of each set; trials that are counted together."""

SIZES = (8, 20, 60)
"""Trials to learn from."""

LEARNED_GAMES = 50

Rng = np.random.Generator
Trial = Callable[[Rng], np.ndarray]


def spikes(rng: Rng, gain: float = 1.0, delay: float = 0.0) -> np.ndarray:
    """Times of a trial of about 45 spikes, with a response after 150 ms."""
    t = rng.uniform(0.0, LENGTH, rng.poisson(125.0 * gain))
    return t[rng.random(len(t)) < 0.15 + 0.85 * np.exp(-(((t - 150.0 - delay) / 50.0) ** 2))]


KINDS: dict[str, Trial] = {
    "independent": spikes,
    "gain that varies": lambda rng: spikes(rng, gain=rng.gamma(5.0, 0.2)),
    "gain that varies much": lambda rng: spikes(rng, gain=rng.gamma(1.5, 1.0 / 1.5)),
    "latency that varies": lambda rng: spikes(rng, delay=rng.normal(0.0, 40.0)),
    "both vary": lambda rng: spikes(rng, rng.gamma(5.0, 0.2), rng.normal(0.0, 40.0)),
    "some are silent": lambda rng: spikes(rng, gain=float(rng.random() < 0.85)),
}


def study_of(table: dict[str, np.ndarray], trials: int, **where: object) -> EventStudy:
    """A study of events in so many trials, of which some may have none."""
    from hplus.studies.spans import Amount

    frame = plan(table, trial="trial", **where)
    return EventStudy(frame, Amount(trials, "trial"), model="tree", holdout=0.0).fit(table)


def means_of(study: EventStudy, regions: list, many: int, *, with_trials: bool) -> np.ndarray:
    """Equally likely means of the counts of regions in so many trials, (r, k)."""
    known = study.trials_
    study.trials_ = known if with_trials else None
    found = count_means(study, regions, Period("", float(many)))
    study.trials_ = known
    return found


def covered(means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The share of each count (t, r) that is inside its interval."""
    found = np.zeros(counts.shape)
    for j, mean in enumerate(means):
        known = {n: entry(Mixed(mean), float(n), 0).covered for n in set(counts[:, j].tolist())}
        found[:, j] = [known[n] for n in counts[:, j].tolist()]
    return found


def simulate(kind: str, seeds: range) -> None:
    """Coverage in fresh trials, of one and of several together."""
    found: dict[str, list[float]] = defaultdict(list)
    for seed in seeds:
        for size in SIZES:
            rng = np.random.default_rng([seed, size])
            _add_set(found, KINDS[kind], rng, size)
    for what, shares in found.items():
        bounds = {"least": LEAST_SIMULATED, "most": MOST_SIMULATED}
        bounded = "without trials" not in what and len(seeds) >= 40
        error = np.std(shares) / np.sqrt(len(shares))
        row(f"{kind}, {what}: coverage ± {error:.3f}", float(np.mean(shares)),
            **bounds if bounded else {})  # fmt: skip


def _add_set(found: dict[str, list[float]], draw: Trial, rng: Rng, size: int) -> None:
    known, fresh = ([draw(rng) for _ in range(many)] for many in (size, FRESH))
    table = {"t": np.concatenate(known), "trial": np.repeat(np.arange(size), list(map(len, known)))}
    study = study_of(table, size, columns=["t"], window=(0.0, LENGTH), unit="ms")
    regions = [whole(study.frame), *grid_regions(study.frame, (BINS,))]
    edges = np.linspace(0.0, LENGTH, BINS + 1)
    counts = np.array([[len(t), *np.histogram(t, edges)[0]] for t in fresh])
    several = counts.reshape(-1, TOGETHER, BINS + 1).sum(axis=1)
    for many, each in ((1, counts), (TOGETHER, several)):
        for with_trials in (True, False) if many == 1 else (True,):
            inside = covered(means_of(study, regions, many, with_trials=with_trials), each)
            what = f"{size} trials, next {many}{'' if with_trials else ', without trials'}"
            found[f"{what}, total"].append(float(inside[:, 0].mean()))
            found[f"{what}, bins"].append(float(inside[:, 1:].mean()))


def games(folder: Path) -> None:
    """Curry's shots of each game after the 50th of a season, from these 50."""
    rows = read(folder / "curry_shots_2009_2025.csv.gz", "season", "game_date", "x", "y")
    season, date, x, y = (np.array(column) for column in zip(*rows, strict=True))
    X = np.column_stack([x, y]).astype(float) / 10.0
    half = (np.abs(X[:, 0]) <= 25.0) & (X[:, 1] >= -5.25) & (X[:, 1] <= 41.75)
    found: dict[str, list[float]] = defaultdict(list)
    for year in np.unique(season):
        days = np.unique(date[season == year])
        if len(days) <= LEARNED_GAMES:
            continue
        some = half & (season == year) & (date < days[LEARNED_GAMES])
        table = {"x": X[some, 0], "y": X[some, 1], "trial": date[some]}
        study = study_of(table, LEARNED_GAMES, columns=["x", "y"], unit="ft",
                         window=(-25.0, -5.25, 25.0, 41.75))  # fmt: skip
        regions = [whole(study.frame), *grid_regions(study.frame, (3, 2))]
        counts = np.array([
            [region.window.contains(X[half & (date == day)]).sum() for region in regions]
            for day in days[LEARNED_GAMES:]
        ])  # fmt: skip
        for with_trials in (True, False):
            inside = covered(means_of(study, regions, 1, with_trials=with_trials), counts)
            words = "" if with_trials else ", without trials"
            found[f"total{words}"] += inside[:, 0].tolist()
            found[f"six parts of the court{words}"] += inside[:, 1:].ravel().tolist()
    for what, each in found.items():
        bounds = {} if "without" in what else {"least": LEAST_REAL, "most": MOST_REAL}
        row(f"Curry's shots by game, {what}: coverage of {len(each)} counts",
            float(np.mean(each)), **bounds)  # fmt: skip


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--simulations", type=int, default=100)
    options.add_argument("--seed", type=int, default=0, help="that of the first simulation")
    options.add_argument("--kind", nargs="*", default=list(KINDS))
    asked = options.parse_args()
    header()
    many = min(2, asked.simulations) if asked.quick else asked.simulations
    for kind in asked.kind if many else ():
        simulate(kind, range(asked.seed, asked.seed + many))
    if asked.data is None:
        print("| give --data FOLDER for real games: the set is not bundled | | |")
    else:
        games(asked.data)
    finish()


if __name__ == "__main__":
    main()
