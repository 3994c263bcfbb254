"""QuantityStudy on real and simulated tables, with a tuned LightGBM and the mean beside it.

    python benchmarks/quantities.py --data FOLDER [--quick]

FOLDER contains bike_sharing_hour.csv.gz, insurance_claims_mass.csv, randhie_doctor_visits.csv and
airquality.csv, which are not bundled with hplus; without it, only the simulated tables run. A
random fifth of the rows is the test set; small tables are split sixty times. In the doctor visits,
people appear in several rows, which trees memorise, so they are also split by distinct profiles.
Nothing of hplus is tuned by hand. LightGBM has the same columns, with text as category codes, and
is tuned by 3-fold cross-validation of the squared error on the training rows: objective (Poisson,
squared error) × trees and rows per leaf, five of them, or two where there are more than 5,000
rows. One BLAS thread. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import csv
import gzip
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _measure import finish, header, parser, row
from _simulated_tables import concrete_like, interacting, overdispersed
from lightgbm import LGBMRegressor
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from hplus.studies.quantity_study import QuantityStudy
from hplus.studies.validation import poisson_deviance

BIKES = "season yr mnth hr holiday weekday workingday weathersit temp atemp hum windspeed"
SPLITS = 60
"""How often small tables are split."""

SETTINGS = ((1000, 20), (300, 20), (300, 5), (100, 5), (30, 3))
"""Trees and rows per leaf of LightGBM, of which cross-validation selects."""

OBJECTIVES = ("poisson", "regression")

SIMULATED = {
    "concrete-like": concrete_like,
    "interactions": interacting,
    "over-dispersed counts": overdispersed,
}


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
    boosted: np.ndarray
    plain: np.ndarray
    claimed: float
    seconds: float
    boosted_seconds: float


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


def simulated(name: str, seed: int) -> tuple[Table, Table]:
    """1,000 rows to learn from and 2,000 others."""
    columns, y = SIMULATED[name](3000, seed)
    table = Table(name, columns, y, np.ones(3000), np.arange(3000))
    return table.take(np.arange(1000)), table.take(np.arange(1000, 3000))


def answer(known: Table, test: Table, seed: int) -> Answer:
    """Predictions of QuantityStudy, LightGBM and the mean for test rows."""
    start = time.process_time()
    study = QuantityStudy(random_state=seed).fit(known.columns, known.y, exposure=known.exposure)
    seconds = time.process_time() - start
    ours = study.predict(test.columns, exposure=test.exposure)
    low, high = study.predict_interval(test.columns, exposure=test.exposure)
    plain = known.y.sum() / known.exposure.sum() * test.exposure
    claimed = 100.0 * study.summary_["coverage"]
    start = time.process_time()
    theirs = boosted(known, test)
    spent = time.process_time() - start
    return Answer(test.y, ours, low, high, theirs, plain, claimed, seconds, spent)


def boosted(known: Table, test: Table) -> np.ndarray:
    """The rates of a tuned LightGBM times exposure, at least a little above 0."""
    codes = {
        name: np.unique(np.concatenate([column, test.columns[name]]))
        for name, column in known.columns.items()
    }

    def matrix(part: Table) -> np.ndarray:
        each = [
            np.searchsorted(codes[name], column) if column.dtype.kind == "U" else column
            for name, column in part.columns.items()
        ]
        return np.column_stack(each).astype(float)

    def fitted(part: Table, objective: str, trees: int, leaf: int) -> LGBMRegressor:
        params = {"n_estimators": trees, "min_child_samples": leaf, "learning_rate": 0.05}
        model = LGBMRegressor(objective=objective, n_jobs=1, verbose=-1, **params)
        return model.fit(matrix(part), part.y / part.exposure, sample_weight=part.exposure)

    def error(setting: tuple[str, int, int]) -> float:
        total = 0.0
        for inside, outside in KFold(3, shuffle=True, random_state=0).split(known.y):
            part = known.take(outside)
            m = fitted(known.take(inside), *setting).predict(matrix(part)) * part.exposure
            total += float(np.sum((m - part.y) ** 2))
        return total

    tried = SETTINGS[:2] if len(known.y) > 5000 else SETTINGS
    best = min(((o, *setting) for o in OBJECTIVES for setting in tried), key=error)
    m = fitted(known, *best).predict(matrix(test)) * test.exposure
    return np.maximum(m, 1e-3 * known.y.mean())


def show(name: str, each: list[Answer], most: dict[str, float], least: float) -> float:
    """Report a table: errors of all three methods, coverage, seconds; the ratio of RMSEs."""
    joined = {
        field: np.concatenate([getattr(a, field) for a in each])
        for field in ("y", "ours", "low", "high", "plain", "boosted")
    }
    y = joined["y"]
    for field, whose in (("ours", "hplus"), ("boosted", "LightGBM"), ("plain", "plain mean")):
        m = joined[field]
        bound = most.get("rmse", np.inf) if field == "ours" else np.inf
        row(f"{name}: RMSE, {whose}", float(np.sqrt(np.mean((m - y) ** 2))), most=bound)
        row(f"{name}: mean absolute error, {whose}", float(np.mean(np.abs(m - y))))
        row(f"{name}: Poisson deviance, {whose}", poisson_deviance(y, m))
    squares = [float(np.mean((joined[field] - y) ** 2)) for field in ("ours", "boosted")]
    rmse_ratio = float(np.sqrt(squares[0] / squares[1]))
    row(f"{name}: RMSE, hplus / LightGBM", rmse_ratio)
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
    theirs = float(np.mean([a.boosted_seconds for a in each]))
    row(f"{name}: CPU seconds per search and fit, LightGBM", theirs)
    return rmse_ratio


BOUNDS: dict[str, dict[str, Any]] = {
    "bikes": {"rmse": 50.0, "coverage": 93.0, "seconds": 60.0},
    "claims": {"coverage": 93.0},
    "ozone": {"coverage": 93.0},
    "visits": {"coverage": 93.0, "seconds": 60.0},
    "visits of new people": {"coverage": 93.0, "seconds": 60.0},
    "concrete-like": {"coverage": 93.0, "seconds": 20.0},
    "interactions": {"coverage": 93.0, "seconds": 20.0},
    "over-dispersed counts": {"coverage": 93.0, "seconds": 20.0},
}


def main() -> None:
    options = parser(__doc__).parse_args()
    folder, ratios = options.data, []
    header()
    with threadpool_limits(1):
        for name in SIMULATED:
            each = [
                answer(*simulated(name, seed), seed) for seed in range(1 if options.quick else 3)
            ]
            ratios.append(show(name, each, BOUNDS[name], least=87.0))
        real = [] if folder is None else tables(folder)
        for table in filter(small, real) if options.quick else real:
            seeds = range(SPLITS if small(table) else 1)
            each = [answer(*split(table, seed), seed) for seed in seeds]
            ratios.append(show(table.name, each, BOUNDS[table.name], least=87.0))
    good = sum(ratio <= 1.05 for ratio in ratios)
    row(
        f"tables of {len(ratios)} with RMSE at most 1.05 times LightGBM's",
        good,
        least=len(ratios) / 2,
    )
    if folder is None:
        print("\nUse --data FOLDER for the real tables.")
    finish()


if __name__ == "__main__":
    main()
