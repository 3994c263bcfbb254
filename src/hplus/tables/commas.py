"""Commas in numbers where they part no cells: decimal, or between thousands?

1,5 can only be decimal; 1,234 can be read in two ways.
"""

from __future__ import annotations

from typing import Any

DECIMAL = r"^\s*[+-]?([0-9]+,[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?\s*$"
"""Numbers with one comma."""

THOUSANDS = r"^\s*[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?\s*$"
"""Numbers whose commas may be between thousands."""

PLAIN = r"^\s*[+-]?[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?\s*$"
"""Numbers without commas."""


def are_decimal(column: Any) -> Any:
    """Which cells of a pyarrow array of text have a comma that can only be decimal."""
    from pyarrow import compute

    return compute.and_not(_match(column, DECIMAL), _match(column, THOUSANDS))


def in_doubt(column: Any) -> Any:
    """Which cells of a pyarrow array of text are such as 1,234."""
    return _match(column, THOUSANDS)


def with_points(column: Any) -> Any:
    """A pyarrow array of text with a point for each comma that can only be decimal."""
    from pyarrow import compute

    return compute.if_else(are_decimal(column), compute.replace_substring(column, ",", "."), column)


def doubtful(column: Any) -> str | None:
    """A cell such as 1,234 of a pyarrow array of text, if most of its cells are numbers."""
    either, plain = in_doubt(column), _match(column, PLAIN)
    numbers = either.true_count + plain.true_count
    filled = len(column) - column.null_count
    return str(column.filter(either)[0]) if either.true_count and 2 * numbers > filled else None


def _match(column: Any, pattern: str) -> Any:
    from pyarrow import compute

    return compute.match_substring_regex(column, pattern)
