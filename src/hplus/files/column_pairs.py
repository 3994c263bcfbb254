"""Two columns of a table compared with each other, such as `closed > opened`.

Cells decide by themselves how they are read: two numbers are compared as numbers, two times as
times, and other text is the same or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hplus.files.cells import Cells, are_empty
from hplus.files.expressions import ColumnPair
from hplus.files.extras import arrow

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

FUNCTIONS = {"<": "less", "<=": "less_equal", "==": "equal", "!=": "not_equal",
             ">=": "greater_equal", ">": "greater"}  # fmt: skip
"""What pyarrow calls each comparison."""

PAIR_KINDS = ("number", "time", "text")
"""How two cells are read, the first kind that both have."""


Read = Callable[[str, str], Cells]
"""The cells of a column as one kind."""


def compare_columns(pair: ColumnPair, columns: dict[str, pa.Array], read: Read) -> Cells:
    """Whether a comparison holds in each row, null where a cell is missing.

    Wrong are rows whose cells are not of one kind, or text that has no order.
    """
    from pyarrow import compute

    pa, function = arrow(), getattr(compute, FUNCTIONS[pair.sign])
    left, right = (columns[name] for name in (pair.column, pair.other))
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        return Cells(function(left, right), np.zeros(len(left), bool))  # exact beyond 2⁵³
    missing = np.zeros(len(left), bool)
    holds, open_ = missing.copy(), ~missing
    for kind in PAIR_KINDS if pair.sign in ("==", "!=") else PAIR_KINDS[:2]:
        a, b = read(pair.column, kind).array, read(pair.other, kind).array
        found = function(a, b)
        known = open_ & ~are_empty(found)
        values = found.fill_null(False).to_numpy(zero_copy_only=False).astype(bool)
        holds, open_ = np.where(known, values, holds), open_ & ~known
    for name in (pair.column, pair.other):
        missing |= are_empty(read(name, "any").array)
    return Cells(pa.array(holds, mask=open_), open_ & ~missing)


def pair_filter(pair: ColumnPair, types: dict[str, pa.DataType]) -> pc.Expression | None:
    """A pyarrow expression of a comparison, or None if cells must be read to compare them."""
    from pyarrow import compute

    a, b = types[pair.column], types[pair.other]
    if not ((_is_number(a) and _is_number(b)) or (arrow().types.is_timestamp(a) and a == b)):
        return None
    function = getattr(compute, FUNCTIONS[pair.sign])
    return function(compute.field(pair.column), compute.field(pair.other))


def _is_number(kind: pa.DataType) -> bool:
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind))
