"""QuantityStudy: quantities that cannot be negative, from the columns of a table."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self, final

import numpy as np
from scipy.special import xlogy
from sklearn.utils import check_random_state

from hplus._checks import Floats, Ints, as_floats, check_fraction, shown
from hplus._progress import each, step, whole_or_not
from hplus.estimators.base import (
    LARGEST_INPUT,
    Estimator,
    check_fitted,
    check_per_row,
    check_prediction,
    check_size,
)
from hplus.estimators.machines import KernelRegressor
from hplus.features import Nystroem
from hplus.storage import storable
from hplus.studies.columns import (
    MOST_LEVELS,
    Column,
    check_table,
    encoded_table,
    learned_column,
    table_values,
)
from hplus.studies.leaks import leaks
from hplus.studies.ratios import learned_ratios
from hplus.studies.scales import learned_scales

FEWEST = 20
"""Rows below which nothing can be checked on rows held out."""

PARTS = 5
"""A fifth of the rows is held out at a time,"""

HELD_OUT = 1000
"""and further fifths until there are so many."""

LANDMARKS = 800
"""Rows on which the function stands, at most."""

SHOWN_ROWS = 1000
"""Rows held out of which columns are shuffled, at most."""

BACKGROUND = 200
"""Rows over which an effect is averaged, at most."""


class Rows(NamedTuple):
    """Rows to learn from: values (n, columns), targets (n,) and exposures (n,)."""

    values: Floats
    y: Floats
    exposure: Floats

    def take(self, rows: Ints) -> Rows:
        return Rows(self.values[rows], self.y[rows], self.exposure[rows])


class Effect(NamedTuple):
    """The mean prediction if a column had each of some values, all else as it was."""

    name: str
    values: Any
    mean: Floats


@final
@storable
class QuantityStudy(Estimator):
    """A quantity that cannot be negative, learned from the columns of a table, with its intervals.

    The mean is exposure·exp(f(x)), f in the space of a kernel that is learned: how much each column
    matters, alone and together with others, on what scale, and whether it goes round as hours do.
    Intervals come from ratios of targets to predictions, for rows that were not learned from.

    Parameters
    ----------
    level : float, default=0.9
        The share of targets that intervals are to hold.
    random_state : int, RandomState or None, default=None
        Which rows are held out, and which the function stands on.

    Attributes
    ----------
    columns_ : tuple of Column
        What each column holds.
    machine_ : KernelRegressor
        The rate in units of `unit_`, of the encoded columns; learned from all rows.
    ratios_ : Ratios
    summary_ : dict
        Facts, as numbers and text: `rows`, `held_out`, `scores` on rows held out and those of the
        `plain_mean`, `explained` (the share of the Poisson deviance of the plain mean), `level`,
        `coverage` and `width` of intervals (learned from half of the rows held out, tried on the
        others), `importance` (how much of `explained` is lost if a column is shuffled), `notes`.

    >>> rng = np.random.default_rng(0)
    >>> hour, day = rng.integers(0, 24, 300), rng.choice(["work", "rest"], 300)
    >>> sold = rng.poisson(np.where(day == "work", 2.0, 6.0) * (1.1 + np.sin(hour / 12 * np.pi)))
    >>> study = QuantityStudy(random_state=0).fit({"hour": hour, "day": day}, sold)
    >>> low, high = study.predict_interval({"hour": [6.0, 18.0], "day": ["rest", "rest"]})
    >>> bool(np.all(low >= 0.0)), bool(high[0] > high[1])
    (True, True)
    """

    def __init__(self, level: float = 0.9, random_state: Any = None) -> None:
        self.level = level
        self.random_state = random_state

    def fit(self, columns: Any, y: Any, *, exposure: Any = None) -> Self:
        """Learn from columns (name -> n numbers, dates or text) and targets y (n,) of at least 0.

        `exposure` is how long, how often or how many each row was watched: y grows with it.
        """
        with whole_or_not(self):
            level = check_fraction("level", self.level)
            y = _check_quantities(y)
            watched = _check_exposure(exposure, len(y))
            check_table(columns)
            self.columns_ = tuple(learned_column(name, columns[name]) for name in columns)
            rows = Rows(table_values(self.columns_, columns), y, watched)
            _check_rows(self.columns_, rows)
            rng = check_random_state(self.random_state)
            notes = _notes(self.columns_, rows)
            y_out, m_out, plain, model, tested = _held_out(self.columns_, rows, rng)
            importance = _importance(self.columns_, model, tested, rng)
            step("learning from all rows", 0, 1)
            self.machine_, self.unit_ = _learned(self.columns_, rows, rng)
            step("learning from all rows", 1, 1)
            self.ratios_ = learned_ratios(y_out, m_out)
            self.background_ = rows.values[rng.permutation(len(y))[:BACKGROUND]]
            self.solution_ = self.machine_.solution_
            self.made_with_: dict[str, Any] = {}
            coverage, width = _tried_intervals(y_out, m_out, level, rng)
            self.summary_: dict[str, Any] = {
                "rows": len(y),
                "held_out": len(y_out),
                "scores": _scores(y_out, m_out),
                "plain_mean": _scores(y_out, plain),
                "explained": _explained(y_out, m_out, plain),
                "level": level,
                "coverage": coverage,
                "width": width,
                "importance": importance,
                "notes": notes,
            }
        for note in notes:
            warnings.warn(note, UserWarning, stacklevel=2)
        return self

    def predict(self, columns: Any, *, exposure: Any = None) -> Floats:
        """The expected quantity of each row, at least 0, shape (n,); `exposure` None is 1.

        Unknown categories and values far from those of fit tell nothing: the rest decides.
        """
        check_fitted(self)
        values = table_values(self.columns_, columns)
        m = self._mean(values) * _check_exposure(exposure, len(values))
        return check_prediction(self, m)

    def predict_interval(
        self, columns: Any, level: float | None = None, *, exposure: Any = None
    ) -> tuple[Floats, Floats]:
        """0 <= low <= predict <= high, each (n,), to hold a share `level` of targets."""
        check_fitted(self)
        level = check_fraction("level", self.level if level is None else level)
        low, high = self.ratios_.interval(self.predict(columns, exposure=exposure), level)
        return low, check_prediction(self, high)

    def effect(self, name: str, grid: Any = None) -> Effect:
        """The mean prediction for each value of a column, others as in rows of fit, exposure 1."""
        check_fitted(self)
        names = [column.name for column in self.columns_]
        if name not in names:
            raise ValueError(f"name must be one of {shown(names)}, got {shown(name)}.")
        j = names.index(name)
        shown_values = self.columns_[j].shown_grid() if grid is None else np.asarray(grid)
        values = self.columns_[j].values(shown_values)
        many = np.tile(self.background_, (len(values), 1))
        many[:, j] = np.repeat(values, len(self.background_))
        mean = self._mean(many).reshape(len(values), len(self.background_)).mean(axis=1)
        return Effect(name, shown_values, mean)

    def _mean(self, values: Floats) -> Floats:
        if len(values) == 0:
            return np.empty(0)
        return self.unit_ * self.machine_.predict(encoded_table(self.columns_, values))


def _learned(
    columns: tuple[Column, ...], rows: Rows, rng: np.random.RandomState
) -> tuple[KernelRegressor, float]:
    """The rate of the rows in units of the plain mean, and that unit."""
    unit, watched = rows.y.sum() / rows.exposure.sum(), rows.exposure / rows.exposure.mean()
    X = encoded_table(columns, rows.values)
    parts = tuple(part for column in columns for part in column.parts())
    periods = np.array([p for column in columns for p in column.possible_periods()])
    rate = rows.y / (unit * rows.exposure)
    some = rng.permutation(len(X))
    scales = learned_scales(parts, periods, X[some], rate[some], watched[some])
    landmarks = Nystroem(LANDMARKS, random_state=int(rng.randint(2**31)))
    penalty = scales.penalty(len(X))
    machine = KernelRegressor(scales.kernel(), "poisson_log", penalty, landmarks)
    return machine.fit(X, rate * watched, exposure=watched), float(unit)


def _held_out(
    columns: tuple[Column, ...], rows: Rows, rng: np.random.RandomState
) -> tuple[Floats, Floats, Floats, tuple[KernelRegressor, float], Rows]:
    """Targets of rows held out, expected without them by the model and by the plain mean.

    And the first of these models, with the rows that it did not see.
    """
    found, first = [], None
    for inside, outside in each("checking on rows held out", _parts(rows.y, rng)):
        known, tested = rows.take(inside), rows.take(outside)
        machine, unit = model = _learned(columns, known, rng)
        m = unit * machine.predict(encoded_table(columns, tested.values)) * tested.exposure
        found.append(np.stack([tested.y, m, unit * tested.exposure]))
        first = first or (model, tested)
    assert first is not None
    y, m, plain = np.hstack(found)
    return y, m, plain, *first


def _parts(y: Floats, rng: np.random.RandomState) -> list[tuple[Ints, Ints]]:
    """Rows to learn from, some with y > 0, and rows held out: fifths, until these are enough."""
    fifths = np.array_split(rng.permutation(len(y)), PARTS)
    count = int(np.ceil(HELD_OUT * PARTS / len(y)))
    parts = [(np.concatenate(fifths[:k] + fifths[k + 1 :]), fifths[k]) for k in range(PARTS)]
    return [(inside, outside) for inside, outside in parts if y[inside].any()][:count]


def _importance(
    columns: tuple[Column, ...],
    model: tuple[KernelRegressor, float],
    tested: Rows,
    rng: np.random.RandomState,
) -> list[dict[str, Any]]:
    """How much of the explained deviance is lost if a column is shuffled, most first."""
    machine, unit = model
    rows = tested.take(np.arange(min(len(tested.y), SHOWN_ROWS)))
    plain = unit * rows.exposure

    def explained(values: Floats) -> float:
        m = plain * machine.predict(encoded_table(columns, values))
        return _explained(rows.y, m, plain)

    whole, lost = explained(rows.values), []
    for j, column in enumerate(each("shuffling columns", columns)):
        shuffled = rows.values.copy()
        shuffled[:, j] = rng.permutation(shuffled[:, j])
        lost.append({"column": column.name, "lost": whole - explained(shuffled)})
    return sorted(lost, key=lambda fact: -fact["lost"])


def _tried_intervals(
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


def _scores(y: Floats, m: Floats) -> dict[str, float]:
    return {
        "mean_absolute_error": float(np.mean(np.abs(y - m))),
        "root_mean_square_error": float(np.sqrt(np.mean((y - m) ** 2))),
        "poisson_deviance": poisson_deviance(y, m),
    }


def poisson_deviance(y: Floats, m: Floats) -> float:
    """The mean of 2 (y log(y/m) - y + m)."""
    return float(2.0 * np.mean(xlogy(y, y / m) - y + m))


def _explained(y: Floats, m: Floats, plain: Floats) -> float:
    """1 for m = y, 0 for what the plain mean does."""
    most = poisson_deviance(y, plain)
    return 1.0 - poisson_deviance(y, m) / most if most > 0.0 else 0.0


def _notes(columns: tuple[Column, ...], rows: Rows) -> list[str]:
    """What a user should know about the columns, in sentences."""
    notes = []
    for column in columns:
        if column.kind == "text" and not len(column.grid):
            notes.append(
                f"The column {column.name!r} has a text of its own in most rows: not used."
            )
        elif not column.parts():
            notes.append(
                f"The column {column.name!r} is constant: it tells nothing and is not used."
            )
        elif len(column.levels) == MOST_LEVELS:
            notes.append(
                f"The column {column.name!r} has many categories: the {MOST_LEVELS} most frequent "
                "are told apart."
            )
    numbers = [j for j, column in enumerate(columns) if column.kind == "number"]
    names = [columns[j].name for j in numbers]
    return notes + leaks(names, rows.values[:, numbers], rows.y)


def _check_quantities(y: Any) -> Floats:
    y = as_floats("y", y)
    if y.ndim != 1:
        raise ValueError(f"y must be one number a row, got shape {y.shape}.")
    for bad, rule in ((~np.isfinite(y), "finite"), (y < 0.0, "of at least 0")):
        first = np.flatnonzero(bad)
        if len(first):
            raise ValueError(
                f"y must hold numbers that are {rule}, got {len(first)} that are not, the first "
                f"{y[first[0]]:.6g} in row {first[0]}: drop or correct those rows."
            )
    if len(y) < FEWEST:
        raise ValueError(
            f"y must have at least {FEWEST} rows, so that some can be held out, got {len(y)}: give "
            "more rows, or leave out features in which most are missing."
        )
    if np.count_nonzero(y) < 2:
        raise ValueError(f"y must be above 0 in at least 2 rows, got {np.count_nonzero(y)}.")
    return check_size("y", y)


def _check_rows(columns: tuple[Column, ...], rows: Rows) -> None:
    if len(rows.values) != len(rows.y):
        raise ValueError(
            f"columns must have one row for each of y, got {len(rows.values)} for {len(rows.y)}."
        )
    if not any(column.parts() for column in columns):
        raise ValueError("columns must hold one that is not constant, got none: add a feature.")


def _check_exposure(exposure: Any, n: int) -> Floats:
    if exposure is None:
        return np.ones(n)
    watched = check_per_row("exposure", exposure, n)
    if np.any(watched < 1.0 / LARGEST_INPUT):
        raise ValueError(
            f"exposure must be above 0 in every row, got {watched.min():.6g} in row "
            f"{watched.argmin()}: drop such rows."
        )
    return watched
