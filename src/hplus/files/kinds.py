"""Whole columns of a table, as numbers, dates or text, depending on their cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hplus._checks import Bools
from hplus.files.cells import numbers, texts
from hplus.files.chunked_table import Table
from hplus.files.conditions import Condition
from hplus.files.extras import arrow
from hplus.files.feeds import TableError
from hplus.files.rows import Chunk
from hplus.files.times import times

if TYPE_CHECKING:
    import pyarrow as pa

MIN_SHARE = 0.9
"""Share of a column's cells that must be numbers, or times, for it to be a column of them."""

Values = NDArray[np.float64] | NDArray[np.datetime64] | NDArray[np.str_] | NDArray[np.object_]
"""A column of numbers, dates or text; of objects if some texts are missing."""


class TypedColumns(NamedTuple):
    """Rows with a value in every column, which rows those are, and why others were dropped.

    `left_out` counts rows that are not meant, which are not among `rows`. `whole` says whether
    these are all rows of the table.
    """

    values: dict[str, Values]
    rows: Bools
    dropped: Counter[str]
    left_out: Counter[str]
    whole: bool = True


def read_columns(
    table: Table,
    names: Sequence[str],
    where: Condition | None = None,
    optional: Sequence[str] = (),
    most: float = np.inf,
) -> TypedColumns:
    """All rows of some columns that have a value in each of them, and for which `where` holds.

    In `optional` columns, a missing cell does not drop its row: it is NaN, NaT or None. Of a table
    with more than `most` rows, only the first ones are read.
    """
    chunks, count = list[Chunk](), 0
    for chunk in table.chunks(names, where):
        chunks, count = [*chunks, chunk], count + len(chunk)
        if count > most:
            break
    if not chunks or not sum(map(len, chunks)):
        if where is not None and table.left_out:
            raise TableError(
                f"no row of {table.path} is left where {where.text}: correct where=, or the names "
                "and quotes in it."
            )
        raise TableError(f"{table.path} has a header but no rows: there is nothing to learn from.")
    found = _typed_rows(chunks, names, optional, {})
    return found._replace(
        dropped=found.dropped + table.dropped, left_out=table.left_out, whole=count <= most
    )


@dataclass
class TypedChunks:
    """The rows of a table in chunks of columns of known kinds, as often as they are asked for.

    `kinds` are "number", "date" or "text". The rows that the last pass dropped are tallied.
    """

    table: Table
    kinds: dict[str, str]
    where: Condition | None = None
    optional: Sequence[str] = ()
    dropped: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[dict[str, Values]]:
        self.dropped = Counter()
        for chunk in self.table.chunks(list(self.kinds), self.where):
            found = _typed_rows([chunk], list(self.kinds), self.optional, self.kinds)
            self.dropped += found.dropped
            if found.rows.any():
                yield found.values
        self.dropped += self.table.dropped


def kind_of_values(values: Values) -> str:
    """What a column holds."""
    return {"f": "number", "M": "date"}.get(values.dtype.kind, "text")


def _typed_rows(
    chunks: Sequence[Chunk], names: Sequence[str], optional: Sequence[str], kinds: dict[str, str]
) -> TypedColumns:
    """The rows of chunks with a value in each column, of known kinds or of what most cells are."""
    pa, dropped, found = arrow(), Counter[str](), {}
    rows = np.ones(sum(map(len, chunks)), dtype=bool)
    for name in names:
        column, as_numbers = (
            pa.chunked_array(parts).combine_chunks()
            for parts in zip(*((c.columns[name], c.as_numbers(name)) for c in chunks), strict=True)
        )
        values, missing, wrong = _typed(column, as_numbers, kinds.get(name))
        if name in optional:
            values, missing = _with_gaps(values, missing), np.zeros_like(missing)
        for bad, reason in ((missing, f"no {name}"), (wrong, f"{name} is of another type")):
            lost = int(np.sum(rows & bad))
            if lost:
                dropped[reason] += lost
            rows &= ~bad
        found[name] = values
    kept = {name: values[rows] for name, values in found.items()}
    return TypedColumns(kept, rows, dropped, Counter())


def _with_gaps(values: Values, missing: Bools) -> Values:
    """Values with NaN, NaT or None where cells are missing."""
    if not missing.any() or values.dtype.kind == "f":
        return values
    if values.dtype.kind == "M":
        return np.where(missing, np.datetime64("NaT"), values)
    texts_or_none = values.astype(object)
    texts_or_none[missing] = None
    return texts_or_none


def _typed(column: pa.Array, as_numbers: pa.Array, kind: str | None) -> tuple[Values, Bools, Bools]:
    """Values, which cells are missing, and which are not of the column's kind.

    Unless that is known, it is the first of numbers, dates and text that most cells are.
    """
    pa = arrow()
    if pa.types.is_boolean(column.type):
        column = as_numbers = column.cast(pa.int8())
    if kind == "text":
        return _as_text(column)
    cells = numbers(as_numbers)
    most_wrong = (1.0 - MIN_SHARE) * max(1, int(np.sum(~cells.missing)))
    if kind == "number" or (kind is None and np.sum(cells.wrong) <= most_wrong):
        return cells.values, cells.missing, cells.wrong
    found = times(column, "UTC")
    if kind == "date" or (kind is None and np.sum(found.wrong) <= most_wrong):
        stamps = np.where(np.isfinite(found.seconds), found.seconds, 0.0)
        return stamps.astype("datetime64[s]"), found.missing, found.wrong
    return _as_text(column)


def _as_text(column: pa.Array) -> tuple[Values, Bools, Bools]:
    words = texts(column)
    missing = np.array([word is None for word in words])
    return np.array([word or "" for word in words]), missing, np.zeros(len(words), dtype=bool)
