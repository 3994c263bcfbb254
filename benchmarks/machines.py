"""Kernel regression and classification, compared with scikit-learn, on one BLAS thread.

    python benchmarks/machines.py [--data FOLDER] [--quick]

FOLDER contains bike_sharing_hour.csv.gz, a9a_train.csv.gz and a9a_test.csv, which are not bundled
with hplus; without it, only the parts on bundled or simulated data run. Classifiers on 20,000 rows
are the default `KernelClassifier(loss="logistic", landmarks=1000)`, `SVC(gamma="scale")` on
standardised columns and LightGBM with its defaults. Speeds are ratios within
one process; CPU times are the best of a few repeats. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
from _measure import best, extra_megabytes, finish, header, parser, peak_megabytes, row
from _simulated_tables import smooth_classes
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from hplus import Function, Gaussian, KernelClassifier, KernelRegressor
from hplus.datasets import banana

NUMERIC = (
    "season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit",
    "temp", "atemp", "hum", "windspeed",
)  # fmt: skip


def bike(folder: Path) -> None:
    """5,000 rows of bike sharing: kernel ridge."""
    with gzip.open(folder / "bike_sharing_hour.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    X = np.array([[float(r[name]) for name in NUMERIC] for r in rows])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.array([float(r["cnt"]) for r in rows])
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:5000], order[5000:]
    theirs = KernelRidge(alpha=5.0, kernel="rbf", gamma=0.1)
    ours = KernelRegressor(Gaussian(np.sqrt(5.0)), penalty=1e-3, fit_intercept=False)
    t_theirs, _ = best(lambda: theirs.fit(X[train], y[train]))
    t_ours, _ = best(lambda: ours.fit(X[train], y[train]))
    difference = np.abs(ours.predict(X[test]) - theirs.predict(X[test])).max()
    row("bike, 5,000 rows: fit time, hplus / KernelRidge", t_ours / t_theirs, most=1.0)
    row("bike: largest difference between predictions", difference, most=1e-8)
    row("bike: certified relative gap", ours.solution_.relative_gap, most=1e-8)
    for loss in ("huber", "poisson_log", "quantile", "epsilon_insensitive"):
        model = KernelRegressor(Gaussian(np.sqrt(5.0)), loss=loss, penalty=1e-3)
        seconds, _ = best(lambda m=model: m.fit(X[train[:2000]], y[train[:2000]]), 1)
        what = f"bike, 2,000 rows, {loss}: certified relative gap ({seconds:.1f} s)"
        smooth = loss in ("huber", "poisson_log")
        row(what, model.solution_.relative_gap, most=1e-8 if smooth else 1e-5)


def prediction() -> None:
    """Predict 1,000,000 points from 2,000 centres, compared with bare matrix products and exp."""
    rng = np.random.default_rng(0)
    for d in (2, 12):
        X, Z, w = rng.normal(size=(10**6, d)), rng.normal(size=(2000, d)), rng.normal(size=2000)
        f = Function(Gaussian(1.0), Z, w)
        t_ours, _ = best(lambda f=f, X=X: f(X), 2)
        t_bare, _ = best(lambda X=X, Z=Z, w=w: bare(X, Z, w), 2)
        what = f"predict, {d} columns: time, hplus / bare BLAS and exp ({t_ours:.1f} s)"
        row(what, t_ours / t_bare, most=1.5)
        extra = extra_megabytes(lambda f=f, X=X: f(X))
        row(f"predict, {d} columns: extra memory, MB", extra, most=500)


def bare(X: np.ndarray, Z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The minimal work of a Gaussian prediction: one product, one exp, one product per block."""
    out, block = np.empty(len(X)), np.empty((131, len(Z)))
    for i in range(0, len(X), 131):
        part = X[i : i + 131]
        B = block[: len(part)]
        np.matmul(part, Z.T, out=B)
        np.exp(B, out=B)
        np.matmul(B, w, out=out[i : i + 131])
    return out


def hinge_agreement(name: str, X: np.ndarray, y: np.ndarray, kernel: Gaussian) -> None:
    """The primal and dual solvers on one support vector machine, and scikit-learn's."""
    machines = {}
    for solver in ("dual", "primal"):
        machine = KernelClassifier(kernel, penalty=1e-4, solver=solver)
        seconds, machines[solver] = best(lambda m=machine: m.fit(X, y), 1)
        what = f"{name}, {solver}: certified relative gap ({seconds:.1f} s)"
        row(what, machine.solution_.relative_gap, most=1e-5)
    primal, dual = (machines[s].solution_.objective for s in ("primal", "dual"))
    row(f"{name}: difference of primal and dual objective", abs(primal / dual - 1), most=1e-6)
    theirs = SVC(C=1 / (2e-4 * len(X)), gamma=0.5 / float(kernel.scale) ** 2).fit(X, y)
    same = np.mean(theirs.predict(X) == machines["dual"].predict(X))
    row(f"{name}: share of labels equal to those of SVC", same, least=0.998)


def a9a(folder: Path) -> None:
    """All of a9a, compared with SVC with the same kernel and cost."""
    X, y = read_a9a(folder / "a9a_train.csv.gz")
    X_test, y_test = read_a9a(folder / "a9a_test.csv")
    hinge_agreement("a9a, 3,000 rows", X[:3000], y[:3000], Gaussian(np.sqrt(10.0)))
    ours = KernelClassifier(Gaussian(np.sqrt(10.0)), penalty=1 / (2 * len(X)))
    t_ours, _ = best(lambda: ours.fit(X, y), 1)
    memory = peak_megabytes()
    t_predict, labels = best(lambda: ours.predict(X_test), 1)
    theirs = SVC(C=1.0, gamma=0.05)
    t_theirs, _ = best(lambda: theirs.fit(X, y), 1)
    t_predict_theirs, their_labels = best(lambda: theirs.predict(X_test), 1)
    accuracy, reference = np.mean(labels == y_test), np.mean(their_labels == y_test)
    row(f"a9a: accuracy of SVC ({reference:.4f}) minus hplus", reference - accuracy, most=0.002)
    row(f"a9a: fit time, hplus / SVC ({t_ours:.0f} s)", t_ours / t_theirs, most=1.0)
    row(f"a9a: predict, SVC / hplus ({t_predict:.1f} s)", t_predict_theirs / t_predict, least=3)
    row("a9a: certified relative gap", ours.solution_.relative_gap, most=1e-5)
    row("a9a: memory of the whole process, MB", memory, most=1000)


def compare_classifiers(
    name: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray
) -> None:
    """20,000 rows: learned scale and penalty on landmarks, compared with SVC and LightGBM."""
    scaler = StandardScaler().fit(X)
    ours = KernelClassifier(loss="logistic", landmarks=1000)
    t_ours, _ = best(lambda: ours.fit(X, y), 1)
    theirs = SVC(gamma="scale")
    t_theirs, _ = best(lambda: theirs.fit(scaler.transform(X), y), 1)
    boosted = LGBMClassifier(n_jobs=1, verbose=-1)
    t_boosted, _ = best(lambda: boosted.fit(X, y), 1)
    accuracy = ours.score(X_test, y_test)
    reference = theirs.score(scaler.transform(X_test), y_test)
    trees = float(np.mean(boosted.predict(X_test) == y_test))
    row(f"{name}, 20,000 rows: accuracy of hplus ({t_ours:.1f} s)", accuracy)
    row(f"{name}: accuracy of LightGBM ({t_boosted:.1f} s)", trees)
    row(f"{name}: accuracy of SVC ({reference:.4f}) minus hplus", reference - accuracy, most=0.0)
    row(f"{name}: fit time, hplus / SVC ({t_theirs:.1f} s)", t_ours / t_theirs, most=3.0)


def classifiers(folder: Path | None) -> None:
    """Simulated tables with three seeds and 40,000 test rows each, and a9a."""
    for seed in (20, 21, 22):
        X, y = smooth_classes(60_000, seed)
        split = X[:20_000], y[:20_000], X[20_000:], y[20_000:]
        compare_classifiers(f"smooth classes, seed {seed}", *split)
        X, y = make_classification(
            60_000, 10, n_informative=5, n_redundant=1, n_clusters_per_class=4, flip_y=0.03,
            random_state=seed,
        )  # fmt: skip
        split = X[:20_000], y[:20_000], X[20_000:], y[20_000:]
        compare_classifiers(f"clusters, seed {seed}", *split)
    if folder is not None:
        X, y = read_a9a(folder / "a9a_train.csv.gz")
        X_test, y_test = read_a9a(folder / "a9a_test.csv")
        compare_classifiers("a9a", X[:20_000], y[:20_000], X_test, y_test)


def read_a9a(path: Path) -> tuple[np.ndarray, np.ndarray]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        rows = list(csv.DictReader(file))
    X = np.zeros((len(rows), 123))
    for i, r in enumerate(rows):
        X[i, np.array(r["active_features"].split(), dtype=int) - 1] = 1.0
    return X, np.array([int(r["label"]) for r in rows])


def main() -> None:
    options = parser(__doc__).parse_args()
    folder = options.data
    header()
    with threadpool_limits(1):
        if folder is not None:
            bike(folder)
            if not options.quick:
                a9a(folder)
        data = banana()
        hinge_agreement("banana, 5,300 rows", data.X, data.y, Gaussian(0.5))
        if not options.quick:
            prediction()
            classifiers(folder)
    if folder is None:
        print("\nUse --data FOLDER for the rows on bike sharing and a9a.")
    finish()


if __name__ == "__main__":
    main()
