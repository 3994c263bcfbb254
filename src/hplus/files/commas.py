"""Commas in numbers where they do not separate cells: decimal, or between thousands?

1,5 can only be decimal; 1,234 can be read in two ways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hplus._checks import Bools

if TYPE_CHECKING:
    import pyarrow as pa

ONE_COMMA = r"^\s*[+-]?([0-9]+,[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?\s*$"
THOUSANDS = r"^\s*[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?\s*$"
NO_COMMA = r"^\s*[+-]?[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?\s*$"


def with_points(column: pa.Array, settled: bool = False) -> pa.Array:
    """A pyarrow array of text with points for commas that can only be decimal.

    `settled` says that commas of this column are decimal: those of 1,234 too.
    """
    from pyarrow import compute

    one = _match(column, ONE_COMMA)
    decimal = one if settled else compute.and_not(one, _match(column, THOUSANDS))
    return compute.if_else(decimal, compute.replace_substring(column, ",", "."), column)


def in_doubt(column: pa.Array) -> Bools:
    """Which cells of a pyarrow array of text can be read in two ways, such as 1,234."""
    found = _match(column, THOUSANDS).fill_null(False)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def is_decimal(column: pa.Array) -> bool:
    """Does a pyarrow array of text hold a comma that can only be decimal?"""
    from pyarrow import compute

    sure = compute.and_not(_match(column, ONE_COMMA), _match(column, THOUSANDS))
    return bool(sure.true_count)


def holds_numbers(column: pa.Array) -> bool:
    """Are most cells of a pyarrow array of text numbers, with commas or without?"""
    from pyarrow import compute

    numbers = _match(column, NO_COMMA)
    for pattern in (ONE_COMMA, THOUSANDS):
        numbers = compute.or_(numbers, _match(column, pattern))
    return bool(2 * numbers.true_count > len(column) - column.null_count)


def _match(column: pa.Array, pattern: str) -> pa.Array:
    from pyarrow import compute

    return compute.match_substring_regex(column, pattern)
