"""Whole columns of a table: numbers, dates or text, whichever their cells are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hplus._checks import Bools
from hplus.tables.cells import numbers, texts, times
from hplus.tables.extras import arrow
from hplus.tables.source import Table, TableError

MOSTLY = 0.9
"""Share of a column's cells that must be numbers, or times, for it to be a column of them."""


class Columns(NamedTuple):
    """Rows with a value in every column, which rows of the file those are, and why not the others.

    A column is an array of float64, datetime64 or text.
    """

    values: dict[str, Any]
    rows: Bools
    dropped: Counter[str]


def read_columns(table: Table, names: Sequence[str]) -> Columns:
    """All rows of some columns that have a value in each of them."""
    pa = arrow()
    chunks = list(table.chunks(names))
    if not chunks or not sum(map(len, chunks)):
        raise TableError(f"{table.path} has a header but no rows: there is nothing to learn from.")
    dropped: Counter[str] = Counter()
    rows = np.ones(sum(map(len, chunks)), dtype=bool)
    found = {}
    for name in names:
        column = pa.chunked_array([chunk.columns[name] for chunk in chunks]).combine_chunks()
        values, missing, wrong = _column(column, chunks[0].comma)
        for bad, reason in ((missing, f"no {name}"), (wrong, f"{name} is not like the others")):
            lost = int(np.sum(rows & bad))
            if lost:
                dropped[reason] += lost
            rows &= ~bad
        found[name] = values
    if table.broken:
        dropped["broken line"] = table.broken
    return Columns({name: values[rows] for name, values in found.items()}, rows, dropped)


def _column(column: Any, comma: bool) -> tuple[Any, Bools, Bools]:
    """Values, which cells are missing, and which are not of the column's kind."""
    pa = arrow()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    cells = numbers(column, comma)
    filled = max(1, int(np.sum(~cells.missing)))
    if np.sum(cells.wrong) <= (1.0 - MOSTLY) * filled:
        return cells.values, cells.missing, cells.wrong
    try:
        seconds = times(column, "UTC").cells
    except TableError:
        seconds = None
    if seconds is not None and np.sum(seconds.wrong) <= (1.0 - MOSTLY) * filled:
        stamps = np.where(np.isfinite(seconds.values), seconds.values, 0.0)
        return stamps.astype("datetime64[s]"), seconds.missing, seconds.wrong
    words = texts(column)
    missing = np.array([word is None for word in words])
    return np.array([word or "" for word in words]), missing, np.zeros(len(words), dtype=bool)
