"""How often 90 % intervals contain counts to come, how wide they are, and how likely the counts.

    python benchmarks/forecasts.py [--data FOLDER] [--quick] [--simulations N] [--futures N]
                                   [--seed N] [--kind NAME ...] [--set NAME ...] [--every N]
                                   [--alone]

Simulated events with a known truth: 26 weeks are observed, and the next day, week and four weeks
are forecast and compared with many futures of each set. Real events by rolling origin, if FOLDER
contains nyc_vehicle_thefts_2014_2017.csv.gz, bike_sharing_hour.csv.gz,
earthquakes_world_1965_2016.csv, earthquakes_japan_1990_2020.csv.gz, curry_shots_2009_2025.csv.gz
and packets_tmobile_lte_down.csv.gz, which are not bundled with hplus:
everything is learned anew at each origin from what came before. A set is a `Series`; to forecast
the cells of a map, add one for each cell to SETS. Coverage is randomised: a count at
the end of an interval is inside in part, so that a perfect interval contains 90 %. Other forecasts
get the same counts; statsmodels and prophet take part if they are installed. --every N uses every
Nth origin, --alone leaves other forecasts out. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import os

# before any of the libraries is imported
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

import csv
import gzip
import itertools
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
from _forecast_rivals import Mixed, Predictive, rivals
from _measure import finish, header, parser, row
from _simulated_series import DAYS, KINDS, LONGEST

from hplus import Forecast, Interval

LEVEL, TAIL = 0.9, 0.05

LEAST_SIMULATED, MOST_SIMULATED = 0.86, 0.94
LEAST_REAL, MOST_REAL, MOST_WIDTH = 0.85, 0.95, 1.3
"""The coverage that is asked for, and the width relative to the best rival with such a coverage."""

AHEAD = {"day": 1.0, "week": 7.0, "four weeks": LONGEST}
"""What is forecast after the simulated observation period, in days."""

MONTH = 365.25 / 12.0


class Series(NamedTuple):
    """Events with weights, and the counts to forecast: of `unit`, `ahead` at a time.

    Counts from number `first` on are forecast, from every `every`th origin; `season` is the length
    of the season that rivals are told of, in units, or 0.
    """

    times: np.ndarray
    weights: np.ndarray | None
    time_unit: str
    unit: float
    ahead: int
    first: int
    every: int
    season: int = 0
    cycles: tuple[str | float, ...] = ("day", "week", "year")

    @property
    def counts(self) -> np.ndarray:
        edges = np.arange(int(self.times.max() / self.unit) + 1) * self.unit
        return np.histogram(self.times, edges, weights=self.weights)[0].astype(float)


def read(path: Path, *columns: str) -> list[tuple[str, ...]]:
    """Columns of a CSV file by their names."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return [tuple(row[c] for c in columns) for row in csv.DictReader(file)]


def days_since(start: str, texts: list[tuple[str, ...]]) -> np.ndarray:
    zero = datetime.fromisoformat(start)
    return np.array([(datetime.fromisoformat(t[0]) - zero).total_seconds() / 86_400 for t in texts])


def thefts(folder: Path) -> np.ndarray:
    return days_since(
        "2014-01-01", read(folder / "nyc_vehicle_thefts_2014_2017.csv.gz", "datetime")
    )


def bikes(folder: Path) -> Series:
    rows = read(folder / "bike_sharing_hour.csv.gz", "dteday", "hr", "cnt")
    hours = np.array([float(hour) for _, hour, _ in rows])
    t = days_since("2011-01-01", rows) + (hours + 0.5) / 24.0
    return Series(t, np.array([float(n) for _, _, n in rows]), "day", 1.0, 7, 180, 14, season=7)


def world(folder: Path) -> Series:
    t = days_since("1965-01-01", read(folder / "earthquakes_world_1965_2016.csv", "date"))
    return Series(t, None, "day", MONTH, 6, 144, 12)


def japan(folder: Path) -> Series:
    t = days_since("1990-01-01", read(folder / "earthquakes_japan_1990_2020.csv.gz", "time"))
    return Series(t, None, "day", MONTH, 6, 96, 6)


def curry(folder: Path) -> Series:
    rows = read(folder / "curry_shots_2009_2025.csv.gz", "game_date", "game_id", "t_game_s")
    games = {key: i for i, key in enumerate(sorted({row[:2] for row in rows}))}
    t = [games[row[:2]] + min(float(row[2]) / 3900.0, 0.999) for row in rows]
    return Series(np.array(t), None, "game", 1.0, 10, 300, 36, cycles=(1.0,))


def packets(folder: Path) -> Series:
    t = np.array([float(t) for (t,) in read(folder / "packets_tmobile_lte_down.csv.gz", "t_ms")])
    return Series(t / 1000.0, None, "s", 1.0, 5, 120, 8)


SETS: dict[str, Callable[[Path], Series]] = {
    "NYC thefts by week": lambda f: Series(thefts(f), None, "day", 7.0, 4, 52, 3),
    "NYC thefts by day": lambda f: Series(thefts(f), None, "day", 1.0, 7, 365, 28, season=7),
    "bikes by day": bikes,
    "world earthquakes by month": world,
    "Japan's earthquakes by month": japan,
    "Curry's shots by game": curry,
    "LTE packets by second": packets,
}


class Entry(NamedTuple):
    """How much of a count is covered, how wide its interval is, its log likelihood, the lead."""

    covered: float
    width: float
    log_likelihood: float
    lead: int


def entry(forecast: Predictive, count: float, lead: int) -> Entry:
    """What a forecast says of a count; covered is the share of its chance from 5 % to 95 %."""
    below, upto = forecast.upto(count - 1.0), forecast.upto(count)
    inside = np.clip(upto, TAIL, 1.0 - TAIL) - np.clip(below, TAIL, 1.0 - TAIL)
    covered = inside / max(upto - below, 1e-300)
    width = forecast.quantile(1.0 - TAIL) - forecast.quantile(TAIL)
    return Entry(float(covered), width, forecast.log_chance(count), lead)


def simulate(kind: str, seeds: range, futures: int) -> None:
    """Coverage of what follows simulated events, in several futures of each set."""
    found: dict[str, list[np.ndarray]] = defaultdict(list)
    seconds = 0.0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        simulated = KINDS[kind](rng)
        start = process_time()
        model = Forecast(Interval(0.0, DAYS, unit="day"), LONGEST).fit(simulated.past)
        means = model.count_draws([Interval(DAYS, DAYS + length) for length in AHEAD.values()])
        seconds += process_time() - start
        coming = [simulated.future(rng) - DAYS for _ in range(futures)]
        for (name, length), mean in zip(AHEAD.items(), means, strict=True):
            counts = [float(np.sum(t < length)) for t in coming]
            entries = {count: entry(Mixed(mean), count, 0) for count in set(counts)}
            each = np.array([entries[count][:2] for count in counts])
            found[name].append(each.mean(axis=0))
    for name in AHEAD:
        (inside, width), error = np.mean(found[name], axis=0), np.std(found[name], axis=0)[0]
        words = f"{kind}, next {name}: coverage ± {error / np.sqrt(len(seeds)):.3f} (width"
        bounds = {"least": LEAST_SIMULATED, "most": MOST_SIMULATED} if len(seeds) >= 40 else {}
        row(f"{words} {width:.3g}, {len(seeds)} sets, {futures} futures of each)", inside, **bounds)
    row(f"{kind}: CPU seconds for each fit", seconds / len(seeds))


def forecasts(series: Series, origin: int) -> list[Predictive]:
    """Forecasts of the counts after an origin by hplus, from the events before it."""
    now = origin * series.unit
    known = series.times < now
    weights = None if series.weights is None else series.weights[known]
    window = Interval(0.0, now, unit=series.time_unit)
    model = Forecast(window, series.ahead * series.unit, series.cycles)
    model.fit(series.times[known], sample_weight=weights)
    edges = now + series.unit * np.arange(series.ahead + 1)
    return [Mixed(m) for m in model.count_draws([Interval(*e) for e in itertools.pairwise(edges)])]


def roll(name: str, series: Series, every: int, alone: bool) -> None:
    """Coverage, width and likelihood of counts after each origin, by hplus and by rivals."""
    y, others = series.counts, {} if alone else rivals()[0]
    origins = range(series.first, len(y) - series.ahead + 1, series.every * every)
    found: dict[str, list[Entry]] = defaultdict(list)
    seconds = 0.0
    for origin in origins:
        start = process_time()
        made = {"hplus": forecasts(series, origin)}
        seconds += process_time() - start
        for rival, forecast in others.items():
            made[rival] = forecast(y[:origin], series.season, series.ahead)
        for method, each in made.items():
            found[method] += [entry(f, y[origin + i], i) for i, f in enumerate(each)]
    _show(name, found)
    row(f"{name}: CPU seconds for each fit", seconds / len(origins))


def _show(name: str, found: dict[str, list[Entry]]) -> None:
    columns = {m: np.array(each)[:, :3].T for m, each in found.items()}
    means = {m: column.mean(axis=1) for m, column in columns.items()}
    for method, (inside, width, likelihood) in means.items():
        n, median = len(found[method]), float(np.median(columns[method][2]))
        words = f"{name}, {method}: coverage of {n} counts (width {width:.4g}, "
        judged = method == "hplus" and n >= 200
        bounds = {"least": LEAST_REAL, "most": MOST_REAL} if judged else {}
        row(f"{words}log likelihood {likelihood:.4g}, median {median:.3f})", inside, **bounds)
    good = {m: w for m, (c, w, _) in means.items() if m != "hplus" and LEAST_REAL <= c <= MOST_REAL}
    if good:
        best = min(good, key=lambda m: good[m])
        words = f"{name}: width relative to {best}, the narrowest with such a coverage"
        row(words, means["hplus"][1] / good[best], most=MOST_WIDTH)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--simulations", type=int, default=200)
    options.add_argument("--futures", type=int, default=100, help="futures of each simulation")
    options.add_argument("--seed", type=int, default=0, help="that of the first simulation")
    options.add_argument("--kind", nargs="*", default=list(KINDS))
    options.add_argument("--set", nargs="*", default=list(SETS))
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--alone", action="store_true")
    options = options.parse_args()
    header()
    many = min(20, options.simulations) if options.quick else options.simulations
    for kind in options.kind if many else ():
        simulate(kind, range(options.seed, options.seed + many), options.futures)
    if options.data is None:
        print("| give --data FOLDER for real events: the sets are not bundled | | |")
    else:
        if missing := rivals()[1]:
            print(f"| not installed: {', '.join(missing)} | | |")
        for name in options.set:
            series = SETS[name](options.data)
            roll(name, series, 10 if options.quick else options.every, options.alone)
    finish()


if __name__ == "__main__":
    main()
