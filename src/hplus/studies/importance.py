"""How much each column adds to predictions: what is lost if its entries are exchanged."""

from __future__ import annotations

import numpy as np

from hplus._checks import Floats
from hplus._progress import each
from hplus.storage.files import Json
from hplus.studies.encoding import Column, encoded_table
from hplus.studies.validation import HeldOut, LearnedRate, Rows, poisson_deviance

MAX_EXCHANGED_ROWS = 4000
"""Held-out rows of which entries are exchanged, at most."""

EXCHANGES = 3
"""How often the entries of a column are exchanged."""


def importances(columns: tuple[Column, ...], held: HeldOut) -> list[Json]:
    """How much of the explained deviance is lost if a column is shuffled, largest first.

    Every held-out row is predicted with the entries of the column from other rows of its fold, by
    the model that saw none of them. `error` is the standard error, from the differences of folds.
    """
    limit = max(2, MAX_EXCHANGED_ROWS // len(held.folds))
    lost, plain = [], 0.0
    for model, tested in each("shuffling columns", held.folds):
        rows = tested.take(np.arange(min(len(tested.y), limit)))
        plain += len(rows.y) * poisson_deviance(rows.y, model.unit * rows.exposure)
        lost.append(_losses(columns, model, rows))
    folds = len(lost)
    # over the deviance of all folds: that of a small one may be next to nothing
    shares = np.array(lost) * (folds / plain if plain > 0.0 else 0.0)
    errors = np.zeros(len(columns))
    if folds > 1:
        errors = np.std(shares, axis=0, ddof=1) / np.sqrt(folds)
    facts = [
        {"column": column.name, "lost": float(share), "error": float(error)}
        for column, share, error in zip(columns, np.mean(shares, axis=0), errors, strict=True)
    ]
    return sorted(facts, key=lambda fact: -float(fact["lost"]))


def _losses(columns: tuple[Column, ...], model: LearnedRate, rows: Rows) -> Floats:
    """The deviance that is added, over all rows, by exchanging the entries of each column (d,)."""
    X, f = encoded_table(columns, rows.values), model.machine.function_
    factors = model.scales.factors()
    K = np.ones((len(X), len(f.centers)))
    for factor in factors:
        K *= factor.gram(X, f.centers)

    def deviance(K: Floats) -> float:
        log_rate = K @ f.weights + f.weights.sum() + model.machine.intercept_
        m = model.unit * rows.exposure * np.exp(log_rate)
        return len(m) * poisson_deviance(rows.y, m)

    whole, lost, start = deviance(K), np.zeros(len(columns)), 0
    for j, column in enumerate(columns):
        mine = factors[start : start + len(column.parts())]
        start += len(mine)
        if mine:
            F = np.prod([factor.gram(X, f.centers) for factor in mine], axis=0)
            others = K / F
            # rows are in random order, so those a few places on are as good as any
            steps = [1 + k * len(F) // EXCHANGES % (len(F) - 1) for k in range(EXCHANGES)]
            shuffled = [deviance(others * np.roll(F, s, axis=0)) for s in steps]
            lost[j] = np.mean(shuffled) - whole
    return lost
