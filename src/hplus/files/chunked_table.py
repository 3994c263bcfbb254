"""Table: named columns that are read in chunks, whatever they are kept in."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from hplus.files.conditions import Condition, Tally
from hplus.files.feeds import PIPE_NAME, TableError
from hplus.files.rows import Chunk

Reader = Callable[[list[str], Tally, Condition | None], Iterator[Chunk]]
"""Reads some columns in chunks, and tallies the rows that it does not give.

It may leave out rows for which the condition does not hold.
"""


@dataclass
class Table:
    """Named columns of a file or in memory; a pass over its chunks tallies what it did not give.

    `size` in bytes and `rows` are 0 if unknown, and `kinds` says what columns with types hold.
    Several files, or row groups of one, are parts, each a table of its own; `skipped` says which
    files could not be opened, and why.
    """

    path: str
    names: list[str]
    _reader: Reader
    tally: Tally = field(default_factory=Tally)
    size: int = 0
    rows: int = 0
    kinds: dict[str, str] = field(default_factory=dict)
    _parts: tuple[Table, ...] = ()
    skipped: tuple[str, ...] = ()
    _ahead: tuple[set[str], Condition | None, Iterator[Chunk]] | None = None

    @property
    def is_pipe(self) -> bool:
        """Can it be read only once?"""
        return self.path == PIPE_NAME

    @property
    def parts(self) -> tuple[Table, ...]:
        """Tables that can be read at the same time, which have all of its rows."""
        return self._parts or (self,)

    @property
    def dropped(self) -> Counter[str]:
        """Rows of the last pass that could not be read, by reason."""
        return self.tally.dropped

    @property
    def left_out(self) -> Counter[str]:
        """Rows of the last pass for which the condition did not hold."""
        return self.tally.left_out

    def chunks(self, columns: Sequence[str], where: Condition | None = None) -> Iterator[Chunk]:
        """The rows for which a condition holds in chunks, of these columns only.

        The rows that are given are numbered from 0 on.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[:2] == (set(columns), where):
            return ahead[2]
        wanted = list(dict.fromkeys([*columns, *(where.columns if where else ())]))
        for name in where.others if where else ():
            self._check_compared(name)
        for name in wanted:
            self.require(name)
        self.tally = Tally()
        found = self._reader(wanted, self.tally, where)
        return found if where is None else self._chosen(found, where, self.tally)

    def read(self, wanted: list[str], tally: Tally, where: Condition | None) -> Iterator[Chunk]:
        """Chunks of some columns, in which rows that the condition leaves out may still be."""
        return self._reader(wanted, tally, where)

    def _chosen(self, chunks: Iterator[Chunk], where: Condition, tally: Tally) -> Iterator[Chunk]:
        """The rows of chunks for which a condition holds."""
        first, checked = 0, False
        for chunk in chunks:
            if not checked:
                where.check_kinds(chunk, self.path)
                checked = True
            found = where.chosen(chunk, tally)
            if len(found):
                yield Chunk(found.columns, first, found.decimal)
            first += len(found)

    def first_rows(self, columns: Sequence[str], where: Condition | None = None) -> Chunk | None:
        """The first chunk, which is not read again by the next call of `chunks`.

        Of several parts, that of the first one that has such rows and can be read.
        """
        if self._parts:
            return self._first_of_parts(columns, where)
        chunks = self.chunks(columns, where)
        first = next(chunks, None)
        self._ahead = set(columns), where, chunks if first is None else chain([first], chunks)
        return first

    def _first_of_parts(self, columns: Sequence[str], where: Condition | None) -> Chunk | None:
        errors, found = list[TableError](), None
        for part in self._parts:
            try:
                found = next(part.chunks(columns, where), None)
            except TableError as error:
                errors.append(error)
            if found is not None:
                return found
        if errors:
            raise errors[0]
        return None

    def _check_compared(self, name: str) -> None:
        """An error if what a condition compares with is text without quotes."""
        if name not in self.names:
            raise TableError(
                f"where compares a column with a number, quoted text or another column, and "
                f"{name!r} is not a column of {self.path}: write text as '{name}'."
            )

    def require(self, name: str) -> str:
        """The name of a column, of which the file must have exactly one."""
        if self.names.count(name) == 1:
            return name
        if name in self.names:
            raise TableError(
                f"column {name!r} must occur once, got it {self.names.count(name)} times in the "
                f"header of {self.path}: rename the others."
            )
        near = difflib.get_close_matches(name.lower(), [n.lower() for n in self.names], 1, 0.6)
        guess = next((n for n in self.names if n.lower() in near), None)
        hint = f": did you mean {guess!r}?" if guess else f": it has {listed(self.names)}."
        raise TableError(f"column {name!r} is not in {self.path}{hint}")


def listed(names: list[str], most: int = 12) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
