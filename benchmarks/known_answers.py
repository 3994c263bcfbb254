"""Rates and densities of real data, compared with known results.

    python benchmarks/known_answers.py --data FOLDER [--quick]

FOLDER contains the data sets, which are not bundled: bei with covariates, fires in a polygon,
thefts by place and hour of the day, Old Faithful. --quick leaves out fires and thefts. Exits with
code 1 if a bound is missed.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
from _measure import finish, header, parser, row

from hplus import Box, Density, Gaussian, Intensity, Interval, Periodic, Polygon


def table(path: Path) -> np.ndarray:
    return np.loadtxt(path, delimiter=",", skiprows=1)


def trees(folder: Path) -> None:
    """spatstat's ppm(bei ~ elev + grad) has elev 0.0214 and grad 5.84."""
    cells = table(folder / "bei_covariates.csv")
    cells = cells[np.lexsort((cells[:, 1], cells[:, 0]))]
    elevation, slope = (cells[:, j].reshape(201, 101) for j in (2, 3))
    window = Box((0, 0), (1000, 500), unit="m")
    model = Intensity(window, covariates={"elev": elevation, "grad": slope})
    model.fit(table(folder / "bei.csv"))
    row("bei: coefficient of elevation", model.coefficients_["elev"], 0.024, 0.019)
    row("bei: coefficient of slope", model.coefficients_["grad"], 6.4, 5.3)
    sizes = {
        name: abs(b) / model.coefficient_errors_[name] for name, b in model.coefficients_.items()
    }
    row("bei: slope, in standard errors that allow for clustering", sizes["grad"], least=2.0)


def fires(folder: Path) -> None:
    ring = table(folder / "clmfires_window.csv")[:, 1:]
    with open(folder / "clmfires.csv") as file:
        X = np.array([(float(r["x_km"]), float(r["y_km"])) for r in csv.DictReader(file)])
    window = Polygon(ring, unit="km")
    model = Intensity(window).fit(X)
    total = model.expected_count(window)
    row("fires: expected / observed in the polygon, minus 1", total / len(X) - 1, 1e-6, -1e-6)
    low, high = window.bounds()
    middle = (low + high) / 2
    west = Box(low, (middle[0], high[1]))
    east = Box((middle[0], low[1]), high)
    parts = model.expected_count([west, east])
    row("fires: relative error of the sum of two halves", abs(parts.sum() / total - 1), 1e-4)
    row("fires: expected / observed in the west", parts[0] / west.contains(X).sum(), 1.02, 0.98)


def thefts(folder: Path) -> None:
    """The expected counts by time of day must agree with the histogram."""
    name = folder / "nyc_vehicle_thefts_2014_2017.csv.gz"
    with gzip.open(name, "rt") as file:
        rows = list(csv.DictReader(file))
    hours = np.array([int(r["datetime"][11:13]) + int(r["datetime"][14:16]) / 60 for r in rows])
    x = np.array([(float(r["lon"]) + 74.0) * 84.4 for r in rows])
    y = np.array([(float(r["lat"]) - 40.7) * 110.57 for r in rows])
    X = np.column_stack([x, y, hours])
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    window = Box(low[:2], high[:2], unit="km") * Interval(0, 24, unit="hour")
    kernel = Gaussian(2.0, columns=[0, 1]) * Periodic(24.0, 1.0, columns=[2])
    model = Intensity(window, kernel, 0.5).fit(X)
    place = Box(low[:2], high[:2])
    seen = np.histogram(hours, np.arange(0, 25, 4))[0]
    expected = model.expected_count([place * Interval(h, h + 4) for h in range(0, 24, 4)])
    row("thefts: largest error in six parts of the day", np.abs(expected / seen - 1).max(), 0.1)
    row("thefts: rates before / after midnight", _midnight(model, low, high), 1.02, 0.98)


def _midnight(model: Intensity, low: np.ndarray, high: np.ndarray) -> float:
    place = Box(low[:2], high[:2])
    before, after = model.expected_count(
        [place * Interval(23.99, 24.0), place * Interval(0.0, 0.01)]
    )
    return before / after


def geyser(folder: Path) -> None:
    """Old Faithful erupts for about 2 or 4.4 minutes, rarely for 3."""
    X = table(folder / "faithful.csv")
    model = Density().fit(X)
    point, _ = model.peak()
    row("faithful: most likely duration, minutes", point[0], 4.7, 4.1)
    low, high = X.min(axis=0) - 1, X.max(axis=0) + 1
    short = model.probability(Box(low, (3.0, high[1])))
    row("faithful: probability of less than 3 minutes", short, 0.39, 0.32)


def main() -> None:
    options = parser(__doc__).parse_args()
    folder = options.data
    if folder is None:
        print("Needs --data FOLDER: these data sets are not bundled.")
        return
    header()
    for part in (trees, geyser) if options.quick else (trees, fires, thefts, geyser):
        part(folder)
    finish()


if __name__ == "__main__":
    main()
