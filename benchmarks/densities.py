"""Density estimation on ten test densities, compared with scikit-learn and SciPy.

    python benchmarks/densities.py [--quick]

The shapes are a selection from Marron and Wand (1992), and some with an edge or long tails. The
loss of an estimate q for the truth p is the KL divergence ∫ p log(p/q), in nats, over all but
1/10,000 of the mass of p. Compared with `KernelDensity` with a bandwidth by 5-fold
cross-validation, `gaussian_kde` with its rule of thumb, and `GaussianMixture` with the number of
components by BIC. Nothing is tuned by hand; one BLAS thread. Exits with code 1 if a bound is
missed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _measure import finish, header, parser, row
from scipy import stats
from scipy.stats import norm
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity
from threadpoolctl import threadpool_limits

from hplus import Density

Parts = list[tuple[float, Any]]
Curve = Callable[[np.ndarray], np.ndarray]

SHAPES: dict[str, Parts] = {
    "normal": [(1.0, norm())],
    "two bumps": [(0.5, norm(-1.0, 0.3)), (0.5, norm(1.0, 0.3))],
    "three bumps": [(0.45, norm(-1.2, 0.6)), (0.45, norm(1.2, 0.6)), (0.1, norm(0.0, 0.25))],
    "skewed": [(1 / 8, norm(3.0 * ((2 / 3) ** k - 1.0), (2 / 3) ** k)) for k in range(8)],
    "needle": [(2 / 3, norm()), (1 / 3, norm(0.0, 0.1))],
    "needle with outliers": [(0.1, norm()), (0.9, norm(0.0, 0.1))],
    "claw": [(0.5, norm()), *((0.1, norm(k / 2 - 1.0, 0.1)) for k in range(5))],
    "Student, 3": [(1.0, stats.t(3))],
    "exponential": [(1.0, stats.expon())],
    "uniform": [(1.0, stats.uniform())],
}

LEFT_OUT, NODES = 5e-5, 8001
"""The mass of the truth beyond each end of the integral, and the number of nodes."""


def draw(parts: Parts, n: int, seed: int) -> np.ndarray:
    rng = np.random.RandomState(seed)
    chosen = rng.choice(len(parts), n, p=[share for share, _ in parts])
    values = np.array([part.rvs(size=n, random_state=rng) for _, part in parts])
    return values[chosen, np.arange(n)]


def lost(q: Curve, parts: Parts) -> float:
    """∫ p log(p/q) for the truth p."""
    low = min(part.ppf(LEFT_OUT) for _, part in parts)
    high = max(part.ppf(1.0 - LEFT_OUT) for _, part in parts)
    s = np.linspace(low, high, NODES)
    p = sum(share * part.pdf(s) for share, part in parts)
    s, p = s[p > 0.0], p[p > 0.0]
    with np.errstate(divide="ignore"):
        ratio = np.log(p) - np.log(np.maximum(q(s), 1e-300))
    return float(p @ ratio * (high - low) / (NODES - 1))


def ours(x: np.ndarray) -> Curve:
    model = Density(random_state=0).fit(x[:, None])
    return lambda s: model.predict(s[:, None])


def cross_validated(x: np.ndarray) -> Curve:
    widths = {"bandwidth": x.std() * np.geomspace(0.03, 1.0, 25)}
    folds = KFold(5, shuffle=True, random_state=0)
    model = GridSearchCV(KernelDensity(), widths, cv=folds).fit(x[:, None]).best_estimator_
    return lambda s: np.exp(model.score_samples(s[:, None]))


def mixture(x: np.ndarray) -> Curve:
    tried = [GaussianMixture(k, random_state=0, n_init=3).fit(x[:, None]) for k in range(1, 7)]
    model = min(tried, key=lambda model: model.bic(x[:, None]))
    return lambda s: np.exp(model.score_samples(s[:, None]))


MODELS: dict[str, Callable[[np.ndarray], Curve]] = {
    "Density()": ours,
    "KernelDensity, cross-validated": cross_validated,
    "gaussian_kde": stats.gaussian_kde,
    "GaussianMixture, BIC": mixture,
}


def losses(n: int, draws: int) -> tuple[np.ndarray, dict[str, float]]:
    """The loss of each model on each shape, (models, shapes, draws), and seconds per fit."""
    table, seconds = np.empty((len(MODELS), len(SHAPES), draws)), {}
    for i, (name, model) in enumerate(MODELS.items()):
        start = time.process_time()
        for j, parts in enumerate(SHAPES.values()):
            for k in range(draws):
                table[i, j, k] = lost(model(draw(parts, n, k)), parts)
        seconds[name] = (time.process_time() - start) / (len(SHAPES) * draws)
    return table, seconds


def compare(n: int, draws: int) -> None:
    table, seconds = losses(n, draws)
    means = table.mean(axis=2)
    for j, shape in enumerate(SHAPES):
        for i, name in enumerate(MODELS):
            row(f"{shape}, {n} values: KL divergence of {name}, nats", means[i, j])
    for name, spent in seconds.items():
        row(f"{n} values: {name}, seconds per fit", spent)
    for i, name in list(enumerate(MODELS))[1:]:
        least = 8 if i == 1 else -np.inf
        row(f"{n} values: shapes of {len(SHAPES)} on which Density() is better than {name}",
            int((means[0] < means[i]).sum()), least=least)  # fmt: skip
        difference = (table[i] - table[0]).mean(axis=0)
        t = difference.mean() / (difference.std(ddof=1) / np.sqrt(draws))
        row(f"{n} values: {name} minus Density(), all shapes, standard errors", float(t),
            least=2.0 if i == 1 else -np.inf)  # fmt: skip


if __name__ == "__main__":
    options = parser(__doc__).parse_args()
    header()
    with threadpool_limits(1):
        compare(80, 5 if options.quick else 40)
        if not options.quick:
            compare(500, 20)
    finish()
