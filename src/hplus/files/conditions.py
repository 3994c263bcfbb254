"""Condition: which rows of a table are meant, by a condition on its columns, such as `mag >= 5`.

What a column is compared with decides how its cells are read: with a number as numbers, with a
quoted date or time as times, with other quoted text as they are written, with another column as
both cells can be read. A comparison with a missing cell is unknown, and a row is meant only if its
condition is known to hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, final
from zoneinfo import ZoneInfo

import numpy as np

from hplus._checks import shown
from hplus._values import Value, value
from hplus.files.cells import Cells, are_empty, flags, is_text, none_of_kind, number, numbers
from hplus.files.column_pairs import FUNCTIONS, compare_columns, pair_filter
from hplus.files.expressions import (
    ColumnPair,
    Comparison,
    Junction,
    Literal,
    Membership,
    Missing,
    Negation,
    Node,
    is_time,
    leaves,
    parsed,
)
from hplus.files.extras import arrow
from hplus.files.feeds import TableError
from hplus.files.rows import Chunk
from hplus.files.times import times

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

OfOneColumn = Comparison | Membership | Missing

KIND_WORDS = {"number": "numbers", "time": "times", "text": "text", "flag": "true or false"}
WRONG_WORDS = {"number": "a number", "time": "a time", "text": "text", "flag": "true or false"}


@dataclass
class Tally:
    """Rows that a pass did not give, by reason: `dropped` if unreadable, `left_out` on purpose."""

    dropped: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


@final
@value
class Condition(Value):
    """A condition on the columns of a table; see `hplus.files.expressions` for its grammar.

    Times with a UTC offset are put on the clock of `zone`; those of the column `time` may have a
    format of strptime, `form`.

    >>> condition = Condition("mag >= 5 and region == 'north'")
    >>> condition.columns
    ('mag', 'region')
    """

    text: str
    zone: str = "UTC"
    time: str = ""
    form: str = ""

    def __post_init__(self) -> None:
        parsed(self.text)
        self._set(text=" ".join(self.text.split()) if "'" not in self.text else self.text.strip())

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it looks at."""
        found = list(leaves(parsed(self.text)))
        return tuple(dict.fromkeys([*(leaf.column for leaf in found), *self.others]))

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that others are compared with; text without quotes is taken for one."""
        return tuple(leaf.other for leaf in self._pairs)

    @property
    def reason(self) -> str:
        """Why it leaves a row out, in words."""
        return f"not where {self.text}"

    def also(self, other: Condition | None) -> Condition:
        """Both conditions."""
        return self if other is None else self.replace(text=f"({self.text}) and ({other.text})")

    def chosen(self, chunk: Chunk, tally: Tally, *, alone: bool = False) -> Chunk:
        """The rows of a chunk for which it holds; others are tallied.

        A cell that is not of the kind that it is compared with costs the row, unless the rest of
        the condition decides. `alone` says that no row may look at the others.
        """
        cells = {key: self._read(chunk, *key, alone) for key in map(_key, self._leaves)}
        pairs = {
            pair: compare_columns(
                pair, chunk.columns, lambda name, kind: self._read(chunk, name, kind, alone)
            )
            for pair in self._pairs
        }
        found = _evaluated(
            parsed(self.text),
            lambda name, kind: cells[name, kind].array,
            lambda name, kind, literal: self._scalar(kind, literal),
            lambda pair: pairs[pair].array,
        )
        known = ~are_empty(found)
        holds = np.asarray(found.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)
        bad = np.zeros(len(chunk), dtype=bool)
        reasons = {f"{name} is not {WRONG_WORDS[kind]}": c.wrong
                   for (name, kind), c in cells.items() if kind != "any"}  # fmt: skip
        reasons |= {f"{p.column} and {p.other} are not alike": c.wrong for p, c in pairs.items()}
        for reason, wrong in reasons.items():
            lost = wrong & ~known & ~bad
            if lost.any():
                tally.dropped[reason] += int(lost.sum())
            bad |= lost
        if skipped := int(np.sum(~holds & ~bad)):
            tally.left_out[self.reason] += skipped
        if holds.all():
            return chunk
        columns = {name: column.filter(holds) for name, column in chunk.columns.items()}
        return Chunk(columns, chunk.first, chunk.decimal)

    def check_kinds(self, chunk: Chunk, path: str) -> None:
        """An error if not one cell of a column is of the kind that it is compared with."""
        for leaf in self._leaves:
            name, kind = _key(leaf)
            wrong = self._read(chunk, name, kind, False).wrong
            if _orders_numbers_as_text(leaf):
                wrong = ~numbers(chunk.as_numbers(name)).wrong & ~are_empty(chunk.columns[name])
            if not wrong.any() or not np.array_equal(wrong, ~are_empty(chunk.columns[name])):
                continue
            sign, literal = "==", leaf.literals[0] if isinstance(leaf, Membership) else ""
            if isinstance(leaf, Comparison):
                sign, literal = leaf.sign, leaf.literal
            if isinstance(literal, float) and literal.is_integer():
                literal = int(literal)
            cell = chunk.columns[name][int(wrong.argmax())].as_py()
            advice = {"number": f"put quotes around text, as in {name} {sign} '{literal}'",
                      "text": "leave out the quotes around a number",
                      "time": "compare times with times and text with text",
                      "flag": "compare it with a number or a quoted text"}[kind]  # fmt: skip
            raise TableError(
                f"column {name!r} of {path} must hold {KIND_WORDS[kind]} to be compared with "
                f"{shown(literal)}, got {shown(cell)}: {advice}."
            )

    def filter_of(self, types: dict[str, pa.DataType]) -> pc.Expression | None:
        """A pyarrow expression that lets at least these rows of a table through, or None.

        None if a column has another type than what it is compared with: its cells must be read.
        """
        from pyarrow import compute

        if not all(_is_native(types[name], kind) for name, kind in map(_key, self._leaves)):
            return None
        pairs = {pair: pair_filter(pair, types) for pair in self._pairs}
        if any(found is None for found in pairs.values()):
            return None
        return _evaluated(
            parsed(self.text),
            lambda name, kind: compute.field(name),
            lambda name, kind, literal: compute.scalar(
                self._stamp(types[name], str(literal)) if kind == "time" else literal
            ),
            pairs.__getitem__,
        )

    @property
    def _leaves(self) -> list[OfOneColumn]:
        return [leaf for leaf in leaves(parsed(self.text)) if not isinstance(leaf, ColumnPair)]

    @property
    def _pairs(self) -> list[ColumnPair]:
        return [leaf for leaf in leaves(parsed(self.text)) if isinstance(leaf, ColumnPair)]

    def _read(self, chunk: Chunk, name: str, kind: str, alone: bool) -> Cells:
        """A column as one kind."""
        pa, column = arrow(), chunk.columns[name]
        if kind == "any":
            values = numbers(column).values if pa.types.is_floating(column.type) else None
            empty = are_empty(column) if values is None else np.isnan(values)
            return Cells(pa.array(np.zeros(len(column)), mask=empty), np.zeros(len(column), bool))
        if kind == "text":
            if not is_text(column):
                return none_of_kind(column, pa.string())
            return Cells(column, np.zeros(len(column), bool))
        if kind == "flag":
            return flags(column)
        if kind == "time":
            form = self.form if name == self.time else ""
            seconds, missing, wrong, _ = times(chunk.as_numbers(name), self.zone, form, alone=alone)
            return Cells(pa.array(np.nan_to_num(seconds), mask=missing | wrong), wrong)
        cells = numbers(chunk.as_numbers(name))
        wrong = cells.wrong & ~np.isinf(cells.values)
        bad = cells.missing | wrong
        return Cells(pa.array(np.where(bad, 0.0, cells.values), mask=bad), wrong)

    def _scalar(self, kind: str, literal: Literal) -> pa.Scalar:
        """A value as the cells of a chunk are read."""
        return arrow().scalar(self._wall(str(literal)) if kind == "time" else literal)

    def _wall(self, text: str) -> float:
        """A time on the clock of the zone, in seconds since 1970."""
        found = datetime.fromisoformat(text.strip())
        wall = found if found.tzinfo is None else found.astimezone(ZoneInfo(self.zone))
        return wall.replace(tzinfo=UTC).timestamp()

    def _stamp(self, kind: pa.DataType, text: str) -> pa.Scalar:
        """A time as a column of timestamps has it."""
        pa, found = arrow(), datetime.fromisoformat(text.strip())
        if kind.tz is None:
            wall = found if found.tzinfo is None else found.astimezone(ZoneInfo(self.zone))
            return pa.scalar(wall.replace(tzinfo=None), pa.timestamp("us"))
        there = found if found.tzinfo else found.replace(tzinfo=ZoneInfo(self.zone))
        return pa.scalar(there.astimezone(UTC), pa.timestamp("us", "UTC"))


def _key(leaf: OfOneColumn) -> tuple[str, str]:
    """The column that a part of a condition looks at, and how it reads its cells."""
    if isinstance(leaf, Missing):
        return leaf.column, "any"
    literal = leaf.literal if isinstance(leaf, Comparison) else leaf.literals[0]
    if isinstance(literal, bool):
        return leaf.column, "flag"
    if isinstance(literal, float):
        return leaf.column, "number"
    return leaf.column, "time" if is_time(literal) else "text"


def _orders_numbers_as_text(leaf: OfOneColumn) -> bool:
    """Does it ask which of two texts comes first, with a number in quotes? '10' is before '9'."""
    if not isinstance(leaf, Comparison) or leaf.sign in ("==", "!="):
        return False
    return isinstance(leaf.literal, str) and number(leaf.literal) is not None


def _evaluated(
    node: Node,
    column: Callable[[str, str], pa.Array | pc.Expression],
    scalar: Callable[[str, str, Literal], pa.Scalar | pc.Expression],
    pair: Callable[[ColumnPair], pa.Array | pc.Expression],
) -> pa.Array | pc.Expression:
    """A condition by pyarrow: on arrays an array with nulls, on expressions an expression."""
    from pyarrow import compute

    def inner(part: Node) -> pa.Array | pc.Expression:
        return _evaluated(part, column, scalar, pair)

    match node:
        case Negation(part):
            return compute.invert(inner(part))
        case Junction(word, parts):
            join = compute.and_kleene if word == "and" else compute.or_kleene
            found = inner(parts[0])
            for part in parts[1:]:
                found = join(found, inner(part))
            return found
        case ColumnPair():
            return pair(node)
        case Missing(name):
            return compute.is_null(column(name, "any"), nan_is_null=True)
        case Membership(name, literals):
            pairs = [Comparison(name, "==", literal) for literal in literals]
            return inner(Junction("or", tuple(pairs)))
        case Comparison(name, sign, literal):
            kind = _key(node)[1]
            function = getattr(compute, FUNCTIONS[sign])
            return function(column(name, kind), scalar(name, kind, literal))


def _is_native(kind: pa.DataType, wanted: str) -> bool:
    """Does a column of this type hold what it is compared with?"""
    types = arrow().types
    native: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
        "number": (types.is_floating, types.is_integer),
        "text": (types.is_string, types.is_large_string),
        "time": (types.is_timestamp,),
        "flag": (types.is_boolean,),
        "any": (lambda _: True,),
    }
    return any(holds(kind) for holds in native[wanted])
