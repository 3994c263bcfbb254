"""QuantityStudy on four tables, compared with LightGBM and the mean, on one BLAS thread.

    python benchmarks/quantities.py --data FOLDER [--quick]

FOLDER contains bike_sharing_hour.csv.gz, insurance_claims_mass.csv, randhie_doctor_visits.csv and
airquality.csv, which are not bundled with hplus. A random fifth of the rows is the test set; small
tables are split sixty times. In the doctor visits, people appear in several rows, which trees
memorise, so they are also split by distinct profiles. Nothing is tuned by hand; LightGBM uses the
same columns, with text as category codes. Exits with code 1 if a bound is missed.
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

from hplus.studies.quantity_study import QuantityStudy
from hplus.studies.validation import poisson_deviance

BIKES = "season yr mnth hr holiday weekday workingday weathersit temp atemp hum windspeed"
SPLITS = 60
"""How often small tables are split."""

SETTINGS = ((1000, 20), (300, 20), (300, 5), (100, 5), (30, 3))
"""Trees and rows per leaf of LightGBM; the best on the test rows counts, in its favour."""


class Table(NamedTuple):
    """Columns by name, targets (n,), exposures (n,), and groups (n,) that are held out together."""

    name: str
    columns: dict[str, np.ndarray]
    y: np.ndarray
    exposure: np.ndarray
    group: np.ndarray

    def take(self, rows: np.ndarray) -> Table:
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Table(self.name, columns, self.y[rows], self.exposure[rows], self.group[rows])


class Answer(NamedTuple):
    """Test targets (n,), predictions, and the bounds of 90 % intervals."""

    y: np.ndarray
    ours: np.ndarray
    low: np.ndarray
    high: np.ndarray
    boosted: np.ndarray  # (settings, n)
    plain: np.ndarray
    claimed: float
    seconds: float


def read(
    path: Path, features: str, target: str, text: bool = False, exposure: str = ""
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Columns, targets and exposures of the rows without missing values."""
    content = path.read_bytes()
    lines = (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()
    rows = [r for r in csv.DictReader(lines) if not {"", "NA"} & set(r.values())]
    kind = str if text else float
    columns = {name: np.array([kind(r[name]) for r in rows]) for name in features.split()}
    y = np.array([float(r[target]) for r in rows])
    watched = np.array([float(r[exposure]) if exposure else 1.0 for r in rows])
    return columns, y, watched


def tables(folder: Path) -> list[Table]:
    """The four data sets, the doctor visits twice."""
    bikes = read(folder / "bike_sharing_hour.csv.gz", BIKES, "cnt")
    path = folder / "insurance_claims_mass.csv"
    claims = read(path, "District Group Age", "Claims", text=True, exposure="Holders")
    profile = "lncoins idp lpi fmde physlm disea hlthg hlthf hlthp"
    visits = read(folder / "randhie_doctor_visits.csv", profile, "mdvis")
    ozone = read(folder / "airquality.csv", "Solar.R Wind Temp Month Day", "Ozone")
    people = np.unique(np.column_stack([*visits[0].values()]), axis=0, return_inverse=True)[1]
    return [
        Table("bikes", *bikes, np.arange(len(bikes[1]))),
        Table("claims", *claims, np.arange(len(claims[1]))),
        Table("ozone", *ozone, np.arange(len(ozone[1]))),
        Table("visits", *visits, np.arange(len(visits[1]))),
        Table("visits of new people", *visits, people.ravel()),
    ]


def small(table: Table) -> bool:
    return len(table.y) < 1000


def split(table: Table, seed: int) -> tuple[Table, Table]:
    """Training rows, and test rows of a fifth of the groups."""
    groups = np.random.default_rng(seed).permutation(np.unique(table.group))
    held = np.isin(table.group, groups[: len(groups) // 5])
    return table.take(np.flatnonzero(~held)), table.take(np.flatnonzero(held))


def answer(table: Table, seed: int) -> Answer:
    """Predictions of QuantityStudy, LightGBM and the mean for test rows."""
    known, test = split(table, seed)
    start = time.process_time()
    study = QuantityStudy(random_state=seed).fit(known.columns, known.y, exposure=known.exposure)
    seconds = time.process_time() - start
    ours = study.predict(test.columns, exposure=test.exposure)
    low, high = study.predict_interval(test.columns, exposure=test.exposure)
    plain = known.y.sum() / known.exposure.sum() * test.exposure
    claimed = 100.0 * study.summary_["coverage"]
    return Answer(test.y, ours, low, high, boosted(table, known, test), plain, claimed, seconds)


def boosted(table: Table, known: Table, test: Table) -> np.ndarray:
    """LightGBM's Poisson rates times exposure, for each of its settings."""
    codes = {name: np.unique(column) for name, column in table.columns.items()}

    def matrix(part: Table) -> np.ndarray:
        each = [
            np.searchsorted(codes[name], column) if column.dtype.kind == "U" else column
            for name, column in part.columns.items()
        ]
        return np.column_stack(each).astype(float)

    speed = {"learning_rate": 0.05, "n_jobs": 1, "verbose": -1}
    rate, found = known.y / known.exposure, []
    for trees, leaf in SETTINGS if small(table) else SETTINGS[:2]:
        params = {"n_estimators": trees, "min_child_samples": leaf, **speed}
        model = LGBMRegressor(objective="poisson", **params)
        model.fit(matrix(known), rate, sample_weight=known.exposure)
        found.append(model.predict(matrix(test)) * test.exposure)
    return np.stack(found)


def show(name: str, each: list[Answer], most: dict[str, float], least: float) -> None:
    """Report a table: errors of all three methods, coverage, seconds per fit."""
    joined = {
        field: np.concatenate([getattr(a, field) for a in each])
        for field in ("y", "ours", "low", "high", "plain")
    }
    y = joined["y"]
    settings = np.concatenate([a.boosted for a in each], axis=1)
    joined["boosted"] = min(settings, key=lambda m: poisson_deviance(y, m))
    for field, whose in (("ours", "hplus"), ("boosted", "LightGBM"), ("plain", "plain mean")):
        m = joined[field]
        bound = most.get("rmse", np.inf) if field == "ours" else np.inf
        row(f"{name}: RMSE, {whose}", float(np.sqrt(np.mean((m - y) ** 2))), most=bound)
        row(f"{name}: mean absolute error, {whose}", float(np.mean(np.abs(m - y))))
        row(f"{name}: Poisson deviance, {whose}", poisson_deviance(y, m))
    ratio = poisson_deviance(y, joined["ours"]) / poisson_deviance(y, joined["boosted"])
    row(f"{name}: deviance, hplus / LightGBM", ratio, most=most.get("ratio", np.inf))
    inside = (joined["low"] <= y) & (y <= joined["high"])
    upper = most.get("coverage", 100.0)
    row(f"{name}: coverage of 90 %, %", 100.0 * float(inside.mean()), least=least, most=upper)
    row(f"{name}: coverage reported by the study, %", np.mean([a.claimed for a in each]))
    row(f"{name}: mean interval width", float(np.mean(joined["high"] - joined["low"])))
    row(f"{name}: smallest lower bound", float(joined["low"].min()), least=0.0)
    seconds = float(np.mean([a.seconds for a in each]))
    row(f"{name}: CPU seconds per fit", seconds, most=most.get("seconds", np.inf))


BOUNDS: dict[str, dict[str, Any]] = {
    "bikes": {"rmse": 50.0, "ratio": 1.5, "coverage": 93.0, "seconds": 60.0},
    "claims": {"ratio": 1.0},
    "ozone": {"ratio": 1.0},
    "visits": {"coverage": 93.0, "seconds": 60.0},
    "visits of new people": {"ratio": 1.1, "seconds": 60.0},
}


def main() -> None:
    options = parser(__doc__).parse_args()
    folder = options.data
    if folder is None:
        print("Needs --data FOLDER: the tables are not bundled.")
        return
    header()
    with threadpool_limits(1):
        for table in filter(small, tables(folder)) if options.quick else tables(folder):
            each = [answer(table, seed) for seed in range(SPLITS if small(table) else 1)]
            show(table.name, each, BOUNDS[table.name], least=85.0 if small(table) else 87.0)
    finish()


if __name__ == "__main__":
    main()
