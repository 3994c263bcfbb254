"""Quantiles of Gamma distributions from a table: many at once, without a root search."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import gammaincinv

from hplus._checks import Floats, Ints
from hplus.rates.bands import MAX_LOG_FACTOR

TABLE_QUANTILES = 512
"""Quantiles in the table, equally likely."""

LOG_SHAPES = np.linspace(np.log(1e-4), np.log(1e10), 600)
"""Logs of the shapes in the table; beyond it the nearest is taken."""


@cache
def log_quantiles() -> Floats:
    """log(quantile/mean) of Gamma distributions, by shape and quantile, (600, 512)."""
    shapes = np.exp(LOG_SHAPES)[:, None]
    p = (np.arange(TABLE_QUANTILES) + 0.5) / TABLE_QUANTILES
    with np.errstate(divide="ignore"):
        logs = np.log(gammaincinv(shapes, p)) - np.log(shapes)
    return np.maximum(logs, -MAX_LOG_FACTOR)


def gamma_factors(shapes: Floats, which: Ints) -> Floats:
    """Quantiles relative to the mean, for shapes broadcast against numbers of quantiles."""
    step = LOG_SHAPES[1] - LOG_SHAPES[0]
    with np.errstate(divide="ignore"):
        at = np.clip((np.log(shapes) - LOG_SHAPES[0]) / step, 0.0, len(LOG_SHAPES) - 1.001)
    row = at.astype(int)
    t, table = at - row, log_quantiles()
    return np.exp((1.0 - t) * table[row, which] + t * table[row + 1, which])


def gamma_draws(means: Floats, shapes: Floats, k: int) -> Floats:
    """About k equally likely values of a mixture of Gamma distributions, (n, k).

    The means and shapes (trees, n) are those of trees of equal weight. Each tree has as many
    quantiles as the others; those of all trees together are evenly spaced.
    """
    trees = len(means)
    each = max(k // trees, 1)
    where = (np.arange(each) + (np.arange(trees)[:, None] + 0.5) / trees) / each
    which = (TABLE_QUANTILES * where).astype(int)
    values = means[:, None] * gamma_factors(shapes[:, None], which[:, :, None])
    return values.reshape(trees * each, -1).T
