"""What cells mean: numbers and text, one bad cell at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hplus._checks import Bools, Floats
from hplus.files.extras import arrow
from hplus.files.rows import MISSING

if TYPE_CHECKING:
    import pyarrow as pa


class Numbers(NamedTuple):
    """Numbers (n,), NaN where there is none; which cells were empty, and which not a number."""

    values: Floats
    missing: Bools
    wrong: Bools


def numbers(column: pa.Array) -> Numbers:
    """A pyarrow array as numbers."""
    pa = arrow()
    if is_text(column):
        return _numbers_of_text(column)
    if not (
        pa.types.is_floating(column.type)
        or pa.types.is_integer(column.type)
        or pa.types.is_decimal(column.type)
    ):
        empty = are_empty(column)
        return Numbers(np.full(len(column), np.nan), empty, ~empty)
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    values = values.astype(float, copy=False)
    if np.isfinite(values).all():
        none = np.zeros(len(values), dtype=bool)
        return Numbers(values, none, none)
    return Numbers(values, np.isnan(values), np.isinf(values))


def _numbers_of_text(column: pa.Array) -> Numbers:
    pa = arrow()
    try:
        values = np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
        return Numbers(values, np.isnan(values), np.isinf(values))
    except pa.ArrowInvalid:
        parsed = [number(text) for text in column.to_pylist()]
    values = np.array([np.nan if v is None else v for v in parsed], dtype=float)
    unread = np.array([v is None for v in parsed], dtype=bool) & ~are_empty(column)
    return Numbers(values, np.isnan(values) & ~unread, np.isinf(values) | unread)


def number(text: str | None) -> float | None:
    """A number as it is written in files, None if it is none."""
    if text is None or "_" in text:  # Python's own spelling of thousands, in no file
        return None
    try:
        return float(text.strip().strip("\ufeff"))
    except ValueError:
        return None


def is_text(column: pa.Array) -> bool:
    """Does a pyarrow array hold text?"""
    types = arrow().types
    return bool(types.is_string(column.type) or types.is_large_string(column.type))


def are_empty(column: pa.Array) -> Bools:
    """Which cells of a pyarrow array are null."""
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=bool)


def texts(column: pa.Array) -> list[str | None]:
    """A pyarrow array as text, None where a cell is empty."""
    cells = column.cast(arrow().string()).to_pylist()
    return [None if cell is None or cell.strip() in MISSING else cell.strip() for cell in cells]


class Cells(NamedTuple):
    """A column read as one kind: a pyarrow array with nulls, and which cells are of another."""

    array: pa.Array
    wrong: Bools


def flags(column: pa.Array) -> Cells:
    """Cells that are true or false, or say so in any case of letters."""
    pa = arrow()
    if pa.types.is_boolean(column.type):
        return Cells(column, np.zeros(len(column), bool))
    if not is_text(column):
        return none_of_kind(column, pa.bool_())
    said = [None if cell is None else cell.strip().lower() for cell in column.to_pylist()]
    found = [{"true": True, "false": False}.get(str(cell)) for cell in said]
    wrong = np.array([a is not None and b is None for a, b in zip(said, found, strict=True)], bool)
    return Cells(pa.array(found, pa.bool_()), wrong)


def none_of_kind(column: pa.Array, kind: pa.DataType) -> Cells:
    """A column without any cell of the kind."""
    return Cells(arrow().nulls(len(column), kind), ~are_empty(column))
