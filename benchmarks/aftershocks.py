"""Japan's earthquakes: events predicted one by one, and forecasts, beside ETAS and Poisson.

    python benchmarks/aftershocks.py --data FOLDER [--least 4.5] [--part likelihood forecasts]
                                     [--every N] [--paths N]

FOLDER contains earthquakes_japan_1990_2020.csv.gz, which is not bundled with hplus. Everything is
learned from 1992-2010, with 1990-91 as history; the events of 2011-19 are predicted one by one, in
nats per event and split into time and place. ETAS is fitted by maximum likelihood (`_etas.py`),
with its usual background, the 5th neighbour's kernel. The Poisson rate is a constant in time times
the rate of `Intensity` in place. Forecasts are made at monthly origins and right after the ten
largest events, for the next day, week and month; coverage of 90 % intervals is randomised.
"""

from __future__ import annotations

import os

# before any of the libraries is imported
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

import csv
import gzip
from pathlib import Path
from time import process_time

import numpy as np
from _etas import EtasFit, compensator, fit_etas, forecast_times, gutenberg_richter, log_rates
from _measure import finish, header, parser, row

from hplus import Box, Intensity, Interval, SelfExciting

FILE = "earthquakes_japan_1990_2020.csv.gz"
HORIZONS = {"day": 1.0, "week": 7.0, "month": 30.4}
TAIL = 0.05
LEAST_COVERAGE, MOST_COVERAGE = 0.85, 0.95
MOST_BELOW = 0.01
"""How far below ETAS the self-exciting rate may be, in nats per event."""


def day(text: str) -> float:
    """Days since the beginning of 1990."""
    return (
        float((np.datetime64(text) - np.datetime64("1990-01-01")) / np.timedelta64(1, "s"))
        / 86400.0
    )


def read(folder: Path, least: float) -> tuple[np.ndarray, np.ndarray, Box]:
    """Events (n, 3) in km and days, their magnitudes, and the box of all of them."""
    with gzip.open(folder / FILE, "rt") as lines:
        table = list(csv.DictReader(lines))
    X = np.array(
        [
            [float(r["x_km"]), float(r["y_km"]), day(r["time"].rstrip("Z").replace(" ", "T")[:23])]
            for r in table
        ]
    )
    m = np.array([float(r["mag"]) for r in table])
    low, high = X[:, :2].min(axis=0) - 0.1, X[:, :2].max(axis=0) + 0.1
    order = np.argsort(X[:, 2], kind="stable")
    X, m = X[order], m[order]
    kept = m >= least
    return X[kept], m[kept], Box(low, high, unit="km")


class Japan:
    """The events, split in time, and the models learned from the first part."""

    def __init__(self, folder: Path, least: float) -> None:
        self.X, self.m, self.box = read(folder, least)
        self.start, self.now, self.end = day("1992-01-01"), day("2011-01-01"), day("2020-01-01")
        self.least, t = least, self.X[:, 2]
        self.known, self.later = t < self.now, (t >= self.now) & (t < self.end)
        began = process_time()
        window = self.box * Interval(self.start, self.now, unit="day")
        self.model = SelfExciting(window).fit(self.X[self.known], marks=self.m[self.known])
        row(f"M ≥ {least}: fit, CPU s", process_time() - began)
        row(f"M ≥ {least}: branching ratio", self.model.branching_ratio_)
        row(
            f"M ≥ {least}: certified gap an event",
            self.model.solution_.gap / self.model.total_,
            1e-4,
        )
        low, high = self.box.bounds()
        corners = low[0], high[0], low[1], high[1]
        k = self.known
        self.etas: EtasFit = fit_etas(
            t[k], self.X[k, 0], self.X[k, 1], self.m[k], self.start, self.now, corners, least
        )

    def likelihoods(self) -> None:
        """Nats per event of the three, and what time and place have in them."""
        X, m, later, n = self.X, self.m, self.later, int(self.later.sum())
        t, period = X[later, 2], Interval(self.now, self.end)
        until = X[:, 2] < self.end
        history = (X[until], m[until])
        own = self.model.log_likelihood(X[later], marks=m[later], period=period) / n
        expected = self.model.expected_count(self.box * period, history=history)
        in_time = self._rate_in_time(t, history)
        own_time = (np.log(in_time).sum() - expected) / n
        columns = (X[until, 2], X[until, 0], X[until, 1], m[until])
        logs, logs_time = log_rates(self.etas, (t, X[later, 0], X[later, 1]), columns)
        total = compensator(self.etas, columns, self.now, self.end)
        etas, etas_time = (logs.sum() - total) / n, (logs_time.sum() - total) / n
        inside = self.known & (X[:, 2] >= self.start)
        place = Intensity(self.box).fit(X[inside, :2])
        level = inside.sum() / (self.now - self.start)
        poisson = place.score(X[later, :2]) + np.log(level) - level * (self.end - self.now) / n
        what = f"M ≥ {self.least}"
        row(f"{what}: Poisson, nats an event", poisson)
        row(f"{what}: ETAS", etas)
        row(f"{what}: ETAS, time", etas_time)
        row(f"{what}: ETAS, expected of {n}", float(total))
        row(f"{what}: SelfExciting", own)
        row(f"{what}: SelfExciting, time", own_time)
        row(f"{what}: SelfExciting, expected of {n}", float(expected))
        row(f"{what}: SelfExciting less ETAS", own - etas, least=-MOST_BELOW)
        row(f"{what}: in time", own_time - etas_time)
        row(f"{what}: in place", own - own_time - etas + etas_time)

    def _rate_in_time(self, t: np.ndarray, history: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """∫λ over the box at each time: the slope of the count in a very short time before it."""
        known = self.model._given(history)
        return known.integrals([(None, at - 1e-6, at) for at in t]) / 1e-6

    def forecasts(self, every: int, paths: int) -> None:
        """Randomised coverage of 90 % intervals at monthly origins and after large events."""
        later = np.flatnonzero(self.later)
        largest = later[np.argsort(self.m[later])[::-1][:10]]
        months = self.now + HORIZONS["month"] * np.arange(0, 108, every)
        origins = {"monthly": months, "after the ten largest": self.X[largest, 2] + 1e-4}
        magnitudes = gutenberg_richter(2.336, self.least - 0.05, 9.5)
        for name, times in origins.items():
            found = {(who, h): [] for who in ("ETAS", "SelfExciting") for h in HORIZONS}
            for k, start in enumerate(times):
                for who, counts in self._futures(float(start), paths, k, magnitudes).items():
                    for horizon, drawn in counts.items():
                        came = (self.X[:, 2] > start) & (self.X[:, 2] <= start + HORIZONS[horizon])
                        found[who, horizon].append(inside(drawn, int(came.sum()), k))
            for (who, horizon), each in found.items():
                what = f"M ≥ {self.least}, {name}, next {horizon}: coverage of {who}"
                if who == "ETAS":
                    row(what, float(np.mean(each)))
                else:
                    row(what, float(np.mean(each)), MOST_COVERAGE, LEAST_COVERAGE)

    def _futures(self, start: float, paths: int, seed: int, magnitudes) -> dict:
        """Counts of simulated futures by model and horizon, all of the same paths."""
        past, longest = self.X[:, 2] <= start, max(HORIZONS.values())
        X, m = self.X[past], self.m[past]
        own = self.model.forecast(
            longest, n_paths=paths, start=start, history=(X, m), random_state=seed
        ).simulated
        columns, rng = (X[:, 2], X[:, 0], X[:, 1], m), np.random.default_rng(seed)
        times, path = forecast_times(
            self.etas, columns, start, longest, paths, rng,
            lambda n, rng: np.round(magnitudes(n, rng), 1),
        )  # fmt: skip
        return {
            who: {h: np.bincount(p[t <= start + length], minlength=paths)
                  for h, length in HORIZONS.items()}
            for who, (t, p) in {
                "SelfExciting": (own.events.times, own.paths), "ETAS": (times, path)
            }.items()
        }  # fmt: skip


def inside(draws: np.ndarray, count: int, seed: int) -> float:
    """The part of a count that lies in the central 90 % of draws: ranks among ties are random."""
    below, ties = np.mean(draws < count), np.mean(draws == count)
    rank = below + ties * np.random.default_rng([seed, count]).random()
    return float(TAIL <= rank <= 1.0 - TAIL)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--least", type=float, nargs="*", default=[4.5, 4.0])
    options.add_argument("--part", nargs="*", default=["likelihood", "forecasts"])
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--paths", type=int, default=500)
    asked = options.parse_args()
    if asked.data is None or not (asked.data / FILE).exists():
        print(f"{FILE} is not bundled with hplus: give the folder that has it with --data.")
        return
    header()
    for least in [4.5] if asked.quick else asked.least:
        japan = Japan(asked.data, least)
        if "likelihood" in asked.part:
            japan.likelihoods()
        if "forecasts" in asked.part:
            japan.forecasts(12 if asked.quick else asked.every, asked.paths)
    finish()


if __name__ == "__main__":
    main()
