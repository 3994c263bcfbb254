"""Expected counts of thousands of regions, with intervals, on one thread.

    python benchmarks/regions.py [--quick]

Events are simulated. --quick leaves out the border of 20,000 vertices. Times are CPU seconds of
`expected_count` and `count_interval` together. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import os

# before any of the libraries is imported
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

import itertools
from collections.abc import Sequence

import numpy as np
from _measure import best, finish, header, parser, row

from hplus import Box, Intensity, Interval, Polygon
from hplus.rates.mixed_poisson import mixed_poisson_quantile
from hplus.windows import Window

SIDES = (1000.0, 800.0)
"""Of the bounding box of the events, in km."""

REGION_SECONDS = 3.0


def country(vertices: int) -> Polygon:
    """A border with bays of all sizes."""
    angle = 2.0 * np.pi * np.arange(vertices) / vertices
    radius = 1.0 + 0.2 * np.sin(3 * angle) + 0.05 * np.sin(40 * angle)
    radius *= 1.0 + 0.3 / vertices * np.random.default_rng(0).normal(size=vertices)
    ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    low = ring.min(axis=0)
    return Polygon((ring - low) / (ring.max(axis=0) - low) * SIDES, unit="km")


def towns(window: Window, n: int = 20_000) -> np.ndarray:
    """Events around 50 places, half of them close to one."""
    rng = np.random.default_rng(1)
    places = window.sample(50, 0)
    near = places[rng.integers(50, size=n)] + rng.normal(0.0, 15.0, (n, 2))
    X = np.concatenate([near, window.sample(n, 1)])
    return X[window.contains(X)]


def cells(side: int = 60) -> list[Box]:
    """The cells of the bounding box."""
    axes = [list(itertools.pairwise(np.linspace(0.0, end, side + 1))) for end in SIDES]
    return [Box((a, c), (b, d)) for (a, b), (c, d) in itertools.product(*axes)]


def polygons(count: int = 2_000) -> list[Polygon]:
    """Polygons of 10 to 30 vertices and 10 to 100 km, anywhere in the bounding box."""
    rng = np.random.default_rng(2)
    found = []
    for v in rng.integers(10, 31, count):
        angle = 2.0 * np.pi * (np.arange(v) + rng.uniform(0.0, 0.9, v)) / v
        radius = rng.uniform(10.0, 100.0) * rng.uniform(0.4, 1.0, v)
        ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        found.append(Polygon(rng.uniform((0, 0), SIDES) + ring))
    return found


def seconds_of(model: Intensity, regions: Sequence[Window]) -> float:
    def counts(some: Sequence[Window]) -> None:
        model.expected_count(some)
        model.count_interval(some)

    counts(regions[:1])  # compiles
    return best(lambda: counts(regions))[0]


def ask(name: str, window: Window) -> None:
    model = Intensity(window).fit(towns(window))
    for kind, regions in (("cells", cells()), ("polygons", polygons())):
        seconds = seconds_of(model, regions)
        row(f"{name}: {len(regions):,} {kind}, seconds", seconds, most=REGION_SECONDS)


def times_of_day() -> None:
    """Cells of a window with a third axis, each over all of it."""
    window = Box((0, 0), SIDES, unit="km") * Interval(0, 24, unit="h")
    X = towns(window.left)
    hours = 24.0 * np.random.default_rng(3).beta(2.0, 3.0, len(X))
    model = Intensity(window).fit(np.column_stack([X, hours]))
    regions = [cell * Interval(0, 24) for cell in cells()]
    seconds = seconds_of(model, regions)
    row(f"a box and a day: {len(regions):,} cells, seconds", seconds, most=REGION_SECONDS)


def quantiles() -> None:
    """Intervals of counts from 256 values of each mean."""
    rng = np.random.default_rng(4)
    for mean in (0.5, 40.0, 1000.0):
        means = mean * np.exp(0.2 * rng.normal(size=(3600, 256)))
        mixed_poisson_quantile(means[:1], 0.5)
        seconds, _ = best(lambda m=means: [mixed_poisson_quantile(m, p) for p in (0.05, 0.95)])
        row(f"intervals of 3,600 counts of about {mean:g}, seconds", seconds, most=1.0)


def main() -> None:
    options = parser(__doc__).parse_args()
    header()
    quantiles()
    ask("a box", Box((0, 0), SIDES, unit="km"))
    ask("a border of 4,000 vertices", country(4_000))
    if not options.quick:
        ask("a border of 20,000 vertices", country(20_000))
    times_of_day()
    return finish()


if __name__ == "__main__":
    main()
