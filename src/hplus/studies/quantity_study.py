"""QuantityStudy: quantities that cannot be negative, from the columns of a table."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self, final

import numpy as np

from hplus._checks import Floats, as_floats, check_fraction, check_random_state, shown
from hplus._progress import step, whole_or_not
from hplus.estimators.base import (
    Estimator,
    check_exposure,
    check_fitted,
    check_prediction,
    check_size,
)
from hplus.studies.encoding import (
    MAX_LEVELS,
    Column,
    check_table,
    encoded_table,
    learned_column,
    table_values,
)
from hplus.studies.importance import importances
from hplus.studies.leaks import leaks
from hplus.studies.named_arrays import as_columns, column_named, without
from hplus.studies.quantity_chunks import (
    ColumnChunks,
    EncodedChunks,
    NamedChunks,
    learned_from_all,
    sampled_rows,
)
from hplus.studies.ratio_intervals import learned_ratios
from hplus.studies.validation import Rows, held_out, learned_rate
from hplus.wording import counted

MIN_ROWS = 20
"""With fewer rows none could be held out."""

MAX_BACKGROUND_ROWS = 200
"""Rows over which an effect is averaged, at most."""


class Effect(NamedTuple):
    """The mean prediction at some values of a column, with the other columns unchanged."""

    name: str
    values: Any
    mean: Floats


@final
class QuantityStudy(Estimator):
    """A quantity that cannot be negative, learned from the columns of a table, with its intervals.

    The mean is exposure·exp(f(x)), with f in the space of a kernel that is learned: how much each
    column matters, alone and together with others, on what scale, and whether it is periodic as
    hours are. Intervals come from ratios of targets to predictions on held-out rows.

    Columns hold numbers, dates or categories: text, or the category type of a data frame. A missing
    entry (NaN, NaT, None) is a category of its own. Categories that were not in fit, and missing
    entries of a column that had none, carry no information. Only infinite numbers are refused, and
    missing dates in a column that had none in fit.

    Parameters
    ----------
    level : float, default=0.9
        The confidence level: the share of targets that intervals should contain.
    random_state : int, RandomState or None, default=None
        Chooses the held-out rows and the landmarks.

    Attributes
    ----------
    columns_ : tuple of Column
        What each column holds.
    machine_ : KernelRegressor
        The rate in units of `unit_` as a function of the encoded columns, learned from all rows.
    ratios_ : Ratios
    summary_ : dict
        Results as numbers and text: `rows`, `held_out`, `folds`, `scores` on held-out rows and
        those of the `plain_mean`, `explained` (the share of the plain mean's Poisson deviance),
        `level`, `coverage` and `width` of intervals (learned from half of the held-out rows, tried
        on the others), `importance` (how much of `explained` is lost if a column is shuffled, over
        all folds, with its standard `error`), `notes`.

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

        `columns` is a dict of arrays, a data frame or an Arrow table. `exposure` (n,) says how
        long, how often or how many things each row counts: y is proportional to it. Both `y` and
        `exposure` may be names of columns, which are then not learned from.
        """
        with whole_or_not(self):
            level = check_fraction("level", self.level)
            table = as_columns(columns)
            columns = without(table, y, exposure)
            y = _check_quantities(column_named(table, "y", y))
            exposure = column_named(table, "exposure", exposure)
            exposure = check_exposure(exposure, len(y))
            check_table(columns)
            self.columns_ = tuple(learned_column(name, columns[name]) for name in columns)
            rows = Rows(table_values(self.columns_, columns), y, exposure)
            _check_rows(self.columns_, rows)
            rng = check_random_state(self.random_state)
            notes = _notes(self.columns_, rows)
            held = held_out(self.columns_, rows, rng)
            importance = importances(self.columns_, held)
            step("learning from all rows", 0, 1)
            self.machine_, self.unit_, _ = learned_rate(self.columns_, rows, rng, held.scales)
            step("learning from all rows", 1, 1)
            self.ratios_ = learned_ratios(held.y, held.predicted)
            self.background_ = rows.values[rng.permutation(len(y))[:MAX_BACKGROUND_ROWS]]
            self.solution_ = self.machine_.solution_
            self.made_with_: dict[str, Any] = {}
            self.summary_: dict[str, Any] = {
                "rows": len(y),
                **held.facts(level, rng),
                "importance": importance,
                "notes": notes,
            }
        for note in notes:
            warnings.warn(note, UserWarning, stacklevel=2)
        return self

    def fit_chunks(self, chunks: ColumnChunks, y: str, *, exposure: str | None = None) -> Self:
        """Learn from rows that are too many for memory, in chunks that are tables in memory.

        `y` and `exposure` are names of columns. `chunks` is a list, or any object that gives all
        chunks whenever `iter` is called on it: it is gone through some five times. From at most
        100,000 rows, chosen at random, `fit` learns what columns hold, how much they matter and how
        good predictions are; then the rate is learned again from all rows.
        """
        with whole_or_not(self):
            rng = check_random_state(self.random_state)
            named = NamedChunks(chunks, y, exposure)
            some = sampled_rows(named, rng)
            self.fit(some.columns, some.y, exposure=some.exposure)
            if not some.whole:
                step("learning from all rows", 0, 1)
                every = EncodedChunks(self.columns_, named, some.unit)
                self.machine_ = learned_from_all(self.machine_, len(some.y), some.rows, every)
                self.unit_, self.solution_ = some.unit, self.machine_.solution_
                self.summary_["rows"] = some.rows
                step("learning from all rows", 1, 1)
        return self

    def predict(self, columns: Any, *, exposure: Any = None) -> Floats:
        """The expected quantity of each row, at least 0, shape (n,); exposure None means 1.

        Unknown categories and values far from those in fit carry no information: the prediction
        then rests on the other columns.
        """
        check_fitted(self)
        columns = as_columns(columns)
        values = table_values(self.columns_, columns)
        exposure = column_named(columns, "exposure", exposure)
        m = self._mean(values) * check_exposure(exposure, len(values))
        return check_prediction(self, m)

    def predict_interval(
        self, columns: Any, level: float | None = None, *, exposure: Any = None
    ) -> tuple[Floats, Floats]:
        """0 <= low <= predict <= high, each (n,), which contain a share `level` of targets."""
        check_fitted(self)
        level = check_fraction("level", self.level if level is None else level)
        low, high = self.ratios_.interval(self.predict(columns, exposure=exposure), level)
        return low, check_prediction(self, high)

    def effect(self, name: str, grid: Any = None) -> Effect:
        """The mean prediction for each value of a column, others as in fit, at exposure 1."""
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


def _notes(columns: tuple[Column, ...], rows: Rows) -> list[str]:
    """What a user should know about the columns, in sentences."""
    notes = []
    for column in columns:
        if column.kind == "text" and not len(column.grid):
            notes.append(
                f"The column {column.name!r} is not used: most of its values occur only once."
            )
        elif not column.parts():
            notes.append(f"The column {column.name!r} is not used: it is constant.")
        elif len(column.levels) == MAX_LEVELS:
            notes.append(
                f"The column {column.name!r} has many categories: all but the {MAX_LEVELS} most "
                "frequent count as unknown."
            )
    numbers = [j for j, c in enumerate(columns) if c.kind == "number" and len(c.grid)]
    X = rows.values[:, numbers]
    X = np.where(np.isnan(X), [columns[j].centre for j in numbers], X)
    return notes + leaks([columns[j].name for j in numbers], X, rows.y)


def _check_quantities(y: Any) -> Floats:
    y = as_floats("y", y)
    if y.ndim != 1:
        raise ValueError(f"y must be one number per row, got shape {y.shape}.")
    for bad, rule in ((~np.isfinite(y), "finite"), (y < 0.0, "at least 0")):
        first = np.flatnonzero(bad)
        if len(first):
            raise ValueError(
                f"y must be {rule} in every row, got {counted(len(first), 'row')} where it is "
                f"not, the first {y[first[0]]:.6g} in row {first[0]}: correct or drop such rows."
            )
    if len(y) < MIN_ROWS:
        raise ValueError(
            f"y must have at least {MIN_ROWS} rows, so that some can be held out, got {len(y)}: "
            "give more rows, or leave out columns with many missing cells."
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
        raise ValueError("columns must include at least one that varies, got none: add columns.")
