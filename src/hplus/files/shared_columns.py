"""Columns that the folders of a partitioned data set name: the same text in all rows of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hplus.files.chunked_table import Table
from hplus.files.conditions import Condition, Tally
from hplus.files.extras import arrow
from hplus.files.rows import Chunk


@dataclass(frozen=True)
class SharedColumns:
    """Reads a table, and columns that have the same text in every row."""

    table: Table
    shared: dict[str, str]

    def __call__(self, wanted: list[str], tally: Tally, where: Condition | None) -> Iterator[Chunk]:
        """Chunks of some columns; none if the condition holds for no row by these alone."""
        own = [name for name in wanted if name not in self.shared]
        if where is not None and set(where.columns) <= set(self.shared) and self.table.rows:
            one = Chunk({name: arrow().array([self.shared[name]]) for name in where.columns})
            if not len(where.chosen(one, Tally())):
                tally.left_out[where.reason] += self.table.rows
                return
        inner = where if where is not None and not set(where.columns) & set(self.shared) else None
        read = own or self.table.names[:1]
        for chunk in self.table.read(read, tally, inner):
            same = {n: arrow().repeat(t, len(chunk)) for n, t in self.shared.items() if n in wanted}
            columns = {name: chunk.columns[name] for name in own} | same
            yield Chunk(columns, chunk.first, chunk.decimal)
