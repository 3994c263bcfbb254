"""Regression of hourly bike counts, compared with LightGBM, on one BLAS thread.

    python benchmarks/bike.py --data FOLDER [--quick]

FOLDER contains bike_sharing_hour.csv.gz, which is not bundled with hplus. There are two tasks:
hours left out at random, predicted from calendar, weather and date; and hours after the training
period, predicted from calendar, weather and counts at least a day old. The weather is treated as
known, as if forecasts were perfect. LightGBM uses the same columns. Exits with code 1 if a bound
is missed.
"""

from __future__ import annotations

import csv
import gzip
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _measure import finish, header, parser, row
from lightgbm import LGBMRegressor
from threadpoolctl import threadpool_limits

from hplus import (
    Constant,
    Full,
    Gaussian,
    Linear,
    Periodic,
    Quantile,
    QuantilesRegressor,
    SoSRegressor,
)

TRAIN = 12_000
"""Training rows; the other 5,379 are test rows."""

WEEK = 7 * 24
"""Hours in a week."""

UNIT = 200.0
"""Counts are divided by this number, about their mean, so that penalties have no unit."""

HABITS = ("hr", "workingday", "weekday", "temp", "atemp", "hum", "windspeed", "weathersit")
"""Columns 0 to 7 of every table: what makes one hour busier than another."""

HOUR = Periodic(24.0, 0.5, columns=[0])
WORK = Gaussian(0.5, columns=[1])
WEEKDAY = Periodic(7.0, 1.0, columns=[2])
WEATHER = Gaussian([0.5, 0.5, 0.7, 0.7, 2.0], columns=[3, 4, 5, 6, 7])
SEASON, SPELL = Gaussian(100.0, columns=[8]), Gaussian(3.0, columns=[8])  # days

# the square of a sum contains every product of two terms, so the terms can be simple
HABIT = HOUR * (Constant(0.2) + WORK + 0.2 * WEATHER) + 0.3 * WEEKDAY + 0.5 * WEATHER
BETWEEN = HABIT + 0.2 * (HOUR * SEASON) + 0.5 * SEASON + 0.1 * SPELL
# every term has the root of an earlier count as a factor, so f is proportional to the counts
AHEAD = Linear(columns=[10]) * HABIT + Linear(columns=[8, 9])
RELATIVE = HABIT + 0.3 * Gaussian(1.0, columns=[8, 9])

LEVELS = (0.05, 0.5, 0.95)


class Hours(NamedTuple):
    """The rows in order of time, one array (n,) per column; habits has shape (n, 8)."""

    habits: np.ndarray
    hour: np.ndarray  # since the first midnight
    rentals: np.ndarray
    yesterday: np.ndarray  # the count 24 hours before
    last_week: np.ndarray  # the count a week before
    level: np.ndarray  # the mean count of the week that ended 24 hours before


class Split(NamedTuple):
    """Training and test rows: X (n, d) and y (n,) of each."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def read(path: Path) -> Hours:
    """The table, with the counts that are known a day ahead."""
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    habits = np.array([[float(r[name]) for name in HABITS] for r in rows])
    dates = np.array([r["dteday"] for r in rows], dtype="datetime64[D]")
    hour = 24 * (dates - dates[0]).astype(int) + habits[:, 0].astype(int)
    count = np.array([float(r["cnt"]) for r in rows])
    return Hours(habits, hour, count, *past(hour, count))


def past(hour: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The counts 24 hours and a week earlier, and the level, which is at least 1."""
    now = hour + WEEK + 24
    every = np.zeros(now[-1] + 1)  # hours without a row had no rentals
    every[now] = count
    total = np.concatenate([[0.0], np.cumsum(every)])
    # Σ of the hours t - 24 - 167, …, t - 24
    level = (total[now - 23] - total[now - 23 - WEEK]) / WEEK
    return every[now - 24], every[now - WEEK], np.maximum(level, 1.0)


def fitted(model: Any, split: Split) -> tuple[np.ndarray, float]:
    """Predictions for the test rows, and the CPU seconds of the fit."""
    start = time.process_time()
    model.fit(split.X, split.y)
    seconds = time.process_time() - start
    return model.predict(split.X_test), seconds


def boosted(split: Split, objective: str, trees: int = 1000, **params: Any) -> np.ndarray:
    """Predictions of LightGBM."""
    speed = {"learning_rate": 0.05, "n_jobs": 1, "verbose": -1}
    model = LGBMRegressor(objective=objective, n_estimators=trees, **speed, **params)
    return fitted(model, split)[0]


def means(split: Split, model: SoSRegressor, most: float, ratio: float) -> None:
    """Report the RMSE in bikes, which must be at most `most`, and `ratio` times LightGBM's best."""
    f, seconds = fitted(model, split)
    error = rmse(f, split)
    row(f"{split.name}: RMSE, bikes ({seconds:.0f} s)", error, most=most)
    row(f"{split.name}: smallest prediction, bikes", UNIT * f.min(), least=0.0)
    theirs = {name: boosted(split, name) for name in ("poisson", "regression")}
    for name, g in theirs.items():
        negative = f"{100 * np.mean(g < 0.0):.1f} % negative"
        row(f"{split.name}: RMSE of LightGBM, {name} ({negative})", rmse(g, split))
    best = min(rmse(g, split) for g in theirs.values())
    row(f"{split.name}: RMSE, hplus / better LightGBM", error / best, most=ratio)


def rmse(f: np.ndarray, split: Split) -> float:
    return UNIT * float(np.sqrt(np.mean((f - split.y_test) ** 2)))


def intervals(split: Split, model: QuantilesRegressor, unit: np.ndarray | float) -> None:
    """Coverage, width and loss of 90 % intervals; `split.y` is √(count / unit).

    Quantiles commute with increasing maps, and with roots quiet hours count as much as busy ones.
    """
    q, seconds = fitted(model, split)
    row(
        f"{split.name}: smallest 5 % quantile, bikes", float(np.min(unit * q[:, 0] ** 2)), least=0.0
    )
    row(f"{split.name}: rows with crossing quantiles, %", crossing(q), most=0.0)
    row(f"{split.name}: coverage, % ({seconds:.0f} s)", coverage(q, split), least=87, most=93)
    row(f"{split.name}: quantile loss ({sharpness(q, unit)})", loss(q, split, unit))
    # with more trees coverage falls: with 1,000, below 80 % of the hours left out
    each = [boosted(split, "quantile", trees=300, alpha=level) for level in LEVELS]
    theirs = np.stack(each, axis=1)
    row(f"{split.name}: rows with crossing quantiles, LightGBM, %", crossing(theirs))
    row(f"{split.name}: coverage of LightGBM, %", coverage(theirs, split))
    row(f"{split.name}: LightGBM's loss ({sharpness(theirs, unit)})", loss(theirs, split, unit))


def crossing(q: np.ndarray) -> float:
    return 100.0 * float(np.mean(np.any(np.diff(q, axis=1) < 0.0, axis=1)))


def coverage(q: np.ndarray, split: Split) -> float:
    inside = (q[:, 0] <= split.y_test) & (split.y_test <= q[:, -1])
    return 100.0 * float(np.mean(inside))


def sharpness(q: np.ndarray, unit: np.ndarray | float) -> str:
    """The mean width of the intervals, as text."""
    return f"mean width {np.mean(unit * (q[:, -1] ** 2 - q[:, 0] ** 2)):.0f} bikes"


def loss(q: np.ndarray, split: Split, unit: np.ndarray | float) -> float:
    """The quantile loss in bikes, averaged over rows and summed over levels."""
    count = unit * split.y_test**2
    losses = [
        np.mean(Quantile(level).value(count, unit * column**2))
        for level, column in zip(LEVELS, q.T, strict=True)
    ]
    return float(np.sum(losses))


def left_out(hours: Hours) -> None:
    """Hours left out at random: columns are the habits and the day."""
    order = np.random.default_rng(0).permutation(len(hours.rentals))
    train, test = order[:TRAIN], order[TRAIN:]
    X, y = np.column_stack([hours.habits, hours.hour / 24.0]), hours.rentals / UNIT
    model = SoSRegressor(BETWEEN, cone=Full(trace=1e-4, frobenius=1e-6), landmarks=400)
    means(Split("left out", X[train], y[train], X[test], y[test]), model, most=45.0, ratio=1.1)
    quantiles = QuantilesRegressor(LEVELS, True, BETWEEN, cone="full", landmarks=100)
    y = np.sqrt(y)
    intervals(Split("left out", X[train], y[train], X[test], y[test]), quantiles, UNIT)


def day_ahead(hours: Hours) -> None:
    """Hours after the training period: columns are the habits and roots of earlier counts."""
    rows = np.arange(len(hours.rentals))
    train, test = rows[:TRAIN][hours.hour[:TRAIN] >= WEEK + 24], rows[TRAIN:]
    earlier = np.column_stack([hours.yesterday, hours.last_week, hours.level])
    X, y = np.hstack([hours.habits, np.sqrt(earlier / UNIT)]), hours.rentals / UNIT
    model = SoSRegressor(AHEAD, cone=Full(trace=3e-4, frobenius=1e-6), landmarks=100)
    means(Split("day ahead", X[train], y[train], X[test], y[test]), model, most=65.0, ratio=1.0)
    dated = np.column_stack([hours.habits, hours.hour / 24.0])
    split = Split("dated", dated[train], y[train], dated[test], y[test])
    error = rmse(boosted(split, "poisson"), split)
    row("day ahead: RMSE of LightGBM, poisson, with the day instead of earlier counts", error)
    quantiles = QuantilesRegressor(LEVELS, True, RELATIVE, cone="full", landmarks=100)
    X[:, 8:] = np.sqrt(earlier / hours.level[:, None])
    X, y = X[:, :10], np.sqrt(hours.rentals / hours.level)
    split = Split("day ahead", X[train], y[train], X[test], y[test])
    intervals(split, quantiles, hours.level[test])


def main() -> None:
    options = parser(__doc__).parse_args()
    folder = options.data
    if folder is None:
        print("Needs --data FOLDER: the bike counts are not bundled.")
        return
    hours = read(folder / "bike_sharing_hour.csv.gz")
    header()
    with threadpool_limits(1):
        day_ahead(hours)
        if not options.quick:
            left_out(hours)
    finish()


if __name__ == "__main__":
    main()
