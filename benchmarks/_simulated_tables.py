"""Simulated tables like those people have: smooth responses, interactions, skewed columns."""

from __future__ import annotations

import numpy as np


def concrete_like(n: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Eight columns, some skewed or mostly 0, and a positive quantity with 10 % noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (n, 8))
    X[:, 0] = np.exp(2.0 * rng.normal(size=n))
    X[:, 1] = rng.choice([0, 0, 0, 1], n) * rng.uniform(0.0, 200.0, n)
    f = 0.4 * np.tanh(np.log(X[:, 0]) / 2.0) + 0.8 * np.sin(3.0 * X[:, 2])
    f = f + 1.2 * X[:, 3] * X[:, 4] - 2.0 * (X[:, 5] - 0.5) ** 2 + 0.003 * X[:, 1] * X[:, 2]
    return _named(X), 36.0 * np.exp(0.6 * f + 0.1 * rng.normal(size=n))


def interacting(n: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Eight columns of which five interact, and a heavy-tailed positive quantity."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    X[:, 5:] = np.exp(X[:, 5:])
    f = X[:, 0] * X[:, 1] + np.where(X[:, 2] > 0.5, X[:, 3], 0.3) + np.log1p(X[:, 5])
    return _named(X), 10.0 * np.exp(0.4 * f + 0.25 * rng.standard_t(4, n))


def overdispersed(n: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The columns of `concrete_like`, and counts of 3 on average with twice as much variance."""
    columns, y = concrete_like(n, seed)
    rng = np.random.default_rng(seed + 1)
    mean = 3.0 * y / y.mean()
    return columns, rng.poisson(mean * rng.gamma(2.0, 0.5, n)).astype(float)


def smooth_classes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten columns, one of them skewed, and labels whose log-odds are a smooth function of six."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.7 * (X[:, 3] ** 2 - 1.0)
    f = f + 0.5 * X[:, 4] - np.abs(X[:, 5]) + 0.8
    X[:, 6] = np.exp(X[:, 6])
    return X, (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-2.0 * f))).astype(int)


def _named(X: np.ndarray) -> dict[str, np.ndarray]:
    return {f"x{j}": column for j, column in enumerate(X.T)}
