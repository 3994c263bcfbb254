"""Columns of a table as numbers: what each one holds, and the parts that kernels see of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hplus._checks import Bools, Floats, as_floats, frozen_array, shown
from hplus._values import Value, value
from hplus.estimators.base import check_size
from hplus.files.cells import number
from hplus.kernels import Finite, Gaussian, Kernel, Periodic

MAX_LEVELS = 200
"""Categories of a column that are distinguished; rarer ones count as unknown."""

MAX_CYCLE = 366
"""Whole numbers that may be a cycle have at most this many values."""

YEAR, WEEK, DAY = 365.25, 7.0, 1.0
"""Cycles of dates, in days."""

FAR_APART = 1e6
"""The squared distance of different labels: kernels are 0 there, on any scale."""

MISSING = ("None", "nan", "NaT", "<NA>")
"""How missing entries that are not text are written."""

MISSING_LEVEL = "(missing)"
"""The category of missing entries, if there are any in fit."""

MAX_GRID = 1000
"""Values at which an effect is shown, at most."""

CURVE_POINTS = 60
"""Values at which an effect is shown for a column with many."""


@final
@value
class ColumnPart(Value):
    """What a kernel sees of a column: numbers on a line or on a circle of some period, or labels.

    Numbers are in units of their spread. `labels` is the number of known labels; one more stands
    for all others, which resemble nothing.
    """

    period: float = 0.0
    labels: int = 0

    def kernel(self, scale: float, column: int) -> Kernel:
        """k <= 1 with k(x, x) = 1 for all but unknown labels."""
        if self.labels:
            same = np.eye(self.labels + 1)
            same[-1, -1] = 0.0
            return Finite(same, columns=(column,))
        if self.period:
            return Periodic(self.period, 2.0 * np.pi * scale / self.period, columns=(column,))
        return Gaussian(scale, columns=(column,))

    def squared_distances(self, x: Floats) -> Floats:
        """D (n, n) with k = exp(-D/(2 scale²)); on a circle those of chords."""
        D = np.subtract.outer(x, x)
        if self.labels:
            return np.where((D == 0.0) & (x < self.labels), 0.0, FAR_APART)
        if self.period:
            D = np.sin(np.pi * D / self.period) * (self.period / np.pi)
        return D**2


@final
@value
class Column(Value):
    """What a column of the table holds: "number", "date" or "text", and its usual values.

    `values` reads entries as numbers: dates as days since 1970, text as the place among `levels`,
    missing numbers and dates as NaN. `grid` are values at which to show an effect. A missing entry
    is a category of its own if there were any in fit: of text among its levels, of numbers and
    dates the only level, with the middle of the others in place of the number. If there were none,
    it is like an unknown category, and predictions rest on the other columns.
    """

    name: str
    kind: str
    centre: float
    spread: float
    period: float
    bent: bool
    levels: tuple[str, ...]
    grid: Floats

    def __post_init__(self) -> None:
        grid = frozen_array("grid", self.grid)
        if grid.ndim != 1 or len(grid) > MAX_GRID:
            raise ValueError(
                f"grid must be at most {MAX_GRID} values, got an array of shape {grid.shape}."
            )
        self._set(grid=grid)

    def values(self, entries: Any) -> Floats:
        """The entries as numbers (n,), NaN where one is missing."""
        if self.kind == "text":
            places = {level: float(i) for i, level in enumerate(self.levels)}
            other = float(len(self.levels))
            return np.array([places.get(entry, other) for entry in _texts(self.name, entries)])
        x = _numbers(self.name, self.kind, entries)
        if self.kind == "date" and not self.levels:
            _check_known(self.name, np.isnan(x))
        return x

    def parts(self) -> tuple[ColumnPart, ...]:
        """What kernels see of the column; nothing if it is constant."""
        if self.kind == "text":
            return (ColumnPart(labels=len(self.levels)),) if len(self.grid) >= 2 else ()
        missing = (ColumnPart(labels=2),) if self.levels else ()
        if len(self.grid) < 2:
            return missing
        return (ColumnPart(), *(ColumnPart(np.sqrt(12.0)) for _ in self.cycles()), *missing)

    def possible_periods(self) -> tuple[float, ...]:
        """For each part on a line, its period if it might be periodic, else 0."""
        line = self.kind == "number" and len(self.grid) >= 2
        first = self.period / self.spread if line else 0.0
        return (first, *(0.0 for _ in self.parts()[1:])) if self.parts() else ()

    def encoded(self, values: Floats) -> Floats:
        """The parts of some values, shape (n, parts)."""
        if self.kind == "text":
            return np.repeat(values[:, None], len(self.parts()), axis=1)
        unknown = np.isnan(values)
        gaps = [unknown.astype(np.float64)] if self.levels else []
        if len(self.grid) < 2:
            return np.reshape(gaps, (len(gaps), len(values))).T
        values = np.where(unknown, self.centre, values)
        with np.errstate(over="ignore"):
            x = np.clip((values - self.centre) / self.spread, -1e12, 1e12)
        # a logarithm far out
        line = np.arcsinh(x) if self.bent else x
        # far from all others, unless missing entries are a category of their own
        line = np.where(unknown & (not self.levels), 1e12, line)
        # a circle of unit spread, like the line
        turns = [np.remainder(values / days, 1.0) * np.sqrt(12.0) for days in self.cycles()]
        return np.stack([line, *turns, *gaps], axis=1)

    def cycles(self) -> tuple[float, ...]:
        """The cycles, in days, that the dates complete at least once."""
        if self.kind != "date":
            return ()
        span = self.grid[-1] - self.grid[0]
        timed = (DAY,) if self.period == DAY else ()
        return tuple(days for days in (YEAR, WEEK) if span > 1.2 * days) + timed

    def shown_grid(self) -> Any:
        """`grid` as the entries of a table: numbers, dates or text."""
        if self.kind == "text":
            return np.array([self.levels[int(i)] for i in self.grid], dtype=object)
        if self.kind == "date":
            return (self.grid * 86_400.0).round().astype("int64").astype("datetime64[s]")
        return self.grid.copy()


def learned_column(name: str, entries: Any) -> Column:
    """What the column holds, by its type and its values."""
    kind = _kind(entries)
    if kind == "text":
        texts, counts = np.unique(np.array(_texts(name, entries)), return_counts=True)
        usual = np.sort(np.argsort(-counts, kind="stable")[:MAX_LEVELS])
        levels = tuple(str(texts[i]) for i in usual)
        # nothing can be learned from texts that all differ
        count = 0 if len(texts) > max(counts.sum() / 2.0, 2.0) else len(levels)
        return Column(name, kind, 0.0, 1.0, 0.0, False, levels, np.arange(float(count)))
    every = _numbers(name, kind, entries)
    x = check_size(f"column {name!r}", every[~np.isnan(every)])
    levels = (MISSING_LEVEL,) if len(x) < len(every) else ()
    if len(x) == 0:
        return Column(name, kind, 0.0, 1.0, 0.0, False, (), np.empty(0))
    distinct = np.unique(x)
    whole = bool(np.all(distinct == np.round(distinct))) and len(distinct) <= MAX_CYCLE
    low, middle, high = np.quantile(x, [0.16, 0.5, 0.84])
    spread = x.std() if whole or high == low else (high - low) / 2.0
    period = _cycle(distinct) if whole else 0.0
    if kind == "date":
        period = 0.0 if np.all(distinct == np.floor(distinct)) else DAY
    bent = kind == "number" and not whole
    grid = _grid(x, distinct)
    return Column(name, kind, float(middle), float(spread) or 1.0, period, bent, levels, grid)


def table_values(columns: tuple[Column, ...], table: Any) -> Floats:
    """The entries of a table (name -> column) as numbers, shape (n, columns)."""
    check_table(table)
    missing = [column.name for column in columns if column.name not in table]
    if missing:
        raise ValueError(
            f"columns must include every column used in fit, but {shown(missing[0])} is missing: "
            f"got {shown(list(table))}."
        )
    each = [column.values(table[column.name]) for column in columns]
    lengths = {column.name: len(x) for column, x in zip(columns, each, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must all have the same number of rows, got {shown(lengths)}.")
    return np.stack(each, axis=1)


def check_table(table: Any) -> None:
    """Check that a table is a dict of at least one named column."""
    named = isinstance(table, Mapping) and all(isinstance(name, str) for name in table)
    if not named or not table:
        raise TypeError(
            "columns must be a data frame, an Arrow table or a dict of at least one name -> "
            f"array, got {shown(table)}."
        )


def encoded_table(columns: tuple[Column, ...], values: Floats) -> Floats:
    """The parts of all columns side by side, shape (n, parts)."""
    return np.hstack([c.encoded(x) for c, x in zip(columns, values.T, strict=True)])


def _as_array(entries: Any) -> Any:
    """The entries as an array; categories of a data frame as text, whatever they are."""
    if str(getattr(entries, "dtype", "")).lower().startswith(("category", "categorical", "enum")):
        known = [str(entry) if str(entry) not in MISSING else None for entry in entries]
        return np.array(known, dtype=object)
    return np.asarray(entries)


def _kind(entries: Any) -> str:
    array = _as_array(entries)
    if array.dtype.kind == "M":
        return "date"
    texts = array.dtype.kind == "U" or (
        array.dtype.kind == "O" and any(isinstance(entry, str) for entry in array.flat)
    )
    return "text" if texts else "number"


def _texts(name: str, entries: Any) -> list[str]:
    array = _as_array(entries)
    missing = [not isinstance(entry, str) and str(entry) in MISSING for entry in array.flat]
    if array.ndim != 1 or not (all(missing) or _kind(array) == "text"):
        raise TypeError(f"column {name!r} must hold text as in fit, got {shown(entries)}.")
    return [MISSING_LEVEL if gap else str(entry) for gap, entry in zip(missing, array, strict=True)]


def _numbers(name: str, kind: str, entries: Any) -> Floats:
    """Numbers (n,), or days since 1970 for dates; NaN for a missing one."""
    if kind == "date":
        dates = np.asarray(entries)
        if dates.dtype.kind != "M":
            raise TypeError(f"column {name!r} must hold dates as in fit, got {shown(entries)}.")
        days = dates.astype("datetime64[s]").astype("int64") / 86_400.0
        x = np.where(np.isnat(dates), np.nan, days)
    else:
        array = np.asarray(entries)
        _check_no_words(name, array)
        if array.dtype.kind == "O":  # None, and what data frames have for it
            entries = [np.nan if str(entry) in MISSING else entry for entry in array]
        x = as_floats(f"column {name!r}", entries)
    if x.ndim != 1:
        raise ValueError(f"column {name!r} must be one number per row, got shape {x.shape}.")
    _check_known(name, np.isinf(x))
    return x


def _check_no_words(name: str, entries: NDArray[Any]) -> None:
    for row, entry in enumerate(entries if entries.dtype.kind in "OU" else ()):
        if isinstance(entry, str) and entry not in MISSING and number(entry) is None:
            raise TypeError(
                f"column {name!r} must hold numbers as in fit, got {shown(str(entry))} in row "
                f"{row}: correct or drop such rows."
            )


def _check_known(name: str, bad: Bools) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise ValueError(
            f"column {name!r} must hold finite values, got {len(rows)} missing or infinite, the "
            f"first in row {rows[0]}: drop or fill those rows first."
        )


def _cycle(distinct: Floats) -> float:
    """How many whole numbers there are if they may be periodic, as hours or months are; else 0."""
    n = len(distinct)
    gapless = n >= 4 and distinct[-1] - distinct[0] == n - 1
    return float(n) if gapless and distinct[0] in (0.0, 1.0) else 0.0


def _grid(x: Floats, distinct: Floats) -> Floats:
    if len(distinct) <= CURVE_POINTS:
        return distinct
    low, high = np.quantile(x, [0.01, 0.99])
    return np.linspace(low, high, CURVE_POINTS)
