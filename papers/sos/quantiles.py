"""The numbers of the report on quantiles that cannot cross; see `experiments.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from hplus import Constant, Full, Gaussian, KernelRegressor, Quantile, QuantilesRegressor, datasets
from hplus.kernels import Kernel

Floats = NDArray[np.float64]
Sample = tuple[Floats, Floats]

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Quantiles:
    """Five quantiles of one data set by one method: values on a grid (q, 5), and their loss."""

    data: str
    method: str
    X: Floats
    y: Floats
    grid: Floats
    values: Floats
    loss: float


def crossings(values: Floats) -> int:
    """The number of grid points at which a quantile is above the next one."""
    return int(np.any(np.diff(values, axis=1) < 0.0, axis=1).sum())


def fan_sample(n: int, seed: int) -> Sample:
    """Targets around a wave, with a spread that grows with x, shapes (n, 1) and (n,)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 10.0, n)
    return x[:, None], 2.0 * np.sin(x) + (0.2 + 0.2 * x) * rng.normal(size=n)


def coal_counts() -> Sample:
    """Disasters in each year from 1851 to 1962: the middle of each (112, 1), counts (112,)."""
    counts, edges = np.histogram(datasets.coal().X[:, 0], np.arange(1851, 1964))
    return (edges[:-1] + 0.5)[:, None], counts.astype(np.float64)


def quantiles_data(
    draws: int = 3, n: int = 80, penalties: Sequence[float] = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
) -> list[Quantiles]:
    """Both methods on simulated fans and on the coal data, each penalty by cross-validation."""
    wave, decade = Gaussian(1.5) + Constant(1.0), Gaussian(10.0) + Constant(1.0)
    fits = []
    for seed in range(draws):
        fits += _quantiles(f"fan {seed + 1}", fan_sample(n, seed), wave, False, penalties)
    return fits + _quantiles("coal", coal_counts(), decade, True, penalties)


def _quantiles(
    data: str, sample: Sample, kernel: Kernel, positive: bool, penalties: Sequence[float]
) -> list[Quantiles]:
    X, y = sample
    grid = np.linspace(X.min(), X.max(), 801)[:, None]
    together = [QuantilesRegressor(LEVELS, positive, kernel, cone=Full(p, p)) for p in penalties]
    alone = [
        [KernelRegressor(kernel, Quantile(level), p, fit_intercept=False) for p in penalties]
        for level in LEVELS
    ]
    joint = _best(together, X, y, lambda model, X, y: -model.score(X, y))
    each = [_best(models, X, y, _pinball) for models in alone]
    apart = np.column_stack([model.predict(grid) for model, _ in each])
    mean = float(np.mean([loss for _, loss in each]))
    return [
        Quantiles(data, "together", X, y, grid[:, 0], joint[0].predict(grid), joint[1]),
        Quantiles(data, "one by one", X, y, grid[:, 0], apart, mean),
    ]


def _pinball(model: KernelRegressor, X: Floats, y: Floats) -> float:
    return float(model.loss.value(y, model.predict(X)).mean())


def _best(
    models: Sequence[Any], X: Floats, y: Floats, loss: Callable[[Any, Floats, Floats], float]
) -> tuple[Any, float]:
    """The model with the smallest cross-validated loss, fitted to all rows, and that loss."""
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    losses = [
        float(np.mean([loss(model.fit(X[i], y[i]), X[o], y[o]) for i, o in folds]))
        for model in models
    ]
    best = int(np.argmin(losses))
    return models[best].fit(X, y), losses[best]
