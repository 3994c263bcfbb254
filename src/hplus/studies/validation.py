"""How well a quantity is predicted: rows held out, intervals tried out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from hplus._checks import Floats, Ints
from hplus._progress import each
from hplus.estimators.machines import KernelRegressor
from hplus.features import Nystroem
from hplus.studies.encoding import Column, encoded_table
from hplus.studies.ratio_intervals import learned_ratios
from hplus.studies.relevance import Scales, learned_scales

FOLDS = 5
"""A fifth of the rows is held out at a time,"""

MIN_HELD_OUT, MIN_FOLDS = 4000, 3
"""and further fifths until this many rows were, but at least as many fifths."""

MIN_LANDMARKS, MAX_LANDMARKS = 400, 800
"""Landmarks of the kernel regression: half of the rows, but at least and at most as many."""


class Rows(NamedTuple):
    """Rows to learn from: values (n, columns), targets (n,) and exposures (n,)."""

    values: Floats
    y: Floats
    exposure: Floats

    def take(self, rows: Ints) -> Rows:
        """Some of the rows."""
        return Rows(self.values[rows], self.y[rows], self.exposure[rows])


class LearnedRate(NamedTuple):
    """The rate in units of the plain mean as a function of the encoded columns, and that unit."""

    machine: KernelRegressor
    unit: float
    scales: Scales

    def predict(self, X: Floats) -> Floats:
        """The rate at encoded rows X (n, parts), at exposure 1."""
        return self.unit * self.machine.predict(X)


class HeldOut(NamedTuple):
    """Held-out targets y and what the model and the plain mean predict of them, each (n,).

    `folds` are the models, each with the rows that it did not see, in random order. `scales` are
    those of all models, learned from rows that were never held out, or None if each has its own.
    """

    y: Floats
    predicted: Floats
    plain: Floats
    folds: tuple[tuple[LearnedRate, Rows], ...]
    scales: Scales | None

    def facts(self, level: float, rng: np.random.RandomState) -> dict[str, Any]:
        """Scores, and the coverage and width of intervals, as plain data."""
        coverage, width = tried_intervals(self.y, self.predicted, level, rng)
        return {
            "held_out": len(self.y),
            "folds": len(self.folds),
            "scores": scores(self.y, self.predicted),
            "plain_mean": scores(self.y, self.plain),
            "explained": explained_share(self.y, self.predicted, self.plain),
            "level": level,
            "coverage": coverage,
            "width": width,
        }


def learned_rate(
    columns: tuple[Column, ...],
    rows: Rows,
    rng: np.random.RandomState,
    scales: Scales | None = None,
) -> LearnedRate:
    """The rate of the rows in units of the plain mean; scales are learned unless they are given."""
    unit, relative = rows.y.sum() / rows.exposure.sum(), rows.exposure / rows.exposure.mean()
    X = encoded_table(columns, rows.values)
    if scales is None:
        scales = scales_of(columns, rows.take(rng.permutation(len(X))))
    count = int(np.clip(len(X) // 2, MIN_LANDMARKS, MAX_LANDMARKS))
    landmarks = Nystroem(count, random_state=int(rng.randint(2**31)))
    penalty = scales.penalty(len(X))
    machine = KernelRegressor(
        scales.kernel(), "poisson_log", penalty, landmarks, fit_intercept=False
    )
    machine.fit(X, rows.y / (unit * rows.exposure) * relative, exposure=relative)
    return LearnedRate(machine, float(unit), scales)


def scales_of(columns: tuple[Column, ...], rows: Rows) -> Scales:
    """Which columns matter and on what scale, by the first of the rows, in random order."""
    parts = tuple(part for column in columns for part in column.parts())
    periods = np.array([p for column in columns for p in column.possible_periods()])
    X = encoded_table(columns, rows.values)
    return learned_scales(parts, periods, X, rows.y / rows.exposure, rows.exposure)


def held_out(columns: tuple[Column, ...], rows: Rows, rng: np.random.RandomState) -> HeldOut:
    """Predict rows by models that did not see them, in folds.

    Of many rows some are never held out: the scales of all models are learned from these, once.
    """
    fifths = np.array_split(rng.permutation(len(rows.y)), FOLDS)
    folds = _folds(rows.y, fifths)
    never = all(outside is not fifths[-1] for _, outside in folds)
    scales = scales_of(columns, rows.take(fifths[-1])) if never else None
    found, kept = [], []
    for inside, outside in each("checking on held-out rows", folds):
        known, tested = rows.take(inside), rows.take(outside)
        model = learned_rate(columns, known, rng, scales)
        m = model.predict(encoded_table(columns, tested.values)) * tested.exposure
        found.append(np.stack([tested.y, m, model.unit * tested.exposure]))
        kept.append((model, tested))
    y, predicted, plain = np.hstack(found)
    return HeldOut(y, predicted, plain, tuple(kept), scales)


def _folds(y: Floats, fifths: list[Ints]) -> list[tuple[Ints, Ints]]:
    """Rows to learn from, some with y > 0, and held-out rows: fifths, until these are enough."""
    count = max(MIN_FOLDS, int(np.ceil(MIN_HELD_OUT * FOLDS / len(y))))
    parts = [(np.concatenate(fifths[:k] + fifths[k + 1 :]), fifths[k]) for k in range(FOLDS)]
    return [(inside, outside) for inside, outside in parts if y[inside].any()][:count]


def tried_intervals(
    y: Floats, m: Floats, level: float, rng: np.random.RandomState
) -> tuple[float, float]:
    """Coverage and mean width of intervals learned from half of the rows, on the other half."""
    halves = np.array_split(rng.permutation(len(y)), 2)
    inside, widths = [], []
    for learned, tried in (halves, halves[::-1]):
        low, high = learned_ratios(y[learned], m[learned]).interval(m[tried], level)
        inside.append((low <= y[tried]) & (y[tried] <= high))
        widths.append(high - low)
    return float(np.mean(np.concatenate(inside))), float(np.mean(np.concatenate(widths)))


def scores(y: Floats, m: Floats) -> dict[str, float]:
    """Scores of predictions m (n,) of y (n,), by name."""
    return {
        "mean_absolute_error": float(np.mean(np.abs(y - m))),
        "root_mean_square_error": float(np.sqrt(np.mean((y - m) ** 2))),
        "poisson_deviance": poisson_deviance(y, m),
    }


def poisson_deviance(y: Floats, m: Floats) -> float:
    """The mean of 2 (y log(y/m) - y + m)."""
    return float(2.0 * np.mean(xlogy(y, y / m) - y + m))


def explained_share(y: Floats, m: Floats, plain: Floats) -> float:
    """The explained share of the plain mean's deviance: 1 for m = y, 0 for the plain mean."""
    most = poisson_deviance(y, plain)
    return 1.0 - poisson_deviance(y, m) / most if most > 0.0 else 0.0
