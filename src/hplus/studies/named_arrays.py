"""Tables in memory as named NumPy arrays, for studies that hold all rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hplus._checks import shown
from hplus.files.extras import arrow
from hplus.files.typed_tables import FrameReader, InMemory, is_frame

Columns = Mapping[str, ArrayLike]


def as_columns(table: InMemory) -> Columns:
    """The columns of a data frame or an Arrow table by name; a dict as it is.

    Numbers become floats, NaN where one is missing, and times become dates.
    """
    if isinstance(table, Mapping) or not is_frame(table):
        return table  # type: ignore[return-value]  # others are refused where columns are read
    reader = FrameReader(table)
    return {name: _array(reader, name) for name in reader.names}


def _array(reader: FrameReader, name: str) -> NDArray[np.generic]:
    pa, column = arrow(), reader.column(name)
    types = pa.types
    if (
        types.is_floating(column.type)
        or types.is_integer(column.type)
        or types.is_decimal(column.type)
    ):
        column = column.cast(pa.float64(), safe=False)
    elif types.is_boolean(column.type):
        column = column.cast(pa.int8()).cast(pa.float64())
    elif types.is_timestamp(column.type) or types.is_date(column.type):
        column = column.cast(pa.timestamp("us"), safe=False)
    found: NDArray[np.generic] = column.to_numpy(zero_copy_only=False)
    return found


def column_named(columns: Columns, argument: str, given: ArrayLike | None) -> ArrayLike | None:
    """An array as it is given, or the column of that name."""
    if not isinstance(given, str):
        return given
    if given not in columns:
        raise ValueError(
            f"{argument} must be an array or the name of a column, one of {shown(list(columns))}, "
            f"got {given!r}."
        )
    return columns[given]


def without(columns: Columns, *given: ArrayLike | None) -> Columns:
    """Columns without those whose names are given."""
    names = [name for name in given if isinstance(name, str)]
    if not names:
        return columns
    return {name: column for name, column in columns.items() if name not in names}
