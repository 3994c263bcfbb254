"""Sums of squares, compared with general solvers (SCS, Clarabel) and one eigendecomposition.

    python benchmarks/squares.py [--quick]

One process, one BLAS thread, squared loss, data of [bagnell2015]: y = sin x + cos 3x - x²/4 + 3
with noise. Speeds are ratios within this run; CPU times are the best of a few repeats. --quick
leaves out the solvers that take minutes. Exits with code 1 if a bound is missed.
"""

from __future__ import annotations

import time

import numpy as np
from _full_cone import full_cone_reference
from _measure import best, finish, header, parser, peak_megabytes, row
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from hplus import Full, Gaussian, Nugget, SoSRegressor
from hplus.losses import Squared
from hplus.solvers.sos.learning import feature_map

SMOOTH, ROUGH = Gaussian(0.75), Gaussian(0.75) + 0.01 * Nugget()


def wave(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-5.0, 5.0, n))
    y = np.sin(x) + np.cos(3.0 * x) - (x / 2.0) ** 2 + 3.0 + 0.5 * rng.normal(size=n)
    return x[:, None], y


def small(general: bool) -> None:
    """n = 200, all points: with a nugget no features are truncated, so A is 200 x 200."""
    X, y = wave(200)
    model = SoSRegressor(ROUGH)
    seconds, _ = best(lambda: model.fit(X, y))
    row("n = 200, nugget: certified relative gap", model.solution_.relative_gap, most=1e-6)
    if not general:
        return
    features = feature_map(ROUGH, X, None)(X)
    arguments = (features, y, np.full(200, 1 / 200), Squared(), 1e-3, 1e-3)
    theirs, (_, objective) = best(lambda: full_cone_reference(*arguments, "SCS", 1e-6), 1)
    row(f"n = 200, nugget: cvxpy + SCS / hplus ({seconds:.2f} s)", theirs / seconds, least=200)
    difference = abs(model.solution_.objective - objective) / objective
    row("n = 200, nugget: relative difference of objectives", difference, most=1e-3)


def thousand(general: bool) -> None:
    """n = 1,000: truncated features, and a nugget, with which none are truncated."""
    X, y = wave(1000)
    K = ROUGH(X)
    unit, _ = best(lambda: eigh(K))
    print(f"| one eigh of size 1,000, seconds | {unit:.3g} | |")
    model = SoSRegressor(SMOOTH)
    seconds, _ = best(lambda: model.fit(X, y), 5)
    features = feature_map(SMOOTH, X, None)(X)
    what = f"n = 1,000, {features.shape[1]} features"
    row(f"{what}: fit / eigh ({seconds:.3f} s)", seconds / unit, most=2.5)
    row(f"{what}: certified relative gap", model.solution_.relative_gap, most=1e-6)
    if general:
        arguments = (features, y, np.full(1000, 1e-3), Squared(), 1e-3, 1e-3)
        theirs, (_, objective) = best(lambda: full_cone_reference(*arguments, eps=1e-6), 1)
        row(f"{what}: time, Clarabel / hplus", theirs / seconds, least=100)
        difference = abs(model.solution_.objective - objective) / objective
        row(f"{what}: relative difference of objectives", difference, most=1e-5)
    for name, cone, most in (
        ("trace 1e-3, frobenius 1e-3", Full(), 25.0),
        ("trace 0, frobenius 2·0.01/n", Full(0.0, 2e-5), np.inf),
    ):
        model = SoSRegressor(ROUGH, cone=cone)
        seconds, _ = best(lambda m=model: m.fit(X, y), 2)
        squares = model.function_.factor.shape[1]
        row(f"n = 1,000, nugget, {name} ({squares} squares): fit / eigh", seconds / unit, most)
        row("  certified relative gap", model.solution_.relative_gap, most=1e-6)


def many() -> None:
    """n = 100,000 with 200 landmarks: time and memory, and how they grow with n and m."""
    before = peak_megabytes()
    for n, m, bound in ((25_000, 200, np.inf), (100_000, 50, np.inf), (100_000, 200, 15.0)):
        rng = np.random.default_rng(0)
        X = rng.uniform(-5.0, 5.0, (n, 2))
        y = rng.poisson(2.0 + np.sin(X[:, 0]) + np.cos(2.0 * X[:, 1])).astype(float)
        model = SoSRegressor(Gaussian(1.0), landmarks=m)
        start = time.perf_counter()
        model.fit(X, y)
        row(f"n = {n:,}, {m} landmarks: seconds", time.perf_counter() - start, bound)
        row("  certified relative gap", model.solution_.relative_gap, most=1e-6)
    row("  memory of the whole process, MB", peak_megabytes(), most=1000)
    print(f"| (before these fits it was {before:.0f} MB) | | |")


def growth() -> None:
    """Seconds per fit: linear in n with truncated features, cubic in n without truncation."""
    for name, kernel, sizes in (
        ("truncated", SMOOTH, (1000, 4000, 16_000, 64_000)),
        ("nugget", ROUGH, (250, 500, 1000)),
    ):
        times = []
        for n in sizes:
            X, y = wave(n)
            times.append(best(lambda X=X, y=y, k=kernel: SoSRegressor(k).fit(X, y), 2)[0])
        power = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        listed = ", ".join(f"{n:,}: {t:.2g} s" for n, t in zip(sizes, times, strict=True))
        print(f"| {name}: {listed} | grows like n^{power:.1f} | |")


def main() -> None:
    general = not parser(__doc__).parse_args().quick
    header()
    with threadpool_limits(1):
        many()
        thousand(general)
        growth()
        small(general)
    finish()


if __name__ == "__main__":
    main()
