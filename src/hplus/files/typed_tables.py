"""Tables in memory whose columns have types: Arrow tables and data frames, in chunks.

Data frames are recognised by what they can do, so that neither pandas nor polars is imported:
columns by name, each of which is an array or can be handed over as an Arrow stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from hplus._checks import shown
from hplus.files.conditions import Condition, Tally
from hplus.files.extras import arrow
from hplus.files.feeds import TableError, reading
from hplus.files.rows import Chunk

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 2**17
"""Rows of a table with types that are given at a time."""

IN_MEMORY = "the table"
"""What messages call a table that is not in a file."""


class ArrowStream(Protocol):
    """A table that can be handed over without a copy: of pandas, polars, pyarrow, DuckDB, ..."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Its rows as a stream of Arrow."""


class Batches(Protocol):
    """A stream of Arrow record batches."""

    schema: pa.Schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The batches, once."""


InMemory = Mapping[str, ArrayLike] | ArrowStream
"""A table in memory: a data frame, an Arrow table, or a dict of arrays."""


class FrameReader:
    """Reads columns of a table in memory; only those that are asked for are converted."""

    def __init__(self, table: InMemory) -> None:
        if not is_frame(table):
            raise TypeError(
                "a table must be the path of a file, a data frame, an Arrow table or a dict of "
                f"arrays, got {shown(table)}."
            )
        if _names(table) is None:
            table = arrow().table(table)
        self._table, self.names = table, _names(table) or []
        if not all(isinstance(name, str) for name in self.names):
            raise TypeError(f"columns of a table must have text as names, got {shown(self.names)}.")

    def __call__(self, wanted: list[str], tally: Tally, where: Condition | None) -> Iterator[Chunk]:
        """Chunks of some columns."""
        columns = {name: self.column(name) for name in wanted}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise TableError(f"columns must have the same number of rows, got {shown(lengths)}.")
        for first in range(0, max(lengths.values(), default=0), ROWS_AT_ONCE):
            part = {name: column.slice(first, ROWS_AT_ONCE) for name, column in columns.items()}
            yield Chunk(part, first)

    def column(self, name: str) -> pa.Array:
        """A column as a pyarrow array."""
        if (times := self.names.count(name)) > 1:
            raise TableError(
                f"column {name!r} must be in the table once, got it {times} times: rename it."
            )
        pa, cells = arrow(), self._table[name]  # type: ignore[index]
        try:
            if hasattr(cells, "__arrow_c_stream__"):
                found = pa.chunked_array(cells)
            else:
                found = pa.array(_listed(cells), from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise TableError(
                f"column {name!r} must hold values of one type, numbers, text or times, got "
                f"{shown(cells)}: convert it first."
            ) from error
        # an array of categories may have other categories in each of its chunks
        while isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        return plain(found)


class BatchReader:
    """Reads columns of a stream of Arrow record batches, once."""

    def __init__(self, stream: Batches, name: str = "the stream") -> None:
        self._stream, self._name, schema = stream, name, stream.schema
        self.names, self.kinds = list(schema.names), {f.name: kind_of(f.type) for f in schema}

    def __call__(self, wanted: list[str], tally: Tally, where: Condition | None) -> Iterator[Chunk]:
        """Chunks of some columns."""
        first = 0
        with reading(self._name):
            for batch in self._stream:
                for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                    some = batch.slice(start, ROWS_AT_ONCE)
                    yield Chunk({name: plain(some.column(name)) for name in wanted}, first)
                    first += some.num_rows


def is_frame(source: object) -> bool:
    """Is it a table in memory: a data frame, an Arrow table, or a dict of arrays?"""
    if isinstance(source, str | bytes | np.ndarray):
        return False
    return (
        isinstance(source, Mapping)
        or hasattr(source, "__arrow_c_stream__")
        or (hasattr(source, "columns") and hasattr(source, "__getitem__"))
    )


def kind_of(kind: pa.DataType) -> str:
    """What a column of this type holds: numbers, times, text or something else."""
    types = arrow().types
    if types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "times"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    return "null" if types.is_null(kind) else str(kind)


def plain(column: pa.Array) -> pa.Array:
    """Categories as their values, and text of every encoding as text."""
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        return plain(column.dictionary).take(column.indices)
    if pa.types.is_string_view(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.string())
    return column


def _names(frame: InMemory) -> list[str] | None:
    """The names of the columns; None if the table does not tell."""
    if isinstance(frame, Mapping):
        return list(frame)
    if hasattr(frame, "column_names"):
        return list(frame.column_names)
    names = getattr(frame, "columns", None)
    return None if names is None or callable(names) else list(names)


def _listed(cells: ArrayLike) -> ArrayLike:
    """Cells as pyarrow takes them: an array of one dimension, or a list."""
    if hasattr(cells, "array"):  # of pandas, which knows what is missing
        return cells
    array = np.asarray(cells)
    if array.ndim != 1:
        raise ValueError(f"one dimension, got shape {array.shape}")
    listed: ArrayLike = array.tolist() if array.dtype.kind in "OU" else array
    return listed
