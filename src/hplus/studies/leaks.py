"""Leaks: columns that contain the target, which would not be known for a forecast."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from hplus._checks import Floats

MAX_EXPLAINED = 0.999
"""More of the target's variance than an honest feature explains."""


def leaks(names: list[str], X: Floats, y: Floats) -> list[str]:
    """One sentence for each column of X (n, d) that alone gives y, or for several together."""
    shares = {name: explained_alone(x, y) for name, x in zip(names, X.T, strict=True)}
    alone = [name for name, share in shares.items() if share > MAX_EXPLAINED]
    if alone:
        return [
            f"The column {name!r} alone explains over 99.9 % of the target: leave it out if it is "
            "known only afterwards, or is the target in another form."
            for name in alone
        ]
    d = X.shape[1]
    if len(y) < 10 * (d + 1) or _explained(X, y) <= MAX_EXPLAINED:
        return []
    needed = [names[j] for j in range(d) if _explained(np.delete(X, j, 1), y) <= MAX_EXPLAINED]
    which = " and ".join(repr(name) for name in needed or names)
    return [
        f"The columns {which} together explain over 99.9 % of the target: leave them out if they "
        "are known only afterwards, or are parts of it."
    ]


def explained_alone(x: Floats, y: Floats) -> float:
    """The share of the variance of y explained by a line in x, or of its ranks by any function.

    A function of x leaves half the mean squared difference between neighbours along x.
    """
    if y.min() == y.max() or x.min() == x.max():
        return 0.0
    ranks = rankdata(y)
    steps = np.diff(ranks[np.argsort(x, kind="stable")])
    return max(1.0 - 0.5 * float(np.mean(steps**2) / ranks.var()), _explained(x[:, None], y))


def _explained(X: Floats, y: Floats) -> float:
    """The share of the variance of y that a linear function of X (n, d) explains."""
    A, z = X - X.mean(axis=0), y - y.mean()
    size, variance = np.abs(A).max(axis=0, initial=0.0), z.var()
    A = A[:, size > 1e-290] / size[size > 1e-290]
    if A.shape[1] == 0 or variance == 0.0:
        return 0.0
    residual = z - A @ np.linalg.lstsq(A, z, rcond=None)[0]
    return 1.0 - float(residual.var() / variance)
